"""The routines of BLAS and LAPACK that libraries have of their own, against SciPy's, and densities that need them."""
from __future__ import annotations

import ctypes
import itertools
import subprocess

import numpy as np
import pytest
from scipy.linalg import blas, lapack

import jitad
from jitad.export.library import LINEAR

rng = np.random.default_rng(0)


@pytest.fixture(scope="module")
def call(tmp_path_factory):
    path = tmp_path_factory.mktemp("linear") / "linear.so"
    subprocess.run(["cc", "-O3", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", path, LINEAR, "-lm"],
                   check=True)
    library = ctypes.CDLL(str(path))

    def calling(name, *arguments):
        """With the status of LAPACK at the end."""
        info = ctypes.c_int(99)
        kinds = {str: lambda s: ctypes.c_char_p(s.encode()), int: lambda i: ctypes.byref(ctypes.c_int(i)),
                 float: lambda x: ctypes.byref(ctypes.c_double(x)), np.ndarray: lambda a: ctypes.c_void_p(
                     a.ctypes.data)}
        getattr(library, f"jitad_d{name}")(*(kinds[type(a)](a) for a in arguments), ctypes.byref(info))
        return info.value
    return calling


def matrix(*shape):
    return np.asfortranarray(rng.normal(size=shape))


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (5, 7, 3), (60, 51, 300)])
def test_products_and_triangles(call, m, n, k):
    for first, second, beta in itertools.product("NT", "NT", (0.0, 1.0, 0.5)):
        a, b = matrix(*((m, k) if first == "N" else (k, m))), matrix(*((k, n) if second == "N" else (n, k)))
        c = np.full((m, n), np.nan, order="F") if beta == 0.0 else matrix(m, n)
        expected = blas.dgemm(0.3, a, b, beta, c, first == "T", second == "T")
        call("gemm", first, second, m, n, k, 0.3, a, len(a), b, len(b), beta, c, m)
        np.testing.assert_allclose(c, expected, rtol=1e-12, atol=1e-13)
    for side, triangle, turned, diagonal in itertools.product("LR", "UL", "NT", "NU"):
        size = m if side == "L" else n
        a, b = np.asfortranarray(matrix(size, size) / size + 2 * np.eye(size)), matrix(m, n)
        kinds = {"lower": triangle == "L", "diag": diagonal == "U"}
        for name in ("trsm", "trmm"):
            found = b.copy(order="F")
            call(name, side, triangle, turned, diagonal, m, n, 1.5, a, size, found, m)
            expected = getattr(blas, f"d{name}")(1.5, a, b, side=side == "R", trans_a=turned == "T", **kinds)
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)
        x = matrix(size)
        expected = blas.dtrsv(a, x, trans=turned == "T", **kinds)
        call("trsv", triangle, turned, diagonal, size, a, size, x, 1)
        np.testing.assert_allclose(x, expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (7, 5), (60, 130), (130, 60)])
def test_factors(call, n, m):
    root = matrix(n, n)
    definite = np.asfortranarray(root @ root.T + np.eye(n))
    for triangle in "UL":
        low, found = triangle == "L", definite.copy(order="F")
        factor = lapack.dpotrf(definite, lower=low, clean=0)[0]
        assert call("potrf", triangle, n, found, n) == 0
        np.testing.assert_allclose(found, factor, rtol=1e-10, atol=1e-12)
        for name, more in (("trtri", ("N",)), ("lauum", ())):
            found = factor.copy(order="F")
            assert call(name, triangle, *more, n, found, n) == 0
            np.testing.assert_allclose(found, getattr(lapack, f"d{name}")(factor, lower=low)[0], rtol=1e-9, atol=1e-12)
        for wrong in (-1.0, np.nan):
            worse = definite.copy(order="F")
            worse[n // 2, n // 2] = wrong
            assert call("potrf", triangle, n, worse, n) == n // 2 + 1
    a = matrix(n, m)
    for zero in (False, True):
        if zero:
            a[:, 0] = 0.0
        found, pivots = a.copy(order="F"), np.zeros(min(n, m), np.int32)
        factor, expected, info = lapack.dgetrf(a)
        assert call("getrf", n, m, found, n, pivots) == info == int(zero)
        np.testing.assert_allclose(found, factor, rtol=1e-9, atol=1e-11)
        np.testing.assert_array_equal(pivots - 1, expected)


def test_a_process_and_a_system_in_a_library(tmp_path):
    """Of sides at which kernels call BLAS and LAPACK, value and gradient; and where there is no factor."""
    x, y = np.linspace(0, 5, 30), rng.normal(size=30)
    weights = rng.normal(size=(30, 30)) / 10

    def density(u, x, y, weights):
        covariance = np.exp(u[0] - 0.5 * (x[:, None] - x) ** 2 * np.exp(u[1])) + u[2] * np.eye(30)
        factor = np.linalg.cholesky(covariance)
        z = np.linalg.solve(factor, y)
        system = weights @ (weights.T * np.exp(u[3])) + 2 * np.eye(30) + u[2] * weights
        return -0.5 * z @ z - np.sum(np.log(np.diag(factor))) - np.sum(np.linalg.solve(system, y) ** 2)
    u = np.array([0.3, -0.2, 0.5, 0.1])
    compiled = jitad.value_and_grad(density).compile(u, x, y, weights)
    files = compiled.export(tmp_path / "process")
    assert files.library is not None
    library, value, slope = ctypes.CDLL(str(files.library)), ctypes.c_double(), np.zeros(4)
    evaluate = library.bs_log_density_gradient
    model = ctypes.c_void_p(_constructed(library))

    def status(at):
        return evaluate(model, True, True, ctypes.c_void_p(at.ctypes.data), ctypes.byref(value),
                        ctypes.c_void_p(slope.ctypes.data), None)
    expected = compiled(u, x, y, weights)
    assert status(u) == 0 and value.value == pytest.approx(expected[0], rel=1e-11)
    np.testing.assert_allclose(slope, expected[1], rtol=1e-9)
    assert status(np.array([0.3, -0.2, -0.5, 0.1])) != 0


def _constructed(library):
    make = library.bs_model_construct
    make.restype = ctypes.c_void_p
    return make(None, ctypes.c_uint(0), None)
