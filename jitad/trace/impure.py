"""What recorded code gets in the place of what must not be used while it is recorded."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitad.errors import CaptureError

__all__ = ["Impure", "ImpureClass"]


class Impure:
    """Stands for something impure; any use of it raises."""

    def __init__(self, name: str, why: str, where: Callable[[], Any], real: Any = None) -> None:
        self.__dict__.update(real=real, _error=lambda: CaptureError(
            f"`{name}` {why}, at {where()}: a recorded function runs once and its result would be frozen. "
            "Call it outside and pass the value in as an argument."))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise self._error()

    def __getattr__(self, name: str) -> Any:
        raise self._error()


class ImpureClass(Impure):
    """Stands for a class whose instances read more than their arguments: the code may ask for it, and no more."""

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, self.real)

    def __subclasscheck__(self, cls: type) -> bool:
        return issubclass(cls, self.real)

    def __or__(self, other: Any) -> Any:
        return self.real | other

    def __ror__(self, other: Any) -> Any:
        return other | self.real

    def __getitem__(self, item: Any) -> Any:
        return self.real[item]

    def __mro_entries__(self, bases: Any) -> Any:
        raise self._error()
