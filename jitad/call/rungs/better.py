"""What serves at once is followed by what is faster: while a kernel that was made quickly (`jitad.compile.outline`)
serves the calls, another process compiles the one that takes long.
"""
from __future__ import annotations

import atexit
import os
import subprocess
import threading
import weakref
from collections.abc import Sequence
from typing import Any

from jitad.call.build.specialization import Specialization
from jitad.compile.entry.arguments import argument_type
from jitad.compile.llvm.fork_guard import gate

_running: set[subprocess.Popen[bytes]] = set()
_one: Any = threading.Lock()                             # process at a time


class Improvement(threading.Thread):
    """Waits for a process. A daemon: at the end of the interpreter the process is ended, and nobody waits."""

    def __init__(self, specialization: Specialization, kinds: tuple[Any, ...]):
        super().__init__(name=f"jitad waits for a kernel of {specialization.name}", daemon=True)
        self.tape, self.kinds = specialization.tape, kinds
        self.specialization = weakref.ref(specialization)        # nobody waits for what the cache has dropped

    def run(self) -> None:
        from jitad.compile.entry.stored_kernel import StoredKernel

        try:
            with _one:
                code, routines = self._compiled() if self.specialization() is not None else (b"", False)
            found = self.specialization()
            if found is not None and code:
                with gate:
                    kernel = StoredKernel(code, self.kinds, routines)
                    kernel.saved = False
                    found.replace(self.kinds, kernel)
        except (OSError, ValueError, RuntimeError, KeyError):     # the quick one stays
            return

    def _compiled(self) -> tuple[bytes, bool]:
        from jitad.compile.entry.worker import answer, start

        process, sent = start(self.tape, self.kinds)
        _running.add(process)
        try:
            found, _ = process.communicate(sent)
        finally:
            _running.discard(process)
        return answer(found)


def improve(specialization: Specialization, inputs: Sequence[Any]) -> None:
    """Begin with the kernel for these inputs that takes long to compile, if a quick one serves them; once."""
    kinds = tuple(map(argument_type, inputs))
    kernel = specialization.kernels.get(kinds)
    if kernel is None or not kernel.quick or kinds in specialization.improving or specialization.request.tier:
        return
    from jitad.compile.entry.worker import can_work

    if specialization.recorded is None or not can_work(specialization.recorded):
        return
    thread = Improvement(specialization, kinds)
    if specialization.improving.setdefault(kinds, thread) is not thread:
        return
    try:
        thread.start()
    except RuntimeError:                                 # no more threads, as when the interpreter is ending
        return


@atexit.register
def _end() -> None:
    for process in list(_running):
        process.kill()


def _after_fork() -> None:
    """The child has none of the threads that wait; calls that the quick kernel serves begin again with the other."""
    global _one
    _one = threading.Lock()
    _running.clear()
    Specialization.start_over()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
