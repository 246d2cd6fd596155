"""Whether an array in another order or shape shares memory with what it was made of: as in NumPy, by layout."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from jitad import MutationError, jit

MADE: dict[str, Callable[[Any], Any]] = {
    "a contiguous array": lambda x: x + 0.0,
    "every second": lambda x: (x + 0.0)[::2],
    "the end": lambda x: (x + 0.0)[1:],
    "backwards": lambda x: (x + 0.0)[::-1],
    "a matrix": lambda x: np.array([[x[0], 1.0, x[2]], [x[1], x[4], 2.0]]),
    "a transposed matrix": lambda x: np.array([[x[0], 1.0, x[2]], [x[1], x[4], 2.0]]).T,
    "columns": lambda x: np.array([[x[0], 1.0, x[2]], [x[1], x[4], 2.0]])[:, :2],
    "a column": lambda x: np.array([[x[0], 1.0, x[2]], [x[1], x[4], 2.0]])[:, 1],
    "a computed matrix": lambda x: np.outer(x, x) * 2.0,
    "complex numbers": lambda x: (x * 1j)[::2],
}
TAKEN: dict[str, Callable[[Any], Any]] = {
    "ascontiguousarray": np.ascontiguousarray,
    "asfortranarray": np.asfortranarray,
    "asarray": np.asarray,
    "asarray in C order": lambda a: np.asarray(a, order="C"),
    "asarray in F order": lambda a: np.asarray(a, order="F"),
    "array as needed": lambda a: np.array(a, copy=None, order="C"),
    "ravel": np.ravel,
    "ravel method": lambda a: a.ravel(),
    "ravel in F order": lambda a: np.ravel(a, "F"),
    "reshape": lambda a: a.reshape(-1),
    "flatten": lambda a: a.flatten(),
    "astype": lambda a: a.astype(a.dtype),
    "astype without a copy": lambda a: a.astype(a.dtype, copy=False),
    "astype in C order": lambda a: a.astype(a.dtype, order="C", copy=False),
    "astype in F order": lambda a: a.astype(a.dtype, order="F", copy=False),
}


@pytest.mark.parametrize("take", list(TAKEN.values()), ids=list(TAKEN))
@pytest.mark.parametrize("make", list(MADE.values()), ids=list(MADE))
def test_a_write_is_seen_where_memory_is_shared(make: Callable[[Any], Any], take: Callable[[Any], Any]) -> None:
    def f(x: Any) -> Any:
        a = make(x)
        b = take(a)
        b[0] = 9.0
        return np.abs(np.sum(a) * 3.0 + np.sum(b))

    x = np.array([0.7, -0.4, 1.3, 2.0, 0.1, -1.0])
    expected = f(x.copy())
    try:
        found = jit(f)(x)
    except MutationError as refusal:
        assert "may or may not share" in str(refusal) and np.ndim(getattr(make(x), "base", None)) != 1
    else:
        assert found == pytest.approx(expected, rel=1e-14)


def test_a_number_in_order_has_a_dimension() -> None:
    assert jit(lambda x: np.ascontiguousarray(np.sum(x)).shape[0] * x[0])(np.ones(2)) == 1.0


SHARED: dict[str, Callable[[Any], Any]] = {
    "diag": np.diag, "diagonal": np.diagonal, "diff of order 0": lambda a: np.diff(a, 0), "transpose": np.transpose,
    "einsum": lambda a: np.einsum("ij->ji", a), "einsum of a diagonal": lambda a: np.einsum("ii->i", a[:3, :3]),
    "einsum of a sum": lambda a: np.einsum("ij->i", a), "trim_zeros": lambda a: np.trim_zeros(a[0]),
    "nan_to_num in place": lambda a: np.nan_to_num(a, copy=False), "nan_to_num": np.nan_to_num,
    "ix_": lambda a: np.ix_(a[0], a[1])[1], "polyder of order 0": lambda a: np.polyder(a[0], 0),
    "meshgrid without copies": lambda a: np.meshgrid(a[0], a[1], copy=False, sparse=True)[0],
    "meshgrid": lambda a: np.meshgrid(a[0], a[1])[0], "split": lambda a: np.split(a, 3)[1],
    "asarray_chkfinite": np.asarray_chkfinite, "rot90": lambda a: np.rot90(a, 2), "atleast_3d": np.atleast_3d,
    "squeeze": np.squeeze, "flip": np.flip, "tril": np.tril, "sort": np.sort, "real": np.real,
}


@pytest.mark.parametrize("take", list(SHARED.values()), ids=list(SHARED))
@pytest.mark.parametrize("first", [True, False])
def test_a_result_shares_memory_where_numpys_does(take: Callable[[Any], Any], first: bool) -> None:
    def f(y: Any) -> Any:
        a = y.copy()
        b = take(a)
        if first:
            a[...] = 7.0
            return 1.0 * np.sum(b)
        b[...] = 7.0
        return 1.0 * np.sum(a)

    def outcome(g: Callable[[Any], Any]) -> Any:
        try:
            return g(np.arange(12.0).reshape(3, 4) + 0.5)
        except (ValueError, MutationError) as error:
            return type(error)

    found, expected = outcome(jit(f)), outcome(f)
    assert found is MutationError or found is expected or found == pytest.approx(expected, rel=1e-14)
