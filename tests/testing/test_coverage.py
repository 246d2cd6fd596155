"""The table of coverage is complete and true: every public name of NumPy and SciPy has a standing and keeps to it."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jitad.__main__ import main
from jitad.errors import JitadError, UnsupportedOperationError
from jitad.testing import coverage
from jitad.trace import reasons
from jitad.trace.scipy_rules.stats.distributions import is_library_distribution
from tests.testing.examples import EXAMPLES
from tests.testing.spellings import differing, differing_options
from tests.testing.walk import PATTERNS, SLOW, call_of, outcome_of, plain_error

FILE = Path(coverage.__file__).parent.parent.parent / "COVERAGE.md"
COMMITTED = FILE.read_text()
SAME_VERSIONS = f"for {coverage.versions()}." in COMMITTED      # other versions may have names that nobody claims


def names_of(module):
    return {n: v for n, v in coverage.public(module).items() if not is_library_distribution(v)}


def test_every_name_has_a_standing():
    unclaimed = {f"{m}.{n}" for m in coverage.NAMESPACES for n in names_of(m)
                 if coverage.standing_of(m, n)[0] == coverage.UNCLAIMED}
    assert not (SAME_VERSIONS and unclaimed), f"give these a rule, or a reason in jitad/trace/reasons.py: {unclaimed}"


def test_the_file_is_what_the_code_says():
    assert coverage.table() == COMMITTED or not SAME_VERSIONS, "run python -m jitad coverage COVERAGE.md"
    assert COMMITTED.count("## ") > len(coverage.NAMESPACES)


def test_the_command_writes_the_table(tmp_path, capsys):
    assert main(["coverage", str(tmp_path / "table.md")]) == 0 and not capsys.readouterr().out
    assert (tmp_path / "table.md").read_text() == coverage.table()



def test_reasons_are_known_and_given_once():
    for module, groups in reasons.REFUSED.items():
        names = " ".join(groups.values()).split() + reasons.PLAIN.get(module, "").split()
        assert set(groups) <= set(reasons.WHY) and len(names) == len(set(names)), module


ZERO = {"imag"}                                                     # of real numbers
# Their values are whole numbers, or signs, in a float's dtype.
INTEGRAL = {"ceil", "fix", "floor", "floor_divide", "around", "round", "rint", "trunc", "sign", "heaviside", "gammasgn",
            "histogram_bin_edges"}


def frozen(expression, args, found, standing):
    """What is wrong with a call if its result depends on the arguments in plain Python, but not on the tape."""
    if isinstance(found.error, (JitadError, TypeError, ValueError, IndexError)) or found.dependent or (
            standing == coverage.CONSTANT):
        return []
    plain = plain_error(expression, args)
    shapes = [np.shape(a) for a in args]
    if plain is None and (found.error is not None or (found.elements and not found.guarded)):
        return [f"{expression} of {shapes}: {found.error!r}"]
    if plain is not None and found.error is None and not isinstance(plain, (ZeroDivisionError, TypeError)):
        return [f"{expression} of {shapes} does not raise {plain!r}"]
    return []


def untrue(name, standing, outcomes):
    """What is wrong with a standing, given what the calls of a function do."""
    flows = any(d.kind == "f" for o in outcomes for d in o.dependent)
    if standing == coverage.DIFFERENTIATED and not flows:
        return [f"{name}: no derivative flows; {[o.error for o in outcomes][:2]}"]
    if standing in (coverage.CONSTANT, coverage.REFUSED) and flows and name not in INTEGRAL:
        return [f"{name} is {standing}, but its value is a float that depends on the arguments"]
    return []


def unclear(name, value, outcomes):
    """Refusals that do not name the function and the user's line."""
    names = {name, getattr(value, "__name__", name)}
    errors = [o.error for o in outcomes]
    if not any(isinstance(e, (JitadError, TypeError, ValueError)) for e in errors):
        return [f"{name} is not refused"]
    return [str(e) for e in errors if isinstance(e, UnsupportedOperationError) and (
        not any(n in str(e) for n in names) or "model.py:2" not in str(e))]


@pytest.mark.parametrize("module", coverage.NAMESPACES)
def test_every_function_keeps_to_its_standing(module):
    """Every function, called with traced arguments in a recording, gives a result that depends on them, is refused by
    name, raises NumPy's own error, or is one of those that say that they are constant."""
    wrong = []
    for name, value in names_of(module).items():
        if name in SLOW:
            continue
        standing = coverage.standing_of(module, name)[0]
        calls = [(call_of(module, name, len(args)), args) for args in PATTERNS]
        outcomes = [outcome_of(*call) for call in calls]
        for (expression, args), found in zip(calls, outcomes, strict=True):
            wrong += [] if name in ZERO else frozen(expression, args, found, standing)
        if name in EXAMPLES.get(module, {}):
            outcomes.append(outcome_of(*EXAMPLES[module][name]))
        wrong += untrue(name, standing, outcomes)
        if standing == coverage.REFUSED:
            wrong += unclear(name, value, outcomes)
    assert not wrong, "\n".join(wrong)


def test_every_spelling_is_the_same_call():
    """By an imported name, an alias, as a method, and with each option as what it is when left out; with flags, axes
    and numbers at other values, and with each text that is documented, it gives what NumPy gives."""
    wrong, tried, optional = [], 0, 0
    for module in coverage.NAMESPACES:
        if module.startswith("numpy.polynomial.") and not module.endswith(("chebyshev", "hermite_e")):
            continue                                     # written as these are
        for name, value in names_of(module).items():
            if name not in SLOW and coverage.standing_of(module, name)[0] == coverage.DIFFERENTIATED:
                found, count = differing(module, name, value)
                wrong, tried = wrong + found, tried + count
                found, count = differing_options(module, name, value)
                wrong, optional = wrong + found, optional + count
    assert not wrong, "\n".join(wrong)
    assert tried > 2500 and optional > 1000


def test_methods_of_arrays():
    found = coverage.methods()
    assert {found[n] for n in ("sum", "__add__", "T", "dot")} == {coverage.DIFFERENTIATED}
    assert {found[n] for n in ("argmax", "shape", "__lt__")} == {coverage.CONSTANT}
    refused = [n for n, kind in found.items() if kind == coverage.REFUSED]
    assert {"resize", "view", "tobytes", "byteswap"} <= set(refused)
    for name in refused:
        error = outcome_of(f"x.{name}" + ("()" if callable(getattr(np.ndarray, name)) else ""), PATTERNS[0]).error
        assert isinstance(error, (JitadError, TypeError)), name
