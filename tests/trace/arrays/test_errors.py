"""Assignment that is refused, and NumPy's own errors."""
from __future__ import annotations

import numpy as np
import pytest

import jitad
from jitad import cache, jit, jit_grad

X = np.arange(1.0, 7).reshape(2, 3)
captured = np.arange(3.0)


@pytest.fixture(autouse=True)
def fresh():
    cache.clear()


def text_of(error):
    return "\n".join([str(error), *getattr(error, "__notes__", ())])


def item(x):
    x[0] = 1.0


def in_place(x):
    x += 1.0


def of_view(x):
    x[0][1:] *= 2


def of_row(x):
    for row in x:
        row[0] = 0


def transposed(x):
    x.T[0] = x[0, 0]


def add_at(x):
    np.add.at(x, [0], 1.0)


def fill(x):
    np.asarray(x).fill(3)


def diagonal(x):
    np.fill_diagonal(x, 0)


def of_captured(x):
    captured[1] = x[0, 0]


def of_captured_plain(x):
    captured[1] = 3.0


WRITES = [item, in_place, of_view, of_row, transposed, add_at, fill, diagonal, of_captured, of_captured_plain]


@pytest.mark.parametrize("write", WRITES, ids=lambda f: f.__name__)
def test_the_callers_arrays_are_not_written(write):
    def f(x):
        write(x)
        return np.sum(x)

    x, before = X.copy(), captured.copy()
    with pytest.raises(jitad.MutationError) as caught:
        jit_grad(f)(x)
    text, code = text_of(caught.value), write.__code__
    last = max(line for _, _, line in code.co_lines() if line)
    assert f"test_errors.py:{last}" in text and "copy" in text, text
    assert ("`captured`" if "captured" in write.__name__ else "`x`") in text
    assert (x == X).all() and (captured == before).all()


def test_memory_that_a_library_shares():
    from numpy.lib.stride_tricks import as_strided

    def f(x):
        a = np.zeros(4)
        b = as_strided(a, (2,), (16,))
        a[0] = x[0, 0]
        return np.sum(a) + np.sum(b)

    with pytest.raises(jitad.MutationError, match=r"shared(.|\n)*copy"):
        jit(f)(X)

    shared = [lambda a: a.view(np.int64), lambda a: a.view(np.complex128)[:1], lambda a: a.data, lambda a: a.ctypes,
              lambda a: a.view(np.recarray), lambda a: np.nditer(a), lambda a: memoryview(
                  a.data)[1:], lambda a: np.ma.array(a, copy=False), lambda a: np.broadcast(a, 1.0)]
    for share in shared:
        def h(x, share=share):
            a = np.zeros(4)
            b = share(a[1:] if share is not shared[1] else a)
            a[0] = x[0, 0]
            return np.sum(a) + (b is None)

        with pytest.raises(jitad.JitadError):
            jit(h)(X)

    def g(x):
        a = np.zeros(4)
        b = as_strided(a, (2,), (16,))[0] + 1     # gone again
        a[0] = x[0, 0]
        return np.sum(a) + b

    assert jit(g)(X) == 2


CONCRETE = [
    lambda a: np.frombuffer(a), lambda a: memoryview(a), lambda a: bytes(a),
    lambda a: a.tobytes(), lambda a: a.ctypes, lambda a: a.data, lambda a: [1][a[0]],
    lambda a: __import__("pickle").dumps(a), lambda a: a.__array_interface__, lambda a: a.__array__(),
    lambda a: __import__("numpy.lib.stride_tricks").lib.stride_tricks.as_strided(a), lambda a: a.view(np.int64),
]


@pytest.mark.parametrize("read", CONCRETE)
def test_nothing_reads_stale_memory(read):
    """What cannot be followed raises; it never sees the zeros."""
    def f(x):
        a = np.zeros(4)
        a[0] = x[0, 0]
        read(a)
        return np.sum(a)

    with pytest.raises((TypeError, AttributeError, jitad.JitadError)):
        jit(f)(X)


def test_text_is_that_of_the_stored_element():
    """And a branch: another element gives another text."""
    @jit
    def f(x):
        a = np.zeros(4)
        a[0] = x[0, 0]
        return np.sum(a) + float(f"{a[0]:.1f}")

    assert f(X) == 2 * X[0, 0]
    with pytest.warns(jitad.TapeMismatchWarning, match="another way"):
        assert f(X + 1) == 2 * X[0, 0] + 2


def test_layouts_that_are_not_known():
    """NumPy decides by the layout of a computed array whether `b` is a view of it."""
    def f(x):
        a = x * 2
        b = a.reshape(-1)
        b[0] = 7
        return np.sum(a) + np.sum(b)

    with pytest.raises(jitad.MutationError, match=r"\.copy\(\)"):
        jit(f)(X)

    def g(x):
        b = (x * 2).reshape(-1)
        b[0] = x[1, 2]
        a = (x * 2).copy()
        c = a.ravel()
        c[1] = 9
        return np.sum(b) + np.sum(a)

    assert jit(g)(X) == g(X)


def set_(a, index, value):
    a[index] = value


NUMPYS = [
    lambda a, x: set_(a, 9, 1.0), lambda a, x: set_(a, (0, 0, 0), 1.0), lambda a, x: set_(a, slice(None), x[0, :2]),
    lambda a, x: set_(a, 0, x[0, :2]), lambda a, x: set_(a, ([0, 1], [0, 1]), x[0]), lambda a, x: set_(a, "k", 1.0),
    lambda a, x: set_(a, (0, 0), x[0]), lambda a, x: set_(a, [5], 1.0), lambda a, x: set_(a, 1.5, 1.0),
    lambda a, x: set_(a, np.ones(7, bool), 1.0), lambda a, x: a.__iadd__(np.ones((4, 2, 3))),
    lambda a, x: np.fill_diagonal(a[0], x[0, 0]), lambda a, x: set_(np.broadcast_to(a, (2, 2, 3)), 0, 1.0),
    lambda a, x: set_(np.diagonal(a), 0, x[0, 0]), lambda a, x: np.copyto(a, x[:, :2]),
    lambda a, x: a.astype(int).__iadd__(x), lambda a, x: np.put(a, [9], x[0]),
]


@pytest.mark.parametrize("write", NUMPYS)
def test_errors_are_numpys(write):
    def f(x):
        a = x * 1.0
        write(a, x)
        return np.sum(a)

    def g(x):
        a = np.zeros((2, 3))
        a[0] = x[0]
        write(a, x)
        return np.sum(a)

    for function in (f, g):
        with pytest.raises(Exception, match=r".") as plain:
            function(X)
        with pytest.raises(type(plain.value)) as caught:
            jit(function)(X)
        assert str(caught.value) == str(plain.value)


def test_a_plain_array_says_how_to_go_on():
    from scipy.linalg import toeplitz

    def f(x):
        a = toeplitz(np.arange(3.0))
        a[0, 0] = x[0, 0]
        return np.sum(a)

    with pytest.raises(jitad.JitadError, match=r"np\.array|copy") as caught:
        jit(f)(X)
    assert "test_errors.py" in text_of(caught.value)
