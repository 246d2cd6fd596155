"""A process that compiles one kernel, for another that goes on meanwhile.

LLVM has one lock in a process, and Python another one; what takes long there would hold up every other call, a fork and
the end of the process. A process of its own holds up nothing, and can be ended at any time.
"""
from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

from jitad.compile.entry.arguments import ArgumentType
from jitad.compile.entry.kernel import Kernel
from jitad.primitives.custom import has_code
from jitad.tape.tape import Tape
from jitad.tape.types import TABLE, Primitive

NICE = 10                     # the calls that are served meanwhile go first
START = """import pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
from jitad.compile.entry.worker import work
work()
"""


class _Pickler(pickle.Pickler):
    """Rows of the table go by name."""

    def persistent_id(self, thing: Any) -> Any:
        return thing.name if isinstance(thing, Primitive) else None


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, name: Any) -> Any:
        return TABLE[name]


def can_work(tape: Tape) -> bool:
    """Whether another process can compile this: there is a Python to run, and nothing on the tape is of this process
    alone."""
    return bool(sys.executable) and Path(sys.executable).name.startswith("python") and not has_code(tape.nodes)


def start(tape: Tape, kinds: tuple[ArgumentType, ...]) -> tuple[subprocess.Popen[bytes], bytes]:
    """The process, and what is to be sent to it. Raises `OSError` if there can be none."""
    process = subprocess.Popen([sys.executable, "-c", START], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
    sent = io.BytesIO()
    pickle.dump(sys.path, sent)
    _Pickler(sent).dump((tape, kinds))
    return process, sent.getvalue()


def answer(found: bytes) -> tuple[bytes, bool]:
    """The object file and whether it calls routines. Raises `ValueError` if what came back is not whole."""
    size = int.from_bytes(found[:8], "little")
    if len(found) < 10 or len(found) != 9 + size:
        raise ValueError("the compiling process was cut off")
    return found[9:], bool(found[8])


def work() -> None:
    """What the process does."""
    os.nice(NICE)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)                                       # whatever is printed does not come between
    tape, kinds = _Unpickler(sys.stdin.buffer).load()
    kernel = Kernel(tape, kinds)
    code = kernel.native.code
    out.write(len(code).to_bytes(8, "little") + bytes([kernel.routines]) + code)
    out.flush()
