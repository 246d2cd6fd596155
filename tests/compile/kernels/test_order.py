"""Kernels of sorting, searching and counting: one program for each family, on data that they were not recorded on."""
from __future__ import annotations

import numpy as np
import pytest

from jitad import jit
from jitad.passes.differentiate.modes import pullback
from jitad.tape.builder import Builder
from jitad.tape.evaluate import evaluate
from jitad.tape.types import Aval
from tests.helpers.cases.order import FREE, GUARDED, numbers, tape_of
from tests.helpers.programs import call, compare, run, sweep_outputs
from tests.helpers.source_backend import load_python

OWN = frozenset({"traced q", "searchsorted sorter", "choose clip", "weights", "weights all"})    # guarded or refused
INTO_ONE = 20


def together(rows, kind):
    """One tape with the values of all rows, and their gradients; an input for each row."""
    builder, inputs, outputs = Builder(), [], []
    for _, function, shape in rows:
        x = numbers(shape, kind)
        tape = tape_of(function, x)
        value = builder.input(Aval(x.shape, x.dtype), f"x{len(inputs)}")
        found = builder.replay(tape, [value])
        outputs += found
        floats = [o for o in found if o.dtype.kind == "f"]
        if floats and x.dtype.kind == "f":
            seeds = [builder.const(np.cos(np.arange(o.aval.size)).reshape(o.shape).astype(o.dtype)) for o in floats]
            outputs += pullback(builder, floats, seeds, [value])
        inputs.append(np.ascontiguousarray(x).reshape(shape))
    return builder.finish(outputs), inputs


CHUNKS = [pytest.param(rows[i:i + INTO_ONE], id=f"{family} {i}") for family, rows in FREE.items()
          for i in range(0, len(rows), INTO_ONE)]


@pytest.mark.parametrize("rows", CHUNKS)
def test_families(rows):
    rows = [r for r in rows if r[0] not in OWN]
    tape, inputs = together(rows, "float64")
    kernel, _ = run(tape, inputs)
    for kind, seed in (("float64", 0), ("float64", 1), ("ties", 2), ("nan", 3)):
        data = [np.ascontiguousarray(numbers(shape, kind, seed)).reshape(shape) for _, _, shape in rows]
        compare(f"{kind} {seed}", call(kernel, data), evaluate(tape, *data), 1e-12, 10.0)


def test_guarded_functions():
    tape, inputs = together(GUARDED[::2], "float64")
    assert len(tape.guards) > 20
    _, outputs = run(tape, inputs)
    compare("guarded", outputs, evaluate(tape, *inputs), 1e-12, 10.0)


def test_as_python_source():
    rows = [r for r in FREE["sort"] + FREE["search"] + FREE["other"] if r[0] in (
        "sort 0", "lexsort", "searchsorted", "interp xp", "cumprod 1", "delete argmax")]
    tape, inputs = together(rows, "float64")
    kernel, expected = run(tape, inputs)
    compare("source", sweep_outputs(load_python(kernel.program), kernel, inputs), expected, 1e-12, 10.0)


@pytest.mark.parametrize("kind", ["float32", "int64"])
def test_other_dtypes(kind):
    rows = [r for rows in FREE.values() for r in rows[::6] if r[0] not in OWN]
    tape, inputs = together(rows, kind)
    kernel, _ = run(tape, inputs)
    for seed in (0, 1):
        data = [np.ascontiguousarray(numbers(shape, kind, seed)).reshape(shape) for _, _, shape in rows]
        compare(kind, call(kernel, data), evaluate(tape, *data), 2e-5 if kind == "float32" else 1e-12, 10.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_quantiles_that_jump_at_whole_numbers(dtype):
    """5 * 0.3 is 1.5 as rounded, less if the product is fused with the subtraction after it. A traced quantile and a
    count of what is no NaN have the dtypes that NumPy gives them."""
    x, q = np.linspace(1.0, 9.0, 10, dtype=dtype).reshape(2, 5), np.array([0.1, 0.3, 0.5, 0.7, 0.9], dtype)
    lost = np.where(x > 8.0, np.nan, x).astype(dtype)
    methods = ("inverted_cdf", "averaged_inverted_cdf", "closest_observation", "midpoint", "linear")

    def several(x, q):
        return [*(np.quantile(x, q, axis=1, method=m) for m in methods),
                *(np.nanquantile(x, q, axis=1, method=m) for m in methods),
                *(np.nanquantile(x, 0.3, axis=1, method=m) for m in methods)]

    for got, expected in zip(jit(several)(lost, q), several(lost, q), strict=True):
        np.testing.assert_allclose(got, expected, rtol=4 * np.finfo(dtype).eps, strict=True)


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")
def test_quantiles_of_nothing():
    """As in NumPy, nanquantile of no elements loses the dimension of the quantiles."""
    def both(x):
        return np.nanquantile(x, [0.2, 0.5, 0.7], axis=1), np.nanquantile(x, [0.2], axis=1, keepdims=True)

    for got, expected in zip(jit(both)(np.zeros((2, 0))), both(np.zeros((2, 0))), strict=True):
        np.testing.assert_array_equal(got, expected, strict=True)


METHODS = ("inverted_cdf averaged_inverted_cdf closest_observation interpolated_inverted_cdf hazen weibull linear "
           "median_unbiased normal_unbiased lower higher midpoint nearest").split()


@pytest.mark.parametrize("method", METHODS)
def test_the_quantiles_at_the_ends_are_the_extremes(method):
    """Also of a quantile that is an integer, with which some methods have places before the first element."""
    x = np.array([[3.0, 1.0, 4.0, 1.5], [9.0, np.nan, -2.0, 2.6]])

    def ends(x):
        whole, single = x[0], x[0, :1]
        return [f(part, q, axis=-1, method=method) for f, one in ((np.quantile, 1), (np.percentile, 100))
                for part in (whole, single) for q in (0, one, 0.0, float(one), np.array([0, one]))]

    def lost(x):
        return [np.nanquantile(x, q, axis=1, method=method) for q in (0, 1, np.array([0, 1]))]

    low, high = [1.0, 3.0], [4.0, 3.0]
    expected = [v for _ in range(2) for a, b in zip(low, high, strict=True) for v in (a, b, a, b, [a, b])]
    for got, plain, wanted in zip(evaluate(tape_of(ends, x), x), ends(x), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
        np.testing.assert_array_equal(got, plain)
    for got, wanted in zip(evaluate(tape_of(lost, x), x), ([1.0, -2.0], [4.0, 9.0], [[1.0, -2.0], [4.0, 9.0]]),
                           strict=True):
        np.testing.assert_array_equal(got, wanted)
    whole = np.array([3, 1, 4])
    for q in (0, 1, [0, 1]):
        (got,) = evaluate(tape_of(lambda x, q=q: np.quantile(x, q, method=method), whole), whole)
        plain = np.quantile(whole, q, method=method)
        np.testing.assert_array_equal(got, plain)
        assert got.dtype == plain.dtype
