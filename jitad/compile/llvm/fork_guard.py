"""Forks while other threads record and compile: the fork waits for them, so that the child inherits nothing half done.

LLVM, llvmlite and the import system have locks that nobody would open in the child if another thread held them.
"""
from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from typing import Any

WAIT = 20.0  # seconds, after which a fork goes on; a thread may be waiting for what the forking thread holds


class Gate:
    """``with gate:`` around what a fork must not interrupt; re-entrant. Threads come and go as they like otherwise."""

    def __init__(self, wait: float = WAIT) -> None:
        self.wait = wait
        self._llvm: list[Any] = []
        self._open()

    def _open(self) -> None:
        self._changed = threading.Condition()            # re-entrant: a finaliser may come back here at any allocation
        self._inside: Counter[int] = Counter()
        self._forking: int | None = None

    def __enter__(self) -> None:
        me = threading.get_ident()
        with self._changed:
            while self._forking not in (None, me) and not self._inside[me]:
                self._changed.wait()
            self._inside[me] += 1

    def __exit__(self, *_: object) -> None:
        me = threading.get_ident()
        with self._changed:
            self._inside[me] -= 1
            if not self._inside[me]:
                self._inside.pop(me, None)               # which a handler of signals may have done already
                self._changed.notify_all()

    def before(self) -> None:
        """Close, and wait for the other threads inside and for LLVM."""
        me, end = threading.get_ident(), time.monotonic() + self.wait
        with self._changed:
            self._changed.wait_for(lambda: self._forking is None, self.wait)
            self._forking = me
            self._changed.wait_for(lambda: not self._inside.keys() - {me}, max(end - time.monotonic(), 0))
        lock = _llvm_lock()
        if lock is not None and lock.acquire(timeout=max(end - time.monotonic(), 0)):
            self._llvm.append(lock)

    def after_in_parent(self) -> None:
        """Open again."""
        self._release()
        with self._changed:
            self._forking = None
            self._changed.notify_all()

    def after_in_child(self) -> None:
        """Start anew: only the thread that forked is there, perhaps inside."""
        held, me = bool(self._llvm), threading.get_ident()
        self._release()
        depth = self._inside[me]
        self._open()
        self._inside.update({me: depth} if depth else {})
        if not held:
            _renew_llvm_lock()

    def _release(self) -> None:
        while self._llvm:
            self._llvm.pop().release()


def _llvm_holder() -> Any:
    """What has llvmlite's lock in its `_lock`, if llvmlite is there and as we know it."""
    return getattr(getattr(sys.modules.get("llvmlite.binding.ffi"), "lib", None), "_lock", None)


def _llvm_lock() -> Any:
    lock = getattr(_llvm_holder(), "_lock", None)
    return lock if hasattr(lock, "acquire") else None


def _renew_llvm_lock() -> None:
    if _llvm_lock() is not None:
        _llvm_holder()._lock = threading.RLock()


gate = Gate()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=gate.before, after_in_parent=gate.after_in_parent, after_in_child=gate.after_in_child)
