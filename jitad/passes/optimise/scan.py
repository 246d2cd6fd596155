"""Rewrites of loops: what need not be in a loop leaves it.

Of a scan's body, what nothing wants is dropped, what depends on invariants alone is computed before the loop, and
what depends on scanned arrays alone becomes whole-array operations before it, if dear. What no carry needs leaves
behind: sums that nothing in the loop reads, and stacks, become whole-array operations after the loop on stacks of
what the recurrence makes, if dear. A recurrence then keeps the loop to itself, and logarithms run in vector lanes.
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from jitad.passes.batching.batched import Batch, Batched, batchable, outer_product, positions
from jitad.primitives.elementwise import add, sub
from jitad.primitives.scan import Form, bundle_of, picked, transplant, walked
from jitad.primitives.view import broadcast_to, expand_dims, slice_dims
from jitad.tape.builder import Builder, Value
from jitad.tape.tape import Tape, needed
from jitad.tape.types import Node

DEAR = 4           # cost for each element from which work on scanned arrays is done before the loop
HEAVY = 4          # cost of an operation that gains by vector lanes
SMALL = 64         # elements to which a row may grow before the loop
STACK = 3          # cost of stacking an element and loading it again
SIGNS = {add: 1, sub: -1}                     # of what a sum or difference adds
SHORT = 4          # loops up to this length keep their work


def optimise_scans(tape: Tape, optimise: Callable[[Tape], Tape]) -> Tape:
    """The tape with its loops rewritten; `optimise` is for their bodies."""
    if not any(node.body is not None for node in tape.nodes):
        return tape
    builder = Builder()
    values: dict[int, Value] = {}
    outputs: dict[int, dict[int, Value]] = {}
    for number, name in zip(tape.inputs, tape.names, strict=True):
        values[number] = builder.input(tape.nodes[number].aval, name)
    for number, node in enumerate(tape.nodes):
        if node.body is not None:
            used = {tape.nodes[p].params["index"] for p in tape.uses[number]}
            outputs[number] = _Loop(builder, node, [values[i] for i in node.inputs], used, optimise).run()
        elif node.picks is not None:
            values[number] = outputs[node.inputs[0]][node.picks]
        elif not node.is_input:
            values[number] = builder.again(node, [values[i].number for i in node.inputs])
    for guard in tape.guards:
        builder.guard(values[guard.node], guard.expected, guard.where)
    return builder.tape([values[o].number for o in tape.outputs], tape.labels)


def size(tape: Tape) -> int:
    """The number of nodes, bodies included."""
    return len(tape) + sum(size(n.body) for n in tape.nodes if n.body is not None)


@dataclass(eq=False)
class _Loop:
    """One scan: its body after optimisation, its operands on the new tape, and the outputs that are used."""

    builder: Builder
    node: Node
    operands: list[Value]
    used: set[int]
    optimise: Callable[[Tape], Tape]
    results: dict[int, Value] = field(default_factory=dict)
    _known: dict[int, int] = field(default_factory=dict)     # of `_needs`

    def run(self) -> dict[int, Value]:
        form = Form.of(self.node)
        self.body = self.optimise(form.body)
        self.form = form = Form(**{**form.params, "body": self.body})
        if form.length <= 1 and not form.until and not form.counted:
            return self._straight()
        inputs, outputs = self.body.inputs, self.body.outputs
        self.fixed = {i for i in range(form.until, form.carries) if outputs[i] == inputs[i]}
        self.results |= {i: self.operands[i] for i in self.fixed}
        self._classify()
        self.stacks = {i for i in self.used if i >= form.carries}
        self.after: dict[int, list[tuple[int, int]] | None] = {}
        self.frontier: set[int] = set()
        self.carries = self._live({i for i in self.used if i < form.carries} - self.fixed,
                                  [outputs[i] for i in self.stacks])
        self.stays = form.until or form.counted or form.recompute       # what may not happen, or is not to be saved
        self.outside = {} if form.until or form.counted else self._leaves_outside()
        if not self.stays:
            self._leave_behind()
        return self._rebuilt()

    def _straight(self) -> dict[int, Value]:
        """A loop of no step or one is no loop."""
        form = self.form
        if not form.length:
            return {i: self.operands[i] if i < form.carries else broadcast_to(
                self.builder.const(form.output(i).dtype.type(0)), form.output(i).shape) for i in self.used}
        leaves = dict(zip(self.body.inputs, self.operands, strict=False))
        for place in range(form.carries, form.fixed):
            array, offset = self.operands[place], form.scanned[place - form.carries][0]
            leaves[self.body.inputs[place]] = slice_dims(array, (offset, *(slice(None),) * (array.ndim - 1)))
        if form.counter:
            leaves[self.body.inputs[-1]] = self.builder.const(0)
        values = transplant(self.body.nodes, leaves, self.body.outputs, self.builder)
        return {i: values[i] if i < form.carries else expand_dims(values[i], (0,)) for i in self.used}

    # --- what depends on what ----------------------------------------------------------------------
    def _classify(self) -> None:
        """`carried`: depends on a carry that changes; `moving`: on the position at all."""
        form, inputs = self.form, self.body.inputs
        changing = {inputs[i] for i in range(form.carries)} - {inputs[i] for i in self.fixed}
        walking = set(inputs[form.carries:form.fixed]) | ({inputs[-1]} if form.counter else set())
        self.carried, self.moving = set(changing), changing | walking
        for number, node in enumerate(self.body.nodes):
            if not self.carried.isdisjoint(node.inputs):
                self.carried.add(number)
            if not self.moving.isdisjoint(node.inputs):
                self.moving.add(number)

    def _cone(self, ends: Iterable[int], stop: Collection[int] = ()) -> set[int]:
        cone: set[int] = set()
        stack = [e for e in ends if e not in stop]
        while stack:
            number = stack.pop()
            if number not in cone:
                cone.add(number)
                stack += [i for i in self.body.nodes[number].inputs if i not in stop]
        return cone

    def _needs(self, ends: Iterable[int]) -> int:
        """The same as a number with a byte for each node, as such a number is made of others at once."""
        found = 0
        for end in ends:
            known = self._known.get(end)
            if known is None:
                known = self._known[end] = int.from_bytes(needed(self.body.nodes, [end]), "little")
            found |= known
        return found

    def _live(self, carries: set[int], made: Iterable[int]) -> set[int]:
        """`carries` and those that they, and the nodes `made`, need."""
        live = set(carries) | ({0} if self.form.until else set())
        needs = self._needs(made)
        while True:
            needs |= self._needs([self.body.outputs[i] for i in live])
            more = {i for i in range(self.form.carries) if needs >> 8 * self.body.inputs[i] & 1} - self.fixed - live
            if not more:
                return live
            live |= more

    def _leaves_outside(self) -> dict[int, Batched]:
        """The body's inputs, carries that change apart, as values of the outer tape."""
        form, leaves = self.form, {}
        for place, number in enumerate(self.body.inputs[:form.operands]):
            value = self.operands[place]
            if form.carries <= place < form.fixed:
                leaves[number] = walked(value, form.length, *form.scanned[place - form.carries]), True
            elif place >= form.fixed or place in self.fixed:
                leaves[number] = value, False
        if form.counter:
            leaves[self.body.inputs[-1]] = positions(self.builder, form.length), True
        return leaves

    def _can_leave(self, numbers: Iterable[int]) -> bool:
        nodes = self.body.nodes
        return all(nodes[n].is_input or batchable(nodes[n], [i in self.moving for i in nodes[n].inputs])
                   for n in numbers)

    # --- what leaves behind ------------------------------------------------------------------------
    def _leave_behind(self) -> None:
        """Decide which sums and stacks are computed after the loop: `after` has for each the sum's terms, or
        None for a stack; `frontier` the nodes that are stacked for them."""
        candidates = [(i, terms) for i in sorted(self.carries) if (terms := self._sum(i)) is not None]
        candidates += [(i, None) for i in sorted(self.stacks)]                          # type: ignore[misc]
        if self.form.length > SHORT and not self._try(dict(candidates)):
            for i, terms in candidates:
                self._try({i: terms})
        for i in self.stacks - set(self.after):
            cone = self._cone([self.body.outputs[i]])
            if cone.isdisjoint(self.carried) and self._can_leave(cone):
                self.after[i] = None

    def _ends(self, leaving: Iterable[int] = ()) -> tuple[set[int], list[int]]:
        """The carries that stay alive, and the nodes that the loop is to make, if the outputs `leaving` leave too."""
        gone = {*leaving, *self.after}
        made = [*(self.body.outputs[s] for s in sorted(self.stacks - gone)), *sorted(self.frontier)]
        carries = self._live(self.carries & self.used - gone, made)
        return carries, [self.body.outputs[c] for c in sorted(carries)] + made

    def _try(self, group: dict[int, list[tuple[int, int]] | None]) -> bool:
        """Let these outputs leave together if that pays."""
        nodes = self.body.nodes
        ends = [n for i, terms in group.items() for n in (
            [self.body.outputs[i]] if terms is None else [n for _, n in terms])]
        carries, made = self._ends(group)
        if not carries.isdisjoint(i for i, terms in group.items() if terms is not None):
            return False
        needs = self._needs(made).to_bytes(len(nodes), "little")
        core = {n for n in self.carried if needs[n]} | (self.carried & {*self.body.inputs[:self.form.carries]})
        cone = self._cone(ends, core)
        leaving = cone & self.carried
        edge = {j for n in leaving for j in nodes[n].inputs if j in core} | (core & set(ends))
        if not self._can_leave(cone):
            return False
        gain = sum(nodes[n].prim.cost * nodes[n].aval.size for n in leaving
                   if nodes[n].elementwise and nodes[n].prim.cost >= HEAVY)
        gain += STACK * sum(self.form.input(i).size for i, terms in group.items()
                            if terms and self._outer_sum(i, terms))
        stacked = self.frontier | {self.body.outputs[s] for s in self.stacks - set(self.after)}
        kept = self.frontier | edge | {self.body.outputs[s] for s in self.stacks - {*group, *self.after}}
        price = STACK * (sum(nodes[n].aval.size for n in kept) - sum(nodes[n].aval.size for n in stacked))
        no_loop = not carries and not kept and all(nodes[n].aval.size <= self._widest for n in leaving)
        worth = no_loop or (gain > 0 and gain > price)
        if worth:
            self.after |= group
            self.frontier |= edge
        return worth

    def _outer_sum(self, i: int, terms: list[tuple[int, int]]) -> bool:
        """Whether a carry is a sum of outer products, too large for registers: after the loop it is a contraction."""
        return self.form.input(i).size > SMALL and all(outer_product(self.body.nodes, n) for _, n in terms)

    def _sum(self, i: int) -> list[tuple[int, int]] | None:
        """For a carry that is only added to: (sign, node) of what is added in a step."""
        body, carry, end = self.body, self.body.inputs[i], self.body.outputs[i]
        if i not in self.used or body.nodes[carry].aval.dtype.kind != "f" or body.uses[end] or (
                body.outputs.count(end) != 1 or carry in body.outputs):
            return None
        terms: list[tuple[int, int]] = []
        number = carry
        while number != end:
            if len(body.uses[number]) != 1 or number in body.outputs:
                return None
            below, (number,) = number, body.uses[number]
            sign, inputs = SIGNS.get(body.nodes[number].prim), body.nodes[number].inputs
            if sign is None or inputs[0] == inputs[1] or (sign < 0 and inputs[1] == below):
                return None
            terms.append((sign, inputs[inputs[0] == below]))
        return terms[::-1]

    # --- what is computed before -------------------------------------------------------------------
    def _before(self, made: list[int]) -> list[int]:
        """The nodes that the loop reads rather than computes: invariant ones, and dear ones of scanned arrays."""
        found: dict[int, None] = {}
        seen: set[int] = set()
        stack = list(made)
        while stack:
            number = stack.pop()
            if number in seen:
                continue
            seen.add(number)
            if number not in self.carried and self._worth(number):
                found[number] = None
            else:
                stack += self.body.nodes[number].inputs
        return sorted(found)

    def _worth(self, number: int) -> bool:
        node, nodes = self.body.nodes[number], self.body.nodes
        if node.is_leaf or node.index_map is not None or node.body is not None:
            return False
        cone = self._cone([number])
        if number not in self.moving:
            return any(nodes[n].is_input for n in cone)
        dear = sum(_cost(nodes[n]) for n in cone if n in self.moving)
        return (dear >= DEAR and node.aval.size <= self._widest and self.form.length > SHORT
                and self._can_leave(cone))

    @property
    def _widest(self) -> int:
        """Elements that a row may have outside of the loop."""
        inputs = self.body.inputs[self.form.carries:self.form.fixed]
        return max([SMALL, *(self.body.nodes[n].aval.size for n in inputs)])

    # --- the new loop --------------------------------------------------------------------------------
    def _rebuilt(self) -> dict[int, Value]:
        """Before, loop and after on the new tape; the outputs that are used."""
        body, form, builder = self.body, self.form, self.builder
        carries, made = self._ends()
        order, wanted = sorted(carries), list(dict.fromkeys(made[len(carries):]))
        before = self._before(made) if made and not form.until and not form.counted else []
        if self.stays:
            before = [n for n in before if n not in self.moving]
        batch = Batch(builder, body.nodes, form.length, self.outside)
        inside = self._cone(made, set(before))
        new = Builder()
        leaves: dict[int, Value] = {}

        def take(n: int) -> None:
            leaves[n] = new.input(body.nodes[n].aval, self._name(n))
        for i in order:
            take(body.inputs[i])
        rows: list[tuple[int, Value, tuple[int, int]]] = [
            (body.inputs[p], self.operands[p], form.scanned[p - form.carries])
            for p in range(form.carries, form.fixed) if body.inputs[p] in inside]
        rows += [(n, batch.get(n)[0], (0, 1)) for n in before if n in self.moving]
        still = [(body.inputs[p], self.operands[p]) for p in (
            *self.fixed, *range(form.fixed + form.counted, form.operands)) if body.inputs[p] in inside]
        still += [(n, batch.get(n)[0]) for n in before if n not in self.moving]
        merged_rows, merged_still = _merged(rows), _merged(still)
        count = (body.inputs[form.fixed], self.operands[form.fixed]) if form.counted else None
        for n in (*merged_rows.values(), *([[count[0]]] if count else []), *merged_still.values()):
            take(n[0])
            leaves |= {other: leaves[n[0]] for other in n[1:]}
        counting = form.counter and body.inputs[-1] in inside
        if counting:
            take(body.inputs[-1])
        if order or wanted:
            outputs = transplant(body.nodes, leaves, [body.outputs[i] for i in order] + wanted, new)
            again = Form(self.optimise(new.tape([v.number for v in outputs])), form.length, len(order),
                         tuple(step for _, step in merged_rows), counting, form.reverse, form.until,
                         form.recompute, form.counted)
            bundle = bundle_of(builder, again, [*(self.operands[i] for i in order),
                                                *(builder.value(v) for v, _ in merged_rows),
                                                *([count[1]] if count else []),
                                                *(builder.value(v) for v, in merged_still)], self.node.where)
            self.results |= {i: picked(bundle, place) for place, i in enumerate(order) if i in self.used}
            stacks = {n: picked(bundle, len(order) + place) for place, n in enumerate(wanted)}
            self.results |= {i: stacks[body.outputs[i]] for i in self.stacks - set(self.after)}
            batch.done |= {n: (stack, True) for n, stack in stacks.items()}
        self._after(batch)
        return self.results

    def _name(self, number: int) -> str:
        if number in self.body.inputs:
            return self.body.names[self.body.inputs.index(number)]
        return f"{self.body.nodes[number].prim}_{number}"

    def _after(self, batch: Batch) -> None:
        for i, terms in self.after.items():
            if terms is None:
                self.results[i] = batch.rows(self.body.outputs[i])
                continue
            total = self.operands[i]
            for sign, n in reversed(terms):
                part = batch.total(n)
                total = total + part if sign > 0 else total - part
            self.results[i] = total


def _merged(operands: Iterable[tuple]) -> dict[tuple, list[int]]:
    """Operands by value (and step): what is read twice is one operand."""
    found: dict[tuple, list[int]] = {}
    for number, value, *step in operands:
        found.setdefault((value.number, *step), []).append(number)
    return found


def _cost(node: Node) -> int:
    if node.prim.accumulate or node.prim.adds:
        return DEAR
    return node.prim.cost if node.elementwise else 0
