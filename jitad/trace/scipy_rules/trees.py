"""scipy.spatial's trees of points: the neighbours are found by SciPy's own code when the compiled function runs.

Their numbers are constants to derivatives; their distances are differentiated as those of the points with these
numbers. Which points are in a ball or a pair is a guard.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.tape.builder import Value
from jitad.trace.dispatch import refused
from jitad.trace.scipy_rules.classes import StandIn, lifted, method, name_of_class, stands_for, this_recorder
from jitad.trace.scipy_rules.served import served

__all__ = ["Tree"]


class _Trees:
    """The real tree of the last points."""

    def __init__(self, kind: type, options: dict[str, Any]) -> None:
        self.kind, self.options = kind, options
        self.last: tuple[np.ndarray, Any] | None = None

    def of(self, data: np.ndarray) -> Any:
        last = self.last                                 # of whatever thread
        if last is None or not np.array_equal(last[0], data):
            data = np.array(data)
            self.last = last = data, self.kind(data, **self.options)
        return last[1]


class Tree(StandIn):
    """A tree of points, a row of `data` each, within a periodic box or none."""

    __slots__ = ("_trees", "boxsize", "data")

    def __init__(self, kind: type, data: Any, leafsize: Any, boxsize: Any) -> None:
        super().__init__(kind)
        self.data = lifted(data)
        if self.data.ndim != 2:
            raise ValueError("data must be 2 dimensions")
        self.boxsize = None if boxsize is None else _numbers(boxsize)
        options = {"leafsize": int(_numbers(leafsize)), "boxsize": self.boxsize}
        self._trees = _Trees(kind, options)

    @property
    def n(self) -> int:
        return int(self.data.shape[0])

    @property
    def m(self) -> int:
        return int(self.data.shape[1])

    def _served(self, what: str, function: Callable[..., Any], operands: list[Any], shape: tuple[int, ...],
                dtype: Any) -> Any:
        trees, name = self._trees, f"{name_of_class(self.jitad_kind)}.{what}"
        return served(name, lambda data, *rest: function(trees.of(data), *rest), [self.data, *operands], shape, dtype)

    @method
    def query(self, x: Any, k: Any = 1, eps: Any = 0.0, p: Any = 2.0, distance_upper_bound: Any = np.inf,
              workers: int = 1) -> tuple[Any, Any]:
        points = lifted(x)
        if not points.ndim or points.shape[-1] != self.m:
            raise ValueError(f"x must consist of vectors of length {self.m} but has shape {points.shape}")
        ranks = list(k) if isinstance(k, (list, tuple, np.ndarray)) else int(k)
        shape = points.shape[:-1] + ((len(ranks),) if isinstance(ranks, list) else (ranks,) if ranks > 1 else ())
        eps, p = float(_numbers(eps)), float(_numbers(p))
        found = self._served("query", lambda tree, at, most: tree.query(
            at, k=ranks, eps=eps, p=p, distance_upper_bound=float(most), workers=workers)[1],
            [points, lifted(distance_upper_bound) + 0.0], shape, np.int64)
        missing = found == self.n
        near = self.data[np.where(missing, 0, found)]
        away = np.expand_dims(points, -2) - near if len(shape) == points.ndim else points - near
        if self.boxsize is not None:
            away = away - self.boxsize * np.rint(away / np.where(self.boxsize > 0, self.boxsize, np.inf))
        return np.where(missing, np.inf, _length(away, p)), found

    @method
    def query_ball_point(self, x: Any, r: Any, p: Any = 2.0, eps: Any = 0, workers: int = 1,
                         return_sorted: Any = None, return_length: bool = False) -> Any:
        points, p = lifted(x), float(_numbers(p))
        rows = points.reshape(-1, self.m)

        def inside(tree: Any, at: np.ndarray, radius: np.ndarray) -> np.ndarray:
            whole = np.zeros((len(at), self.n), bool)
            for row, members in zip(whole, tree.query_ball_point(at, radius, p=p), strict=True):
                row[members] = True
            return whole
        radii = np.broadcast_to(lifted(r) + 0.0, points.shape[:-1]).reshape(-1)
        member = this_recorder().decide_all(self._served("query_ball_point", inside, [rows, radii], (
            rows.shape[0], self.n), bool))
        if return_length:
            return np.sum(member, axis=1).reshape(points.shape[:-1])
        lists = [np.flatnonzero(m).tolist() for m in member]
        if points.ndim == 1:
            return lists[0]
        result = np.empty(len(lists), object)
        result[:] = lists
        return result.reshape(points.shape[:-1])

    @method
    def query_pairs(self, r: Any, p: Any = 2.0, eps: Any = 0, output_type: str = "set") -> Any:
        p = float(_numbers(p))

        def together(tree: Any, radius: np.ndarray) -> np.ndarray:
            whole = np.zeros((self.n, self.n), bool)
            i, j = tree.query_pairs(float(radius), p=p, output_type="ndarray").T
            whole[i, j] = True
            return whole
        found = np.argwhere(this_recorder().decide_all(self._served("query_pairs", together, [lifted(r) + 0.0], (
            self.n, self.n), bool)))
        return found if output_type == "ndarray" else {(int(i), int(j)) for i, j in found}


def _numbers(x: Any) -> np.ndarray:
    """Plain numbers; of traced ones, by a guard."""
    return this_recorder().decide_all(x) if isinstance(x, Value) else np.asarray(x)


def _length(away: Any, p: float) -> Any:
    if p == 2.0:
        return np.linalg.norm(away, axis=-1)
    size = np.abs(away)
    if np.isinf(p):
        return np.max(size, axis=-1)
    return np.sum(size, axis=-1) if p == 1.0 else np.sum(size**p, axis=-1) ** (1.0 / p)


def _of(kind: type, data: Any, leafsize: Any, boxsize: Any) -> Tree:
    return Tree(kind, data, leafsize, boxsize)


def _enter(name: str) -> None:
    @stands_for(f"scipy.spatial.{name}", _of, "data leafsize boxsize")
    def make(data: Any, leafsize: Any = 10 if name == "KDTree" else 16, compact_nodes: bool = True,
             copy_data: bool = False, balanced_tree: bool = True, boxsize: Any = None) -> Tree:
        from scipy import spatial

        if lifted(data).dtype.kind == "c":
            raise refused(this_recorder(), f"scipy.spatial.{name} of complex points", "take real and imaginary parts")
        return Tree(getattr(spatial, name), data, leafsize, boxsize)


for _name in ("KDTree", "cKDTree"):
    _enter(_name)
