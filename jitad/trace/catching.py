"""Whether user code on the stack may catch what is raised now.

Frames of recorded code are looked at from the inside out: a place from which the exception table of its code leads to
a handler is inside of a ``try`` or ``with``. A block of ``np.errstate`` or ``warnings.catch_warnings`` catches nothing,
nor does one that `trace.steps.rewrite` puts in.
"""
from __future__ import annotations

import dis
import sys
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType

from jitad.trace.where import is_library_file

HARMLESS = frozenset({"errstate", "catch_warnings", "printoptions", "sides_of_branch"})
_HANDLER, _WITH = dis.opmap["PUSH_EXC_INFO"], dis.opmap["WITH_EXCEPT_START"]


def may_be_caught(outermost: CodeType) -> bool:
    """Whether an exception raised here meets a handler of the user's before it leaves the frame of `outermost`."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code is not outermost:
        if not is_library_file(frame.f_code.co_filename) and _catches(frame.f_code, frame.f_lasti):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _catches(code: CodeType, at: int) -> bool:
    """Whether an exception at this place of the bytecode goes to a handler of the user's: what is no such cleans up,
    and raises again where it stands."""
    for start, stop, target, handles in _handlers(code):
        if start <= at < stop:
            return handles or _catches(code, target)
    return False


@lru_cache(maxsize=1024)
def _handlers(code: CodeType) -> tuple[tuple[int, int, int, bool], ...]:
    """Start and end of the parts of the bytecode that have a handler, where it is, and whether it is the user's."""
    raw = code.co_code
    return tuple((start, stop, target, raw[target] == _HANDLER and not (
        raw[target + 2] == _WITH and _is_harmless(code, start))) for start, stop, target in _entries(
            code.co_exceptiontable))


def _entries(table: bytes) -> Iterator[tuple[int, int, int]]:
    """Start, end and handler of each entry of an exception table: numbers of six bits a byte, the first one first, of
    which all but the last are marked by bit 6."""
    numbers: list[int] = []
    value = 0
    for byte in table:
        value = value << 6 | byte & 63
        if not byte & 64:
            numbers.append(value)
            value = 0
    for start, length, target, _ in zip(*[iter(numbers)] * 4, strict=True):
        yield 2 * start, 2 * (start + length), 2 * target


def _is_harmless(code: CodeType, start: int) -> bool:
    """Whether the block that begins at `start` is that of a context manager that lets all exceptions pass."""
    names: set[str] = set()                              # of the line, since the context manager before
    manager = names
    number = None
    for instruction in dis.get_instructions(code):
        if instruction.offset >= start:
            break
        positions = instruction.positions
        if positions is not None and positions.lineno != number:
            number, names = positions.lineno, set()
        if instruction.opname == "BEFORE_WITH":
            manager, names = names, set()
        elif isinstance(instruction.argval, str):
            names.add(instruction.argval)
    return not manager.isdisjoint(HARMLESS)


__all__ = ["may_be_caught"]
