"""NumPy's scalars are values, its arrays of no dimensions are not: what is written into a view shows in the array."""
from __future__ import annotations

import numpy as np
import pytest

from jitad import jit, jit_grad
from tests.helpers.public import same, x3

VIEWS = {
    "reshape": lambda v: v.reshape(()), "to one": lambda v: v.reshape(1), "flat": lambda v: v.reshape(-1),
    "T": lambda v: v.T, "transpose": lambda v: v.transpose(), "squeeze": lambda v: v.squeeze(),
    "ravel": lambda v: v.ravel(), "flatten": lambda v: v.flatten(), "new axis": lambda v: v[None],
    "dots": lambda v: v[...], "empty index": lambda v: v[()], "real": lambda v: v.real, "copy": lambda v: v.copy(),
    "np.reshape": lambda v: np.reshape(v, (1,)), "np.squeeze": np.squeeze, "np.ravel": np.ravel,
    "np.transpose": np.transpose, "atleast_1d": np.atleast_1d, "atleast_2d": np.atleast_2d, "asarray": np.asarray,
    "array": np.array, "expand_dims": lambda v: np.expand_dims(v, 0), "and back": lambda v: v[None].squeeze(),
    "swapaxes": lambda v: v.reshape(1, 1).swapaxes(0, 1), "moveaxis": lambda v: np.moveaxis(v.reshape(1, 1), 0, 1),
    "astype": lambda v: v.astype(float, copy=False), "conj": lambda v: v.conj()}
MADE = {
    "mean": np.mean, "max": lambda x: x.max(axis=0), "dot": lambda x: x @ x, "norm": np.linalg.norm,
    "einsum": lambda x: np.einsum("i,i->", x, x), "clip": lambda x: np.clip(x[0], 0, 10), "median": np.median,
    "nanmean": np.nanmean, "take": lambda x: np.take(x, 0), "interp": lambda x: np.interp(x[0], [0.0, 4.0], [0.0, 2.0]),
    "last": lambda x: np.cumsum(x)[-1], "trace": lambda x: np.trace(np.outer(x, x)), "item": lambda x: x[1],
    "choose": lambda x: np.choose(0, [x[0], x[1]]), "of 0-d": lambda x: np.array(x[0]) * 2.0,
    "array": lambda x: np.array(x[0]), "full": lambda x: np.full((), x[0]),
    "where": lambda x: np.where(True, x[0], 1.0),
    "keepdims": lambda x: x.sum(keepdims=True), "squeezed": lambda x: np.squeeze(x.copy()[:1]),
    "full_like": lambda x: np.full_like(x[0], x[1]), "0-d of single": lambda x: np.array(x[0]).astype(np.float32),
    "complex": lambda x: (x * 1j).sum() / 1j}


@pytest.mark.parametrize("make", MADE.values(), ids=list(MADE))
def test_views_of_numbers_are_copies_and_those_of_arrays_are_not(make):
    def f(x):
        results = []
        for view in VIEWS.values():
            v = make(x)
            w = view(v)
            w += 1.0
            results += [np.sum(v), np.sum(w)]
        return np.array(results).real

    np.testing.assert_allclose(jit(f)(x3), f(x3), rtol=1e-6)


def test_gradient_of_a_number_whose_view_is_written():
    def f(x):
        v = np.mean(x * x)
        w = v.reshape(())
        w += x[0]
        u = v[None]
        u[0] = 7.0
        return v * w

    same(jit_grad(f)(x3), np.mean(x3 * x3) * np.array([1.0, 0, 0]) + (2 * np.mean(x3 * x3) + x3[0]) * 2 * x3 / 3)


def test_writes_into_numbers():
    def filled(x):
        v, a = x.mean(), np.array(x.mean())
        v.fill(0.25)
        a.fill(0.25)
        return v + a

    assert jit(filled)(x3) == filled(x3)
    for index in (..., ()):
        def written(x, index=index):
            v = x.mean()
            v[index] = 0.5
            return v

        def caught(x, index=index):
            v = x.mean()
            try:
                v[index] = 0.5
            except TypeError:
                return x[1]
            return v

        with pytest.raises(TypeError, match=r"'numpy\.float64' object does not support item assignment"):
            jit(written)(x3)
        assert jit(caught)(x3) == caught(x3)
    with pytest.raises(ValueError, match="read-only"):
        jit(lambda x: np.broadcast_to(x.mean(), (2,)).__iadd__(1.0))(x3)


def test_conj_of_real_numbers_is_the_array_itself():
    def f(x):
        y = x.copy()
        z = y.conj()
        z *= 2.0
        return np.sum(y)

    assert jit(f)(x3) == f(x3) == 12.0


@pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")
@pytest.mark.parametrize("write", [
    lambda v: v.__setitem__(v < -1, v[v < -1] * 0.5), lambda v: v.__setitem__(np.zeros(0, int), 1.0),
    lambda v: v.__setitem__(..., 2.0), lambda v: v.fill(3.0), lambda v: v.sort(), lambda v: v.__imul__(2.0),
    lambda v: v.__setitem__(v > 0, 1.0), lambda v: np.add.at(v, np.zeros(0, int), 1.0)])
def test_writes_where_nothing_is(write):
    def f(x):
        v = x[:0].copy()
        write(v)
        return np.sum(v) + x[0]

    def masked(x):
        v = x[x > 100.0]
        v[v < -1] *= 0.5
        return np.sum(v) + x[0]

    assert jit(f)(x3) == jit(masked)(x3) == 1.0
    np.testing.assert_array_equal(jit_grad(f)(x3), [1.0, 0.0, 0.0])
