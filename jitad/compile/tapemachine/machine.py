"""The tape machine: long irregular tapes of operations on numbers, without compiling them.

A tape becomes a program for one of the interpreters of `interpreter`: operations that do not wait for one another
and have the same op-code run side by side. The reverse sweep is the same program read backwards, with no tape of its
own. Values and cotangents lie in memory that belongs to one call at a time.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from jitad.compile.entry.arguments import ArgumentType, argument_type
from jitad.compile.entry.kernel_errors import SignatureMiss, StatusMiss
from jitad.compile.tapemachine.flatten import LIMIT, FlatTape, Unsuitable
from jitad.compile.tapemachine.interpreter import LANES, Interpreter, interpreter
from jitad.compile.tapemachine.schedule import Schedule, operations, scheduled
from jitad.tape.builder import Builder, Value
from jitad.tape.types import Aval, Guard

__all__ = ["MachineKernel", "TapeMachine", "Unsuitable"]

KEPT = 4                      # memories that wait for the next call


@dataclass(eq=False)
class TapeMachine:
    """A program with its constants, `first`, its inputs (where each begins in memory) and what is read at the end:
    `outputs` are places of values, `gradients` those of the cotangents that are asked for, after the outputs;
    `seed` is the place of the number that is differentiated. `operations` is how many were recorded.
    """

    program: Schedule
    operations: int
    first: np.ndarray
    inputs: tuple[tuple[int, Aval], ...]
    outputs: tuple[tuple[np.ndarray, Aval], ...]
    gradients: tuple[tuple[np.ndarray, Aval], ...]
    seed: int | None
    guards: tuple[Guard, ...]
    guard_places: np.ndarray
    expected: np.ndarray
    _free: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

    def __len__(self) -> int:
        return self.operations

    @property
    def nbytes(self) -> int:
        """The program with one memory, and the code of the interpreter, which others may share."""
        program, code = self.program, len(self.interpreter.native.code)
        return program.runs.nbytes + program.words.nbytes + self.first.nbytes + (
            16 * program.size) + code

    @cached_property
    def interpreter(self) -> Interpreter:
        return interpreter(self.program.codes)

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """The outputs and gradients for inputs that are as the tape's. Raises `StatusMiss` where a guard fails."""
        memory = self._memory()
        try:
            values, cotangents = memory
            self._forward(values, inputs)
            if self.guards and (values.view(np.int64)[self.guard_places] != self.expected).any():
                raise StatusMiss
            found = [_taken(values, places, aval) for places, aval in self.outputs]
            return found + self._reverse(values, cotangents) if self.gradients else found
        finally:
            self._give_back(memory)

    def missed(self, inputs: Sequence[Any]) -> Guard | None:
        """The first guard that these inputs break."""
        values, _ = memory = self._memory()
        self._forward(values, inputs)
        wrong = values.view(np.int64)[self.guard_places] != self.expected
        self._give_back(memory)
        return self.guards[int(wrong.argmax())] if wrong.any() else None

    def _memory(self) -> tuple[np.ndarray, np.ndarray]:
        """Values, of which the constants are there, and cotangents, all structurally zero."""
        try:
            return self._free.pop()
        except IndexError:
            size = self.program.size + LANES
            values = np.zeros(size)
            values[:len(self.first)] = self.first
            return values, np.full(size if self.gradients else 0, -0.0)

    def _give_back(self, memory: tuple[np.ndarray, np.ndarray]) -> None:
        self._free.append(memory)
        del self._free[KEPT:]

    def _forward(self, values: np.ndarray, inputs: Sequence[Any]) -> None:
        for (place, aval), x in zip(self.inputs, inputs, strict=True):
            kind = values if aval.dtype.kind == "f" else values.view(np.int64)
            kind[place:place + aval.size] = np.ravel(x)
        runs, words = self.program.runs, self.program.words
        self.interpreter.forward(runs.ctypes.data, len(runs) // 2, words.ctypes.data, values.ctypes.data,
                                 self.program.given)

    def _reverse(self, values: np.ndarray, cotangents: np.ndarray) -> list[Any]:
        if self.seed is not None:
            cotangents[self.seed] = 1.0
            runs, words = self.program.runs, self.program.words
            self.interpreter.reverse(runs.ctypes.data, len(runs) // 2, words[-LANES:].ctypes.data, values.ctypes.data,
                                     cotangents.ctypes.data, self.program.size)
        found = [_taken(cotangents, places, aval, 0.0) for places, aval in self.gradients]
        cotangents[:self.program.given] = -0.0
        return found

    @property
    def source(self) -> str:
        """The op-codes, with how often they come and in how many runs."""
        program = self.program
        lines = [f"# tape machine: {self.operations} operations in {len(program.runs) // 2} runs, "
                 f"{program.given} inputs and constants, {len(self.guards)} guards",
                 "# operations      runs  op-code (operands; d: with a cotangent)"]
        lines += [f"{count:12} {runs:9}  {code}" for code, (count, runs) in sorted(
            operations(program).items(), key=lambda line: -line[1][0])]
        return "\n".join(lines) + "\n"


def _taken(memory: np.ndarray, places: np.ndarray, aval: Aval, plus: float | None = None) -> Any:
    """Elements as an array, or a Python number; cotangents without the sign of their zeros."""
    found = (memory if aval.dtype.kind == "f" else memory.view(np.int64))[places]
    if plus is not None:
        found = found + plus
    found = found.astype(aval.dtype, copy=False)
    return found.reshape(aval.shape) if aval.shape else found.item()


@dataclass(eq=False)
class MachineKernel:
    """What `Kernel` is to a call. It takes arrays in any layout, and is not stored on the disk."""

    machine: TapeMachine
    kinds: tuple[ArgumentType, ...]
    seconds: float = 0.0
    saved: bool = True
    exact: bool = False
    quick: bool = False
    tier: str = "machine"

    def counting(self, *options: Any) -> None:
        """There is no machine code that could count."""

    @property
    def operations(self) -> int:
        return len(self.machine)

    @property
    def source(self) -> str:
        return self.machine.source

    @property
    def nbytes(self) -> int:
        return self.machine.nbytes

    @cached_property
    def call(self) -> Callable[..., Any]:
        start = time.perf_counter()
        machine = self.machine
        machine.interpreter                                     # noqa: B018  compiles
        wanted = [(aval, kind) for (_, aval), kind in zip(machine.inputs, self.kinds, strict=True)]

        def call(*inputs: Any) -> Any:
            if len(inputs) != len(wanted):
                raise SignatureMiss
            for x, (aval, kind) in zip(inputs, wanted, strict=True):
                if kind.kind == "array":
                    if type(x) is not np.ndarray or x.shape != aval.shape or x.dtype != aval.dtype:
                        raise SignatureMiss
                elif argument_type(x) != kind:
                    raise SignatureMiss
            found = machine.run(inputs)
            return found[0] if len(found) == 1 else tuple(found)
        self.seconds = time.perf_counter() - start
        return call


def machine_of(builder: Builder, outputs: Sequence[Value], scalar: Value | None = None,
               wrt: Sequence[Value] = (), most: int = LIMIT) -> TapeMachine:
    """The machine for `outputs` and, after them, the gradient of `scalar` with respect to `wrt`.

    Raises `Unsuitable` for what has no op-codes, or more than `most` operations.
    """
    guards = tuple(builder.guards.values())
    wanted = [*(v.number for v in outputs), *(g.node for g in guards), *([scalar.number] if scalar is not None else ())]
    flat = FlatTape(builder.nodes, builder.inputs, wanted, [v.number for v in wrt], most)
    return _loaded(flat, builder, outputs, scalar, wrt, guards)


def _loaded(flat: FlatTape, builder: Builder, outputs: Sequence[Value], scalar: Value | None, wrt: Sequence[Value],
            guards: tuple[Guard, ...]) -> TapeMachine:
    number = None if scalar is None else int(flat.at[scalar.number])
    ends = [*(flat.at[v.number] for v in outputs), *(flat.at[g.node] for g in guards)]
    ends += [] if number is None else [number]
    program, place = scheduled(flat, np.concatenate([np.ravel(e) for e in ends]).tolist() if ends else [])
    first = np.zeros(program.given)
    for constant, value in flat.constants:
        (first if value.dtype.kind == "f" else first.view(np.int64))[place[constant]] = value

    def at(value: Value) -> tuple[np.ndarray, Aval]:
        return place[np.asarray(flat.at[value.number])], value.aval
    return TapeMachine(
        program, len(flat.op) - program.given, first,
        tuple((int(place[np.ravel(flat.at[i])[0]]) if np.size(flat.at[i]) else 0, builder.nodes[i].aval)
              for i in builder.inputs),
        tuple(map(at, outputs)), tuple(map(at, wrt)),
        None if number is None or not flat.sort[number] % 2 else int(place[number]), guards,
        np.array([place[flat.at[g.node]] for g in guards], np.int64),
        np.array([int(g.expected) for g in guards], np.int64))
