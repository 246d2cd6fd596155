"""What a transformed function says and how it is called: warnings at the user's line, names, references for pickles."""
from __future__ import annotations

import functools
import operator
import sys
import warnings
from collections.abc import Iterable
from types import FrameType, FunctionType
from typing import Any

from jitad import errors
from jitad.errors import TapeMismatchError, TapeMismatchWarning
from jitad.tape.types import Guard
from jitad.trace.where import is_library_file, user_line

LINES_SHOWN = 5


def report(name: str, reasons: list[str], how: str) -> None:
    """Say at the user's line that a known function is compiled again, as `how` asks: warn, error or silent."""
    text = "; ".join(reasons)
    if how == "error":
        raise TapeMismatchError(f"`{name}` would be compiled again (called at {user_line()}): {text}; pass what it was "
                                'compiled for, or choose on_mismatch="warn"')
    if how == "warn":
        issue(f"`{name}` is compiled again: {text}", TapeMismatchWarning)


def issue(message: str, category: type[Warning]) -> None:
    """Warn at the user's line. Warnings of `jitad.errors` say where they are explained."""
    if category.__module__ == errors.__name__:
        message += f" (see: python -m jitad explain {category.__name__})"
    level, frame = 1, sys._getframe(0)
    while frame is not None and is_library_file(frame.f_code.co_filename):
        level, frame = level + 1, frame.f_back           # type: ignore[assignment]
    warnings.warn(message, category, stacklevel=level)


def crowd_message(name: str, ways: int, guards: Iterable[Guard]) -> str:
    """That a function takes more ways through its branches than are compiled, and where it branches."""
    lines = [*dict.fromkeys(str(guard.where) for guard in guards if guard.where is not None)]
    shown = ", ".join(lines[:LINES_SHOWN]) + (", ..." if len(lines) > LINES_SHOWN else "")
    return (f"`{name}` has been compiled for {ways} ways through its branches, the most that are kept for one "
            "signature. Calls that take yet another one run uncompiled from now on: right, but slow. It branches at "
            f"{shown or 'places that depend on the data'}. Choose between values by np.where, which is no branch; or "
            "raise the limit: jitad.cache.configure(ways=...)")


def name_after(transformed: Any, function: Any) -> None:
    """Name, documentation and module of `function`, or of what a partial or an object with ``__call__`` is made of."""
    attributes = ("__dict__",) if isinstance(function, FunctionType) else ()
    functools.update_wrapper(transformed, function, updated=attributes)
    while isinstance(function, functools.partial):
        function = function.func
    kind = function if hasattr(function, "__qualname__") else type(function)
    transformed.__name__, transformed.__qualname__ = kind.__name__, kind.__qualname__
    transformed.__module__ = getattr(kind, "__module__", type(kind).__module__)


def by_name(value: Any) -> bool:
    """Whether a pickle may name `value` instead of holding it: there is such a name, and the reader has it too.

    The names of ``__main__`` are known to the children of multiprocessing, which `pickle` serves; cloudpickle and
    dill are for those who do not have them.
    """
    return _named(value.__module__, value.__qualname__) is value and not (
        value.__module__ == "__main__" and _by_value(sys._getframe(1)))


def _named(module: str, name: str) -> Any:
    """What a module has under a dotted name, or None."""
    try:
        return operator.attrgetter(name)(sys.modules[module])
    except (KeyError, AttributeError):
        return None


def _by_value(frame: FrameType | None) -> bool:
    """Whether one of those pickles is being made."""
    while frame is not None:
        if not {"cloudpickle", "dill"}.isdisjoint(str(frame.f_globals.get("__name__")).split(".")):
            return True
        frame = frame.f_back
    return False

