"""What serves at once is followed by what is faster: while a kernel that was made quickly (`jitad.compile.outline`)
serves the calls, another process compiles the one that takes long.
"""
from __future__ import annotations

import atexit
import os
import pickle
import threading
import weakref
from typing import TYPE_CHECKING, Any

from jitad.call.build.specialization import Specialization
from jitad.compile.llvm.fork_guard import gate

if TYPE_CHECKING:
    import subprocess

# What keeps a kernel from being compiled elsewhere: no process, one that was cut off, what cannot be sent.
_FAILURES = (OSError, ValueError, RuntimeError, KeyError, TypeError, AttributeError, pickle.PicklingError)

_running: set[subprocess.Popen[bytes]] = set()
_one: Any = threading.Lock()                             # process at a time
_alive: Any = threading.Lock()                           # held while a process begins or its code is linked


class Improvement(threading.Thread):
    """Waits for a process. A daemon: at the end of the interpreter the process is ended, and nobody waits."""

    def __init__(self, specialization: Specialization, kinds: tuple[Any, ...]):
        super().__init__(name=f"jitad waits for a kernel of {specialization.name}", daemon=True)
        self.tape, self.kinds, self.parallel = specialization.tape, kinds, specialization.request.parallel
        self.specialization = weakref.ref(specialization)        # nobody waits for what the cache has dropped

    def run(self) -> None:
        try:
            with _one:
                found = self._compiled() if self.specialization() is not None else None
            if found is not None:
                self._take(*found)
        except _FAILURES:                                # the quick one stays
            return

    def _compiled(self) -> tuple[bytes, bool] | None:
        with gate:                                       # a fork while this imports would leave its locks held
            from jitad.compile.entry.worker import answer, message, start

        sent = message(self.tape, self.kinds, self.parallel)
        with gate, _alive:
            if _ended:
                return None
            process = start()
            _running.add(process)
        try:
            return answer(process, sent)
        finally:
            _running.discard(process)

    def _take(self, code: bytes, routines: bool) -> None:
        with gate, _alive:
            from jitad.compile.entry.stored_kernel import StoredKernel

            found = self.specialization()
            if found is None or _ended:
                return
            kernel = StoredKernel(code, self.kinds, routines)
        kernel.saved = False
        found.replace(self.kinds, kernel)


def improve(specialization: Specialization, kinds: tuple[Any, ...]) -> None:
    """Begin with the kernel that takes long to compile, where a quick one serves inputs of these kinds; once."""
    if kinds in specialization.improving or specialization.request.tier:
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


_ended = False


@atexit.register
def _end() -> None:
    global _ended
    with _alive:
        _ended = True
        for process in list(_running):
            process.kill()


def _after_fork() -> None:
    """The child has none of the threads that wait; calls that the quick kernel serves begin again with the other."""
    global _one, _alive
    _one, _alive = threading.Lock(), threading.Lock()
    _running.clear()
    Specialization.start_over()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
