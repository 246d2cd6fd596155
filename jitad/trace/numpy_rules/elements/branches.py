"""Scalar functions over arrays: every way through their branches is recorded, and conditions choose element by element.

The function runs on placeholders for one element. Where it asks for the truth of one of them, an `Explorer` answers,
first True, then, in another run, False, until all ways are known. Their results are joined by `select` and then
computed for all elements at once. What a way must not come to (it raises, or math refuses a number) is a guard: no
element takes it.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jitad.errors import ConcretizationError, JitadError, OutputError, UnsupportedOperationError
from jitad.primitives.core import select
from jitad.primitives.index import reshape
from jitad.primitives.scan import loop
from jitad.primitives.view import broadcast_to
from jitad.tape.builder import Value
from jitad.tape.types import TABLE, Aval
from jitad.trace.dispatch import plain
from jitad.trace.leaves import is_dynamic
from jitad.trace.loop_body import Body
from jitad.trace.pytree import TreeDef, leaves_of
from jitad.trace.recorder import Recorder
from jitad.trace.where import user_line

__all__ = ["Explorer", "Mapped", "over_elements"]

WAYS = 64            # through a function, at most
DEPTH = 64           # decisions on one of them
Taken = list[tuple[int, bool]]


@dataclass
class Forbidden:
    """What no element may come to: on the way `taken` (conditions with their truth), where the node `bad` holds.
    ``function(*operands)`` then raises for that element."""

    taken: Taken
    bad: int | None
    function: Callable[..., Any]
    operands: tuple[Value, ...] = ()


@dataclass
class Way:
    """One way through the function: its conditions, and its result or what it raised."""

    taken: Taken
    leaves: list[Any] | None
    tree: TreeDef | None
    error: Exception | None = None


@dataclass
class Explorer:
    """Decides for the placeholders of one call."""

    recorder: Recorder
    name: str
    elements: set[int]
    prefix: list[bool] = field(default_factory=list)
    taken: Taken = field(default_factory=list)
    forbidden: list[Forbidden] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._dependent, self._seen = set(self.elements), min(self.elements)

    def depends(self, number: int) -> bool:
        """Whether a node is another one for every element."""
        nodes = self.recorder.nodes
        for n in range(self._seen, len(nodes)):
            if not self._dependent.isdisjoint(nodes[n].inputs):
                self._dependent.add(n)
        self._seen = len(nodes)
        return number in self._dependent

    def decide(self, value: Value) -> bool | None:
        """The truth of a condition on the present way; None for what is the same for all elements."""
        if not self.depends(value.number):
            return None
        if value.dtype != np.bool_:
            raise ConcretizationError(
                f"`{self.name}` needs, at {user_line()}, an integer that is another one for every element (for "
                "range(), an index or a shape); use conditions, jitad.while_loop, or np.where")
        for number, answer in self.taken:
            if number == value.number:
                return answer
        decision = len(self.taken)
        if decision == DEPTH:
            raise self._too_many(f"more than {DEPTH} decisions in a row")
        answer = self.prefix[decision] if decision < len(self.prefix) else True
        self.taken.append((value.number, answer))
        return answer

    def forbid(self, bad: Value, function: Callable[..., Any], operands: Sequence[Value]) -> None:
        """Note that the present way must not come here with an element for which `bad` holds."""
        self.forbidden.append(Forbidden(list(self.taken), bad.number, function, tuple(operands)))

    def ways(self, run: Callable[[], Any]) -> list[Way]:
        """All ways, those where a condition holds before those where it does not."""
        found: list[Way] = []
        while True:
            self.taken = []
            outer, self.recorder.explorer = self.recorder.explorer, self
            try:
                leaves, tree = leaves_of(run())
                found.append(Way(self.taken, [plain(x) for x in leaves], tree))
            except JitadError:
                raise
            except Exception as error:
                found.append(Way(self.taken, None, None, error))
            finally:
                self.recorder.explorer = outer
            flags = [flag for _, flag in self.taken]
            while flags and not flags[-1]:
                flags.pop()
            if not flags:
                return found
            if len(found) == WAYS:
                raise self._too_many(f"more than {WAYS} ways")
            self.prefix = [*flags[:-1], False]

    def _too_many(self, what: str) -> UnsupportedOperationError:
        return UnsupportedOperationError(
            f"`{self.name}` has {what} through its branches for one element, at {user_line()}; a loop that ends by the "
            "element's value is to be jitad.while_loop, or a loop of fixed length with np.where")


def over_elements(recorder: Recorder, function: Callable[..., Any], args: Sequence[Any], name: str,
                  weak: bool = False) -> Mapped:
    """`function` of scalars for every element of `args`, of which at least one is a value of the recording; what is
    no value is handed on as it is. With `weak`, elements are Python numbers."""
    traced = [i for i, x in enumerate(args) if isinstance(x, Value)]
    arrays = [Value(recorder, args[i].number) for i in traced]
    shape = np.broadcast_shapes(*(v.shape for v in arrays))
    body, scalars = Body(recorder, int(np.prod(shape, dtype=np.int64))), list(args)
    for i, v in zip(traced, arrays, strict=True):
        made: Any = body.placeholder(Aval((), v.dtype), f"element of input {i}")
        made.weak = weak
        scalars[i] = made
    numbers = [scalars[i].number for i in traced]
    explorer = Explorer(recorder, name, set(numbers))
    with recorder.inside():
        ways = explorer.ways(lambda: function(*scalars))
    return Mapped(recorder, explorer, ways, dict(zip(numbers, arrays, strict=True)), shape, body, name)


class Mapped:
    """A scalar function that is known by its ways, over arrays: its results and its guards."""

    def __init__(self, recorder: Recorder, explorer: Explorer, ways: list[Way], arrays: dict[int, Value],
                 shape: tuple[int, ...], body: Body, name: str) -> None:
        self.recorder, self.explorer, self.ways, self.arrays = recorder, explorer, ways, arrays
        self.shape, self.body, self.name = shape, body, name
        whole = [w for w in ways if w.error is None]
        if not whole:
            raise ways[0].error                                                    # type: ignore[misc]
        self.tree = whole[0].tree
        for way in whole:
            if way.tree != self.tree:
                raise OutputError(f"`{name}` returns other containers, or more values, on one way through its branches "
                                  f"than on another (called at {user_line()})")
            for leaf in way.leaves or ():
                if not isinstance(leaf, Value) and not is_dynamic(leaf):
                    raise OutputError(f"`{name}` returns a {type(leaf).__name__} on one way through its branches "
                                      f"(called at {user_line()}); return a number in each case")
                if np.shape(leaf) if not isinstance(leaf, Value) else leaf.shape:
                    raise OutputError(f"`{name}` returns an array for one element (called at {user_line()}); it is to "
                                      "return a number, or a tuple of them")
        self.count = len(whole[0].leaves or ())

    def kinds(self, number: int) -> set[np.dtype[Any]]:
        """The dtypes of result `number` on the ways."""
        return {np.dtype(w.leaves[number].dtype if isinstance(w.leaves[number], Value) else type(w.leaves[number]))
                for w in self.ways if w.leaves is not None}

    def results(self) -> tuple[list[Value], TreeDef]:
        """The results over all elements, with guards for what must not happen."""
        recorder = self.recorder
        with recorder.plain():
            chosen = [self._chosen(self.ways, 0, i) for i in range(self.count)]
            checks = self._checks()
            masks = [self._mask(c) for c in checks]
            operands = [Value(recorder, v.number) for c in checks for v in c.operands]
            wanted = [*chosen, *masks, *operands]
            made = self._over(wanted)
            ends = made[:self.count], made[self.count:self.count + len(masks)], made[self.count + len(masks):]
            hits = [TABLE["reduce_any"](m, axes=tuple(range(m.ndim))) if m.ndim else m for m in ends[1]]
        rest = iter(ends[2])
        for check, mask, hit in zip(checks, ends[1], hits, strict=True):
            given = [next(rest) for _ in check.operands]
            if recorder.decide(recorder.value(hit.number)):
                self._raise(check, mask, given)
        assert self.tree is not None
        return ends[0], self.tree

    def _checks(self) -> list[Forbidden]:
        found = list(self.explorer.forbidden)
        for way in self.ways:
            if way.error is not None:
                found.append(Forbidden(way.taken, None, _raiser(way.error)))
        mine = [u for u in self.recorder.unmet if self.explorer.depends(u[0])]
        self.recorder.unmet = [u for u in self.recorder.unmet if u not in mine]
        return found + [Forbidden([], TABLE["logical_not"](Value(self.recorder, n)).number, _raiser(error))
                        for n, error in mine]

    def _raise(self, check: Forbidden, mask: Value, operands: Sequence[Value]) -> None:
        """What Python raises for the first element of those that `check` forbids."""
        recorder = self.recorder
        bad = np.argmax(np.ravel(recorder.concrete(mask.number)))
        check.function(*(np.ravel(recorder.concrete(v.number))[bad].item() for v in operands))
        raise UnsupportedOperationError(f"`{self.name}` (called at {user_line()}) comes to a number for which NumPy "
                                        "and math disagree whether it is an error; use NumPy's function")

    def _chosen(self, ways: Sequence[Way], depth: int, number: int) -> Value | None:
        """Result `number`, of these ways, which are one up to a depth."""
        if len(ways) == 1 and len(ways[0].taken) == depth:
            leaves = ways[0].leaves
            return None if leaves is None else _scalar(self.recorder, leaves[number])
        condition = ways[0].taken[depth][0]
        if any(w.taken[depth][0] != condition for w in ways):
            raise UnsupportedOperationError(f"`{self.name}` does not do the same when it is called again with the same "
                                            f"element (called at {user_line()}); it must be pure")
        sides = [[w for w in ways if w.taken[depth][1] is flag] for flag in (True, False)]
        yes, no = (self._chosen(side, depth + 1, number) if side else None for side in sides)
        if yes is None or no is None:
            return yes if no is None else no
        return select(Value(self.recorder, condition), yes, no)

    def _mask(self, check: Forbidden) -> Value:
        """Whether an element comes to what is forbidden."""
        parts = [Value(self.recorder, n) if flag else TABLE["logical_not"](Value(self.recorder, n))
                 for n, flag in check.taken]
        if check.bad is not None:
            parts.append(Value(self.recorder, check.bad))
        total = self.recorder.lift(True)
        for part in parts:
            total = TABLE["logical_and"](total, part)
        return total

    # --- one element -> all of them ------------------------------------------------------------------
    def _over(self, wanted: Sequence[Any]) -> list[Value]:
        """Scalar values, of placeholders, for all elements."""
        nodes, needed, stack = self.recorder.nodes, set[int](), [v.number for v in wanted]
        while stack:
            n = stack.pop()
            if n not in needed and self.explorer.depends(n):
                needed.add(n)
                stack += nodes[n].inputs
        if not all(nodes[n].elementwise or nodes[n].is_input for n in needed):
            return self._one_by_one(wanted)
        done = dict(self.arrays)
        for n in sorted(needed - set(done)):
            node = nodes[n]
            operands = [done.get(i) or Value(self.recorder, i) for i in node.inputs]
            shape = np.broadcast_shapes(*(v.shape for v in operands))
            numbers = [broadcast_to(v, shape).number for v in operands]
            done[n] = Value(self.recorder, self.recorder.apply(node.prim, numbers, node.params, node.where))
        return [broadcast_to(done.get(v.number) or Value(self.recorder, v.number), self.shape) for v in wanted]

    def _one_by_one(self, wanted: Sequence[Value]) -> list[Value]:
        """By a loop over the elements, for what is more than arithmetic: an index into an array, a loop."""
        body, size = self.body, self.body.length
        for number, array in self.arrays.items():
            body.elements.append(Value(self.recorder, number))
            body.scanned.append((reshape(broadcast_to(array, self.shape), (size,)), 0, 1))
        tape, reads = body.close(wanted)
        stacks = loop(self.recorder, tape, [], body.scanned, reads, size)[1]
        return [reshape(s, self.shape) for s in stacks]


def _raiser(error: Exception) -> Callable[..., Any]:
    def function() -> None:
        raise error
    return function


def _scalar(recorder: Recorder, leaf: Any) -> Value:
    if isinstance(leaf, Value):
        return Value(recorder, recorder.lift(leaf).number)
    return Value(recorder, recorder.const(leaf, weak=type(leaf) in (int, float)).number)
