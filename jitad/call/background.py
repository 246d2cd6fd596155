"""``compile="background"``: a thread compiles while the reference interpreter serves the calls."""
from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from jitad.call.build.entry import Entry
from jitad.compile.entry.arguments import argument_type


class Compilation(threading.Thread):
    """The compilation of one kernel of `entry`. Not a daemon: the interpreter waits for it before it ends, since LLVM
    cannot be left in the middle; a fork waits by way of the gate that compiling goes through."""

    def __init__(self, entry: Entry, inputs: Sequence[Any]):
        super().__init__(name=f"jitad compiles {entry.name}", daemon=False)
        self.entry, self.inputs = entry, inputs
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.entry.kernel(self.inputs)
        except BaseException as error:
            self.error = error
        finally:
            self.inputs = ()


def under_way(entry: Entry, inputs: Sequence[Any]) -> bool:
    """Whether the kernel for these inputs is being compiled; begins with that if it is not there.

    Raises what a compilation that has ended has raised, once: the next call tries again.
    """
    kinds = tuple(map(argument_type, inputs))
    running = entry.compiling.get(kinds)
    if running is not None and running.is_alive():
        return kinds not in entry.kernels
    entry.compiling.pop(kinds, None)
    if kinds in entry.kernels or entry.machine is not None or entry.recorded is None:
        return False
    if running is not None and running.error is not None:
        running.error.add_note(f"while `{entry.name}` was compiled in the background")
        raise running.error
    started = Compilation(entry, inputs)
    try:
        started.start()
    except RuntimeError:                                 # no more threads, as when the interpreter is ending
        return False
    entry.compiling[kinds] = started
    return True
