"""Random programs of branches, loops and assignments, on inputs that take them other ways than the first did, against a
complex step through NumPy alone, and against recording them afresh."""
from __future__ import annotations

import numpy as np
import pytest

from jitad import value_and_grad
from jitad.cache.keys.identity import unwrap
from jitad.call.build.specialize import complete
from jitad.passes.differentiate.modes import one, pullback
from jitad.passes.reroll.reroll import reroll
from jitad.tape.evaluate import evaluate
from jitad.trace.record import record
from tests.helpers.mixed_programs import LONG, N, complex_step, program, source
from tests.helpers.public import fresh  # noqa: F401

MANY = range(30)          # by the interpreter, which takes no time to compile
LEAST = 12                # nodes that a loop must save: few, so that short loops are rolled up too


@pytest.fixture(autouse=True)
def roll_up_early(monkeypatch):
    monkeypatch.setattr("jitad.call.build.specialize.reroll", lambda *args, **options: reroll(*args, LEAST, **options))


COMPILED = (9, 23)


def inputs(seed):
    """Calls: the first, one near it, two elsewhere, and the first again."""
    rng = np.random.default_rng(seed + 1_000_000)
    x, y = rng.uniform(-1.5, 1.5, N), rng.uniform(-1, 1, LONG)
    return [(x, y), (x + 0.01 * rng.normal(size=N), y), (rng.uniform(-1.5, 1.5, N), rng.uniform(-1, 1, LONG)),
            (x, y[::-1].copy()), (x, y)]


def interpreted(g, x, y):
    """The call by the interpreter: the way through the branches chosen as for a kernel."""
    arguments = g.subject.arguments((x, y), {})
    entry = g.specialized(arguments)
    complete(entry, g.subject.target, arguments)
    return entry.interpret([*arguments.inputs, *entry.captured(g.subject.target)])


def afresh(f, x, y):
    """Recorded for this call alone, no loop rolled up, nothing optimised."""
    recording = record(unwrap(f), (x, y))
    builder, (value,) = recording.builder, recording.outputs
    slope, = pullback(builder, [value], [one(value)], recording.argument_inputs[:1])
    return evaluate(builder.finish([value, slope]), x, y)


def check(seed, call, others=False):
    f, text = program(seed)
    g = value_and_grad(f)
    for x, y in inputs(seed):
        with np.errstate(all="ignore"):
            value, slope = complex_step(f, x, y)
        if not np.isfinite([value, *slope]).all() or np.abs(slope).max() > 1e6:      # a loop that is chaotic
            continue
        scale = 1 + np.abs(slope).max()
        for got, by in [call(g, x, y), *([afresh(f, x, y)] if others else [])]:
            np.testing.assert_allclose(got, value, rtol=1e-9, atol=1e-9, err_msg=text)
            np.testing.assert_allclose(by, slope, rtol=1e-7, atol=1e-8 * scale, err_msg=text)


@pytest.mark.parametrize("seed", MANY)
def test_by_the_interpreter(seed):
    check(seed, interpreted, others=seed % 5 == 0)


@pytest.mark.parametrize("seed", COMPILED)
def test_by_kernels(seed):
    check(seed, lambda g, x, y: g(x, y))


def test_the_programs_have_what_they_are_for():
    """Loops that are rolled up, guards, siblings, and every kind of statement."""
    rolled = guarded = ways = 0
    for seed in (4, 6, 7, 10, 12, 13, 14, 21, 27):
        g = value_and_grad(program(seed)[0])
        found = [g.specialized(g.subject.arguments(call, {})) for call in inputs(seed)]
        entries = {id(entry): entry for entry in found}
        ways += len(entries) > 1
        rolled += any(n.prim.kind == "scan" for e in entries.values() for n in e.tape.nodes)
        guarded += any(e.guarded for e in entries.values())
    assert rolled >= 4 and guarded >= 7 and ways >= 4
    text = "".join(map(source, range(40)))
    for part in ("while ", "break", "elif ", "[::-1]", ".append(", "np.where", " = np.zeros", "]] = ", " > ", "+= "):
        assert part in text, part
