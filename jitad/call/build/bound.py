"""A specialization with data bound: what depends on the data alone is computed once, and the data lie as is best."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from jitad.call.build.specialization import Specialization
from jitad.call.request.request import Arguments
from jitad.compile.entry.arguments import argument_type
from jitad.compile.llvm.fork_guard import gate
from jitad.compile.entry.kernel_errors import StatusMiss
from jitad.passes.split.prologue import THIN, Split, split
from jitad.tape.evaluate import evaluate
from jitad.trace.leaves import altered, as_plain
from jitad.trace.recorder import uncollected

if TYPE_CHECKING:
    from jitad.compile.entry.bound import BoundKernel

LINE = 64            # bytes of a line of the processor's cache


class BoundTape:
    """A specialization with everything bound but the inputs `free`: what is computed once, and what is left."""

    def __init__(self, specialization: Specialization, arguments: Arguments, captured: Sequence[Any],
                 free: tuple[int, ...]):
        self.specialization, self.free = specialization, free
        given = [snapshot(x) for x in captured]
        self.captured = tuple(given)
        inputs = [*arguments.inputs, *given]
        self.example = [inputs[i] for i in free]
        bound = [x for i, x in enumerate(inputs) if i not in free]
        self.split, computed = self._computed(bound)
        thin = self.split.thin(len(free))
        self.data = tuple(map(_laid_out, [*(bound[i] for i in self.split.kept), *computed], thin))

    def _computed(self, bound: list[Any]) -> tuple[Split, list[Any]]:
        """The tapes, and what the first gives; where it cannot be computed (a factorization fails, say), that is left
        to each call, as it may not be needed on another way."""
        parts = split(self.specialization.tape, self.free)
        try:
            return parts, [x if x.ndim else x[()] for x in evaluate(parts.prologue, *bound)]
        except Exception:
            return split(self.specialization.tape, self.free, hoist=False), []

    @cached_property
    def kernel(self) -> BoundKernel:
        """The compiled main tape, one for all data of the same kinds."""
        from jitad.compile.entry.bound import BoundKernel

        kinds = tuple(map(argument_type, [*self.example, *self.data]))
        key = (self.free, self.split.hoisted, self.split.kept, kinds)
        with gate, uncollected(), self.specialization.lock:
            kernels = self.specialization.bound
            if key not in kernels:
                kernels[key] = BoundKernel(self.split.main, kinds, len(self.free), self.specialization.name,
                                           self.specialization.request.parallel)
        return kernels[key]

    @cached_property
    def strict(self) -> Callable[..., Any]:
        """The kernel over the leaves of the free arguments; it raises `KernelMiss` for what it does not serve."""
        return self.kernel.function(self.data, refuse)

    def run(self, arguments: Arguments) -> Any:
        """The result for arguments of the signature; failures are raised as NumPy raises them."""
        specialization, inputs = self.specialization, arguments.inputs
        try:
            return specialization.result.build(self.strict(*(inputs[i] for i in self.free)))
        except StatusMiss:
            pass
        return specialization.interpret([*inputs, *self.captured])


def refuse(*args: Any, **kwargs: Any) -> Any:
    raise StatusMiss


# --- how data lie in memory ----------------------------------------------------------------------------
def snapshot(leaf: Any) -> Any:
    """A leaf as it is now. Thin matrices get contiguous columns, in which products along rows run fastest."""
    if not isinstance(leaf, np.ndarray) or altered(type(leaf)):        # these are refused in the call
        return leaf
    leaf = as_plain(leaf)
    thin = leaf.ndim == 2 and leaf.dtype.kind == "f" and 1 < leaf.shape[1] <= min(THIN, leaf.shape[0] // 2)
    return leaf.copy() if leaf.dtype.hasobject else _on_a_line(leaf, "F" if thin else "C")


def _laid_out(x: Any, thin: bool) -> Any:
    if not isinstance(x, np.ndarray):
        return x
    fits = (x.flags.f_contiguous if thin else x.flags.c_contiguous) and x.ctypes.data % LINE == 0
    return x if fits else _on_a_line(x, "F" if thin else "C")


def _on_a_line(x: np.ndarray, order: Literal["C", "F"]) -> np.ndarray:
    """A copy in this order that begins on a cache line. Elsewhere every other vector of eight would lie in two lines,
    and be read twice."""
    memory = np.empty(x.nbytes + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    made = memory[start:start + x.nbytes].view(x.dtype).reshape(x.shape, order=order)
    made[...] = x
    return made
