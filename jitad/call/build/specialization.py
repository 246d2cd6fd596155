"""A specialization: what the cache keeps of a function for one signature, the tape, the plan of captures, the kernels."""
from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jitad.cache.keys.captures import Plan
from jitad.cache.keys.identity import Target
from jitad.cache.keys.signature import Signature
from jitad.call.request.request import Arguments, Request
from jitad.call.request.results import Result
from jitad.compile.entry.arguments import argument_type
from jitad.compile.llvm.fork_guard import gate
from jitad.compile.entry.kernel_errors import StatusMiss
from jitad.passes.optimise.guards import conditions, first_missed
from jitad.tape.evaluate import evaluate
from jitad.tape.tape import Tape
from jitad.tape.types import Aval, Guard
from jitad.trace.leaves import packed_all
from jitad.trace.pytree import TreeDef
from jitad.trace.recorder import uncollected
from jitad.trace.steps.known import Loops
from jitad.trace.where import no_fault

if TYPE_CHECKING:
    from jitad.compile.tapemachine.machine import TapeMachine

OBJECTS, NODE = 30_000, 700    # bytes of the Python objects around a small tape, and of a node on it, as measured

_living: weakref.WeakSet[Specialization] = weakref.WeakSet()


class TapeNeeded(Exception):
    """A specialization from the disk has code but no tape, and a tape is needed: see `specialize.complete`."""


@dataclass(eq=False)
class Specialization:
    """One compiled signature of one function. Holds neither the function nor what it captures.

    `recorded` is the tape; what comes from the disk (`loaded`) starts without one. `guarded` says whether the tape
    has guards, `passing` whether it serves one call and has no place in the cache; `crowded` is set once the user
    knows that there are too many like it. On the `machine` there is no tape either, until it is asked for. `loops` is
    what is known of the loops of the function, `asked` what its code asks of the arguments by ``is``.
    `kernels` are by how the inputs lie in memory; `bound` has those for bound data, see `jitad.call.bound`;
    `compiling` the threads of `jitad.call.rungs.background`, `improving` those of `jitad.call.rungs.better`, `memos`
    the shortcuts that lead here.
    """

    name: str
    request: Request
    signature: Signature
    names: tuple[str, ...]
    dynamic: tuple[bool, ...]
    structures: tuple[TreeDef, ...]
    keywords: tuple[str, ...]
    recorded: Tape | None
    plan: Plan
    result: Result
    guarded: bool = False
    loaded: bool = False
    passing: bool = False
    crowded: bool = False
    loops: Loops = field(default_factory=dict)
    asked: tuple[Any, ...] = ()
    machine: TapeMachine | None = None
    kernels: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    bound: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    compiling: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    improving: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    memos: dict[Any, None] = field(default_factory=dict)         # weak references; a dict is copied at one stroke
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        _living.add(self)

    @classmethod
    def of(cls, name: str, request: Request, arguments: Arguments, tape: Tape | None, plan: Plan,
           result: Result, **options: Any) -> Specialization:
        """That for calls like `arguments`."""
        return cls(name, request, arguments.signature, arguments.names, arguments.dynamic, arguments.structures,
                   tuple(arguments.kwargs), tape, plan, result, **options)

    @property
    def tape(self) -> Tape:
        if self.recorded is None:
            raise TapeNeeded
        return self.recorded

    def output(self, number: int) -> Aval:
        """Shape and dtype of an output of the tape."""
        return self.tape.nodes[self.tape.outputs[number]].aval

    @property
    def guards(self) -> tuple[Guard, ...]:
        return self.tape.guards if self.machine is None else self.machine.guards

    @property
    def way(self) -> str:
        """What tells the ways through the branches of one function apart."""
        return " ".join([*(f"{g.node}={g.expected}" for g in self.tape.guards), *map(repr, self.asked)])

    @property
    def nbytes(self) -> int:
        """What is held: the tape, what is told of a call, machine code and constants."""
        kernels = sum(kernel.nbytes for kernel in [*self.kernels.values(), *self.bound.values()])
        return OBJECTS + NODE * len(self.recorded or ()) + kernels

    @property
    def seconds(self) -> float:
        """What compiling the kernels took."""
        return sum(kernel.seconds for kernel in list(self.kernels.values()))

    def captured(self, target: Target) -> tuple[Any, ...] | None:
        """The captured inputs as they are now; None if the captures are not those of this tape."""
        values = self.plan.values(target)
        return values if values is None else tuple(packed_all(values))

    @cached_property
    def _conditions(self) -> Tape:
        """The part of the tape that its guards need."""
        return conditions(self.tape)

    def missed(self, inputs: Sequence[Any]) -> Guard | None:
        """The first guard that these inputs break: they take another way through the user's code."""
        if not self.guarded:
            return None
        if self.machine is not None:
            return self.machine.missed(inputs)
        if self.recorded is None:
            return self._stopped(inputs)
        return first_missed(self._conditions, inputs)

    def _stopped(self, inputs: Sequence[Any]) -> Guard | None:
        try:
            self.kernel(inputs).call(*inputs)
        except StatusMiss:
            return Guard(-1, True, None)
        return None

    def has_kernel(self, inputs: Sequence[Any]) -> bool:
        return tuple(map(argument_type, inputs)) in self.kernels

    def kernel(self, inputs: Sequence[Any], quick: bool = True) -> Any:
        """The kernel for inputs that lie in memory as these do; compiled once. Where compiling takes long, a `quick`
        one will do, if it may."""
        kinds = tuple(map(argument_type, inputs))
        kernel = self.kernels.get(kinds)
        if self._will_do(kernel, quick):
            return kernel
        with gate, uncollected(), self.lock:
            known = kernel = self.kernels.get(kinds)
            if not self._will_do(known, quick):
                kernel = self.kernels[kinds] = self._compiled(kinds, quick)
        if known is not None and kernel is not known:
            self._forget()
        return kernel

    def _will_do(self, kernel: Any, quick: bool) -> bool:
        return kernel is not None and (quick or not kernel.quick or self.request.tier == "machine")

    def _compiled(self, kinds: tuple[Any, ...], quick: bool) -> Any:
        from jitad.compile.entry.kernel import Kernel
        from jitad.compile.outline.outline import slow
        from jitad.compile.tapemachine.machine import MachineKernel

        tier = self.request.tier
        kernel: Any
        with no_fault(f"it compiled `{self.name}`"):
            if self.machine is not None:
                kernel = MachineKernel(self.machine, kinds)
            else:
                kernel = Kernel(self.tape, kinds, quick=tier == "machine" or (quick and not tier and slow(self.tape)),
                                parallel=self.request.parallel)
            kernel.call                                  # noqa: B018  compiles
        return kernel

    def replace(self, kinds: tuple[Any, ...], kernel: Any) -> None:
        """Take a kernel in place of the quick one from now on."""
        with self.lock:
            known = self.kernels.get(kinds)
            if known is not None and known.quick:
                self.kernels[kinds] = kernel
        self.improving.pop(kinds, None)
        self._forget()

    def remember(self, memo: Any) -> None:
        """What is to forget its kernel when another takes its place; it is not kept alive."""
        memos = self.memos
        memos[weakref.ref(memo, lambda reference: memos.pop(reference, None))] = None

    def _forget(self) -> None:
        for reference in list(self.memos):
            if (memo := reference()) is not None:
                memo.forget()

    @classmethod
    def start_over(cls) -> None:
        """In the child of a fork, where nobody waits for kernels: let calls ask for them again."""
        for specialization in list(_living):
            if specialization.improving:
                specialization.improving.clear()
                specialization._forget()

    def run(self, inputs: Sequence[Any]) -> Any:
        """The result for dynamic leaves and captured inputs; failures are raised as NumPy raises them."""
        try:
            return self.result.build(self.kernel(inputs).call(*inputs))
        except StatusMiss:
            pass
        return self.interpret(inputs)

    def interpret(self, inputs: Sequence[Any]) -> Any:
        """The same by the reference interpreter."""
        outputs = [x if x.ndim else x.item() for x in evaluate(self.tape, *inputs)]
        return self.result.build(outputs[0] if len(outputs) == 1 else outputs)


def _after_fork() -> None:
    for specialization in list(_living):
        specialization.lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
