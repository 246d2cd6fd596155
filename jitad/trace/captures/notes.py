"""`Notes`: what the parts of this room ask of the `Captures` of a recording."""
from __future__ import annotations

from types import FunctionType
from typing import Any, Protocol

from jitad.cache.keys.captures import Path
from jitad.errors import CaptureError

__all__ = ["Notes"]


class AttributeNotes(Protocol):
    """Where attributes are noted that no stand-in sees; see `captures.attributes`."""

    def found(self, handed: Any, value: Any, path: Path) -> None: ...
    def hold(self, handed: Any, path: Path) -> None: ...


class Notes(Protocol):
    """The captures of one recording, to which whoever meets a captured value comes back."""

    recorder: Any
    builtins: dict[str, Any]
    missing: set[str]
    taken: dict[Path, tuple[Any, Any]]
    watched: list[tuple[Any, Any, Path]]

    @property
    def attributes(self) -> AttributeNotes: ...

    def take(self, value: Any, path: Path) -> Any: ...
    def guard(self, value: Any, path: Path) -> None: ...
    def static(self, value: Any, path: Path) -> Any: ...
    def is_static(self, path: Path) -> bool: ...
    def met(self, value: Any, path: Path) -> None: ...
    def error(self, path: Path, why: str) -> CaptureError: ...
    def poison(self, path: Path, why: str) -> Any: ...
    def function(self, function: FunctionType, path: Path) -> FunctionType: ...
    def is_own(self, function: FunctionType) -> bool: ...
