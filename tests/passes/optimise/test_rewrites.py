"""Rewrites keep the values that NumPy has: no overflow or underflow of their own, and zero for a sum of nothing."""
from __future__ import annotations

import numpy as np
import pytest

from jitad import jit
from jitad.passes.optimise.rewrites import optimise
from jitad.primitives.reduce import contract, parse, reduce_sum
from jitad.primitives.view import broadcast_to
from jitad.tape.builder import Builder
from jitad.tape.evaluate import evaluate
from jitad.tape.types import Aval


@pytest.mark.parametrize("f, x", [
    (lambda x, y: x * (y * 0.5), (1e308, 2.0)),
    (lambda x, y: x * (y * 2.0**-29), (1e300, 1e10)),
    (lambda x, y: x * (y * 2.0**29), (1e-160, 1.2345678e-160)),
    (lambda x, y: (x * 1e306) * 1024 + y, (1e-10, 0.0)),
    (lambda x, y: (x * 1.2345678e-305) / 1024 + y, (1e20, 0.0)),
    (lambda x, y: x**-2.0 + y, (1e160, 0.0)),
    (lambda x, y: x**-2.0 + y, (1e-310, 0.0)),
])
def test_no_overflow_or_underflow_that_numpy_does_not_have(f, x) -> None:
    a, b = (np.array([v]) for v in x)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(jit(f)(a, b), f(a, b), rtol=1e-15)


def test_a_sum_of_nothing_is_zero() -> None:
    builder = Builder()
    x = builder.input(Aval((), np.dtype(float)), "x")
    tape = builder.finish([reduce_sum(broadcast_to(x, (0,)), (0,))])
    assert evaluate(optimise(tape), np.inf)[0] == 0


@pytest.mark.parametrize("spec", ["ij,jk->ik", "ij,ij->i", "ij,jk->ki", "ij,ji->ij"])
@pytest.mark.parametrize("first", [True, False])
def test_a_product_with_ones_is_a_sum(spec, first) -> None:
    left, right, out = parse(spec)
    x, builder = np.array([[1.0, np.inf, 2.0], [0.5, -0.0, np.nan], [3.0, 4.0, -1.0]]), Builder()
    value = builder.input(Aval(x.shape, x.dtype), "x")
    ones = broadcast_to(builder.const(1.0), x.shape)
    operands, given = ((value, ones), (left, right)) if first else ((ones, value), (right, left))
    tape = optimise(builder.finish([contract(*operands, f"{given[0]},{given[1]}->{out}")]))
    assert "contract" not in str(tape)
    expected = np.einsum(f"{left},{right}->{out}", x, np.ones((3, 3)))
    if not first:
        expected = np.einsum(f"{right},{left}->{out}", np.ones((3, 3)), x)
    np.testing.assert_array_equal(evaluate(tape, x)[0], expected)
