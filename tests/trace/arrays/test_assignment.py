"""Assignment in recorded code: NumPy's values, and gradients by central differences."""
from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest

import jitad
from jitad import cache, jit, jit_grad, value_and_grad
from jitad.cache.keys.identity import unwrap
from jitad.errors import TapeError
from jitad.primitives.view import view
from jitad.tape.builder import Builder
from jitad.tape.evaluate import evaluate
from jitad.tape.types import TABLE, Aval
from jitad.trace.arrays.viewing import through_view
from jitad.trace.record import record
from tests.trace.arrays.assignment_cases import CASES

X = np.array([0.3, 1.2, -0.7, 2.1, 0.9])


@pytest.fixture(autouse=True)
def fresh():
    cache.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jitad.TapeMismatchWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def differences(f, x, h=1e-6):
    steps = np.eye(len(x)) * h
    return np.array([(f(x + s) - f(x - s)) / (2 * h) for s in steps])


def tape_of(f, *args):
    return record(unwrap(f), args, {}).tape()


@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_value_and_gradient(f):
    value, gradient = value_and_grad(f)(X)
    np.testing.assert_allclose(value, f(X), rtol=1e-12)
    x = X + 0.0
    if f.__name__ == "strong_zero":          # not differentiable by differences at its first argument
        assert np.isfinite(gradient).all()
        return
    np.testing.assert_allclose(gradient, differences(f, x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_interpreter_and_other_data(f):
    tape = tape_of(f, X)
    np.testing.assert_allclose(evaluate(tape, X)[0], f(X), rtol=1e-12)
    g = jit(f)
    g(X)
    for x in (X * 1.5 + 0.1, -X):
        np.testing.assert_allclose(g(x), f(x), rtol=1e-12)


def test_the_caller_keeps_its_arrays():
    captured = np.arange(3.0)

    def f(x):
        a, b = x.copy(), np.array(captured)
        a += 1
        b[0] = a[1]
        return np.sum(a) + np.sum(b)

    x = np.ones(3)
    np.testing.assert_array_equal(jit_grad(f)(x), [1, 2, 1])
    assert (x == 1).all() and (captured == np.arange(3)).all()


def test_arrays_are_returned_as_they_are_at_the_end():
    def f(x):
        a = np.zeros(3)
        b = a[1:]
        kept = a * 1
        a[1] = x[0]
        return {"a": a, "b": b, "kept": kept, "plain": np.zeros(2), "n": a[1]}

    result = jit(f)(np.array([5.0]))
    for name, expected in (("a", [0, 5, 0]), ("b", [5, 0]), ("kept", [0, 0, 0]), ("plain", [0, 0]), ("n", 5)):
        np.testing.assert_array_equal(result[name], expected)
    assert type(result["plain"]) is np.ndarray


def test_concrete_arrays_are_arrays():
    def f(x):
        a = np.arange(6.0).reshape(2, 3)
        assert isinstance(a, np.ndarray) and a.T.shape == (3, 2) and a.flags.c_contiguous and a.nbytes == 48
        assert f"{a[0, 1]:.2f}" == "1.00" and a.tolist() == [[0, 1, 2], [3, 4, 5]] and 4.0 in a and len(a) == 2
        assert type(pickle.loads(pickle.dumps(a))) is np.ndarray and bool((a == copy.deepcopy(a)).all())
        assert float(np.max(a)) == max(a.flat) == sorted(a.ravel())[-1] == 5 and repr(a) == repr(np.asarray(a).copy())
        assert type(a[0, 0]) is np.float64 and a[a > 3].sum() == 9 and np.array_equal(a @ a.T, np.dot(a, a.T))
        for row in a:
            row -= row[0]
        a.sort(axis=1)
        a[0], b = 2 * a[1], a.astype(int)
        b |= 8
        a.shape = (3, 2)
        return np.sum(x * a.size) + a.sum() + b.sum() + np.linalg.norm(a) + divmod(7, a[1, 1])[0]

    assert jit(f)(np.ones(2)) == f(np.ones(2))


def test_indices_may_be_data():
    def f(x, i):
        a = np.zeros(4)
        a[i] = x
        a[i[:1]] *= 2
        return np.sum(a * np.arange(1.0, 5))

    g = jit_grad(f)
    x = np.array([1.0, 2, 3])
    np.testing.assert_array_equal(g(x, np.array([0, 1, 3])), [2, 2, 4])
    np.testing.assert_array_equal(g(x, np.array([2, 0, 2])), [0, 1, 6])      # of equals the last one wins
    with pytest.raises(IndexError):
        g(x, np.array([0, 1, 4]))
    assert cache.info().compiles == 1


def test_rows_that_a_computed_integer_picks_are_changed_in_place():
    """``a[k] += v`` picks a view and stores it again, as no other name for it is left."""
    def f(x, k):
        a = np.zeros((4, 3))
        for t in range(3):
            a[k + t % 2] += x * t
            a[t] *= 0.5
        a[:, k - 1] **= 2
        a[k, 1:] -= 3.0 * a[0][1:]
        return np.sum(a * x)
    x, d = np.array([0.3, 1.2, -0.7]), np.array([0.5, -0.2, 0.1])
    g = value_and_grad(f)
    for k in (2, 1):
        value, gradient = g(x, k)
        assert value == pytest.approx(f(x, k), rel=1e-13)
        assert gradient @ d == pytest.approx((f(x + 1e-6 * d, k) - f(x - 1e-6 * d, k)) / 2e-6, rel=1e-7)


def test_one_stored_element_is_seen_in_many_places():
    def f(x):
        a, v = x.copy(), x.copy()[:1]
        v *= 2.0
        a[0] = x[1]
        rows = np.meshgrid(v, x)[0]
        return np.sum(np.broadcast_to(v, (4, 1)) * x[0]) + np.sum(np.broadcast_to(a[:1], (2,))) + np.sum(rows[1:])
    x = np.array([1.0, 2.0, 3.0])
    value, gradient = value_and_grad(f)(x)
    assert value == f(x) == 16.0
    np.testing.assert_array_equal(gradient, [20.0, 2.0, 0.0])
    builder = Builder()
    with pytest.raises(TapeError, match=r"1 elements in the shape \(4, 1\)"):
        TABLE["reshape"](builder.input(Aval((1,), np.dtype(float)), "x"), shape=(4, 1))


def test_a_loop_is_a_chain_of_numbers():
    """What was stored is read back as itself, and n assignments are one node."""
    def f(x):
        a = np.zeros(300)
        a[0] = x[0]
        for t in range(1, 300):
            a[t] = a[t - 1] * x[1]
        return np.sum(a)

    names = [n.prim.name for n in tape_of(f, X).nodes]
    assert names.count("concatenate") == 1 and "update" not in names and "put" not in names
    assert names.count("mul") == 299 and len(names) < 1000


def test_second_derivatives():
    def f(x):
        a = np.ones((2, 5))
        a[:, ::2] = x[::2] ** 3
        a[1] *= x
        a[0, [1, 3]] = x[0] * x[1]
        return np.sum(a**2)

    weights = np.arange(1.0, 6)
    product = jit_grad(lambda x: np.sum(jit_grad(f)(x) * weights))
    expected = differences(lambda x: np.sum(jit_grad(f)(x) * weights), X, 1e-5)
    np.testing.assert_allclose(product(X), expected, rtol=1e-5, atol=1e-6)


def test_inside_another_derivative():
    def inner(z):
        a = np.zeros(3)
        a[1:] = z[:2] ** 2
        a *= z[2]
        return np.sum(a**2)

    def f(x):
        b = np.zeros(3)
        b[:] = x[:3]
        return np.sum(jit_grad(inner)(b) * x[:3])

    def plain(x):
        z = x[:3]
        return np.sum(differences(inner, z, 1e-4) * z)

    np.testing.assert_allclose(jit(f)(X), plain(X), rtol=1e-6)
    np.testing.assert_allclose(jit_grad(f)(X), differences(jit(f), X), rtol=1e-5, atol=1e-6)


def test_float32():
    def f(x):
        a = np.zeros(3, np.float32)
        a[:2] = x
        a[2] = a[0] * np.float32(0.1)
        return np.sum(a)

    x = np.array([0.1, 0.7], np.float32)
    assert jit(f)(x) == f(x) and np.asarray(jit(f)(x)).dtype == np.float32
    assert jit_grad(f)(x).dtype == np.float32


def test_a_python_number_that_was_in_an_array_has_a_dtype() -> None:
    """Read again, it was taken for a Python number, which goes along with any dtype, and overflowed there."""
    def f(small, n):
        a = np.zeros(3, int)
        a[1:] = n
        first, _ = np.array([n, 1])
        numbers = [a[1], first, np.array(n)[()], np.full(3, n)[-1], np.concatenate([[n], [1]])[0], np.repeat(n, 2)[0],
                   np.sum(n), np.copy(n), ~(a[1] > 0) * 1]
        return [small * number for number in numbers]

    small = np.array([100], "i1")
    for got, expected in zip(jit(f)(small, 2), f(small, 2), strict=True):
        assert got == expected and got.dtype == expected.dtype == np.int64


def test_unstacked_arrays_are_views_and_numbers_of_one_dimension_are_not() -> None:
    """Their places were read off a copy that NumPy makes of numbers: reads outside of the array."""
    def numbers(t):
        t = t.copy()
        a, b, c = np.unstack(t)
        t[0] = 9.0
        return a * b + c

    def columns(t):
        t = t.copy()
        a, b = np.unstack(t, axis=1)
        a[0] = 5.0
        t[1, 0] = 7.0
        return np.stack([a, b]) * np.flip(t[2, 1]) * np.flip(np.asarray(t[2, 0]))

    x = np.array([1.0, 2.0, 3.0])
    assert jit(numbers)(x) == numbers(x) == 5.0
    np.testing.assert_array_equal(jit_grad(numbers)(x), [2, 1, 1])
    m = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    np.testing.assert_array_equal(jit(columns)(m), columns(m))
    with pytest.raises(ValueError, match="must be at least 1-d"):
        jit(lambda x: np.unstack(x[0]))(x)


def test_an_index_map_is_checked_against_its_source() -> None:
    """When a node is made, and when NumPy gives a copy from which no map can be read."""
    builder = Builder()
    x = builder.input(Aval((3, 4), np.dtype(float)), "x")
    wrong = [((4,), ((0, ()), (1, ((0, 1),)))), ((4,), ((3, ()), (0, ((0, 1),)))), ((4,), ((0, ((0, 1),)),)),
             ((2,), ((0, ((0, -1),)), (0, ()))), ((2,), ((0, ((1, 1),)), (0, ())))]
    for shape, index in wrong:
        with pytest.raises(TapeError, match="an index map"):
            view(x, shape, index)
    with pytest.raises(TapeError, match="an index map reaches from 0 to 4 in a dimension of 4"):
        TABLE["spread"](builder.input(Aval((5,), np.dtype(float)), "y"), shape=(4,), index=((0, ((0, 1),)),))
    with pytest.raises(TapeError, match="an index map reaches from 2 to 4 in a dimension of 4"):
        TABLE["update"](*(builder.input(Aval((n,), np.dtype(float)), "a") for n in (4, 3)),
                        indices=(((2, ((0, 1),)),),))
    for copying in (np.copy, lambda a: a[0, 0], lambda a: list(np.zeros(2))):
        with pytest.raises(TapeError, match="NumPy gave a copy"):
            through_view(x, copying)
