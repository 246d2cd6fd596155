"""NumPy and SciPy functions on traced values against the functions themselves: value, dtype, shape, gradient."""
from __future__ import annotations

import math
import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

import jitad.trace.record  # noqa: F401  (fills the tables)
from jitad.tape.evaluate import evaluate
from jitad.trace.substitutes import SUBSTITUTES
from tests.helpers.cases.functions import TABLE, check_gradient, data, gradients, plain, tape_of, traced


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize(("label", "function", "shapes"), TABLE, ids=[f"{i}-{row[0]}" for i, row in enumerate(TABLE)])
def test_value_and_gradient(label, function, shapes, dtype):
    args = data(shapes, dtype)
    try:
        expected = plain(function, args)
    except (TypeError, ValueError, np.linalg.LinAlgError) as error:
        with pytest.raises(Exception, match=r".") as caught:
            tape_of(function, *args)
        assert isinstance(caught.value, type(error)) or isinstance(error, TypeError)
        return
    if any(e.dtype == np.float16 for e in expected):
        pytest.skip("float16")
    tape = tape_of(function, *args)
    got = evaluate(tape, *args)
    tolerance = {"float64": 1e-11, "float32": 3e-5, "int64": 1e-11}[dtype]
    for g, e in zip(got, expected, strict=True):
        assert (g.shape, g.dtype) == (e.shape, e.dtype), label
        np.testing.assert_allclose(g, e, rtol=tolerance, atol=tolerance, err_msg=label)
    if dtype == "float64":
        check_gradient(function, tape, args, expected)


# --- indexing: random indices against NumPy --------------------------------------------------------

@st.composite
def indexed(draw):
    shape = tuple(draw(st.lists(st.integers(0, 4), min_size=0, max_size=4)))
    broadcast = draw(st.sampled_from([(), (1,), (3,), (2, 1), (2, 3)]))
    entries, dots = [], False
    remaining = list(shape)
    while remaining and draw(st.integers(0, 9)):
        kind = draw(st.sampled_from("islnemab"))
        if kind == "n":
            entries.append(None)
        elif kind == "e" and not dots:
            entries.append(Ellipsis)
            dots = True
            remaining = remaining[draw(st.integers(0, len(remaining))):]
        elif kind == "b":
            entries.append(draw(st.booleans()))
        elif kind == "m":
            count = draw(st.integers(1, min(2, len(remaining))))
            entries.append(draw(masks(tuple(remaining[:count]))))
            remaining = remaining[count:]
        else:
            n = remaining.pop(0)
            entries.append(draw(entry(kind, n, broadcast)))
    return shape, entries[0] if len(entries) == 1 and draw(st.booleans()) else tuple(entries)


def masks(shape):
    return st.lists(st.booleans(), min_size=math.prod(shape), max_size=math.prod(shape)).map(
        lambda bits: np.array(bits, bool).reshape(shape))


def entry(kind, n, broadcast):
    if kind == "s" or (n == 0 and kind != "i"):
        bound = st.none() | st.integers(-6, 6)
        return st.builds(slice, bound, bound, st.none() | st.sampled_from([-3, -2, -1, 1, 2, 3]))
    if kind == "i":
        return st.integers(-n - 1, n) if n else st.integers(-1, 1)
    size = math.prod(broadcast)
    values = st.lists(st.integers(-n, n - 1), min_size=size, max_size=size)
    arrays = values.map(lambda v: np.array(v, int).reshape(broadcast))
    return arrays if kind == "a" else arrays.map(np.ndarray.tolist)


@settings(max_examples=600, deadline=None)
@given(indexed())
def test_indexing_is_numpys(case):
    shape, index = case
    x = np.arange(math.prod(shape), dtype=float).reshape(shape)
    try:
        expected = x[index]
    except IndexError as error:
        with pytest.raises(IndexError) as caught:
            tape_of(lambda v: v[index], x)
        assert str(error) in str(caught.value)
        return
    tape = tape_of(lambda v: v[index], x)
    got, = evaluate(tape, x)
    np.testing.assert_array_equal(got, expected)
    assert got.shape == np.shape(expected)
    weights = np.cos(np.arange(expected.size, dtype=float)).reshape(np.shape(expected))
    counts = np.zeros(shape)
    np.add.at(counts, index, weights)
    np.testing.assert_allclose(gradients(tape, [x], [weights])[0], counts, atol=1e-12)


@settings(max_examples=100, deadline=None)
@given(indexed())
def test_traced_index_arrays(case):
    """Integer arrays in the index may be data of the tape."""
    shape, index = case
    x = np.arange(math.prod(shape), dtype=float).reshape(shape)
    entries = index if isinstance(index, tuple) else (index,)
    arrays = [e for e in entries if isinstance(e, np.ndarray) and e.dtype.kind == "i"]

    def function(v, *traced_arrays):
        rest = iter(traced_arrays)
        return v[tuple(next(rest) if isinstance(e, np.ndarray) and e.dtype.kind == "i" else e for e in entries)]
    try:
        expected = x[entries]
    except IndexError:
        return
    got, = evaluate(tape_of(function, x, *arrays), x, *arrays)
    np.testing.assert_array_equal(got, expected)


# --- semantics --------------------------------------------------------------------------------------

NUMBERS = [
    ("+", lambda a, b: a + b), ("/", lambda a, b: a / b), ("//", lambda a, b: a // b), ("%", lambda a, b: a % b),
    ("**", lambda a, b: a ** 2), ("** -1", lambda a, b: a ** -1), ("bools", lambda a, b: (a > b) + (a < b) + 1),
    ("neg", lambda a, b: -(a > 0)), ("divmod", lambda a, b: divmod(a, b)[1]),
    ("array", lambda a, b: np.float32([1, 2]) * (a / b)), ("ufunc", lambda a, b: np.float32([1, 2]) * np.exp(a)),
    ("add", np.add), ("int array", lambda a, b: np.int32([1, 2]) * a),
    ("where", lambda a, b: np.where(np.array([True, False]), a, np.float32(3))),
    ("sqrt", lambda a, b: np.float32([1, 2]) * a ** 0.5), ("in-place", lambda a, b: operator.iadd(a, b)),
]


@pytest.mark.parametrize("args", [(2.5, 1.25), (7, 3), (7, 2.5)])
@pytest.mark.parametrize(("label", "function"), NUMBERS, ids=[n[0] for n in NUMBERS])
def test_python_numbers_stay_weak(label, function, args):
    expected = np.asarray(function(*args))
    got, = evaluate(tape_of(function, *args), *args)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(got, expected, rtol=1e-6)


@pytest.mark.parametrize(("a", "value"), [
    ([-np.inf, 0.0, 1.0], None), ([-np.inf, -np.inf], None), ([np.inf, 0.0], None), ([np.nan, 0.0], None),
    ([1e4, 1e4], None), ([-1e4, -1e4], None)])
def test_logsumexp_at_the_edges(a, value):
    a = np.array(a)
    tape = tape_of(SUBSTITUTES[special.logsumexp], a)
    np.testing.assert_allclose(evaluate(tape, a)[0], plain(special.logsumexp, [a])[0])
    if not np.isposinf(a).any() and not np.isnan(a).any():
        with np.errstate(all="ignore"):
            expected = np.nan_to_num(special.softmax(a), nan=0.0)
        np.testing.assert_allclose(gradients(tape, [a], [np.array(1.0)])[0], expected)


def test_logsumexp_weights_of_zero():
    a, b = np.array([1000.0, 0.0, np.inf]), np.array([0.0, 1.0, 0.0])
    tape = tape_of(lambda a, b: SUBSTITUTES[special.logsumexp](a, b=b), a, b)
    assert evaluate(tape, a, b)[0] == 0.0


def test_prod_has_right_derivatives_at_zeros():
    for x, expected in (([0.0, 2.0, 3.0], [6.0, 0, 0]), ([0.0, 0.0, 3.0, 4.0, 5.0], [0.0] * 5)):
        x = np.array(x)
        np.testing.assert_array_equal(gradients(tape_of(np.prod, x), [x], [np.array(1.0)])[0], expected)


@pytest.mark.parametrize("function", [np.linalg.norm, np.std, lambda x: np.linalg.norm(x, 3),
                                      lambda x: np.where(x > 0, np.log(x), 0.0).sum()])
def test_derivative_zero_at_zero(function):
    x = np.zeros(4)
    np.testing.assert_array_equal(gradients(tape_of(function, x), [x], [np.array(1.0)])[0], np.zeros(4))


def test_what_a_traced_value_knows():
    x, n = traced(np.zeros((3, 4)), 2.0)
    assert (x.shape, x.ndim, x.size, x.dtype, len(x), x.itemsize, x.nbytes) == ((3, 4), 2, 12, np.float64, 3, 8, 96)
    assert isinstance(x, np.ndarray)
    assert np.iscomplexobj(x) is False
    assert n.shape == ()
    assert repr(x) == f"{x}" == "<traced f8[3,4]>"
    assert SUBSTITUTES[np.isscalar](n)
    assert not SUBSTITUTES[np.isscalar](x)
    with pytest.raises(TypeError, match="unsized"):
        len(n)
    with pytest.raises(TypeError, match="0-d"):
        iter(n)
    with pytest.raises(TypeError):
        x + "a"
    with pytest.raises(TypeError):
        x + None


def test_comparisons_of_python_numbers_count_as_such():
    a, x = traced(np.ones(3, np.float32), 0.5)
    for f in (lambda x, a: (x > 0) * x * a, lambda x, a: a * ((x > 0) + 1), lambda x, a: (x > 0) * 2.0 * a):
        assert f(x, a).dtype == f(0.5, np.ones(3, np.float32)).dtype == np.float32


def test_logsumexp_of_a_number_has_a_dimension_to_keep():
    rule = SUBSTITUTES[special.logsumexp]
    forms = [lambda x: rule(x, keepdims=True), lambda x: rule(x, axis=0),
             lambda x: rule(x, b=2.0, axis=-1, keepdims=True)]
    for form, wanted in zip(forms, ([1.5], 1.5, [1.5 + math.log(2.0)]), strict=True):
        for x in (1.5, np.array(1.5)):
            (got,) = evaluate(tape_of(form, x), x)
            np.testing.assert_allclose(got, wanted, rtol=1e-15)
            assert got.shape == np.shape(wanted)
