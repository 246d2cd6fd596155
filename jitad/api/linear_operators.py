"""Jacobians and Hessians that are never formed: linear operators for iterative solvers."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from jitad.call.messages import name_after
from jitad.call.pickling import restored, restores
from jitad.call.request.request import DEFAULTS, Request, Settings
from jitad.call.transformed import Transformed
from jitad.errors import ArgumentTypeError, UnsupportedOperationError
from jitad.trace.pytree import TreeDef, leaves_of, unflatten
from jitad.trace.recorder import current
from jitad.trace.where import user_line


class _Space:
    """The flattened form of a tree of floats."""

    def __init__(self, tree: Any):
        leaves, structure = leaves_of(tree)
        self.tree: TreeDef = structure
        self.likes = [(np.shape(x), np.asarray(x).dtype) for x in leaves]
        self.sizes = [int(np.prod(shape)) for shape, _ in self.likes]
        self.size = sum(self.sizes)
        self.dtype = np.result_type(*(dtype for _, dtype in self.likes)) if self.likes else np.dtype(np.float64)

    def flat(self, tree: Any) -> np.ndarray:
        parts = [np.ravel(x) for x in leaves_of(tree)[0]]
        return np.concatenate(parts) if parts else np.zeros(0)

    def tree_of(self, vector: Any) -> Any:
        flat = np.ravel(vector)
        if flat.dtype.kind == "c":
            raise ArgumentTypeError(f"the vector is complex (at {user_line()}); multiply by its real and imaginary "
                                    "parts apart")
        parts = np.split(flat, np.cumsum(self.sizes)[:-1])
        return unflatten(self.tree, [np.ascontiguousarray(p.reshape(shape), dtype) if shape else dtype.type(p[0])
                                     for p, (shape, dtype) in zip(parts, self.likes, strict=True)])


def copied(tree: Any, floats: bool = False) -> Any:
    """The tree with arrays of its own; with `floats`, integers as floats."""
    leaves, structure = leaves_of(tree)
    return unflatten(structure, [_copy(x, floats) for x in leaves])


def _copy(leaf: Any, floats: bool) -> Any:
    if floats and np.asarray(leaf).dtype.kind in "iu":
        return np.asarray(leaf, np.float64) if isinstance(leaf, np.ndarray) else float(leaf)
    return np.array(leaf, order="K") if isinstance(leaf, np.ndarray) else leaf


class Lazy:
    """A function whose derivative at a point is a linear operator. Made by ``jacobian(f, lazy=True)`` and its like."""

    __name__: str
    _what = ""

    def __init__(self, function: Callable[..., Any], request: Request, settings: Settings = DEFAULTS):
        self._forward = self._make(function, request, settings)
        name_after(self, self._forward)
        self._request, self._settings, self._given = request, settings, function
        self.__jitad_transform__ = (f"lazy {request.what}", request.argnums)

    def _make(self, function: Callable[..., Any], request: Request, settings: Settings) -> Transformed:
        raise NotImplementedError

    def _point(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], _Space]:
        """The arguments as they are now, by position, and the space of those that are differentiated."""
        if current() is not None:
            raise self._not_here()
        arguments = self._forward.value.subject.arguments(args, kwargs)
        if arguments.kwargs:
            raise ArgumentTypeError(f"a lazy {self._what} takes no keyword-only arguments: `{self.__name__}` was given "
                                    f"{', '.join(arguments.kwargs)} (called at {user_line()}); bind them with "
                                    "functools.partial")
        places = [place % len(arguments.args) for place in self._request.places]
        point = tuple(copied(value, i in places) for i, value in enumerate(arguments.args))
        wrt = tuple(point[i] for i in places)
        return point, _Space(wrt if isinstance(self._request.argnums, tuple) else wrt[0])

    def _not_here(self) -> UnsupportedOperationError:
        return UnsupportedOperationError(
            f"a lazy {self._what} of `{self.__name__}` cannot be made while a function is recorded (at {user_line()}); "
            "use jvp, vjp or hvp there")

    def __jitad_nested__(self, view: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Called by recorded code."""
        raise self._not_here()

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        return type(self)(self._given.__get__(instance, owner), self._request, self._settings)

    def __reduce__(self) -> Any:
        return restored, (f"lazy {self._what}", self._given, self._request.parts, tuple(self._settings))

    def __repr__(self) -> str:
        return f"<jitad lazy {self._what} of {self.__name__}>"


class LazyJacobian(Lazy):
    """``jacobian(f, lazy=True)``: at a point a `LinearOperator`, with `matvec` a pushforward and `rmatvec` a
    pullback."""

    _what = "Jacobian"

    def _make(self, function: Callable[..., Any], request: Request, settings: Settings) -> Transformed:
        return Transformed(function, replace(request, what="pushforward", mode=""), settings)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """The operator at these arguments, which are copied."""
        from scipy.sparse.linalg import LinearOperator

        point, columns = self._point(args, kwargs)
        forward, reverse = self._forward, self._forward.asked_for("vjp")
        rows = _Space(forward(*point, columns.tree_of(np.zeros(columns.size))))
        return LinearOperator(
            (rows.size, columns.size), dtype=np.result_type(rows.dtype, columns.dtype),
            matvec=lambda v: rows.flat(forward(*point, columns.tree_of(v))),
            rmatvec=lambda v: columns.flat(reverse(*point, rows.tree_of(v))))


class LazyHessian(Lazy):
    """``hessian(f, lazy=True)``: at a point a symmetric `LinearOperator`, each product a Hessian-vector product."""

    _what = "Hessian"

    def _make(self, function: Callable[..., Any], request: Request, settings: Settings) -> Transformed:
        return Transformed(function, replace(request, what="hvp"), settings)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """The operator at these arguments, which are copied."""
        from scipy.sparse.linalg import LinearOperator

        point, space = self._point(args, kwargs)

        def product(v: Any) -> np.ndarray:
            return space.flat(self._forward(*point, space.tree_of(v)))
        return LinearOperator((space.size, space.size), dtype=space.dtype, matvec=product, rmatvec=product)


for _lazy in (LazyJacobian, LazyHessian):
    restores(f"lazy {_lazy._what}")(lambda function, request, settings, make=_lazy: make(
        function, Request.of(*request), Settings(*settings)))
