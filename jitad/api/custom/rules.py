"""Recording derivative rules: what a user's rule does becomes a tape, and the tape a param of a `custom` node."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitad.api.custom.calls import CustomCall, copied, custom, handed, is_number, name_of, shares
from jitad.errors import OutputError
from jitad.primitives.core import FLOATS, cast
from jitad.primitives.index import concatenate, reshape
from jitad.primitives.view import slice_dims
from jitad.tape.builder import Builder, Value
from jitad.tape.tape import Tape
from jitad.tape.types import Aval
from jitad.trace.dispatch import plain
from jitad.trace.loop_body import Body
from jitad.trace.pytree import leaves_of, unflatten
from jitad.trace.recorder import Recorder, as_output
from jitad.trace.where import user_line

__all__ = ["Outcome", "CustomRules", "with_rules"]


class Outcome:
    """The result of a function: its leaves, and those with derivatives, the floats, joined in one value where there
    are several."""

    def __init__(self, recorder: Recorder, result: Any) -> None:
        self.recorder = recorder
        self.leaves, self.tree = leaves_of(result)
        if any(getattr(plain(x), "dtype", np.dtype(bool)).kind == "c" for x in self.leaves):
            raise OutputError(f"a function with derivative rules returned complex numbers (called at {user_line()}); "
                              "return their real and imaginary parts")
        values = [as_output(recorder, x, "result", user_line()) if is_number(plain(x)) else x for x in self.leaves]
        self.leaves = values
        self.floats = [i for i, v in enumerate(values) if isinstance(v, Value) and v.dtype.char in FLOATS]
        if not self.floats:
            raise OutputError(f"a function with derivative rules must return floats (called at {user_line()})")
        self.avals = [values[i].aval for i in self.floats]
        self.shared = [shares(values[i]) for i in self.floats]
        self.dtype = np.result_type(*(a.dtype for a in self.avals))

    def joined(self) -> Value:
        values = [Value(self.recorder, self.leaves[i].number) for i in self.floats]
        return values[0] if len(values) == 1 else join(values, self.dtype)

    @property
    def aval(self) -> Aval:
        """Of `joined`."""
        if len(self.avals) == 1:
            return Aval(self.avals[0].shape, self.avals[0].dtype)
        return Aval((sum(a.size for a in self.avals),), self.dtype)

    def split(self, joined: Value) -> list[Value]:
        return [joined] if len(self.avals) == 1 else split(joined, self.avals)

    def structured(self, floats: Sequence[Any], others: bool = True) -> Any:
        """The result with other floats; without the `others` None is in their place."""
        leaves = list(self.leaves) if others else [None] * len(self.leaves)
        for i, x in zip(self.floats, floats, strict=True):
            leaves[i] = x
        return unflatten(self.tree, leaves)

    def result(self, joined: Value) -> Any:
        """The result for the user, with the derivatives of `joined`."""
        with self.recorder.plain():
            parts = self.split(joined)
        return self.structured([copied(self.recorder, v) if s else handed(self.recorder, v, a.weak)
                                for v, a, s in zip(parts, self.avals, self.shared, strict=True)])


def join(values: Sequence[Value], dtype: Any) -> Value:
    return concatenate(*(reshape(cast(v, dtype), (v.aval.size,)) for v in values), axis=0)


def split(joined: Value, avals: Sequence[Aval]) -> list[Value]:
    parts, start = [], 0
    for aval in avals:
        part = slice_dims(joined, (slice(start, start + aval.size),))
        parts.append(cast(reshape(part, aval.shape), aval.dtype))
        start += aval.size
    return parts


@dataclass
class CustomRules:
    """The recorded rules of one call: tapes and what they read of the recording."""

    call: CustomCall
    outcome: Outcome
    vjp: Tape | None = None
    jvp: Tape | None = None
    for_vjp: Sequence[Value] = ()
    for_jvp: Sequence[Value] = ()
    reach: tuple[int, ...] = ()

    def record_vjp(self, rule: Callable[[Any, Any], Any], what: str, line: str) -> None:
        """`rule(ct, y)` gives the cotangents of the inputs."""
        body, (cts, ys) = self._body(("ct", "y"))
        with self.call.recorder.inside():
            found = rule(self.outcome.structured(cts, others=False), self.outcome.structured(ys))
        cotangents = self._cotangents(found, what, line)
        self.reach = tuple(i for i, c in enumerate(cotangents) if c is not None)
        with self.call.recorder.plain():
            tape, self.for_vjp = body.close([c for c in cotangents if c is not None])
            self.vjp = self._joined_inputs(tape, 0, 2)

    def record_jvp(self, rule: Callable[[Any, Any], Any], what: str, line: str) -> None:
        """`rule(tangents, y)` gives the tangent of the result; `tangents` is a tuple with one for each input."""
        call, recorder = self.call, self.call.recorder
        body, (ys,) = self._body(("y",))
        leaves: list[Any] = [None] * len(call.leaves)
        dots = []
        for i in call.moving:
            x = call.leaves[i]
            leaves[i] = body.carry(Aval(x.shape, x.dtype), f"dot {call.paths[i]}")
            dots.append(leaves[i])
        with recorder.inside():
            found = rule(tuple(call.structured(leaves)), self.outcome.structured(ys))
        tangents = self._tangent(found, what, line)
        with recorder.plain():
            body.carries = [*dots, *body.carries[:len(ys)]]
            total = tangents[0] if len(tangents) == 1 else join(tangents, self.outcome.dtype)
            tape, self.for_jvp = body.close([total])
            self.jvp = self._joined_inputs(tape, len(dots), 1)

    def _body(self, names: Sequence[str]) -> tuple[Body, list[list[Value]]]:
        """Placeholders for each leaf of the result, by the names of what they are."""
        outcome, recorder = self.outcome, self.call.recorder
        body = Body(recorder, 1)
        made = []
        for name in names:
            group = []
            for i, aval in zip(outcome.floats, outcome.avals, strict=True):
                group.append(body.carry(Aval(aval.shape, aval.dtype), name))
                if name == "y":
                    recorder.likely[group[-1].number] = outcome.leaves[i].number
            made.append(group)
        return body, made

    def _joined_inputs(self, tape: Tape, before: int, groups: int) -> Tape:
        """A tape with one input for each group of those that stand for the leaves of the result."""
        count = len(self.outcome.avals)
        if count == 1:
            return tape
        builder = Builder()
        avals = [tape.nodes[i].aval for i in tape.inputs]
        given = [builder.input(a, n) for a, n in zip(avals[:before], tape.names[:before], strict=True)]
        for g in range(groups):
            given += self.outcome.split(builder.input(self.outcome.aval, tape.names[before + g * count]))
        rest = before + groups * count
        given += [builder.input(a, n) for a, n in zip(avals[rest:], tape.names[rest:], strict=True)]
        return builder.finish(builder.replay(tape, given))

    # --- what rules return -------------------------------------------------------------------------
    def _cotangents(self, found: Any, what: str, line: str) -> list[Value | None]:
        """One for each input that may be differentiated; None for zero."""
        call, found = self.call, plain(found)
        several = len(call.trees) != 1
        one_tuple = type(found) is tuple and len(found) == 1 and call.counts == [1]
        rows = found if several or one_tuple else (found,)
        if not isinstance(rows, (tuple, list)) or len(rows) != len(call.trees):
            count = len(rows) if isinstance(rows, (tuple, list)) else f"one {name_of(type(found))}"
            raise OutputError(f"{what} ({line}) must return one cotangent for each of {len(call.trees)} inputs, "
                              f"in a tuple, and returned {count}")
        result: list[Value | None] = []
        start = 0
        for number, (row, count) in enumerate(zip(rows, call.counts, strict=True)):
            leaves = [None] * count if row is None else leaves_of(row)[0]
            if len(leaves) != count:
                raise OutputError(f"{what} ({line}) must return a cotangent of the structure of input {number}, of "
                                  f"{count} leaves, and returned {len(leaves)}")
            for i in range(start, start + count):
                if i in call.moving:
                    x = call.leaves[i]
                    result.append(fit(call.recorder, leaves[i - start], Aval(x.shape, x.dtype), what, line,
                                      f"for {call.paths[i]}"))
            start += count
        return result

    def _tangent(self, found: Any, what: str, line: str) -> list[Value]:
        outcome, recorder = self.outcome, self.call.recorder
        leaves, _ = leaves_of(found)
        if found is None:
            leaves = [None] * len(outcome.leaves)
        elif len(leaves) != len(outcome.leaves):
            raise OutputError(f"{what} ({line}) must return a tangent of the structure of the result, of "
                              f"{len(outcome.leaves)} leaves, and returned {len(leaves)}")
        parts = []
        for i, aval in zip(outcome.floats, outcome.avals, strict=True):
            part = fit(recorder, leaves[i], aval, what, line, "for the result")
            parts.append(Value(recorder, recorder.const(np.zeros(aval.shape, aval.dtype)).number) if part is None
                         else part)
        return parts


def fit(recorder: Recorder, value: Any, aval: Aval, what: str, line: str, role: str) -> Value | None:
    """What a rule returned as a value of this type, or the error that says what was wanted."""
    value = plain(value)
    if value is None:
        return None
    if not is_number(value):
        raise OutputError(f"{what} ({line}) returned a {type(value).__name__} {role}; an array of shape {aval.shape}, "
                          "or None for zero, is wanted")
    lifted = Value(recorder, recorder.lift(value).number)
    if lifted.shape != aval.shape:
        raise OutputError(f"{what} ({line}) returned an array of shape {lifted.shape} {role}, which has shape "
                          f"{aval.shape}; sum over what was broadcast, or return None for zero")
    if lifted.dtype.kind not in "iuf":
        raise OutputError(f"{what} ({line}) returned dtype {lifted.dtype} {role}; {aval.dtype} is wanted")
    with recorder.plain():
        return cast(lifted, aval.dtype)


def with_rules(rules: CustomRules) -> Any:
    """The result of the call, with the derivatives of the rules."""
    call, outcome = rules.call, rules.outcome
    recorder = call.recorder
    with recorder.plain():
        inputs = [call.leaves[i].number for i in call.moving]
        reads = [v.number for v in (*rules.for_vjp, *rules.for_jvp)]
        params = {"name": call.name, "inputs": len(inputs), "split": len(rules.for_vjp), "vjp": rules.vjp,
                  "jvp": rules.jvp, "reach": rules.reach}
        node = recorder.apply(custom, [outcome.joined().number, *inputs, *reads], params)
    return outcome.result(Value(recorder, node))
