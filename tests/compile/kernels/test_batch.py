"""What kernels of batches are made of: transposes, tiles of steps side by side."""
from __future__ import annotations

import ctypes
from itertools import product
from typing import Any

import numpy as np
import pytest
from llvmlite import binding

import jitad
from jitad import batch, jit, value_and_grad
from jitad.compile.emit.llvm import emit_llvm
from jitad.compile.emit.python import emit_python
from jitad.compile.llvm import native
from jitad.compile.llvm.ir import Module
from jitad.compile.llvm.native import compile_module
from jitad.compile.loops import Buffer, Loop, Program, Transpose
from jitad.tape.expr import const
from tests.helpers.public import fresh  # noqa: F401

SIZES = (1, 3, 4, 6, 8, 10, 12, 13, 16, 19)
rng = np.random.default_rng(11)


def transposing(rows: int, columns: int, target: int, source: int) -> Program:
    size = rows * columns
    statement = Transpose("out", const(target, "i8"), "x", const(source, "i8"), rows, columns)
    return Program((Buffer("x", "f8", (size + source,), "input"),), (Buffer("out", "f8", (size + target,), "output"),),
                   (), [statement], (), {})


def test_transposes_of_all_sizes() -> None:
    module = Module()
    programs = {(r, c): transposing(r, c, 2, 1) for r, c in product(SIZES, repeat=2)}
    for (r, c), program in programs.items():
        emit_llvm(program, module, f"jitad_{r}_{c}")
    native = compile_module(module)
    for r, c in programs:
        x, out = rng.normal(size=r * c + 1), np.full(r * c + 2, np.nan)
        assert native.function(f"jitad_{r}_{c}", ctypes.c_void_p, ctypes.c_void_p)(x.ctypes.data, out.ctypes.data) == 0
        np.testing.assert_array_equal(out[2:].reshape(c, r), x[1:].reshape(r, c).T)
        assert np.isnan(out[:2]).all()                               # nothing beside it is touched
    made: dict[str, Any] = {}
    exec(emit_python(programs[3, 4]), made)
    x, out = rng.normal(size=13), np.zeros(14)
    made["sweep"](x, out)
    np.testing.assert_array_equal(out[2:].reshape(4, 3), x[1:].reshape(3, 4).T)


def tiled_loops(compiled: Any) -> list[Any]:
    return [s for s in compiled._printable.program.body if isinstance(s, Loop) and s.variable.startswith("tile")]


def optimise_for(processor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM's pipeline as for another processor, with wide vectors; code for this one is made of what it leaves."""
    other = binding.Target.from_default_triple().create_target_machine(cpu=processor, opt=3, jit=True)
    optimise, parsed, wide = native.optimise, native._parsed, native.preferring(512)
    monkeypatch.setattr(native, "optimise", lambda module, machine, level=2: optimise(module, other, level))
    monkeypatch.setattr(native, "_parsed", lambda text, machine: parsed(text + wide, machine))
    monkeypatch.setattr(native, "preferring", lambda bits: "")


X86 = binding.get_default_triple().startswith("x86_64")


@pytest.mark.parametrize("processor", ["", "skylake-avx512", "znver4"] if X86 else [""])
def test_gathers_of_outer_products(processor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also as LLVM optimises for vectors of 512 bits, which are wider than a tile of four steps."""
    if processor:
        optimise_for(processor, monkeypatch)
    for f in (lambda x: np.outer(x, x)[np.triu_indices(4)], lambda x: (x[:, None] * x)[np.tril_indices(4)],
              lambda x: np.outer(x, x).ravel()[[0, 5, 10, 15, 3]]):
        for count in (4, 5, 7, 8):
            x = rng.normal(size=(count, 4))
            compiled = batch(jit(f)).compile(x, tier="kernel")
            np.testing.assert_allclose(compiled(x), [f(row) for row in x], rtol=1e-15)


def mixed(p: Any, x: Any, k: Any) -> Any:
    """A matrix, a vector of three, a number and an integer that vary; a factorization and a place that is computed."""
    L = np.linalg.cholesky(p["K"] @ p["K"].T + np.eye(2))
    return np.sum(L) * p["s"] + p["v"] @ x / p["s"] + p["v"][k] * p["m"][1, 2] - np.max(p["m"])


def test_a_tile_of_everything() -> None:
    for count in (4, 9, 16):
        p = {"K": rng.normal(size=(count, 2, 2)), "s": rng.uniform(1, 2, count), "v": rng.normal(size=(count, 3)),
             "m": rng.normal(size=(count, 2, 3))}
        x, k = np.array([1.0, -2.0, 0.5]), rng.integers(0, 3, count)
        g = value_and_grad(mixed)
        many = batch(g, in_axes=(0, None, 0))
        value, gradient = many(p, x, k)
        assert len(tiled_loops(many.compile(p, x, k))) == 1
        for i in range(count):
            expected = g({name: a[i] for name, a in p.items()}, x, k[i])
            np.testing.assert_allclose(value[i], expected[0], rtol=1e-12)
            for name in p:
                np.testing.assert_allclose(gradient[name][i], expected[1][name], rtol=1e-10, atol=1e-12)


def test_places_are_checked_for_every_example() -> None:
    f = batch(lambda v, k: v[k], in_axes=(None, 0))
    v = np.arange(5.0)
    assert f(v, np.array([0, -1, 4, 2, 1, 3, -5, 0, 1])).tolist() == [0.0, 4.0, 4.0, 2.0, 1.0, 3.0, 0.0, 0.0, 1.0]
    with pytest.raises(IndexError):
        f(v, np.array([0, 1, 2, 3, 4, 5, 0, 1, 2]))


def test_arrays_in_any_layout() -> None:
    x = rng.normal(size=(9, 6))
    f = batch(lambda a: np.tanh(a) @ a)
    expected = (np.tanh(x) * x).sum(1)
    wide = np.zeros((9, 12))
    wide[:, ::2] = x
    for a in (x, np.asfortranarray(x), wide[:, ::2], x[::-1][::-1]):
        np.testing.assert_allclose(f(a), expected, rtol=1e-13)


def test_a_division_by_a_tiny_number_in_a_loop() -> None:
    """A divisor that all steps of a loop share is inverted once, but not where its reciprocal overflows."""
    def f(x: Any, s: Any) -> Any:
        return jitad.scan(lambda c, a: (c + a / s, c), np.zeros(2), x)[0]
    x = np.full((5, 2), 1e-310)
    g = jitad.jit(f)
    np.testing.assert_allclose(g(x, 2.0), 2.5e-310)
    np.testing.assert_array_equal(g(x, 1e-310), [5.0, 5.0])
    np.testing.assert_array_equal(g(np.ones((5, 2)), 0.0), [np.inf, np.inf])


def test_small_matrices_from_either_triangle() -> None:
    """The upper triangle, the determinant's cotangent (an inverse) and a general one, element by element."""
    def f(a: Any, x: Any) -> Any:
        U = np.linalg.cholesky(a @ a.T + np.eye(3), upper=True)
        L = np.linalg.cholesky(a.T @ a + np.eye(3))
        z = np.linalg.solve(L, x)
        return np.sum(U * np.arange(9.0).reshape(3, 3)) - 0.5 * z @ z - np.sum(np.log(np.diag(L)))
    a, x = rng.normal(size=(8, 3, 3)), rng.normal(size=3)
    g = value_and_grad(f)
    many = batch(g, in_axes=(0, None))
    value, gradient = many(a, x)
    assert len(tiled_loops(many.compile(a, x))) == 1
    for i in range(8):
        expected = g(a[i], x)
        np.testing.assert_allclose(value[i], expected[0], rtol=1e-12)
        np.testing.assert_allclose(gradient[i], expected[1], rtol=1e-9, atol=1e-11)
