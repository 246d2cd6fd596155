"""Calls that end in an error of the user's code: ``raise ValueError`` where a scale is negative, ``math.log(-1.0)``.

There is no kernel for a way through the code that has no result; recording it takes a thousand times as long as Python
needs to come to the error. Where the last call has ended so, the next one that no shortcut serves begins with Python:
if the function raises the same error at the same line, that is what the call would raise. Otherwise nothing has
happened, and the ladder goes on.
"""
from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from jitad.call.request.subject import Subject
from jitad.errors import JitadError
from jitad.trace.where import is_library_file

__all__ = ["Raised", "raise_again", "raised_by"]


class Raised(NamedTuple):
    """An error: its class, and the last line of the user's on the way to it, if there is one."""

    kind: type[BaseException]
    place: tuple[str, int] | None


def raised_by(subject: Subject, error: Exception) -> Raised | None:
    """What a call has raised; None for what Python would not raise in the same way."""
    if isinstance(error, JitadError) or subject.inner is not None or subject.foreign or (
            subject.request.batch or subject.request.seed_name):
        return None
    users = list(_users(error))
    if users or isinstance(error, _OF_OPERATIONS):
        return Raised(type(error), users[-1] if users else None)
    return None


def raise_again(subject: Subject, known: Raised, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise what the function raises, if that is what is `known`."""
    places = subject.request.places
    if not all(-len(args) <= place < len(args) for place in places):
        return
    varying, seen = {place % len(args) for place in places}, dict[int, Any]()
    try:
        given = [_protected(value, i in varying, seen) for i, value in enumerate(args)]
        named = {name: _protected(value, False, seen) for name, value in kwargs.items()}
    except _Unprotected:
        return
    try:
        with np.errstate(all="ignore"):
            subject.given(*given, **named)
    except Exception as error:
        if type(error) is known.kind and known.place is None:
            for file, line in list(_users(error))[-1:]:
                error.add_note(f"in `{subject.qualname}` at {file}:{line}")
            raise
        if type(error) is known.kind and known.place == _last(error, known.place[0]):       # type: ignore[index]
            raise


class _Unprotected(Exception):
    """An argument that Python would treat otherwise than the tape does, or could write to."""


_OF_OPERATIONS = (np.linalg.LinAlgError, ArithmeticError)     # raised by the interpreter, without a line of the user's
_PLAIN = frozenset({float, int, bool, str, type(None)})


def _protected(value: Any, varying: bool, seen: dict[int, Any]) -> Any:
    """An argument that cannot be written to. Integers that are differentiated would be floats."""
    kind = type(value)
    if kind is np.ndarray and (value.dtype.kind == "f" or not varying):
        if id(value) not in seen:
            seen[id(value)] = value.view()
            seen[id(value)].flags.writeable = False
        return seen[id(value)]
    if kind is dict:
        return {key: _protected(part, varying, seen) for key, part in value.items()}
    if kind is list or kind is tuple:
        return kind([_protected(part, varying, seen) for part in value])
    if kind is float or (kind in _PLAIN and not varying):
        return value
    raise _Unprotected


def _lines(step: TracebackType | None) -> Iterator[tuple[str, int]]:
    while step is not None:
        yield step.tb_frame.f_code.co_filename, step.tb_lineno
        step = step.tb_next


def _users(error: Exception) -> Iterator[tuple[str, int]]:
    """The lines of the user's on the way to an error."""
    return (place for place in _lines(error.__traceback__) if not is_library_file(place[0]))


def _last(error: Exception, file: str) -> tuple[str, int]:
    """The last line in a file on the way to an error."""
    line = 0
    for name, number in _lines(error.__traceback__):
        line = number if name == file else line
    return file, line
