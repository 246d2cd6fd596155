"""``compile="background"``: a thread compiles while the reference interpreter serves the calls."""
from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from jitad.call.build.specialization import Specialization
from jitad.compile.entry.arguments import argument_type


class Compilation(threading.Thread):
    """The compilation of one kernel of a specialization. Not a daemon: the interpreter waits for it before it ends,
    since LLVM cannot be left in the middle; a fork waits by way of the gate that compiling goes through."""

    def __init__(self, specialization: Specialization, inputs: Sequence[Any]):
        super().__init__(name=f"jitad compiles {specialization.name}", daemon=False)
        self.specialization, self.inputs = specialization, inputs
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.specialization.kernel(self.inputs, quick=False)
        except BaseException as error:
            self.error = error
        finally:
            self.inputs = ()


def under_way(specialization: Specialization, inputs: Sequence[Any]) -> bool:
    """Whether the kernel for these inputs is being compiled; begins with that if it is not there.

    Raises what a compilation that has ended has raised, once: the next call tries again.
    """
    kinds = tuple(map(argument_type, inputs))
    running = specialization.compiling.get(kinds)
    if running is not None and running.is_alive():
        return kinds not in specialization.kernels
    specialization.compiling.pop(kinds, None)
    if kinds in specialization.kernels or specialization.machine is not None or specialization.recorded is None:
        return False
    if running is not None and running.error is not None:
        running.error.add_note(f"while `{specialization.name}` was compiled in the background")
        raise running.error
    started = Compilation(specialization, inputs)
    try:
        started.start()
    except RuntimeError:                                 # no more threads, as when the interpreter is ending
        return False
    specialization.compiling[kinds] = started
    return True
