"""Rewrites keep the values that NumPy has: no overflow or underflow of their own, and zero for a sum of nothing."""
from __future__ import annotations

import numpy as np
import pytest

from jitad import jit
from jitad.passes.optimise.rewrites import optimise
from jitad.primitives.reduce import reduce_sum
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
