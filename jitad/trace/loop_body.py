"""Recording the body of a loop: once, on placeholders, in the recording that is under way.

The body's nodes go to the same recorder as everything else, so that values of the enclosing code may be used in the
body as they are. What depends on the placeholders is then taken out as a tape; what does not stays outside of the
loop, and is passed in as an invariant.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from jitad.primitives.core import cast, select
from jitad.primitives.scan import Scanned, transplant
from jitad.primitives.view import broadcast_to, transpose
from jitad.tape.builder import Builder, Value
from jitad.tape.tape import Tape
from jitad.tape.types import INPUT, TABLE, Aval, Node, Primitive
from jitad.trace.recorder import Recorder


@dataclass
class Body:
    """Placeholders for what changes from step to step, and, once recorded, the tape that `close` makes. What is made of
    them is recorded within ``recorder.inside()``."""

    recorder: Recorder
    length: int
    carries: list[Value] = field(default_factory=list)
    elements: list[Value] = field(default_factory=list)
    scanned: list[Scanned] = field(default_factory=list)
    position: Value | None = None
    names: dict[int, str] = field(default_factory=dict)

    def placeholder(self, aval: Aval, name: str) -> Value:
        """A value that is known only step by step."""
        recorder = self.recorder
        recorder.nodes.append(Node(INPUT, (), {}, aval, None))
        value = recorder.value(len(recorder.nodes) - 1)
        self.names[value.number] = name
        return value

    def carry(self, aval: Aval, name: str) -> Value:
        self.carries.append(self.placeholder(aval, name))
        return self.carries[-1]

    def element(self, array: Value, name: str, offset: int = 0, step: int = 1) -> Value:
        """The element of `array` at the position of the step."""
        self.elements.append(self.placeholder(Aval(array.shape[1:], array.dtype), name))
        self.scanned.append((array, offset, step))
        return self.elements[-1]

    def count(self, name: str = "t") -> Value:
        self.position = self.placeholder(Aval((), np.dtype(np.int64)), name)
        return self.position

    def close(self, outputs: Sequence[Value], since: int | None = None) -> tuple[Tape, list[Value]]:
        """The body's tape, and its invariants. With `since`, all nodes from that number on belong to the body, also
        those that do not depend on the step: they are computed only if the step is done."""
        outputs = self._required(outputs, since)
        nodes, wanted = self.recorder.nodes, [v.number for v in outputs]       # an array's node may be made only now
        inside = _dependent(nodes, [v.number for v in self._placeholders()])
        if since is not None:
            inside |= {n for n in range(since, len(nodes)) if not nodes[n].is_leaf}
        self.recorder.fallible = [n for n in self.recorder.fallible if n not in inside]
        self.recorder.indices = [i for i in self.recorder.indices if i[0] not in inside]
        replaced = self._walk_by_position(inside, wanted) if self.position is not None else {}
        body = Builder()
        leaves: dict[int, Value] = {}

        def take(number: int, name: str) -> None:
            leaves[number] = body.input(nodes[number].aval, name)
        for value in (*self.carries, *self.elements):
            take(value.number, self.names[value.number])
        leaves |= {old: leaves[new] for old, new in replaced.items()}
        invariants = _outside(nodes, inside, wanted, leaves)
        for number in invariants:
            take(number, self._name_of(number))
        if self.position is not None:
            take(self.position.number, self.names[self.position.number])
        results = transplant(nodes, leaves, wanted, body)
        return body.finish(results), [Value(self.recorder, n) for n in invariants]

    def _required(self, outputs: Sequence[Value], since: int | None) -> Sequence[Value]:
        """The outputs, NaN where something does not hold that must hold in this body."""
        recorder = self.recorder
        if not recorder.unmet:
            return outputs
        inside = _dependent(recorder.nodes, [v.number for v in self._placeholders()])
        mine = [n for n, _ in recorder.unmet if n in inside or (since is not None and n >= since)]
        recorder.unmet = [u for u in recorder.unmet if u[0] not in mine]
        with recorder.plain():
            for number in mine:
                outputs = [_where(Value(recorder, number), v) if v.dtype.kind == "f" else v for v in outputs]
        return outputs

    def _placeholders(self) -> list[Value]:
        return [*self.carries, *self.elements, *([] if self.position is None else [self.position])]

    def _name_of(self, number: int) -> str:
        recorder = self.recorder
        if number in recorder.inputs:
            return recorder.names[recorder.inputs.index(number)]
        return f"{recorder.nodes[number].prim}_{number}"

    # --- a[i + 1] for the counter i is a scanned array ---------------------------------------------
    def _walk_by_position(self, inside: set[int], wanted: list[int]) -> dict[int, int]:
        """Gathers of outer arrays at the position, scaled and shifted, become scanned elements: gather -> element."""
        nodes, found = self.recorder.nodes, {}
        for number in _needed(nodes, wanted, inside):
            node = nodes[number]
            if node.prim.kind != "gather" or len(node.inputs) != 2 or node.inputs[0] in inside:
                continue
            walk = self.affine(node.inputs[1])
            (axis,), array = node.params["axes"], Value(self.recorder, node.inputs[0])
            if walk is None or nodes[node.inputs[1]].aval.shape != () or not self.length:
                continue
            offset, step = walk
            ends = sorted((offset, offset + step * (self.length - 1)))
            n = array.shape[axis]
            if -n <= ends[0] and ends[1] < 0:
                offset, ends = offset + n, [e + n for e in ends]
            if ends[0] >= 0 and ends[1] < n:
                front = transpose(array, (axis, *(d for d in range(array.ndim) if d != axis)))
                found[number] = self.element(front, f"{self._name_of(array.number)}_t", offset, step).number
        return found

    def affine(self, number: int) -> tuple[int, int] | None:
        """The node as ``offset + step * position``."""
        node = self.recorder.nodes[number]
        if number == self.position.number:                                     # type: ignore[union-attr]
            return 0, 1
        if node.aval.shape or node.aval.dtype.kind not in "iu":
            return None
        if node.constant is not None:
            return int(node.constant), 0
        rule = _AFFINE.get(node.prim)
        if rule is None or node.aval.dtype != np.int64:      # which others may wrap
            return None
        operands = [self.affine(i) for i in node.inputs]
        return None if None in operands else rule(*operands)


Affine = tuple[int, int]
# Rows of which the result is affine in the position where the operands are; None where it is not.
_AFFINE: dict[Primitive, Callable[..., Affine | None]] = {
    TABLE["cast"]: lambda a: a,
    TABLE["positive"]: lambda a: a,
    TABLE["neg"]: lambda a: (-a[0], -a[1]),
    TABLE["add"]: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    TABLE["sub"]: lambda a, b: (a[0] - b[0], a[1] - b[1]),
    TABLE["mul"]: lambda a, b: None if a[1] and b[1] else (a[0] * b[0], a[0] * b[1] + a[1] * b[0]),
}


def _where(holds: Value, value: Value) -> Value:
    """The value, or NaN."""
    nan = value.builder.lift(np.array(np.nan, value.dtype))
    return select(broadcast_to(holds, value.shape), value, broadcast_to(nan, value.shape))


def _dependent(nodes: Sequence[Node], placeholders: Sequence[int]) -> set[int]:
    inside = set(placeholders)
    for number in range(min(inside, default=len(nodes)), len(nodes)):
        if not inside.isdisjoint(nodes[number].inputs):
            inside.add(number)
    return inside


def _needed(nodes: Sequence[Node], wanted: Sequence[int], inside: set[int]) -> list[int]:
    seen: set[int] = set()
    stack = [n for n in wanted if n in inside]
    while stack:
        number = stack.pop()
        if number not in seen:
            seen.add(number)
            stack += [i for i in nodes[number].inputs if i in inside]
    return sorted(seen)


def _outside(nodes: Sequence[Node], inside: set[int], wanted: Sequence[int], leaves: dict[int, Value]) -> list[int]:
    """What the body reads of the enclosing code, single numbers that are constant apart."""
    found: dict[int, None] = {}
    seen: set[int] = set()
    stack = [n for n in wanted if n not in leaves]
    while stack:
        number = stack.pop()
        if number in seen:
            continue
        seen.add(number)
        node = nodes[number]
        if number not in inside:
            if node.constant is None or node.aval.size != 1:
                found[number] = None
        else:
            stack += [i for i in node.inputs if i not in leaves]
    return sorted(found)


def fitted(value: Value, aval: Aval, what: str) -> Value:
    """`value` as a carry of this type; `TypeError` where that would lose something."""
    if value.shape != aval.shape:
        if np.broadcast_shapes(value.shape, aval.shape) != aval.shape:
            raise TypeError(f"{what} has shape {aval.shape} before the step and {value.shape} after it; the first "
                            "value and what the body returns must have one shape")
        value = broadcast_to(value, aval.shape)
    return cast(value, aval.dtype)
