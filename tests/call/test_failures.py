"""What is asked of functions that catch failures: other transforms, bound and C functions, batches, files."""
from __future__ import annotations

import ctypes
import warnings
from typing import Any

import numpy as np
import pytest
from numpy.linalg import LinAlgError

import jitad
from jitad import batch, hessian, jit, jit_grad, jvp, vjp
from jitad.errors import TapeMismatchWarning
from tests.helpers.failures import ALSO_BAD, ALSO_GOOD, BAD, GOOD, caught_outside, log_det, matrix, raised_again, slope
from tests.helpers.public import compiling, fresh  # noqa: F401


def test_other_transforms() -> None:
    t = np.array([1.0, -1.0, 2.0])
    for order in ([GOOD, BAD], [BAD, GOOD]):
        jitad.cache.clear()
        for x in order:
            expected = slope(caught_outside, x)
            value, pullback = vjp(caught_outside, x)
            np.testing.assert_allclose(value, caught_outside(x), rtol=1e-12)
            np.testing.assert_allclose(pullback(2.0)[0], 2.0 * expected, rtol=1e-6, atol=1e-6)
            np.testing.assert_allclose(jvp(caught_outside, (x,), (t,))[1], expected @ t, rtol=1e-6, atol=1e-6)
            curved = hessian(caught_outside)(x)
            np.testing.assert_allclose(curved, [slope(lambda v, i=i: jit_grad(caught_outside)(v)[i], x, 1e-5)
                                                for i in range(3)], rtol=1e-5, atol=1e-5)


def test_bound_functions_and_c_functions() -> None:
    def f(x: Any, scale: Any) -> Any:
        try:
            return log_det(matrix(x) * scale)
        except LinAlgError:
            return -x[1] ** 2
    for first in (GOOD, BAD):
        g = jit_grad(f)
        bound, c = g.bind(2.0), g.compile(first, 2.0).cfunc
        call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, *[ctypes.c_void_p] * 4)(c.address)
        for x in (GOOD, BAD, ALSO_GOOD, ALSO_BAD):
            expected = slope(lambda v: f(v, 2.0), x)
            np.testing.assert_allclose(bound(x), expected, rtol=1e-6, atol=1e-6)
            gradient, value = np.zeros(3), np.zeros(1)
            point = x.copy()
            assert call(3, point.ctypes.data, gradient.ctypes.data, value.ctypes.data, c.data) == 0
            np.testing.assert_allclose(value[0], f(x, 2.0), rtol=1e-12)
            np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-6)
        jitad.cache.clear()


def test_a_c_function_says_what_is_not_caught() -> None:
    g = jit_grad(raised_again)
    c = g.compile(GOOD).cfunc
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, *[ctypes.c_void_p] * 4)(c.address)
    gradient, value, point = np.zeros(3), np.zeros(1), BAD.copy()
    assert call(3, point.ctypes.data, gradient.ctypes.data, value.ctypes.data, c.data) == 1


@pytest.mark.parametrize("length", [2, 5, 20])
def test_batches(length: int) -> None:
    good = np.linspace(0.1, 0.5, length)[:, None] * [1.0, 0.0, 0.0] + [0.0, 0.3, 1.5]
    bad = good + np.array([1.5, 0.0, 0.0])
    mixed = np.where(np.arange(length)[:, None] % 2, good, bad)
    for order in ([good, bad, mixed], [mixed, bad, good]):
        jitad.cache.clear()
        g = batch(jit_grad(caught_outside))
        for points in (*order, *order):
            np.testing.assert_allclose(g(points), [slope(caught_outside, x) for x in points], rtol=1e-6, atol=1e-6)


def test_inside_recorded_code() -> None:
    def f(x: Any) -> Any:
        return np.sum(jit_grad(caught_outside)(x) ** 2)
    for order in ([GOOD, BAD, ALSO_GOOD], [BAD, GOOD]):
        jitad.cache.clear()
        g = jit(f)
        with compiling(2):
            found = [g(x) for x in order]
        np.testing.assert_allclose(found, [np.sum(slope(caught_outside, x) ** 2) for x in order], rtol=1e-6)


def test_a_kernel_does_not_factor_twice() -> None:
    compiled = jit_grad(caught_outside).compile(GOOD)
    assert "cholesky_fails" in str(compiled.tape) and "cholesky_fails" not in compiled.source
    assert "cholesky_fails" in jit_grad(caught_outside).compile(BAD).source
    batched = batch(jit_grad(caught_outside)).compile(np.stack([GOOD, ALSO_GOOD] * 4))
    assert "cholesky_fails" in str(batched.tape) and "cholesky_fails" not in batched.source


def test_the_interpreter_and_the_printed_code_agree() -> None:
    for x in (GOOD, BAD):
        compiled = jit_grad(caught_outside).compile(x)
        np.testing.assert_allclose(compiled.interpret(x), slope(caught_outside, x), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(compiled.step(x), slope(caught_outside, x), rtol=1e-6, atol=1e-6)


def test_saved_tapes(tmp_path: Any) -> None:
    for place, x in enumerate((GOOD, BAD)):
        jit(caught_outside).compile(x).save(tmp_path / f"{place}.jitad")
        loaded = jitad.load(tmp_path / f"{place}.jitad")
        np.testing.assert_allclose(loaded(x), caught_outside(x), rtol=1e-12)


def test_one_warning_names_the_line() -> None:
    g = jit(caught_outside)
    g(GOOD)
    with pytest.warns(TapeMismatchWarning, match=r"another way is taken at .*failures\.py:\d+"):
        g(BAD)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert g(ALSO_BAD) == caught_outside(ALSO_BAD) and g(ALSO_GOOD) == pytest.approx(caught_outside(ALSO_GOOD))


def test_a_branch_of_cond_that_is_not_taken_does_not_fail() -> None:
    def f(x: Any) -> Any:
        return jitad.cond(x[0] < 0.5, lambda: np.sum(np.linalg.cholesky(matrix(x))), lambda: x[1] ** 2)
    g, h = jit_grad(f), jit(lambda x: helper_tries(f, x))
    for x in (BAD, GOOD, ALSO_BAD):
        np.testing.assert_allclose(g(x), slope(f, x), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(h(x), f(x), rtol=1e-12)


def helper_tries(f: Any, x: Any) -> Any:
    try:
        return f(x)
    except LinAlgError:
        return x[2]
