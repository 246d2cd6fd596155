"""What is captured and changes: every kind of capture times every kind of change."""
from __future__ import annotations

import linecache
import sys
import warnings
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from jitad import JitadError, jit, value_and_grad

from .staleness import HEAD, KINDS

PAIRS = [(kind, change) for kind in KINDS for change in kind.changes]
POINT = np.array([0.7, -0.4, 1.3])


def outcome(f: Any) -> Any:
    """What a call gives: a number, the class of an exception, or a refusal."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return f(POINT.copy())
        except JitadError as refusal:
            assert " at " in str(refusal) or "`" in str(refusal), refusal
            return "refused"
        except Exception as error:
            return type(error)


def same(found: Any, expected: Any) -> bool:
    if isinstance(found, str):
        return True
    if isinstance(expected, type) or isinstance(found, type):
        return found is expected
    return bool(np.allclose(found, expected, rtol=1e-12, atol=0, equal_nan=True))


@pytest.mark.parametrize(("kind", "change"), PAIRS, ids=[f"{k.name}: {c}" for k, c in PAIRS])
def test_a_change_is_seen(kind: Any, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"<staleness {kind.name}>"
    text = f"{HEAD}\n{kind.make}\n\ndef f(x):\n    return {kind.read}\n"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    monkeypatch.setitem(sys.modules, "changing", ModuleType("changing"))
    world = vars(sys.modules["changing"])
    exec(compile(text, name, "exec"), world)
    f = world["f"]
    compiled, gradient = jit(f), value_and_grad(f)
    for _ in range(2):
        first = outcome(compiled)
        assert same(first, outcome(f)), "before the change"
        outcome(gradient)
    assert first != "refused", "a kind that is always refused shows nothing"
    exec(change, world)
    for _ in range(2):
        assert same(outcome(compiled), outcome(f))
        found = outcome(gradient)
        if isinstance(found, tuple):
            assert same(found[0], outcome(f))
            fresh = outcome(value_and_grad(world["f"]))
            assert same(found[1], fresh[1])
