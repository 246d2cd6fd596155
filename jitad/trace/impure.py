"""What recorded code gets in the place of what must not be used while it is recorded."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitad.errors import CaptureError

__all__ = ["Impure"]


class Impure:
    """Stands for something impure; any use of it raises."""

    def __init__(self, name: str, why: str, where: Callable[[], Any]) -> None:
        self.__dict__.update(_error=lambda: CaptureError(
            f"`{name}` {why}, at {where()}: a recorded function runs once and its result would be frozen. "
            "Call it outside and pass the value in as an argument."))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise self._error()

    def __getattr__(self, name: str) -> Any:
        raise self._error()
