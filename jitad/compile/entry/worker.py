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
import threading
from pathlib import Path
from typing import Any

from jitad.compile.entry.arguments import ArgumentType
from jitad.compile.entry.kernel import Kernel
from jitad.primitives.custom import has_code
from jitad.tape.tape import Tape
from jitad.tape.types import TABLE, Primitive

LARGEST = 1 << 28             # bytes of an object file that is believed
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
    runs = bool(sys.executable) and Path(sys.executable).name.startswith("python") and not hasattr(sys, "frozen")
    return runs and not has_code(tape.nodes)


def message(tape: Tape, kinds: tuple[ArgumentType, ...], parallel: bool) -> bytes:
    """What is sent to the process."""
    sent = io.BytesIO()
    pickle.dump(sys.path, sent)
    _Pickler(sent).dump((tape, kinds, parallel))
    return sent.getvalue()


def start() -> subprocess.Popen[bytes]:
    """The process. Raises `OSError` if there can be none."""
    return subprocess.Popen([sys.executable, "-P", "-c", START], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL)


def answer(process: Any, sent: bytes) -> tuple[bytes, bool]:
    """The object file and whether it calls routines. Raises `ValueError` if what comes back is not whole. It is told
    how long it is: a fork may hold the pipe open."""
    with process:
        process.stdin.write(sent)
        process.stdin.flush()                           # and not closed: its end says that nobody waits any more
        head = process.stdout.read(9)
        size = int.from_bytes(head[:8], "little")
        code = process.stdout.read(size) if size < LARGEST else b""
    if not size or len(code) != size:
        raise ValueError("the compiling process was cut off")
    return code, bool(head[8])


def _leave_with(stream: Any) -> None:
    """End when the process that waits has ended."""
    stream.read()
    os._exit(1)


def work() -> None:
    """What the process does."""
    if hasattr(os, "nice"):
        os.nice(NICE)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)                                       # whatever is printed does not come between
    tape, kinds, parallel = _Unpickler(sys.stdin.buffer).load()
    threading.Thread(target=_leave_with, args=(sys.stdin.buffer,), daemon=True).start()
    kernel = Kernel(tape, kinds, parallel=parallel)
    code = kernel.native.code
    out.write(len(code).to_bytes(8, "little") + bytes([kernel.routines]) + code)
    out.flush()
    os._exit(0)                                         # with the thread that waits
