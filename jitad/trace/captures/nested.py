"""jitad-transformed functions that recorded code calls: differentiated on the tape of that recording."""
from __future__ import annotations

from types import FunctionType, MethodType
from typing import Any

from jitad.cache.keys.captures import Path
from jitad.trace.captures.notes import Notes
from jitad.trace.captures.objects.standins import mutation

__all__ = ["CaptureView", "Nested", "class_behind"]


class CaptureView:
    """What a jitad-transformed function gets when recorded code calls it: the way to its inner function."""

    def __init__(self, captures: Notes, path: Path) -> None:
        self.captures, self.path, self.recorder = captures, path, captures.recorder

    def copy_of(self, function: Any, attribute: str = "__wrapped__") -> Any:
        """The noted copy of the callable that the transformed function keeps under `attribute`."""
        return self.captures.take(function, self.path.step("attr", attribute))


class Nested:
    """A captured jitad-transformed function in recorded code."""

    __slots__ = ("_transform", "_view")

    def __init__(self, transform: Any, view: CaptureView) -> None:
        object.__setattr__(self, "_transform", transform)
        object.__setattr__(self, "_view", view)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._transform.__jitad_nested__(self._view, args, kwargs)

    def bound_to(self, owner: Any) -> Any:
        """A transformed method, read from an instance: the same transformation of the bound copy of its function."""
        function = self._transform.__wrapped__
        if not isinstance(function, FunctionType):  # a static method
            return self
        return self._transform.__jitad_with__(MethodType(self._view.copy_of(function), owner))

    def __getattr__(self, name: str) -> Any:
        captures, path, at = self._view.captures, self._view.path, self._view.path.step("attr", name)
        if not hasattr(self._transform, name):
            captures.guard(False, path.step("has", name))
        value = getattr(self._transform, name)
        if name == "__dict__":
            raise captures.error(at, "cannot be followed")
        set_ = name in getattr(self._transform, "__dict__", ()) and not name.startswith("__")
        return captures.take(value, at) if set_ or hasattr(type(value), "__jitad_nested__") else value

    def __setattr__(self, name: str, value: Any) -> None:
        raise mutation(f"`{self._view.path.step('attr', name).expression()}`")

    def __delattr__(self, name: str) -> None:
        raise mutation(f"`{self._view.path.step('attr', name).expression()}`")


def class_behind(nested: Nested) -> type:
    """The class of the transformed function itself."""
    return type(nested._transform)
