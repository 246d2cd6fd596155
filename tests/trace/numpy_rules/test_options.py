"""Options of NumPy's functions: value, dtype and shape as NumPy's, derivatives as differences, NumPy's own errors."""
from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.integrate
import scipy.spatial.distance

import jitad
from jitad.cache.keys.identity import unwrap
from jitad.errors import JitadError, UnsupportedOperationError
from jitad.passes.differentiate.modes import pullback
from jitad.tape.builder import Builder
from jitad.tape.evaluate import evaluate
from jitad.trace.record import record
from tests.testing.walk import function_of, plain_error, quiet
from tests.trace.numpy_rules.option_cases import AXES, EACH_TABLE, FLAT, KINDS, REDUCTIONS, TABLE

STEP = 1e-6
FLOAT16 = {"int8", "bool"}                       # of which NumPy's float functions make what jitad does not have


def flat(result):
    return [r for part in result for r in flat(part)] if isinstance(result, (list, tuple)) else [result]


def fresh(args):
    return [a.copy(order="K") if isinstance(a, np.ndarray) else a for a in args]


def check(expression, args, differences=True, may_refuse=False):
    """Compare a recorded call with NumPy's."""
    f = function_of(expression, len(args))
    with quiet():
        try:
            want = flat(f(*fresh(args)))
        except Exception as error:
            with pytest.raises(Exception) as found:
                record(unwrap(f), args)
            assert isinstance(found.value, (type(error), JitadError) if may_refuse else type(error)), found.value
            return
        try:
            recording = record(unwrap(f), args)
        except UnsupportedOperationError:
            if may_refuse:
                return
            raise
        tape = recording.tape()
        got = flat(evaluate(tape, *recording.arguments, *recording.captured))
    assert [(np.shape(g), g.dtype) for g in got] == [(np.shape(w), np.asarray(w).dtype) for w in want]
    for g, w in zip(got, want, strict=True):
        tolerance = 3e-6 if np.asarray(w).dtype == np.float32 else 1e-12
        np.testing.assert_allclose(g, w, rtol=tolerance, atol=10 * tolerance)
    if differences:
        compare_with_differences(f, args, want, recording, tape)


def compare_with_differences(f, args, want, recording, tape):
    wrt = [i for i, a in enumerate(recording.arguments) if np.asarray(a).dtype == np.float64]
    outputs = [k for k, w in enumerate(want) if np.asarray(w).dtype == np.float64 and np.isfinite(w).all()]
    if not wrt or not outputs:
        return
    rng = np.random.default_rng(0)
    weights = {k: rng.normal(size=np.shape(want[k])) for k in outputs}
    builder = Builder()
    inputs = [builder.input(tape.nodes[i].aval, f"x{i}") for i in tape.inputs]
    results = builder.replay(tape, inputs)
    cotangents = pullback(builder, [results[k] for k in outputs], [builder.const(weights[k]) for k in outputs],
                          [inputs[i] for i in wrt])
    found = evaluate(builder.finish(cotangents), *recording.arguments, *recording.captured)
    for i, gradient in zip(wrt, found, strict=True):
        direction = rng.normal(size=np.shape(args[i]))

        def along(step, i=i, direction=direction):
            moved = fresh(args)
            moved[i] = moved[i] + step * direction
            with quiet():
                results = flat(f(*moved))
            return sum(np.sum(weights[k] * results[k]) for k in outputs)
        difference = (along(STEP) - along(-STEP)) / (2 * STEP)
        np.testing.assert_allclose(np.sum(gradient * direction), difference, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name):
    for kind, x in KINDS.items():
        for axis in AXES:
            if (name in ("argmax", "argmin") and "(" in axis) or (name, kind, axis) == ("median", "empty", "axis=()"):
                continue
            for keep in ("", ", keepdims=True"):
                check(f"np.{name}(x{', ' + axis if axis else ''}{keep})", (x,), kind == "float64", kind in FLOAT16)
        for option in REDUCTIONS[name]:
            if not ("where" in option and np.shape(x)[-1:] != (4,)):
                check(f"np.{name}(x, {option})", (x,), kind == "float64", kind in FLOAT16)
                if "mean=" not in option:
                    check(f"np.{name}(x, axis=-1, keepdims=True, {option})", (x,), kind == "float64", kind in FLOAT16)


# Where NumPy takes numbers for arrays, or orders, counts and rounds, there are jumps between differences.
JUMPS = ("round", "floor_divide", "remainder", "unwrap", "unique", "divmod", "cov")


@pytest.mark.parametrize("expression", EACH_TABLE)
def test_kinds_of_arrays(expression):
    for kind, x in KINDS.items():
        smooth = kind in ("float64", "Fortran", "strided", "number") and not any(j in expression for j in JUMPS)
        if kind not in FLAT or plain_error(expression, (x,)) is None:
            check(expression, (x,), smooth, kind in FLOAT16)


@pytest.mark.parametrize("case", TABLE, ids=[f"{i} {c[0]}" for i, c in enumerate(TABLE)])
def test_options(case):
    expression, *args = case
    check(expression, args)


def test_read_only_arguments():
    x = np.array([0.5, 2.0, 1.0])
    x.flags.writeable = False
    for expression in ("np.sort(x)", "np.cumsum(x)[::-1]", "x.reshape(3, 1) * x", "np.sum(x, where=x > 0.7)"):
        check(expression, (x,))


REFUSED = [
    ("numpy.sum of uint8, which gives uint64", lambda x: np.sum(x.astype(np.uint8))),
    ("numpy.cumprod of uint8", lambda x: np.cumprod(x.astype(np.uint8))),
    ("numpy.modf of int8, which computes in float16", lambda x: np.modf(x.astype(np.int8))),
    ("numpy.ldexp of int8", lambda x: np.ldexp(x.astype(np.int8), 2)),
    ("numpy.round of bool", lambda x: np.round(x > 1)),
    ("numpy.subtract.reduce with where=", lambda x: np.subtract.reduce(x, where=x > 1, initial=0.0)),
    ("numpy.power.reduce", lambda x: np.power.reduce(x)), ("numpy.arctan2.reduce", lambda x: np.arctan2.reduce(x)),
    ("numpy.multiply.at with traced indices", lambda x: np.multiply.at(1 * x, (x > 9).astype(int), x)),
    ("numpy.intersect1d with return_indices", lambda x: np.intersect1d(x, x, return_indices=True)),
    ("numpy.pad with a function", lambda x: np.pad(x, 1, lambda *a: None)),
    ("numpy.polyder of an array", lambda x: np.polyder(x[:, None])),
    ("numpy.nditer", lambda x: list(np.nditer(x))), ("numpy.mgrid with traced ends", lambda x: np.mgrid[0:x[0]]),
    (r"numpy.r_\['r', ...\]", lambda x: np.r_["r", x]), ("numpy.poly of a matrix", lambda x: np.poly(x[:, None] * x)),
    ("numpy.polyval at a polynomial", lambda x: np.polyval(x, np.poly1d([1.0, 2.0]))),
    ("cdist with metric='hamming'", lambda x: scipy.spatial.distance.cdist(x[None], x[None], "hamming")),
    ("'seuclidean' and no V", lambda x: scipy.spatial.distance.pdist(x[None], "seuclidean")),
    ("'mahalanobis' and no VI", lambda x: scipy.spatial.distance.pdist(x[None], "mahalanobis")),
]


@pytest.mark.parametrize(("words", "function"), REFUSED, ids=[w for w, _ in REFUSED])
def test_what_is_refused_says_so(words, function):
    with pytest.raises(UnsupportedOperationError, match=f"{words}.*") as found:
        jitad.jit(function)(np.array([0.5, 2.0, 1.5]))
    assert "test_options.py:" in str(found.value)


@pytest.mark.parametrize("function", [
    lambda x: np.sum(x, out=np.zeros(())), lambda x: np.add.reduce(x, out=np.zeros(())),
    lambda x: np.pad(x, x.astype(int)[:1]), lambda x: np.roots(x),
    lambda x: scipy.spatial.distance.cdist(x[None], x[None] + 1, out=np.zeros((1, 1))),
    lambda x: scipy.spatial.distance.pdist(np.stack([x, x * x]), out=np.zeros(1)),
    lambda x: scipy.integrate.quad(np.sin, 0.0, x[0])[0], lambda x: np.fft.fft(x, out=np.zeros(3, complex))],
    ids=["sum", "add.reduce", "pad", "roots", "cdist", "pdist", "quad", "fft"])
def test_buffers_and_computed_options(function):
    x = np.array([0.5, 2.0, 1.5])
    np.testing.assert_allclose(jitad.jit(function)(x), function(x), rtol=1e-12)


AT = [("np.multiply.at(a, [0, 1, 1, 0], x[:4])", True), ("np.maximum.at(a, [0, 1, 1], x[:3])", True),
      ("np.divide.at(a, [0, 0], x[:2])", True), ("np.subtract.at(a, [0, 1, 1], x[:3])", True),
      ("np.exp.at(a, [0, 2])", True), ("np.negative.at(a, [1, 1])", True), ("np.add.at(a, slice(0, 2), x[0])", True),
      ("np.multiply.at(a.reshape(2, 3), ([0, 1, 1], [0, 2, 2]), x[:3])", True)]


@pytest.mark.parametrize("call", [c for c, _ in AT])
def test_ufuncs_at_indices(call):
    check(f"(lambda a: ({call}, a)[1])(2.0 * y)", (np.arange(1.0, 7.0), np.linspace(0.5, 2.0, 6)))


def test_a_kernel_of_many_functions():
    """One program compiled, so that the code that the compiler makes of them is seen too."""
    def f(x, X):
        distances = scipy.spatial.distance.cdist(X, X[:2])
        fitted = np.polyfit(np.arange(6.0), x, 2)
        return (np.sum(np.cov(X)) + np.sum(np.gradient(x) ** 2) + np.sum(np.linspace(x[0], x[1], 5))
                + np.polyval(x, 0.3) + np.sum(distances) + np.sum(fitted ** 2) + np.einsum("ij,kj,j->", X, X, x)
                + scipy.integrate.simpson(x)
                + np.sum(np.pad(x, 2, "reflect") * np.r_[x, x[:4]]) + np.logaddexp.reduce(x)
                + np.add.reduceat(x, [0, 2]) @ x[:2]
                + np.polynomial.chebyshev.chebval(x, [1.0, 2.0, 3.0]).sum() + np.sum(np.vander(x, 4)))
    rng = np.random.default_rng(1)
    x, X = rng.normal(size=6), rng.normal(size=(4, 6))
    value, gradient = jitad.value_and_grad(f)(x, X)
    np.testing.assert_allclose(value, f(x, X), rtol=1e-12)
    direction = rng.normal(size=6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        difference = (f(x + STEP * direction, X) - f(x - STEP * direction, X)) / (2 * STEP)
    np.testing.assert_allclose(gradient @ direction, difference, rtol=1e-6)


def test_coincident_points_have_no_derivative():
    X = np.array([[0.0, 1.0], [0.0, 1.0], [2.0, 2.0]])
    gradient = jitad.grad(lambda X: np.sum(scipy.spatial.distance.pdist(X)))(X)
    d = (X[2] - X[0]) / np.linalg.norm(X[2] - X[0])
    np.testing.assert_allclose(gradient, [-d, -d, 2 * d], rtol=1e-14)
