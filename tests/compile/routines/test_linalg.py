"""The routines of linear algebra at the sizes where other code takes over, factors in common, and plain Python."""
from __future__ import annotations

import numpy as np
import pytest

from jitad.compile.entry.arguments import argument_type
from jitad.compile.entry.kernel import Kernel
from jitad.compile.lower.lower import program_of
from jitad.primitives.linalg.matrices import mT
from jitad.primitives.linalg.spectral import column
from jitad.tape.builder import Builder
from jitad.tape.evaluate import evaluate
from jitad.tape.types import TABLE, Aval
from jitad.testing.rules import cases
from tests.helpers.source_backend import load_python

ROWS = ("cholesky", "cholesky_inverse", "cholesky_cotangent", "eigh", "svd", "qr", "lu_order", "lu_pivots", "lu",
        "pinv", "expm", "sylvester", "sqrtm", "orthogonal_factor", "solve_banded", "solveh_banded")
RNG = np.random.default_rng(5)


def definite(n):
    a = RNG.normal(size=(n, n))
    return a @ a.T / n + np.eye(n)


def general(n, *batch):
    return RNG.normal(size=(*batch, n, n)) / np.sqrt(n) + 2 * np.eye(n)


def lower(n):
    return np.linalg.cholesky(definite(n))


LARGE = [
    *(("cholesky_inverse", (lower(n),), {}) for n in (9, 150)), ("cholesky", (definite(40),), {"upper": True}),
    *(("cholesky_cotangent", (lower(n), RNG.normal(size=(n, n))), {}) for n in (8, 32, 33, 150)),
    ("eigh", (definite(40),), {}), ("svd", (RNG.normal(size=(40, 30)),), {}), ("svd", (RNG.normal(size=(30, 40)),), {}),
    ("qr", (RNG.normal(size=(70, 40)),), {}), ("pinv", (RNG.normal(size=(50, 40)),), {"rcond": 1e-15}),
    ("expm", (30 * general(20),), {}), ("expm", (-1e30 * np.eye(3),), {}),
    ("sqrtm", (general(20) @ general(20).T + np.eye(20),), {}),
    ("sylvester", (general(20), general(30), RNG.normal(size=(20, 30))), {}), ("lu", (general(20), np.arange(20)), {}),
    *(("inv", (general(n),), {}) for n in (16, 17, 40)), *(("inv", (definite(n),), {}) for n in (31, 32, 70)),
    *((name, (general(40),), {}) for name in ("slogdet_log", "slogdet_sign", "det")),
    *((name, (-definite(40),), {}) for name in ("inv", "slogdet_sign")), ("det", (definite(40),), {}),
    ("slogdet_log", (definite(70),), {}), ("solve", (definite(40), RNG.normal(size=(40, 3))), {}),
]


def tape_of(samples):
    """All samples on one tape, with the inputs' values."""
    builder, outputs, data = Builder(), [], []
    for name, inputs, params in samples:
        values = []
        for array in inputs:
            array = np.asarray(array)
            data.append(array)
            values.append(builder.input(Aval(array.shape, array.dtype), f"x{len(data)}"))
        outputs.append(TABLE[name](*values, **params))
        if name in ("eigh", "svd"):
            outputs.append(column(TABLE[name](values[0] * 2.0, **params), 0))     # of which nobody reads the vectors
    return builder.finish(outputs), data


def close(got, expected):
    slack = 1e-9
    for g, e in zip(got, expected, strict=True):
        np.testing.assert_allclose(g, e, rtol=slack, atol=slack * max(1.0, float(np.abs(e).max(initial=0.0))))


def test_compiled():
    tape, data = tape_of(LARGE)
    close(Kernel(tape, tuple(map(argument_type, data))).call(*data), evaluate(tape, *data))


def test_as_plain_python():
    tape, data = tape_of([(row, case.inputs, case.params) for row in ROWS for case in cases(TABLE[row])])
    sweep = load_python(program_of(tape, ("C",) * len(data)))
    out = [np.full(tape.nodes[o].aval.shape, 7, tape.nodes[o].aval.dtype) for o in tape.outputs]
    assert sweep(*data, *out)[0] == 0
    close(out, evaluate(tape, *data))


def shared(a, b):
    """Everything of one matrix: with factors in common, and of its transpose."""
    transposed = mT(a)
    return [TABLE["solve"](a, b), TABLE["solve"](transposed, b), TABLE["inv"](a), TABLE["inv"](a, strict=False),
            TABLE["det"](a), TABLE["slogdet_log"](transposed), TABLE["slogdet_sign"](a), TABLE["inv"](transposed)]


@pytest.mark.parametrize("way", ["compiled", "python"])
def test_shared_factors(way):
    builder, outputs, data = Builder(), [], []
    for n, batch, k in ((1, (), 1), (3, (2,), 2), (17, (2,), 3), (40, (), 1)):
        for matrix in (general(n, *batch)[..., ::-1, :], np.broadcast_to(definite(n), (*batch, n, n))):
            arrays = [np.ascontiguousarray(matrix), RNG.normal(size=(*batch, n, k))]
            values = [builder.input(Aval(x.shape, x.dtype), f"x{len(data) + i}") for i, x in enumerate(arrays)]
            data += arrays
            outputs += shared(*values)
    tape = builder.finish(outputs)
    expected = evaluate(tape, *data)
    if way == "compiled":
        kernel = Kernel(tape, tuple(map(argument_type, data)))
        assert str(program_of(tape, ("C",) * len(data))).count("'factor'") == 8
        close(kernel.call(*data), expected)
    else:
        out = [np.zeros(tape.nodes[o].aval.shape) for o in tape.outputs]
        values = load_python(program_of(tape, ("C",) * len(data)))(*data, *(o for o in out if o.ndim))
        numbers = iter(values[1:])
        close([o if o.ndim else next(numbers) for o in out], expected)


def test_a_singular_matrix_with_shared_factors():
    builder = Builder()
    a = builder.input(Aval((2, 3, 3), np.dtype(float)), "a")
    tape = builder.finish([TABLE["inv"](a, strict=False), *(
        TABLE[name](a) for name in ("slogdet_log", "slogdet_sign", "det"))])
    data = np.stack([np.ones((3, 3)), 2 * np.eye(3)])
    inverse, log, sign, det = Kernel(tape, (argument_type(data),)).call(data)
    assert np.isnan(inverse[0]).all() and (inverse[1] == np.eye(3) / 2).all()
    assert log[0] == -np.inf and sign.tolist() == [0.0, 1.0] and det.tolist() == [0.0, 8.0]
