"""The scalar code of the rows against NumPy at special values, and the NumPy evaluator of scalar expressions."""
from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

import jitad.primitives  # noqa: F401  (fills the table)
from jitad.compile.llvm.cython_special import is_special
from jitad.compile.math.algorithms import ROUTINES
from jitad.compile.math.table import EXPANSIONS
from jitad.compile.reference import scalar as scalar_numpy
from jitad.primitives import scalars
from jitad.tape.expr import Expr, bits, call, cast, const, load, select, unbits, var
from jitad.tape.types import TABLE
from jitad.testing import rules as checks
from jitad.testing import scalar

UFUNCS = [row for row in TABLE.values() if row.ufunc is not None]
MACHINE = "sqrt floor ceil trunc rint copysign select bits unbits cast not"
TOLERANCE = {"logit": 1e-13, "logaddexp2": 1e-14,    # SciPy and we differ in the last places near a zero
             "riemann": 2e-15, "boxcox1p": 5e-14}    # the error of SciPy's boxcox1p grows with the exponent
POINTERS = [row for row in UFUNCS if row.pointer]              # SciPy's functions themselves
OWN_TEST = {"zeta": "SciPy gives NaN for huge exponents; tested in test_special.py"}


def operations(expr: Expr) -> set[str]:
    seen, stack = set(), [expr]
    while stack:
        node = stack.pop()
        seen.add(node.op)
        stack.extend(a for a in node.args if isinstance(a, Expr))
    return seen


@pytest.mark.parametrize("kind", ["f8", "f4", "i8", "b1"])
@pytest.mark.parametrize("row", [r for r in UFUNCS if r not in POINTERS and r.name not in OWN_TEST], ids=str)
def test_scalar_code_at_special_values(row, kind) -> None:
    if not scalar.check_scalar(row, kind, TOLERANCE.get(row.name, 1e-15)):
        with pytest.raises(TypeError):
            TABLE[row.name].infer(*[checks_aval(kind)] * row.ufunc.nin)


def checks_aval(kind: str):
    from jitad.tape.types import Aval
    return Aval((), scalar_numpy.DTYPES[kind])


@pytest.mark.parametrize("row", [r for r in TABLE.values() if r.scalar is not None], ids=str)
def test_every_operation_has_an_implementation(row) -> None:
    known = {*EXPANSIONS, *MACHINE.split(), *scalar_numpy.OPERATIONS, "fmod", "const", "var", *ROUTINES}
    case = checks.cases(row)[0] if row.samples else None
    arity = len(case.inputs) if case else 1
    params = case.params if case else {}
    tags = [scalar.tag(a.dtype) for a in case.inputs] if case else ["f8"]
    unknown = operations(row.scalar(*(var(f"x{i}", tags[i]) for i in range(arity)), **params)) - known
    assert all(map(is_special, unknown))


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_polygamma(n: int) -> None:
    x = np.array([0.1, 1.0, 2.5, 30.0, 1e10, np.inf, np.nan, -0.5, -1.25, -7.3, 0.0])
    code = scalar_numpy.evaluate(scalars.polygamma(var("x", "f8"), n), {"x": x})
    np.testing.assert_allclose(code, special.polygamma(n, x), rtol=2e-12)
    np.testing.assert_allclose(TABLE["polygamma"].evaluate(x, n=n), special.polygamma(n, x), rtol=2e-12)


def test_polygamma_at_poles() -> None:
    x = np.array([-1.0, -2.0, -1e10])
    for n in (1, 3):
        assert np.isposinf(scalar_numpy.evaluate(scalars.polygamma(var("x", "f8"), n), {"x": x})).all()
        assert np.isposinf(TABLE["polygamma"].evaluate(x, n=n)).all()


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 10, 63, 64, 1000])
def test_integer_powers_by_a_literal(exponent: int) -> None:
    a = np.array(scalar.SPECIAL["i8"])
    expr = scalars.power(var("a", "i8"), const(exponent, "i8"))
    np.testing.assert_array_equal(scalar_numpy.evaluate(expr, {"a": a}), a ** np.int64(exponent))


# --- the evaluator ---------------------------------------------------------------------------------------

def test_integer_division_is_that_of_c_and_traps() -> None:
    a, b = var("a", "i8"), var("b", "i8")
    np.testing.assert_array_equal(scalar_numpy.evaluate(a / b, {"a": [7, -7, 7, -7, 6], "b": [2, 2, -2, -2, -3]}),
                                  [3, -3, -3, 3, -2])
    for bad in ({"a": [1], "b": [0]}, {"a": [-2**63], "b": [-1]}):
        with pytest.raises(ZeroDivisionError):
            scalar_numpy.evaluate(a / b, bad)


def test_booleans_have_no_arithmetic() -> None:
    p = var("p", "b1")
    with pytest.raises(TypeError, match="booleans"):
        scalar_numpy.evaluate(p + p, {"p": True})


def test_operands_of_different_dtypes_are_refused() -> None:
    with pytest.raises(TypeError, match="different dtypes"):
        scalar_numpy.evaluate(var("x", "f8") + var("n", "i8"), {"x": 1.0, "n": 1})


def test_bits_shifts_loads_and_casts() -> None:
    x, i = var("x", "f8"), var("i", "i8")
    data = {"x": np.array([1.0, -2.5, 1e-300]), "i": np.array([0, 2, 1]), "buffer": np.array([5.0, 6.0, 7.0])}
    np.testing.assert_array_equal(scalar_numpy.evaluate(unbits(bits(x)), data), data["x"])
    np.testing.assert_array_equal(scalar_numpy.evaluate(call("lshr", bits(x), const(63, "i8")), data), [0, 1, 0])
    np.testing.assert_array_equal(scalar_numpy.evaluate(bits(x) >> 63, data), [0, -1, 0])
    np.testing.assert_array_equal(scalar_numpy.evaluate(load("buffer", [i], "f8"), data), [5.0, 7.0, 6.0])
    np.testing.assert_array_equal(scalar_numpy.evaluate(cast(x, "i8"), data), [1, -2, 0])
    assert scalar_numpy.evaluate(cast(x, "f4"), data).dtype == np.float32
    np.testing.assert_array_equal(scalar_numpy.evaluate(select(x > 0, x, 0.0), data), [1.0, 0.0, 1e-300])


def test_shared_and_deep_expressions() -> None:
    total = var("x", "f8")
    for _ in range(5000):
        total = total + total * 0.0
    assert scalar_numpy.evaluate(total, {"x": 3.0}) == 3.0


def test_unsigned_literals() -> None:
    assert scalar_numpy.evaluate(const(2**64 - 1, "i8"), {}) == -1
    assert math.isnan(scalar_numpy.evaluate(const(math.nan), {}))
