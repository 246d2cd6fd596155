"""Products of matrices with few columns, however the operands lie."""
import numpy as np
import pytest

from jitad import value_and_grad


def _laid(x, layout):
    if layout == "strided":
        wide = np.zeros((2 * x.shape[0], x.shape[1] + 3), x.dtype)
        wide[::2, 1:-2] = x
        return wide[::2, 1:-2]
    return np.asarray(x, order=layout)


@pytest.mark.parametrize("layout", ["C", "F", "strided"])
@pytest.mark.parametrize("dtype, tolerance", [("f8", 1e-13), ("f4", 2e-5)])
def test_a_layer_and_what_it_gives_back(layout, dtype, tolerance):
    rng = np.random.default_rng(3)
    x, w, v = (rng.normal(size=s).astype(dtype) for s in ((70, 33), (7, 33), (7, 70)))

    @value_and_grad(argnums=(0, 1))
    def loss(w, x, v):
        return np.sum(v.T * (x @ w.T) ** 2) + np.sum(np.square(v @ x))

    value, (dw, dx) = loss(w, _laid(x, layout), v)
    w8, x8, v8 = (a.astype("f8") for a in (w, x, v))
    r, s = x8 @ w8.T, v8 @ x8
    close = dict(rtol=tolerance, atol=100 * tolerance)
    np.testing.assert_allclose(value, np.sum(v8.T * r ** 2) + np.sum(s ** 2), **close)
    np.testing.assert_allclose(dw, (2 * v8.T * r).T @ x8, **close)
    np.testing.assert_allclose(dx, (2 * v8.T * r) @ w8 + 2 * v8.T @ s, **close)
    assert dx.dtype == np.dtype(dtype)


@pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")
@pytest.mark.parametrize("columns", [2, 3, 9, 20, 21])
def test_infinite_elements_stay_in_their_row_and_column(columns):
    rng = np.random.default_rng(columns)
    x, b = rng.normal(size=(61, 45)), rng.normal(size=(45, columns))
    x[5, 7], b[3, 1] = np.inf, np.nan
    got = value_and_grad(lambda b, x, w: np.sum(np.where(w, x @ b, 0.0)))
    with np.errstate(invalid="ignore"):
        wanted = x @ b
    for row, column in ((5, 0), (5, 1), (0, 1), (0, 0), (60, columns - 1)):
        w = np.zeros(wanted.shape, bool)
        w[row, column] = True
        np.testing.assert_allclose(got(b, x, w)[0], wanted[row, column], rtol=1e-12)
