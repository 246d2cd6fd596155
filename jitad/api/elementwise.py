"""Scalar functions over arrays: `elementwise`."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.api.custom.calls import Recordable, handed
from jitad.call.pickling import restores
from jitad.errors import ArgumentTypeError, OutputError
from jitad.primitives.core import cast
from jitad.tape.builder import Value
from jitad.trace.dispatch import as_value, plain
from jitad.trace.leaves import is_dynamic
from jitad.trace.numpy_rules.elements.branches import over_elements
from jitad.trace.pytree import leaves_of, unflatten
from jitad.trace.where import user_line

__all__ = ["elementwise"]


def elementwise(f: Callable[..., Any]) -> Any:
    """A function of numbers, with branches, as a function of arrays; a decorator.

    In compiled code all ways through its branches become one expression for any element, fused with what is around it,
    in which conditions choose. The derivative is that of the way an element takes: an infinity on another way does no
    harm. Outside of compiled code, `f` is called for one element after the other.

    Parameters
    ----------
    f
        Takes numbers, and returns one or a tuple of them. It may branch (``if``, ``and``, ``min``, chained comparisons)
        on them, call functions of `math`, which raise as ever, and read captured arrays. A loop must have as many turns
        for each element. It must be pure: it runs once for each way.

    Returns
    -------
    g
        Takes arrays and numbers, which are broadcast, and returns arrays, or numbers if it gets only numbers. Integers
        that `f` returns become floats if an argument is one. What is neither number nor array is handed on as it is.

    Raises
    ------
    UnsupportedOperationError
        On recording, if there are more than 64 ways, or 64 decisions on one.
    ConcretizationError
        If `f` needs an integer that is another one for every element, for ``range`` or an index.
    OutputError
        If `f` returns an array, or results that do not fit together.

    Examples
    --------
    >>> import math
    >>> import numpy as np
    >>> from jitad import elementwise, jit_grad
    >>> @elementwise
    ... def huber(r, delta):
    ...     if abs(r) <= delta:
    ...         return 0.5 * r * r
    ...     return delta * (abs(r) - 0.5 * delta)
    >>> huber(np.array([0.5, -3.0]), 1.0)
    array([0.125, 2.5  ])
    >>> jit_grad(lambda r: np.sum(huber(r, 1.0)))(np.array([0.5, -3.0]))
    array([ 0.5, -1. ])
    """
    return Elementwise(f, "elementwise")


@restores("elementwise")
class Elementwise(Recordable):
    """A function of numbers over arrays; made by `elementwise`."""

    def plainly(self, *args: Any, **kwargs: Any) -> Any:
        self._check(kwargs)
        arrays = [np.asarray(x) if is_dynamic(x) or isinstance(x, (list, tuple)) else None for x in args]
        known = [a for a in arrays if a is not None]
        shape = np.broadcast_shapes(*(a.shape for a in known))
        spread = [None if a is None else np.broadcast_to(a, shape) for a in arrays]
        if shape and not int(np.prod(shape)):
            rows = [self._of_element([x if a is None else a.dtype.type(1) for x, a in zip(args, arrays, strict=True)])]
        else:
            rows = [self._of_element([x if a is None else a[place] for x, a in zip(args, spread, strict=True)])
                    for place in np.ndindex(shape)]
        leaves, tree = zip(*rows, strict=True)
        if any(t != tree[0] for t in tree):
            raise OutputError(f"`{self.__name__}` returns other containers, or more values, for one element than for "
                              f"another (called at {user_line()})")
        results = []
        for column in zip(*leaves, strict=True):
            dtype = _result_type(np.result_type(*dict.fromkeys(map(_kind, column))), known)
            made = np.array(column, dtype).reshape(shape) if int(np.prod(shape)) else np.zeros(shape, dtype)
            results.append(made if shape else made[()])
        return unflatten(tree[0], results)

    def _of_element(self, elements: list[Any]) -> tuple[list[Any], Any]:
        leaves, tree = leaves_of(self.__wrapped__(*elements))
        for leaf in leaves:
            if not is_dynamic(leaf) or np.ndim(leaf):
                raise OutputError(f"`{self.__name__}` returned a {type(leaf).__name__} for one element (called at "
                                  f"{user_line()}); it is to return a number, or a tuple of them")
        return leaves, tree

    def on_tape(self, view: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._check(kwargs)
        function, recorder = view.copy_of(self.__wrapped__, "__wrapped__"), view.recorder
        values = [plain(x) for x in args]
        if not any(isinstance(x, Value) for x in leaves_of(values)[0]):
            return self.plainly(*values)
        if recorder.explorer is not None and all(x.ndim == 0 for x in values if isinstance(x, Value)):
            return function(*values)                          # in a function of one element
        values = [as_value(recorder, x) if _is_array(x) else x for x in values]
        made = over_elements(recorder, function, values, self.__name__)
        results, tree = made.results()
        known = [v for v in values if isinstance(v, Value)]
        with recorder.plain():
            arrays = [cast(v, _result_type(v.dtype, known)) for v in results]
        return unflatten(tree, [handed(recorder, v) for v in arrays])

    def _check(self, kwargs: dict[str, Any]) -> None:
        if kwargs:
            raise ArgumentTypeError(f"`{self.__name__}` takes its arguments by position, as a ufunc does (called at "
                                    f"{user_line()})")


def _is_array(x: Any) -> bool:
    return isinstance(x, Value) or (isinstance(x, (np.ndarray, list, tuple)) and np.ndim(x) > 0)


def _kind(x: Any) -> Any:
    """What decides on the dtype of a result: Python numbers give way to others."""
    return type(x)(0) if type(x) in (int, float) else np.asarray(x).dtype


def _result_type(dtype: Any, known: list[Any]) -> Any:
    """Integers, of floats, are floats."""
    floats = [a.dtype for a in known if a.dtype.kind == "f"]
    return np.result_type(*floats) if np.dtype(dtype).kind in "iu" and floats else np.dtype(dtype)
