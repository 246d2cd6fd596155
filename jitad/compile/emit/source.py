"""Generated source in real files, to be read and stepped through."""
from __future__ import annotations

import atexit
import hashlib
import importlib.util
import shutil
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from jitad.compile.loops import Program
from jitad.tape.tape import Tape


@cache
def folder() -> Path:
    """A folder of this process alone, removed at its end."""
    path = Path(tempfile.mkdtemp(prefix="jitad-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def write(source: str) -> Path:
    """The file that holds `source`; the same text is the same file."""
    path = folder() / f"sweep_{hashlib.blake2b(source.encode(), digest_size=6).hexdigest()}.py"
    if not path.exists():
        path.write_text(source, encoding="utf-8")
    return path


def load(path: Path) -> Callable[..., Any]:
    """The function ``sweep`` of a generated file, as plain Python."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.sweep


def run(path: Path, program: Program, tape: Tape, inputs: Sequence[Any]) -> tuple[int, list[Any]]:
    """Status and outputs of the generated file, run as plain Python on a kernel's inputs."""
    names = {"f8": np.float64, "f4": np.float32, "b1": np.bool_, "i8": np.int64}
    arrays = [np.empty(b.shape, names.get(b.dtype) or np.dtype(b.dtype)) for b in program.outputs]
    with np.errstate(all="ignore"):
        status, *numbers = load(path)(*inputs, *arrays)
    rest, scalars = iter(arrays), iter(numbers)
    return int(status), [next(rest) if tape.nodes[o].aval.ndim else next(scalars) for o in tape.outputs]
