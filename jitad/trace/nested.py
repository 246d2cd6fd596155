"""jitad-transformed functions that recorded code calls: differentiated on the tape of that recording."""
from __future__ import annotations

from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from jitad.cache.captures import Path

if TYPE_CHECKING:
    from jitad.trace.captures import Captures

__all__ = ["CaptureView", "Nested", "take_vectorized"]


class CaptureView:
    """What a jitad-transformed function gets when recorded code calls it: the way to its inner function."""

    def __init__(self, captures: Captures, path: Path) -> None:
        self.captures, self.path, self.recorder = captures, path, captures.recorder

    def copy_of(self, function: Any, attribute: str = "__wrapped__") -> Any:
        """The noted copy of the callable that the transformed function keeps under `attribute`."""
        return self.captures.take(function, self.path.step("attr", attribute))


class Nested:
    """A captured jitad-transformed function in recorded code."""

    def __init__(self, transform: Any, view: CaptureView) -> None:
        self._transform, self._view = transform, view

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._transform.__jitad_nested__(self._view, args, kwargs)

    def bound_to(self, owner: Any) -> Any:
        """A transformed method, read from an instance: the same transformation of the bound copy of its function."""
        function = self._transform.__wrapped__
        if not isinstance(function, FunctionType):  # a static method
            return self
        make, (_, *settings) = self._transform.__reduce__()
        return make(MethodType(self._view.copy_of(function), owner), *settings)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._transform, name)
        if hasattr(type(value), "__jitad_nested__"):
            return self._view.captures.take(value, self._view.path.step("attr", name))
        return value


def take_vectorized(captures: Captures, value: Any, path: Path) -> Any:
    """The stand-in for a captured `numpy.vectorize` object."""
    from jitad.trace.vectorize import take

    return take(captures, value, path)
