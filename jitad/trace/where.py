"""Where the user is: the innermost line of the user's code on the stack."""
from __future__ import annotations

import sys
import sysconfig
from functools import lru_cache
from pathlib import Path
from types import FrameType

from jitad.tape.types import Where

__all__ = ["is_library_file", "user_line"]

def _slashes(path: str) -> str:
    return path.replace("\\", "/")


_STANDARD = _slashes(sysconfig.get_path("stdlib")) + "/"
_PACKAGES = (_STANDARD + "site-packages/", _STANDARD + "dist-packages/")


@lru_cache(maxsize=1)
def _folders() -> tuple[str, ...]:
    """Folders whose code is never the user's: ours, NumPy, SciPy, optree."""
    import jitad.cache

    folders = [str(Path(__file__).resolve().parent.parent), *map(str, jitad.cache.__path__)]
    for name in ("numpy", "scipy", "optree"):
        module = __import__(name)
        if module.__file__:
            folders.append(str(Path(module.__file__).parent))
    return tuple(_slashes(f) + "/" for f in folders)


@lru_cache(maxsize=4096)
def is_library_file(filename: str) -> bool:
    """Whether the code in this file belongs to jitad, NumPy, SciPy or Python rather than to the user."""
    path = _slashes(filename)
    if path.startswith(("<frozen", "<captures>", "<__array_function__")):
        return True
    if path.endswith("/jitad/demo.py"):  # shows what a user would write
        return False
    return (path.startswith(_STANDARD) and not path.startswith(_PACKAGES)) or path.startswith(_folders())


def line_of(frame: FrameType) -> Where | None:
    """Where a frame is in the user's code; None elsewhere."""
    code = frame.f_code
    return None if is_library_file(code.co_filename) else Where(code.co_filename, frame.f_lineno, code.co_name)


def user_line(depth: int = 1) -> Where | None:
    """The innermost line of user code, from `depth` frames above this one outwards."""
    frame = sys._getframe(depth)
    while frame is not None:
        line = line_of(frame)
        if line is not None:
            return line
        frame = frame.f_back  # type: ignore[assignment]
    return None
