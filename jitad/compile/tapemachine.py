"""The tape machine: long irregular tapes of operations on numbers, without compiling them.

A tape becomes a program for one of the interpreters of `tapemachine_llvm`: operations that do not wait for one another
and have the same op-code run side by side. The reverse sweep is the same program read backwards, with no tape of its
own. Values and cotangents lie in memory that belongs to one call at a time.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from jitad.compile.arguments import ArgumentType
from jitad.compile.kernel_errors import SignatureMiss, StatusMiss
from jitad.compile.tapemachine_flatten import Flat, Unfit, turns
from jitad.compile.tapemachine_llvm import LANES, Interpreter, interpreter
from jitad.compile.tapemachine_opcodes import Mixture, OpCode
from jitad.tape import Aval, Builder, Guard, Value

__all__ = ["MachineKernel", "TapeMachine", "Unfit"]

KEPT = 4                      # memories that wait for the next call


@dataclass(eq=False)
class TapeMachine:
    """A program. `runs` are pairs (op-code, count), `places` what their operands read; of a memory the first `given`
    places are inputs and constants, the others results in order.

    `outputs` are places of values, `gradients` those of the cotangents that are asked for, after the outputs;
    `seed` is the place of the number that is differentiated.
    """

    codes: tuple[OpCode | Mixture, ...]
    runs: np.ndarray
    places: np.ndarray
    given: int
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
        """Operations."""
        return int(self.runs[1::2].sum(dtype=np.int64))

    @property
    def size(self) -> int:
        return self.given + len(self)

    @property
    def nbytes(self) -> int:
        """The program and the memories that are kept."""
        code = len(self.interpreter.native.code)
        kept = sum(values.nbytes + cotangents.nbytes for values, cotangents in list(self._free))
        return self.runs.nbytes + self.places.nbytes + self.first.nbytes + kept + code

    @cached_property
    def interpreter(self) -> Interpreter:
        return interpreter(self.codes)

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
            self._free.append(memory)
            del self._free[KEPT:]

    def missed(self, inputs: Sequence[Any]) -> Guard | None:
        """The first guard that these inputs break."""
        values, _ = memory = self._memory()
        self._forward(values, inputs)
        wrong = values.view(np.int64)[self.guard_places] != self.expected
        self._free.append(memory)
        return self.guards[int(wrong.argmax())] if wrong.any() else None

    def _memory(self) -> tuple[np.ndarray, np.ndarray]:
        """Values, of which the constants are there, and cotangents, all structurally zero."""
        try:
            return self._free.pop()
        except IndexError:
            values = np.zeros(self.size + LANES)
            values[:self.given] = self.first
            return values, np.full(self.size + LANES if self.gradients else 0, -0.0)

    def _forward(self, values: np.ndarray, inputs: Sequence[Any]) -> None:
        for (place, aval), x in zip(self.inputs, inputs, strict=True):
            kind = values if aval.dtype.kind == "f" else values.view(np.int64)
            kind[place:place + aval.size] = np.ravel(x)
        self.interpreter.forward(self.runs.ctypes.data, len(self.runs) // 2, self.places.ctypes.data,
                                 values.ctypes.data, self.given)

    def _reverse(self, values: np.ndarray, cotangents: np.ndarray) -> list[Any]:
        if self.seed is not None:
            cotangents[self.seed] = 1.0
            self.interpreter.reverse(self.runs.ctypes.data, len(self.runs) // 2,
                                     self.places[-LANES:].ctypes.data, values.ctypes.data,
                                     cotangents.ctypes.data, self.size)
        found = [_taken(cotangents, places, aval, 0.0) for places, aval in self.gradients]
        cotangents[:self.given] = -0.0
        return found

    @cached_property
    def source(self) -> str:
        """The op-codes with how often they run, and the longest chain of runs."""
        counts = np.bincount(self.runs[::2], self.runs[1::2], minlength=len(self.codes)).astype(int).tolist()
        longest = np.bincount(self.runs[::2], minlength=len(self.codes)).tolist()
        lines = [f"# tape machine: {len(self)} operations in {len(self.runs) // 2} runs, {self.given} inputs and "
                 f"constants, {len(self.guards)} guards", "# operations      runs  op-code (operands; d: with a "
                 "cotangent)"]
        lines += [f"{count:12} {runs:9}  {code}" for count, runs, code in sorted(
            zip(counts, longest, self.codes, strict=True), key=lambda line: -line[0])]
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
    """What `runtime.Kernel` is to a call. It takes arrays in any layout, and is not stored on the disk."""

    machine: TapeMachine
    kinds: tuple[ArgumentType, ...]
    seconds: float = 0.0
    saved: bool = True
    exact: bool = False
    tier: str = "machine"

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
        wanted = [aval for _, aval in machine.inputs]

        def call(*inputs: Any) -> Any:
            if len(inputs) != len(wanted):
                raise SignatureMiss
            for x, aval in zip(inputs, wanted, strict=True):
                if isinstance(x, np.ndarray) and (x.shape != aval.shape or x.dtype != aval.dtype):
                    raise SignatureMiss
            found = machine.run(inputs)
            return found[0] if len(found) == 1 else tuple(found)
        self.seconds = time.perf_counter() - start
        return call


def machine_of(builder: Builder, outputs: Sequence[Value], scalar: Value | None = None,
               wrt: Sequence[Value] = (), most: int = 1 << 30) -> TapeMachine:
    """The machine for `outputs` and, after them, the gradient of `scalar` with respect to `wrt`.

    Raises `Unfit` for what has no op-codes, or more than `most` operations.
    """
    guards = tuple(builder.guards.values())
    wanted = [*(v.number for v in outputs), *(g.node for g in guards), *([scalar.number] if scalar is not None else ())]
    flat = Flat(builder.nodes, builder.inputs, wanted, [v.number for v in wrt], most)
    return _scheduled(flat, builder, outputs, scalar, wrt, guards)


MIXED = 6                     # op-codes that are computed for one of them


def _mixed(codes: Sequence[OpCode], counts: np.ndarray) -> tuple[tuple[OpCode | Mixture, ...], np.ndarray, np.ndarray]:
    """The op-codes of the machine; for each of `codes` its number there, and which it is in a mixture."""
    general = [replace(c, active=(True,) * c.arity) for c in codes]
    total: dict[OpCode, int] = {}
    for code, count in zip(general, counts.tolist(), strict=True):
        if code.mixes:
            total[code] = total.get(code, 0) + count
    members = sorted(sorted(total, key=lambda c: -total[c])[:MIXED], key=str)
    mixture = (Mixture(tuple(members)),) if len(members) > 1 else ()
    alone = sorted((c for c, g in zip(codes, general, strict=True) if not mixture or g not in members), key=str)
    number = [0 if mixture and g in members else len(mixture) + alone.index(c)
              for c, g in zip(codes, general, strict=True)]
    which = [members.index(g) if mixture and g in members else 0 for g in general]
    return (*mixture, *alone), np.array([*number, -1], np.int32), np.array([*which, 0], np.int32)


def _scheduled(flat: Flat, builder: Builder, outputs: Sequence[Value], scalar: Value | None, wrt: Sequence[Value],
               guards: tuple[Guard, ...]) -> TapeMachine:
    """With places in the order of the operations."""
    plain = np.array(flat.op, np.int32)
    codes, number, which = _mixed(flat.codes, np.bincount(plain[plain >= 0], minlength=len(flat.codes)))
    op = number[plain]
    when = np.array(turns(flat, op.tolist(), len(codes)), np.int64)
    done = np.flatnonzero(op >= 0)
    order = done[np.argsort(when[done], kind="stable")]
    given = np.flatnonzero(op < 0)
    place = np.empty(len(op), np.int32)
    place[given] = np.arange(len(given), dtype=np.int32)
    place[order] = np.arange(len(given), len(op), dtype=np.int32)
    columns = [place[np.array(c, np.int32)[order]] for c in flat.operands]
    runs, places = _encoded(codes, op[order], when[order], columns, which[plain[order]])
    first = np.zeros(len(given))
    for number, value in flat.constants:
        (first if value.dtype.kind == "f" else first.view(np.int64))[place[number]] = value

    def at(value: Value) -> tuple[np.ndarray, Aval]:
        return place[np.asarray(flat.at[value.number])], value.aval
    seed = None
    if scalar is not None:
        number = int(flat.at[scalar.number])
        seed = int(place[number]) if flat.sort[number] % 2 else None
    return TapeMachine(
        codes, runs, places, len(given), first,
        tuple((int(place[np.ravel(flat.at[i])[0]]) if np.size(flat.at[i]) else 0, builder.nodes[i].aval)
              for i in builder.inputs),
        tuple(map(at, outputs)), tuple(map(at, wrt)), seed, guards,
        np.array([place[flat.at[g.node]] for g in guards], np.int64), np.array([int(g.expected) for g in guards], np.int64))


def _encoded(codes: Sequence[OpCode | Mixture], op: np.ndarray, when: np.ndarray,
             operands: Sequence[np.ndarray], which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Runs, and the places that they read: run by run, operand by operand, with what is meant of a mixture behind."""
    if not len(op):
        return np.zeros(0, np.int32), np.zeros(LANES, np.int32)
    begins = np.flatnonzero(np.r_[True, when[1:] != when[:-1]])
    counts = np.diff(np.r_[begins, len(op)])
    kinds = op[begins]
    arity = np.array([c.columns for c in codes])[kinds]
    offsets = np.cumsum(arity * counts) - arity * counts
    run = np.repeat(np.arange(len(begins)), counts)
    within = np.arange(len(op)) - begins[run]
    places = np.zeros(int((arity * counts).sum()) + LANES, np.int32)
    mixture = isinstance(codes[0], Mixture)
    for k, column in enumerate(operands):
        if k == 2 and mixture:
            column = np.where(op == 0, which, column)
        has = arity[run] > k
        places[(offsets[run] + k * counts[run] + within)[has]] = column[has]
    return np.stack([kinds, counts], 1).astype(np.int32).ravel(), places
