"""Where the user is: the innermost line of the user's code on the stack."""
from __future__ import annotations

import dis
import sys
import sysconfig
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType

from jitad.errors import InternalError, JitadError
from jitad.tape.types import Where

__all__ = ["CodeLines", "came_to_user", "catches", "fault", "is_copied", "is_fault", "is_library_file", "no_fault",
           "user_line"]

def _slashes(path: str) -> str:
    return path.replace("\\", "/")


_STANDARD = _slashes(sysconfig.get_path("stdlib")) + "/"
_PACKAGES = (_STANDARD + "site-packages/", _STANDARD + "dist-packages/")


@lru_cache(maxsize=1)
def _folders() -> tuple[str, ...]:
    """Folders whose code is never the user's: ours, NumPy, SciPy, optree."""
    import jitad.cache

    folders = [*jitad.__path__, *jitad.cache.__path__]
    for name in ("numpy", "scipy", "optree"):
        module = __import__(name)
        if module.__file__:
            folders.append(str(Path(module.__file__).parent))
    return tuple(_slashes(f) + "/" for f in folders)


@lru_cache(maxsize=1)
def _own_folders() -> tuple[str, ...]:
    import jitad.cache

    return tuple(_slashes(f) + "/" for f in (*jitad.__path__, *jitad.cache.__path__))   # as files are named in code


@lru_cache(maxsize=4096)
def is_library_file(filename: str) -> bool:
    """Whether the code in this file belongs to jitad, NumPy, SciPy or Python rather than to the user."""
    path = _slashes(filename)
    if path.startswith(("<frozen", "<captures>", "<__array_function__")):
        return True
    if path.endswith("/jitad/demo.py") or "/jitad/constraints/" in path:  # what a user would write
        return False
    return (path.startswith(_STANDARD) and not path.startswith(_PACKAGES)) or path.startswith(_folders())


def is_own_file(filename: str) -> bool:
    """Whether the code in this file is ours."""
    return _slashes(filename).startswith(_own_folders())


def is_copied(frame: FrameType) -> bool:
    """Whether a frame runs the copy of a function, with globals that are captures."""
    return hasattr(type(frame.f_globals), "jitad_recorded")


class CodeLines:
    """Which line each instruction of a code is in. A frame looks for its own from the first one on, each time, and to
    find a code in a dict takes as long, since its names are hashed: of thousands of lines, both are too slow."""

    def __init__(self, code: CodeType):
        self._code, self._known = code, dict[int, Where]()
        self._starts, _, self._lines = zip(*code.co_lines(), strict=True)

    def at(self, place: int) -> Where:
        """The line of the instruction at a place in the code's bytes."""
        found = self._known.get(place)
        if found is None:
            line = self._lines[bisect_right(self._starts, place) - 1] or self._code.co_firstlineno
            found = self._known[place] = Where(self._code.co_filename, line, self._code.co_name)
        return found


def line_of(frame: FrameType) -> Where | None:
    """Where a frame is in the user's code; None elsewhere."""
    code = frame.f_code
    return None if is_library_file(code.co_filename) else Where(
        code.co_filename, frame.f_lineno or code.co_firstlineno, code.co_name)


def user_line(depth: int = 1) -> Where | None:
    """The innermost line of user code, from `depth` frames above this one outwards."""
    frame = sys._getframe(depth)
    while frame is not None:
        line = line_of(frame)
        if line is not None:
            return line
        frame = frame.f_back  # type: ignore[assignment]
    return None


def came_to_user(error: BaseException) -> bool:
    """Whether an error has gone through a frame of the user's."""
    step = error.__traceback__
    while step is not None and is_library_file(step.tb_frame.f_code.co_filename):
        step = step.tb_next
    return step is not None


# What Python raises of a fault; other kinds are raised on purpose, as NumPy raises them.
_FAULTS = (AttributeError, TypeError, NotImplementedError, AssertionError, LookupError, NameError)
_ALWAYS = (NotImplementedError, AssertionError)


def is_fault(error: BaseException, surely: bool = False) -> bool:
    """Whether an error may be a fault of jitad's: nobody raises it, and the innermost frame is ours. With `surely`, it
    is none that NumPy may have raised there."""
    if not isinstance(error, _FAULTS) or isinstance(error, JitadError) or error.__traceback__ is None:
        return False
    step = error.__traceback__
    while step.tb_next is not None:
        step = step.tb_next
    code = step.tb_frame.f_code
    if not is_own_file(code.co_filename):
        return False
    if isinstance(error, _ALWAYS):
        return True
    name = dis.opname[code.co_code[step.tb_lasti]]
    called = name.startswith(("CALL", "PRECALL"))
    if surely and (called or not isinstance(error, (AttributeError, KeyError, NameError))):
        return False
    return name != "RAISE_VARARGS"


def fault(error: BaseException, doing: str, where: Where | None) -> InternalError:
    """The error that says of a fault where the user was, where it is, and what to do."""
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    file, line = ("", 0) if step is None else (_slashes(step.tb_frame.f_code.co_filename), step.tb_lineno)
    text = str(error)
    said = f"{type(error).__name__}: {text[:200]}{'...' if len(text) > 200 else ''}".rstrip(": ")
    return InternalError(
        f"jitad failed while {doing}, at {where}: {said} ({'/'.join(file.split('/')[-3:])}:{line}). This is a fault of "
        "jitad, not of your code: please report it, with that line, the types and shapes of what it uses, and what "
        "`python -m jitad --version` prints. Until it is mended, write the line with other functions of NumPy, or "
        "compute it outside of the function")


@contextmanager
def no_fault(doing: str) -> Iterator[None]:
    """Within, a fault of ours is an `InternalError`."""
    try:
        yield
    except Exception as error:
        if not is_fault(error):
            raise
        raise fault(error, doing, user_line(3)) from error


@lru_cache(maxsize=1024)
def catches(code: CodeType) -> bool:
    """Whether a code may go on after an error, by ``except`` or ``suppress``."""
    if not code.co_exceptiontable:
        return False
    names = [instruction.opname for instruction in dis.get_instructions(code)]
    caught = any(a == "PUSH_EXC_INFO" and b != "WITH_EXCEPT_START" for a, b in pairwise(names))
    return caught or "suppress" in code.co_names
