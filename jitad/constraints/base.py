"""What every constraint is: a map from free numbers to a constrained value, with its log-Jacobian and its inverse."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitad.errors import ConstraintError

Shape = tuple[int, ...]
Earlier = Mapping[str, Any]                       # the values of the parameters before this one, by name
Number = Any                                      # a float, an array, or what stands for one in recorded code
Bound = float | Sequence[Any] | np.ndarray | Callable[[Earlier], Any]


class Constraint:
    """A set of values, and a map onto it from `size` free numbers.

    `shape` is that of a value. ``forward(u, earlier)`` takes the free numbers, of shape ``(size,)``, and the values of
    the parameters before it, and gives the value and the log of the absolute determinant of the derivative.
    ``inverse(value, earlier)`` is the way back; it raises `ConstraintError` for a value outside of the set. Both are
    plain NumPy. `bounded`: the set is, so that the uniform density on it is one. `separate`: each element depends, and
    monotonically, on its own free number alone.
    """

    bounded = False
    separate = False

    def __init__(self, name: str, shape: Shape, size: int):
        self.name, self.shape, self.size = name, shape, size

    def forward(self, u: Number, earlier: Earlier) -> tuple[Number, Number]:
        raise NotImplementedError

    def inverse(self, value: Any, earlier: Earlier) -> np.ndarray:
        raise NotImplementedError

    def checked(self, value: Any) -> np.ndarray:
        """A value as an array of this shape; raises `ConstraintError` for another shape, NaN or an infinity."""
        array = np.asarray(value, dtype=np.float64)
        if array.shape != self.shape:
            raise ConstraintError(f"{self} has shape {self.shape}, and the value has shape {array.shape}")
        if not np.isfinite(array).all():
            raise ConstraintError(f"the value for {self} is not finite: {array}")
        return array

    def require(self, holds: Any, what: str, value: Any, *bounds: Any) -> None:
        """Raise `ConstraintError` unless it holds; `what` is formatted with the bounds only then, so that recorded code
        does not depend on how they are written."""
        if not np.all(holds):
            shown = np.array2string(np.asarray(value), threshold=20)
            raise ConstraintError(f"{self}: the value is not {what.format(*bounds)}: {shown}")

    def __repr__(self) -> str:
        return f"{self.name}{self.shape}" if len(self.shape) != 1 else f"{self.name}({self.shape[0]})"


def shape_of(given: Sequence[Any], name: str) -> Shape:
    """The shape in ``positive()``, ``positive(8)``, ``positive(8, 2)`` or ``positive((8, 2))``."""
    sizes = given[0] if len(given) == 1 and isinstance(given[0], (tuple, list)) else given
    return tuple(natural(size, f"a size in the shape of {name}", 0) for size in sizes)


def natural(value: Any, what: str, least: int = 1) -> int:
    """An integer that is at least `least`, or `ConstraintError`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ConstraintError(f"{what} must be an integer, {least} or more, not {value!r}")
    return int(value)


def bound_at(bound: Any, earlier: Earlier) -> Any:
    """A bound, where the parameters before have these values."""
    return bound(earlier) if callable(bound) else bound


def logcosh(x: Number) -> Number:
    """The log of the hyperbolic cosine, for any x; smooth at 0."""
    return np.logaddexp(x, -x) - math.log(2.0)


def shaped(x: Number, shape: Shape) -> Number:
    """A vector in this shape; in the shape () the one number in it."""
    return x.reshape(shape) if shape else x[0]
