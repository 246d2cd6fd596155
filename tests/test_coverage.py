"""The table of coverage is complete and true: every public name of NumPy and SciPy has a standing and keeps to it."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from coverage_examples import EXAMPLES
from coverage_walk import PATTERNS, SLOW, call_of, outcome_of, plain_error

from jitad import coverage
from jitad.errors import JitadError, UnsupportedOperationError
from jitad.trace import reasons
from jitad.trace.distributions import is_library_distribution

FILE = Path(coverage.__file__).parent.parent / "COVERAGE.md"
COMMITTED = FILE.read_text()
SAME_VERSIONS = f"for {coverage.versions()}." in COMMITTED      # names of other versions are refused until they are claimed


def names_of(module):
    return {n: v for n, v in coverage.public(module).items() if not is_library_distribution(v)}


def test_every_name_has_a_standing():
    unclaimed = {f"{m}.{n}" for m in coverage.NAMESPACES for n in names_of(m)
                 if coverage.standing_of(m, n)[0] == coverage.UNCLAIMED}
    assert not (SAME_VERSIONS and unclaimed), f"give these a rule, or a reason in jitad/trace/reasons.py: {unclaimed}"


def test_the_file_is_what_the_code_says():
    assert COMMITTED == coverage.table() or not SAME_VERSIONS, "run python -m jitad.coverage COVERAGE.md"
    assert COMMITTED.count("## ") > len(coverage.NAMESPACES)


def test_reasons_are_known_and_given_once():
    for module, groups in reasons.REFUSED.items():
        names = " ".join(groups.values()).split() + reasons.PLAIN.get(module, "").split()
        assert set(groups) <= set(reasons.WHY) and len(names) == len(set(names)), module


@pytest.mark.parametrize("module", coverage.NAMESPACES)
def test_no_call_is_frozen(module):
    """Every function, called with traced arguments in a recording: a result that depends on them, a refusal, NumPy's
    own error, or, for functions that say so, a constant."""
    wrong = []
    for name in names_of(module):
        standing = coverage.standing_of(module, name)[0]
        for args in PATTERNS if name not in SLOW else ():
            expression = call_of(module, name, len(args))
            found = outcome_of(expression, args)
            if isinstance(found.error, JitadError) or found.dependent or standing == coverage.CONSTANT:
                continue
            if isinstance(found.error, (TypeError, ValueError, IndexError)) or name in ZERO:
                continue                                            # bad arguments
            plain = plain_error(expression, args)
            if plain is None and (found.error is not None or found.elements and not found.guarded):
                wrong.append(f"{expression} of {[np.shape(a) for a in args]}: {found.error!r}")
            elif plain is not None and found.error is None and not isinstance(plain, (ZeroDivisionError, TypeError)):
                wrong.append(f"{expression} of {[np.shape(a) for a in args]} does not raise {plain!r}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("module", coverage.NAMESPACES)
def test_what_is_called_differentiated_is(module):
    wrong = []
    for name in names_of(module):
        standing = coverage.standing_of(module, name)[0]
        calls = [EXAMPLES[module][name]] if name in EXAMPLES.get(module, {}) else [
            (call_of(module, name, len(args)), args) for args in PATTERNS] if name not in SLOW else []
        found = [outcome_of(*call) for call in calls]
        flows = any(d.kind == "f" for o in found for d in o.dependent)
        if standing == coverage.DIFFERENTIATED and not flows:
            wrong.append(f"{name}: {[o.error for o in found][:2]}")
        if standing in (coverage.CONSTANT, coverage.REFUSED) and flows and name not in INTEGRAL:
            wrong.append(f"{name} is {standing}, but its value is a float that depends on the arguments")
    assert not wrong, "\n".join(wrong)


ZERO = {"imag"}                                                     # of real numbers
# Their values are whole numbers, or signs, in a float's dtype.
INTEGRAL = {"ceil", "fix", "floor", "floor_divide", "around", "round", "rint", "trunc", "sign", "heaviside", "gammasgn",
            "histogram_bin_edges"}


@pytest.mark.parametrize("module", coverage.NAMESPACES)
def test_refusals_name_the_function_and_the_line(module):
    for name in names_of(module):
        if coverage.standing_of(module, name)[0] != coverage.REFUSED or name in SLOW:
            continue
        found = [outcome_of(call_of(module, name, len(args)), args).error for args in PATTERNS]
        refusals = [e for e in found if isinstance(e, UnsupportedOperationError)]
        assert any(isinstance(e, (JitadError, TypeError, ValueError)) for e in found), name
        for error in refusals:
            assert name in str(error) and "model.py:2" in str(error), error
