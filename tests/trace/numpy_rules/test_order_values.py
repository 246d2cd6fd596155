"""Sorting, searching and counting: values and derivatives known on paper, branches, errors, loops."""
from __future__ import annotations

import warnings

import numpy as np
import pytest

import jitad
from jitad import jit, jit_grad, value_and_grad
from jitad.primitives.order import select_places
from tests.helpers.public import compiling, fresh  # noqa: F401

x3 = np.array([3.0, 1.0, 2.0])
w3 = np.array([10.0, 20.0, 30.0])


# --- derivatives on paper ----------------------------------------------------------------------------------

GRADIENTS = [
    ("sort", lambda x: np.sort(x) @ w3, [3, 1, 2], [30, 10, 20]),
    ("ties keep their order", lambda x: np.sort(x) @ w3, [2, 1, 2], [20, 10, 30]),
    ("sort in place", lambda x: sorted_copy(x) @ w3, [3, 1, 2], [30, 10, 20]),
    ("largest two", lambda x: np.partition(x, -2)[-2:].sum(), [3, 1, 2], [1, 0, 1]),
    ("argmax carries nothing", lambda x: np.argmax(x) * x[0], [1, 5, 2], [1, 0, 0]),
    ("argmax as index", lambda x: x[np.argmax(x)] ** 2, [1, 5, 2], [0, 10, 0]),
    ("max of ties", lambda x: np.max(x), [5, 1, 5], [0.5, 0, 0.5]),
    ("odd median", lambda x: np.median(x), [3, 1, 2], [0, 0, 1]),
    ("even median", lambda x: np.median(x), [3, 1, 2, 9], [0.5, 0, 0.5, 0]),
    ("quantile", lambda x: np.quantile(x, 0.25), [3, 1, 2], [0, 0.5, 0.5]),
    ("quantile by q", lambda q: np.quantile([1.0, 2.0, 4.0], q[0]), [0.75], [4]),
    ("cumprod at a zero", lambda x: np.cumprod(x).sum(), [2, 0, 3], [1, 8, 0]),
    ("cumprod at two zeros", lambda x: np.cumprod(x).sum(), [2, 0, 0], [1, 2, 0]),
    ("prod at a zero", lambda x: np.prod(x), [2, 0, 3], [0, 6, 0]),
    ("nansum", lambda x: np.nansum(x * x), [2, np.nan, 3], [4, 0, 6]),
    ("nanmean", lambda x: np.nanmean(x), [2, np.nan, 3], [0.5, 0, 0.5]),
    ("nanmax", lambda x: np.nanmax(x), [2, np.nan, 3], [0, 0, 1]),
    ("nanmedian", lambda x: np.nanmedian(x), [2, np.nan, 3], [0.5, 0, 0.5]),
    ("nanprod", lambda x: np.nanprod(x), [2, np.nan, 3], [3, 0, 2]),
    ("mask", lambda x: (x[x > 0] ** 2).sum(), [2, -1, 3], [4, 0, 6]),
    ("unique goes to the first", lambda x: np.unique(x) @ w3[:2], [5, 1, 5], [20, 10, 0]),
    ("bincount", lambda x: np.bincount([1, 0, 1], weights=x) @ w3[:2], [1, 2, 3], [20, 10, 20]),
    ("histogram", lambda x: np.histogram([0.0, 1.0, 0.9], 2, weights=x)[0] @ w3[:2], [1, 2, 3], [10, 20, 20]),
    ("interp", lambda x: np.interp(x, [0, 1, 3], [0, 2, 10]).sum(), [0.5, 2, 9], [2, 4, 0]),
    ("interp at knots", lambda x: np.interp(x, [0, 1, 3], [0, 2, 10]).sum(), [0, 1, 3], [2, 4, 4]),
    ("interp by fp", lambda fp: np.interp([0.25, 9.0], [0, 1, 3], fp).sum(), [0, 2, 10], [0.75, 0.25, 1]),
    ("interp by xp", lambda xp: np.interp(0.5, xp, [0.0, 2.0, 10.0]), [0, 1, 3], [-1, -1, 0]),
    ("choose", lambda x: np.choose([2, 0], [x[:2], x[1:], x[:2] * 5]).sum(), [3, 1, 2], [5, 1, 0]),
    ("delete", lambda x: (np.delete(x, np.argmin(x)) * w3[:2]).sum(), [3, 1, 2], [10, 0, 20]),
    ("insert", lambda x: (np.insert(x, 1, x[2] * 2) ** 2).sum(), [3, 1, 2], [6, 2, 20]),
    ("place", lambda x: placed(x) @ w3, [3, -1, 2], [10, 50, 0]),
    ("update by mask", lambda x: doubled(x).sum(), [3, -1, 2], [2, 1, 2]),
]


def sorted_copy(x):
    x = x.copy()
    x.sort()
    return x


def placed(x):
    y = np.array(x)
    np.place(y, x < 2.5, [x[1], x[1]])
    return y


def doubled(x):
    y = np.array(x)
    y[y > 0] *= 2
    return y


@pytest.mark.parametrize(("label", "function", "x", "expected"), GRADIENTS, ids=[g[0] for g in GRADIENTS])
def test_gradient_on_paper(label, function, x, expected):
    value, gradient = value_and_grad(function)(np.array(x, float))
    np.testing.assert_allclose(gradient, expected, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(value, function(np.array(x, float)), rtol=1e-14)


def test_second_derivatives_of_a_product_with_a_zero():
    """f = a + a b + a b c at b = 0: the mixed ones are 1 + c, b and a."""
    first = jit_grad(lambda x: np.cumprod(x).sum())
    hessian = [jit_grad(lambda x, i=i: first(x)[i])(np.array([2.0, 0.0, 3.0])) for i in range(3)]
    np.testing.assert_array_equal(hessian, [[0, 4, 0], [4, 0, 2], [0, 2, 0]])


def test_signed_zeros_and_infinities_of_cumprod():
    x = np.array([-0.0, 3.0, -2.0])
    np.testing.assert_array_equal(np.signbit(jit(lambda x: np.cumprod(x))(x)), np.signbit(np.cumprod(x)))
    x = np.array([np.inf, 2.0, 0.0, 1.0])
    np.testing.assert_array_equal(jit(lambda x: np.cumprod(x))(x), [np.inf, np.inf, np.nan, np.nan])


def test_interp_with_infinite_values_as_numpy():
    xp, fp = [0.0, 1.0, 1.0, 2.0], [0.0, np.inf, 3.0, 4.0]
    x = np.array([-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, np.nan])
    np.testing.assert_array_equal(jit(lambda x: np.interp(x, xp, fp))(x), np.interp(x, xp, fp))


# --- one tape for many masks -----------------------------------------------------------------------------

def test_masks_of_one_count_share_a_tape():
    g = jit_grad(lambda x: np.sum(x[x > 0] ** 2))
    with compiling(1):
        for x in ([1.0, -1, 2, -3], [-1.0, 5, -2, 3], [4.0, 3, -2, -1]):
            x = np.array(x)
            np.testing.assert_array_equal(g(x), np.where(x > 0, 2 * x, 0))
    with compiling(1), pytest.warns(jitad.TapeMismatchWarning, match=r"test_order_values\.py:\d+"):
        np.testing.assert_array_equal(g(np.array([1.0, 1, 1, -1])), [2, 2, 2, 0])
    with compiling(0):
        np.testing.assert_array_equal(g(np.array([-1.0, 1, 1, 1])), [0, 2, 2, 2])


def test_integers_need_no_new_tape():
    def f(x, q):
        k = np.argmax(x)
        middle = np.median(x) * np.quantile(x, 0.3)
        return x[k] * np.sort(x)[1] + middle + np.interp(q, np.arange(4.0), x) + x.cumprod()[k]
    g = value_and_grad(f)
    rng = np.random.default_rng(0)
    with compiling(1), warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(5):
            x, q = rng.normal(size=4), rng.uniform(-1, 4)
            assert g(x, q)[0] == pytest.approx(f(x, q), rel=1e-13)


def test_a_length_that_depends_on_data_is_guarded():
    g = jit(lambda k, w: np.bincount(k, weights=w))
    for k in ([0, 2, 2], [2, 1, 0], [3, 0, 3], [0, 0, 0]):
        np.testing.assert_array_equal(g(np.array(k), w3), np.bincount(k, weights=w3))
    with pytest.raises(ValueError, match="no negative elements"):
        g(np.array([0, -1, 2]), w3)


def test_what_raises_on_one_path_raises_again():
    g = jit(lambda x: np.nanargmax(x))
    assert g(np.array([1.0, np.nan])) == 0
    for _ in range(2):
        with pytest.raises(ValueError, match="All-NaN slice"):
            g(np.array([np.nan, np.nan]))
    assert g(np.array([np.nan, 2.0])) == 1


def test_int_of_argmax_and_ranges_are_branches():
    def f(x):
        total = 0.0
        for i in range(np.argmax(x) + 1):
            total += x[i] ** 2
        return total
    g = jit_grad(f)
    np.testing.assert_array_equal(g(np.array([1.0, 5.0, 2.0])), [2, 10, 0])
    np.testing.assert_array_equal(g(np.array([7.0, 5.0, 2.0])), [14, 0, 0])


def test_large_lines():
    """More elements than are sorted by counting."""
    x = np.round(np.random.default_rng(0).normal(size=(2, 500)) * 20) / 4
    x[0, ::7] = np.nan
    places, low = jit(lambda x: (np.argsort(x, kind="stable"), np.nanquantile(x, [0.1, 0.5], axis=1)))(x)
    np.testing.assert_array_equal(places, np.argsort(x, kind="stable"))
    np.testing.assert_allclose(low, np.nanquantile(x, [0.1, 0.5], axis=1), rtol=1e-14)


# --- loops -------------------------------------------------------------------------------------------------

def viterbi(scores):
    best, total = np.zeros(3), 0.0
    for t in range(200):
        to = best[:, None] + scores[t]
        k = np.argmax(to, axis=0)
        best = to[k, np.arange(3)]
        total += best[np.argmin(best)] * 1e-3
    return total


def medians(y):
    c = 0.5
    for t in range(200):
        c = 0.3 * c + np.interp(np.median(np.sort(y[t] * c) + c), [-1.0, 0.0, 0.5, 2.0], [0.3, 0.1, 0.7, 0.2])
    return c


@pytest.mark.parametrize(("function", "shape"), [(viterbi, (200, 3, 3)), (medians, (200, 4))])
def test_in_loops(function, shape):
    rng = np.random.default_rng(1)
    g = value_and_grad(function)
    for _ in range(2):
        x, d, h = rng.normal(size=shape), rng.normal(size=shape), 1e-6
        value, gradient = g(x)
        assert value == pytest.approx(function(x), rel=1e-12)
        slope = (function(x + h * d) - function(x - h * d)) / (2 * h)
        assert float(np.sum(gradient * d)) == pytest.approx(slope, rel=1e-5, abs=1e-7)
    assert len(g.compile(x).tape.nodes) < 200


def test_in_a_scan():
    def body(carry, row):
        row = np.sort(row + carry)
        return 0.3 * row[np.argmax(row * row)], np.cumprod(row)[-1]

    def plain(x):
        carry, total = 0.1, 0.0
        for row in x:
            carry, y = body(carry, row)
            total += y
        return carry + total
    f = lambda x: sum((lambda c, ys: (c, ys.sum()))(*jitad.scan(body, 0.1, x)))
    x, d, h = np.random.default_rng(2).normal(size=(7, 4)), np.random.default_rng(3).normal(size=(7, 4)), 1e-6
    value, gradient = value_and_grad(f)(x)
    assert value == pytest.approx(plain(x), rel=1e-12)
    assert float(np.sum(gradient * d)) == pytest.approx((plain(x + h * d) - plain(x - h * d)) / (2 * h), rel=1e-6)


# --- errors --------------------------------------------------------------------------------------------------

NUMPYS = [
    ("kth", lambda x: np.partition(x, 5)), ("traced kth", lambda x: np.partition(x, (x[0] + 4).astype(int))),
    ("kind", lambda x: np.sort(x, kind="bogo")), ("order", lambda x: np.argsort(x, order="x")),
    ("both", lambda x: np.sort(x, kind="stable", stable=True)), ("axis", lambda x: np.sort(x, axis=1)),
    ("argmax axis", lambda x: np.argmax(x, axis=1)), ("argmax of nothing", lambda x: np.argmax(x[:0])),
    ("lexsort of nothing", lambda x: np.lexsort(x[:0])), ("lexsort shapes", lambda x: np.lexsort((x, x[:2]))),
    ("side", lambda x: np.searchsorted(x, 1.0, side="middle")), ("2-d table", lambda x: np.searchsorted(x[None], 1.0)),
    ("bins", lambda x: np.digitize(x, [0, 2, 1])), ("bins of number", lambda x: np.digitize(x, 3)),
    ("traced bins", lambda x: np.digitize(1.5, x)), ("bins of 2", lambda x: np.digitize(x, x[None])),
    ("interp lengths", lambda x: np.interp(x, [0, 1], [1])), ("interp empty", lambda x: np.interp(x, [], [])),
    ("period", lambda x: np.interp(x, [0, 1], [1, 2], period=0)),
    ("choose", lambda x: np.choose(x.astype(int), [x, x])),
    ("choose floats", lambda x: np.choose(x, [x, x])), ("choose mode", lambda x: np.choose([0], x, mode="some")),
    ("q", lambda x: np.quantile(x, 1.5)), ("traced q", lambda x: np.quantile([1.0, 2.0], x)),
    ("percentile", lambda x: np.percentile(x, -1)), ("method", lambda x: np.quantile(x, 0.5, method="guess")),
    ("weights and method", lambda x: np.quantile(x, 0.5, weights=x)), ("3-d q", lambda x: np.quantile(x, [[[0.5]]])),
    ("weights below 0", lambda x: np.quantile(x, 0.5, weights=x - 2, method="inverted_cdf")),
    *([("weights of 0", lambda x: np.quantile(x, 0.5, weights=x * 0, method="inverted_cdf"))]
      if np.lib.NumpyVersion(np.__version__) >= "2.4.0" else []),                # which divided by 0 before
    ("shape of weights", lambda x: np.quantile(x, 0.5, weights=x[:2], method="inverted_cdf")),
    ("shape of weights 0", lambda x: np.quantile(x, 0.5, axis=0, weights=x[:2], method="inverted_cdf")),
    ("quantile of bool", lambda x: np.quantile(x > 0, 0.5)), ("quantile of nothing", lambda x: np.quantile(x[:0], 0.5)),
    ("nonzero of number", lambda x: np.nonzero(x[0])),
    ("compress", lambda x: np.compress([True, False, False, True], x)),
    ("compress 2-d", lambda x: np.compress([[True]], x)), ("bincount of floats", lambda x: np.bincount(x)),
    ("bincount weights", lambda x: np.bincount([0, 1], weights=x)),
    ("minlength", lambda x: np.bincount([1], x[:1], -1)),
    ("histogram bins", lambda x: np.histogram(x, 0)), ("histogram edges", lambda x: np.histogram(x, [0, 2, 1])),
    ("histogram traced edges", lambda x: np.histogram([1.0], x)), ("2-d edges", lambda x: np.histogram([1.0], x[None])),
    ("histogram range", lambda x: np.histogram(x, 2, (3, 1))), ("histogram of NaN", lambda x: np.histogram(x * np.nan)),
    ("histogram weights", lambda x: np.histogram(x, 2, weights=[1.0])),
    ("delete", lambda x: np.delete(x, x.astype(int))),
    ("delete mask", lambda x: np.delete(x, x[:2] > 0)), ("insert", lambda x: np.insert(x, 7, 1)),
    ("unravel_index", lambda x: np.unravel_index(x.astype(int), (1, 2))),
    ("unravel_index of floats", lambda x: np.unravel_index(x, (1, 2))),
    ("ravel_multi_index", lambda x: np.ravel_multi_index((x.astype(int),), (2,))),
    ("trim", lambda x: np.trim_zeros(x, "x")), ("piecewise", lambda x: np.piecewise(x, [x > 0], [1, 2, 3])),
    ("mask", lambda x: x[x[:2] > 0]), ("mask of 2", lambda x: x[x[None] > 0]),
    ("place", lambda x: np.place(x.copy(), x > 0, [])),
    ("place mask", lambda x: np.place(x.copy(), x[:2] > 0, [1.0])), ("nanmax", lambda x: np.nanmax(x, where=x > 0)),
    ("along no axis", lambda x: np.apply_along_axis(np.sum, 1, np.outer(x, x)[:0])),
    ("to_end", lambda x: np.ediff1d(x.astype(int), to_end=1.5)),
]


@pytest.mark.parametrize(("label", "function"), NUMPYS, ids=[n[0] for n in NUMPYS])
def test_numpys_own_errors(label, function):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception, match=r".") as expected:
            function(x3)
        with pytest.raises(expected.type) as caught:
            jit(function)(x3)
    assert str(expected.value)[:12] in str(caught.value)


REFUSED = [
    (lambda x: np.unique(x[:, None], axis=0), "numpy.unique along an axis"),
    (lambda x: np.histogram(x, bins="auto")[0], "numpy.histogram with bins='auto'"),
    (lambda x: np.trim_zeros(x[None]), "numpy.trim_zeros of an array that has not one dimension"),
    (lambda x: np.nanquantile(x, 0.5, weights=x, method="inverted_cdf"), "numpy.nanquantile with weights"),
]


@pytest.mark.parametrize(("function", "what"), REFUSED, ids=[w for _, w in REFUSED])
def test_refusals_say_what_and_where(function, what):
    with pytest.raises(jitad.UnsupportedOperationError) as caught:
        jit(function)(x3)
    assert what in str(caught.value)
    assert f"test_order_values.py:{function.__code__.co_firstlineno}" in str(caught.value)


def test_arguments_are_not_sorted_in_place():
    x = x3.copy()
    for method in (lambda x: x.sort(), lambda x: x.partition(1)):
        with pytest.raises(jitad.MutationError, match="the argument `x`"):
            jit(method)(x)
    np.testing.assert_array_equal(x, x3)


# --- elements by rank, without a sort ------------------------------------------------------------------------

def ranked(n):
    """Lines in which selection has to look at many digits, or at none: name and elements."""
    rng = np.random.default_rng(n)
    ends = np.array([np.inf, -np.inf, 0.0, -0.0, 5e-324, -1e308, 1e308, 1.0, np.nextafter(1.0, 2.0)])
    yield "normal", rng.normal(size=n)
    yield "equal", np.full(n, 2.5)
    yield "ties", np.round(rng.normal(size=n))
    yield "ends", rng.permutation(np.resize(ends, n))
    yield "close", 1.0 + np.arange(n)[::-1] * 2.0**-52
    yield "scales", np.exp(rng.normal(size=n) * 100.0) * np.sign(rng.normal(size=n))
    yield "nan", np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n))


@pytest.mark.parametrize("n", [65, 5000])
def test_selection_by_rank(n):
    """Values are NumPy's, places those of a stable sort, whose elements get the derivative."""
    ranks = np.array([0, 1, n // 3, n // 2, n - 2, n - 1, -n - 3, 2 * n])

    def program(x, ranks):
        return (select_places(x, ranks), np.argpartition(x, n // 3), np.median(x), np.nanmedian(x),
                np.quantile(x, [0.1, 0.9]))
    compiled = jit(program, static=("select_places",))
    for name, x in ranked(n):
        order = np.argsort(x, kind="stable")
        places, parted, *values = compiled(x, ranks)
        np.testing.assert_array_equal(places, order[np.clip(ranks, 0, n - 1)], name)
        assert parted[n // 3] == order[n // 3] and {*parted} == {*range(n)}
        assert {*parted[:n // 3]} == {*order[:n // 3]}, name
        with np.errstate(all="ignore"):
            expected = np.median(x), np.nanmedian(x), np.quantile(x, [0.1, 0.9])
        for got, value in zip(values, expected, strict=True):
            np.testing.assert_allclose(got, value, rtol=1e-15, err_msg=name)


def test_derivatives_of_what_is_selected():
    x = np.random.default_rng(1).normal(size=(3, 101))
    x[0, 5] = np.nan

    def f(x):
        return np.nanmedian(x, axis=1) @ w3 + np.partition(x[1], 70)[70:].sum()
    lines = np.sort(x, axis=1)
    expected = np.where(x == lines[:, 50:51], w3[:, None], 0.0)
    expected[0] = 5.0 * ((x[0] == lines[0, 49]) | (x[0] == lines[0, 50]))
    expected[1] += x[1] >= lines[1, 70]
    np.testing.assert_array_equal(jit_grad(f)(x), expected)
