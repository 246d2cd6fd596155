"""The variants of a step as one body, and the loop with that body on the tape."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.primitives.scan import loop
from jitad.primitives.view import broadcast_to, slice_dims
from jitad.tape.builder import Value
from jitad.tape.types import TABLE, Aval, Where
from jitad.trace.loop_body import Body
from jitad.trace.pytree import unflatten
from jitad.trace.steps.join import Joint, joined
from jitad.trace.steps.known import GOING, KNOWN
from jitad.trace.steps.outs import Out, Outs, Row
from jitad.trace.steps.rows import FilledArray, always_within, by_rows

__all__ = ["Found", "emitted"]

LEAST = 1024              # steps that a loop has memory for, at least, whose length depends on values


@dataclass
class Found:
    """What a loop has given: the variables, how it was left, and what it returns at each place where it does."""

    values: list[Any]
    code: Any = None
    results: dict[int, Any] = field(default_factory=dict)


def emitted(run: Any) -> Found:
    """Append the loop to the tape; gives what is after it."""
    recorder = run.recorder
    variants = list(run.variants.values())
    with recorder.inside(), recorder.plain():
        body = Body(recorder, run.walk.length if run.walk is not None else _capacity(run))
        body.position = Value(recorder, run.position)
        outs = Outs(run, variants, body)
        leaving = any(v.left for v in variants)
        if leaving:
            outs.code = outs.add(Aval((), np.dtype(np.int64)), np.zeros((), np.int64),
                                 [recorder.const(np.int64(v.left)) for v in variants], run.outcome and run.outcome[0])
        rows = [row for several in outs.rows for _, items in several for row in items]
        try:
            joint = joined(recorder, [[(n, f) for n, f, _ in v.path] for v in variants],
                           [[out.ends[i].number for out in (*outs.outs, *rows)] for i in range(len(variants))],
                           [v.left != 0 for v in variants], run.since, lambda number: always_within(body, number))
        except ValueError as error:
            run.marks.unfit(run.known, str(error))
        picks, ended = _Made(run, outs, rows, joint, leaving, body).loop()
    for out, pick in zip(outs.outs, picks, strict=False):
        if out.concrete is not None:
            recorder.know(pick.number, np.asarray(out.concrete, out.aval.dtype))
    file, line, _ = run.known.loop.where
    for flag, holds in ended:
        recorder.know(flag.number, np.asarray(holds))
        recorder.guard(flag, holds, Where(file, line, recorder.function_name))
    for stored, place in zip(run.stored, outs.arrays, strict=True):
        stored.storage.replace(picks[place].number)
    for grown, several in zip(run.grown, outs.rows, strict=True):
        grown.real += _elements(run, grown, several)
    traced = lambda place: _traced(recorder, outs.outs[place], picks[place])
    values = [outs.value(slot, traced) for slot in run.slots]
    code = None if outs.code is None else traced(outs.code)
    run.twins = _twins(run, variants)
    return Found(values, code, {site: unflatten(tree, [traced(x) if type(x) is int else x.thing for x in leaves])
                                for site, (tree, leaves) in outs.results.items()})


def _twins(run: Any, variants: list[Any]) -> dict[str, str]:
    """The variables that are the same container as another one after each step."""
    first = variants[0].holders.twins if variants else {}
    if any(v.holders.twins.get(name) != first.get(name) for v in variants for name in {*first, *v.holders.twins}
           if name in run.known.loop.elsewhere):
        run.marks.unfit(run.known, "two of its variables are one container after some steps")
    return first


def _elements(run: Any, grown: Any, several: list[tuple[Any, list[Row]]]) -> list[Any]:
    """What all steps have appended to a list, as elements of stacks."""
    recorder = run.recorder
    rows = [row for _, items in several for row in items]
    for i, row in enumerate(rows):
        if grown.numbers and all(len(numbers) == len(rows) for numbers in grown.numbers):
            recorder.know(row.stack.number, np.array([numbers[i] for numbers in grown.numbers], row.stack.dtype))

    def element(row: Row, t: int) -> Any:
        traced = recorder.value(slice_dims(row.stack, (t, *(slice(None),) * (row.stack.ndim - 1))).number)
        traced.weak, traced.boxed, traced.frozen = row.weak, row.boxed, row.frozen
        return traced
    return [unflatten(tree, [element(row, t) for row in items])
            for t in range(run.walk.length) for tree, items in several]


def _traced(recorder: Any, out: Out, pick: Value) -> Any:
    traced = recorder.value(pick.number)
    traced.weak, traced.boxed, traced.frozen = out.aval.weak, out.boxed, out.frozen
    return traced


class _Made:
    """A loop in the making: of each carry its placeholder, its value after a step, its first value and its name."""

    def __init__(self, run: Any, outs: Outs, rows: list[Row], joint: Joint, leaving: bool, body: Body) -> None:
        self.run, self.recorder, self.outs, self.rows = run, run.recorder, outs, rows
        self.leaving, self.body, self.can_fail = leaving, body, joint.can_fail
        values = [Value(self.recorder, n) for n in joint.outputs]
        count = len(outs.outs)
        self.wanted, self.stacked = values[:count], values[count:]
        self.ok = None if joint.ok is None else Value(self.recorder, joint.ok)
        self.firsts = [out.first if isinstance(out.first, Value) else self.const(out.first) for out in outs.outs]
        self.avals = [out.aval for out in outs.outs]
        self.carries = [Value(self.recorder, out.number) for out in outs.outs]
        self.names = [f"carry{i}" for i in range(count)]
        self.filled: dict[int, FilledArray] = {}

    def const(self, value: Any) -> Value:
        return self.recorder.const(np.asarray(value))    # type: ignore[no-any-return]

    def add(self, first: Any, name: str, at: int, carry: Value | None = None) -> Value:
        """One more carry, for which the caller appends what is wanted of it."""
        first = first if isinstance(first, Value) else self.const(first)
        aval = Aval(first.shape, first.dtype)
        carry = carry or Value(self.recorder, self.run.placeholder(aval))
        parts: list[tuple[list[Any], Any]] = [
            (self.carries, carry), (self.firsts, first), (self.avals, aval), (self.names, name)]
        for part, x in parts:
            part.insert(at, x)
        return carry

    def loop(self) -> tuple[list[Value], list[tuple[Value, bool]]]:
        """The scan; gives the final carries, and with their truth values flags that must be so."""
        if self.run.walk is not None and not self.leaving:
            self._fill()
        code = None if self.outs.code is None else self.wanted[self.outs.code]
        parts: tuple[list[Any], ...] = (self.carries, self.wanted, self.firsts, self.avals, self.names)
        for part in parts:
            part[:] = [x for place, x in enumerate(part) if place not in self.filled]
        if self.ok is not None:
            known = self.add(True, KNOWN, 0)
            self.wanted.insert(0, TABLE["logical_and"](known, self.ok))
        until = self.leaving or (self.ok is not None and self.can_fail)
        if until:
            going = self.const(True) if code is None else TABLE["eq"](code, 0)
            going = going if self.ok is None else TABLE["logical_and"](going, self.wanted[0])
            self.add(True, GOING, 0)
            self.wanted.insert(0, going)
            steps = self.add(np.int64(0), "steps", len(self.carries))
            self.wanted.append(steps + np.int64(1))
        finals, stacks = self._scan(until)
        flags = [(finals.pop(0), False)] if until else []
        flags = flags if self.run.walk is None else []
        if self.ok is not None:
            flags.insert(0, (finals.pop(0), True))
        for (place, filled), stack in zip(self.filled.items(), stacks[len(self.rows):], strict=True):
            finals.insert(place, filled.final(stack))
        return finals, flags

    def _fill(self) -> None:
        """Take out the arrays that are filled row by row."""
        count = len(self.wanted)
        for place in self.outs.arrays:
            rest = [*self.wanted[:place], *self.wanted[place + 1:], *self.stacked, *([self.ok] if self.ok else [])]
            found = by_rows(self.body, self.carries[place], self.wanted[place], self.firsts[place], rest)
            if found is not None:
                self.filled[place], rest = found
                self.ok = rest.pop() if self.ok else None
                self.wanted = [*rest[:place], self.filled[place].value, *rest[place:count - 1]]
                self.stacked = rest[count - 1:]
        self.stacked += [self.wanted[place] for place in self.filled]
        for place, filled in self.filled.items():
            for lag, row in enumerate(filled.lags):
                self.add(filled.before(lag + 1), f"row{place}_{lag + 1}", len(self.carries), row)
                self.wanted.append(filled.lags[lag - 1] if lag else self.wanted[place])

    def _scan(self, until: bool) -> tuple[list[Value], list[Value]]:
        run, body = self.run, self.body
        body.carries = self.carries
        body.names |= {**{v.number: name for v, name in zip(self.carries, self.names, strict=True)}, run.position: "t"}
        tape, invariants = body.close([*self.wanted, *self.stacked])
        start = [cast(broadcast_to(Value(self.recorder, v.number), a.shape), a.dtype)
                 for v, a in zip(self.firsts, self.avals, strict=True)]
        finals, stacks = loop(self.recorder, tape, start, body.scanned, invariants, body.length, True, False, until)
        for row, stack in zip(self.rows, stacks, strict=False):
            row.stack = stack
        return finals, stacks


def _capacity(run: Any) -> int:
    """Steps of a loop whose length depends on values: with memory for four times as many as were seen."""
    run.known.longest = max(run.known.longest, run.count)
    return max(LEAST, 1 << (4 * run.known.longest - 1).bit_length())

