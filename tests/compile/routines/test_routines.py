"""The linear algebra of compiled kernels, and its plain Python version, against NumPy and SciPy."""
from __future__ import annotations

import ctypes
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import jitad.compile.reference.functions  # noqa: F401  (fills the table)
from jitad.compile.emit.llvm import emit_llvm
from jitad.compile.emit.python import emit_python
from jitad.compile.llvm import ir
from jitad.compile.llvm.native import compile_module
from jitad.compile.loops import STATUS_LINALG, Buffer, CallRoutine, Program
from jitad.compile.reference.table import ROUTINES as PLAIN
from jitad.compile.routines import table as routines
from jitad.primitives.linalg.matrices import routine_numbers
from jitad.tape.types import TABLE

CASES = [(1, "f8"), (2, "f8"), (5, "f8"), (40, "f8"), (200, "f8"), (5, "f4"), (40, "f4")]
WAYS = ["llvm", "python"]
SLACK = {"f8": 1e-11, "f4": 2e-3}


def program(routine: str, shapes: tuple[tuple[int, ...], ...], numbers: tuple[int, ...], dtype: str) -> Program:
    """``x0 = routine(x1, ...)``."""
    out, *operands = (Buffer(f"x{i}", dtype, s, "input" if i else "output") for i, s in enumerate(shapes))
    names = (out.name, *(b.name for b in operands))
    return Program(tuple(operands), (out,), (), [CallRoutine(routine, names, numbers)], (), {})


@cache
def compiled(routine: str, shapes: tuple[tuple[int, ...], ...], numbers: tuple[int, ...], dtype: str) -> Any:
    module = ir.Module()
    emit_llvm(program(routine, shapes, numbers, dtype), module, "kernel")
    native = compile_module(module, level=1)
    return native, native.function("kernel", *[ctypes.c_void_p] * len(shapes))


def run(way: str, routine: str, shape: tuple[int, ...], numbers: tuple[int, ...], *operands: Any) -> tuple[int, Any]:
    """Status and result."""
    operands = tuple(map(np.ascontiguousarray, operands))
    dtype = operands[0].dtype.str[1:]
    out = np.full(shape, 77.0, operands[0].dtype)
    shapes = (shape, *(o.shape for o in operands))
    if way == "llvm":
        return compiled(routine, shapes, numbers, dtype)[1](*(o.ctypes.data for o in (*operands, out))), out
    names: dict[str, Any] = {}
    exec(emit_python(program(routine, shapes, numbers, dtype)), names)
    return names["sweep"](*operands, out)[0], out


def value(way: str, routine: str, shape: tuple[int, ...], numbers: tuple[int, ...], *operands: Any) -> Any:
    status, out = run(way, routine, shape, numbers, *operands)
    assert status == 0
    return out


def close(got: Any, want: Any, dtype: str) -> None:
    slack = SLACK[dtype]
    np.testing.assert_allclose(got, want, rtol=slack, atol=slack * max(1.0, float(np.abs(want).max(initial=0.0))))


def random(*shape: int, dtype: str = "f8", seed: int = 0) -> Any:
    return np.random.default_rng(seed + sum(shape)).normal(size=shape).astype(dtype)


def regular(*shape: int, dtype: str = "f8") -> Any:
    return (random(*shape) + 2 * np.sqrt(shape[-1]) * np.eye(shape[-1])).astype(dtype)


def definite(*shape: int, dtype: str = "f8") -> Any:
    a = random(*shape)
    return (a @ np.swapaxes(a, -1, -2) / shape[-1] + np.eye(shape[-1])).astype(dtype)


BATCHES = {1: (), 2: (2, 3), 200: ()}                                          # else (3,)
both = pytest.mark.parametrize("way", WAYS)
cases = pytest.mark.parametrize("n, dtype", CASES)


@both
@pytest.mark.parametrize("n, dtype", [*CASES, (8, "f8"), (9, "f8")])
def test_cholesky(way, n, dtype) -> None:
    batch = BATCHES.get(n, (3,))
    a = definite(*batch, n, n, dtype=dtype)
    a += np.triu(np.full((n, n), 1e6), 1).astype(dtype)                   # not to be read
    got = value(way, "cholesky", a.shape, (int(np.prod(batch)), n), a)
    close(got, np.linalg.cholesky(a.astype("f8")), dtype)
    assert (np.triu(got, 1) == 0).all()


@both
@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_cholesky_fails_on_any_matrix_of_the_batch(way, n) -> None:
    a = definite(3, n, n)
    a[2, n - 1, n - 1] = -1.0
    assert run(way, "cholesky", a.shape, (3, n), a)[0] == STATUS_LINALG
    a[2, n - 1, n - 1] = np.nan
    status, got = run(way, "cholesky", a.shape, (3, n), a)
    assert status == 0 and np.isnan(got[2, n - 1, n - 1])


@both
@pytest.mark.parametrize("n, k, dtype", [(1, 1, "f8"), (2, 3, "f8"), (5, 1, "f8"), (8, 3, "f8"), (40, 1, "f8"),
                                         (200, 3, "f8"), (5, 3, "f4"), (40, 3, "f4")])
def test_solve_triangular(way, n, k, dtype) -> None:
    a, b = regular(2, n, n, dtype=dtype), random(2, n, k, dtype=dtype)
    a[0, 0, n - 1] += 0.5
    for lower, trans, unit in np.ndindex(2, 2, 2):
        m = a * np.asarray(0.2 / np.sqrt(n), dtype) if unit else a
        got = value(way, "solve_triangular", b.shape, (2, n, k, lower, trans, unit), m, b)
        want = [scipy.linalg.solve_triangular(x, y, trans=trans, lower=bool(lower), unit_diagonal=bool(unit))
                for x, y in zip(m.astype("f8"), b.astype("f8"), strict=True)]
        close(got, want, dtype)


@both
@pytest.mark.parametrize("n", [1, 3, 40])
def test_zero_on_the_diagonal(way, n) -> None:
    a, b = regular(2, n, n), random(2, n, 2)
    a[1, n // 2, n // 2] = 0.0
    assert run(way, "solve_triangular", b.shape, (2, n, 2, 1, 0, 0), a, b)[0] == STATUS_LINALG
    assert run(way, "solve_triangular", b.shape, (2, n, 2, 1, 0, 1), a, b)[0] == 0


@both
@pytest.mark.parametrize("k", [1, 3])
@cases
def test_solve(way, n, dtype, k) -> None:
    batch = BATCHES.get(n, (3,))
    a, b = regular(*batch, n, n, dtype=dtype), random(*batch, n, k, dtype=dtype)
    got = value(way, "solve", b.shape, (int(np.prod(batch)), n, k), a[..., ::-1, :], b)
    close(got, np.linalg.solve(a[..., ::-1, :].astype("f8"), b.astype("f8")), dtype)


@both
@cases
def test_inverse_and_determinants(way, n, dtype) -> None:
    batch = BATCHES.get(n, (3,))
    count = int(np.prod(batch))
    a = regular(*batch, n, n, dtype=dtype)[..., ::-1, :]
    exact = a.astype("f8")
    close(value(way, "inv", a.shape, (count, n, 1), a), np.linalg.inv(exact), dtype)
    close(value(way, "inv", a.shape, (count, n, 0), a), np.linalg.inv(exact), dtype)
    sign, log = np.linalg.slogdet(exact)
    np.testing.assert_array_equal(value(way, "slogdet_sign", batch, (count, n), a), sign)
    close(value(way, "slogdet_log", batch, (count, n), a), log, dtype)
    if np.abs(log).max() < 80:
        np.testing.assert_allclose(value(way, "det", batch, (count, n), a), np.linalg.det(exact), rtol=SLACK[dtype])


@both
@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_singular(way, n) -> None:
    a, b = regular(3, n, n), random(3, n, 2)
    a[1, :, n // 2] = 0.0
    assert run(way, "solve", b.shape, (3, n, 2), a, b)[0] == STATUS_LINALG
    assert run(way, "inv", a.shape, (3, n, 1), a)[0] == STATUS_LINALG
    assert np.isnan(value(way, "inv", a.shape, (3, n, 0), a)).all(axis=(1, 2)).tolist() == [False, True, False]
    assert (value(way, "det", (3,), (3, n), a) == 0).tolist() == [False, True, False]
    assert value(way, "slogdet_sign", (3,), (3, n), a)[1] == 0
    assert value(way, "slogdet_log", (3,), (3, n), a)[1] == -np.inf


@both
def test_determinants_at_the_ends_of_the_range(way) -> None:
    for diagonal in ([1e-200] * 2 + [1e200] * 2, [1e200, 1e200, 1e-300, -1e-90], [1e300, 1e300, 1e300], [np.nan, 1.0]):
        a = np.diag(np.array(diagonal))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            np.testing.assert_allclose(value(way, "det", (), (1, len(a)), a), np.linalg.det(a), rtol=1e-12)


@both
@pytest.mark.parametrize("dtype, sizes", [("f8", (13, 20, 17)), ("f4", (13, 20, 17)), ("f8", (1, 3, 2)),
                                          ("f8", (2, 0, 3)), ("f8", (19, 11, 9)), ("f4", (6, 21, 33)),
                                          ("f8", (37, 5, 25))])
@pytest.mark.parametrize("spec", ["ij,jk->ik", "ij,kj->ik", "ji,jk->ik", "ji,kj->ik", "ij,jk->ki", "ij,kj->ki",
                                  "ji,jk->ki", "ji,kj->ki"])
def test_gemm(way, dtype, sizes, spec) -> None:
    left, right = spec.split("->")[0].split(",")
    side = dict(zip("ijk", sizes, strict=True))
    a, b = (random(*(side[c] for c in letters), dtype=dtype) for letters in (left, right))
    want = np.einsum(spec, a.astype("f8"), b.astype("f8"))
    params = {"spec": spec, "by_columns": (False, False)}
    name, numbers = "gemm", routine_numbers(TABLE["gemm"], [a.shape, b.shape], params)
    close(value(way, name, want.shape, numbers, a, b), want, dtype)


@both
@pytest.mark.parametrize("n, dtype", [(1, "f8"), (2, "f8"), (3, "f8"), (5, "f8"), (20, "f8"), (3, "f4"), (5, "f4")])
def test_cofactors(way, n, dtype) -> None:
    a, e = regular(4, n, n, dtype=dtype), random(4, n, n, dtype=dtype)
    a[1, 0] = 0.0
    a[2, -1] = a[2, 0]
    a[3] = 1.0
    for name, numbers, operands in (("cofactor", (4, n), (a,)), ("cofactor_tangent", (4, n, n), (a, e))):
        want = TABLE[name].evaluate(*(o.astype("f8") for o in operands))
        got = value(way, name, a.shape, numbers, *operands)
        for g, w in zip(got, want, strict=True):
            close(g, w, dtype)
    a[0, 0, 0] = np.nan
    if n > 3:
        assert np.isnan(value(way, "cofactor", a.shape, (4, n), a)).any(axis=(1, 2)).tolist() == [True] + [False] * 3


@both
def test_empty(way) -> None:
    none, flat = np.zeros((2, 0, 0)), np.zeros((2, 4, 0))
    assert value(way, "cholesky", (2, 0, 0), (2, 0), none).size == 0
    assert value(way, "cholesky", (0, 4, 4), (0, 4), np.zeros((0, 4, 4))).size == 0
    assert value(way, "inv", (0, 40, 40), (0, 40, 1), np.zeros((0, 40, 40))).size == 0
    for n, a, b in ((0, none, np.zeros((2, 0, 3))), (4, regular(2, 4, 4), flat)):
        k = b.shape[-1]
        assert value(way, "solve", b.shape, (2, n, k), a, b).size == 0
        assert value(way, "solve_triangular", b.shape, (2, n, k, 1, 0, 0), a, b).size == 0
    assert value(way, "det", (2,), (2, 0), none).tolist() == [1, 1]
    assert value(way, "slogdet_sign", (2,), (2, 0), none).tolist() == [1, 1]
    assert value(way, "slogdet_log", (2,), (2, 0), none).tolist() == [0, 0]


@pytest.mark.parametrize("n", [5, 80])
def test_threads(n) -> None:
    matrices = [regular(n, n) + i for i in range(8)]
    run("llvm", "inv", (n, n), (1, n, 1), matrices[0])

    def repeated(a: Any) -> float:
        want = np.linalg.inv(a)
        return max(float(np.abs(run("llvm", "inv", (n, n), (1, n, 1), a)[1] - want).max()) for _ in range(20))
    with ThreadPoolExecutor(4) as pool:
        assert max(pool.map(repeated, matrices)) < 1e-12


def test_every_routine_has_a_python_version() -> None:
    assert set(PLAIN) == {*routines.ROUTINES, "opaque"} - {"clock"}         # which kernels of profiles have
    with pytest.raises(NotImplementedError, match="no compiled routine"):
        run("llvm", "no_such_routine", (2, 2), (1, 2), np.eye(2))
