"""A loop of the recording as a `scan` on the new tape."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jitad.passes.reroll.emit import Emitter, Rolled, led
from jitad.passes.reroll.spine import Ref
from jitad.passes.reroll.turns import turns
from jitad.passes.reroll.wiring import Column, Wiring
from jitad.primitives.core import full
from jitad.primitives.index import concatenate, gather, reshape
from jitad.primitives.scan import loop
from jitad.primitives.view import expand_dims, view
from jitad.tape.builder import Builder, Value
from jitad.tape.tape import Tape
from jitad.tape.types import Aval


@dataclass(eq=False)
class Chain:
    """What the loop carries of a place: its value one iteration back, two back, ... with initial values."""

    place: int
    view: int
    initial: list[Ref]
    inputs: list[Value] = field(default_factory=list)


FEW = 4               # times that each of some values comes in a list, on average, from which each is stacked once


class Unfit(Exception):
    """The nodes are better left as they are."""


class LoopBuilder:
    """Builds one loop. `run` appends it to the emitter's builder; it raises `Unfit` before anything refers to it."""

    def __init__(self, emitter: Emitter, wiring: Wiring):
        self.emitter, self.wiring, self.spine = emitter, wiring, emitter.spine
        self.nodes = [emitter.old.nodes[n] for n in self.spine.members[wiring.begin:wiring.begin + wiring.period]]
        self.chains: list[Chain] = []
        self.chain_of: dict[int, Chain] = {}
        self.scanned: list[Value] = []
        self.invariants: list[Value] = []
        self.operand_of: dict[int, tuple[str, int]] = {}

    def run(self) -> None:
        wiring, emitter = self.wiring, self.emitter
        emitter.upto(wiring.begin)
        emitter.builder.line = self.nodes[0].where
        self._check_guards()
        self._carries()
        self._operands()
        wanted = self._wanted()
        held = [j for j, ks in wanted.items() if ks == [wiring.length - 1]]
        stacked = [j for j in wanted if j not in held]
        body = self._body(held, stacked)
        init = [emitter.value(ref) for chain in self.chains for ref in chain.initial]
        init += [full(self._any(), 0, self.nodes[j].aval.shape, self.nodes[j].aval.dtype) for j in held]
        finals, stacks = loop(emitter.builder, body, init, [(v, 0, 1) for v in self.scanned], self.invariants,
                              wiring.length)
        self._register(finals, dict(zip(stacked, stacks, strict=True)), held)
        emitter.builder.line = None

    def _any(self) -> Value:
        return Value(self.emitter.builder, 0)

    def _check_guards(self) -> None:
        """Guards that come after something that can fail must stay where they are, but for those that say that it
        does not: which of them it was that failed is no matter."""
        first, stop = np.searchsorted(self.emitter.guarded, (self.wiring.begin, self.wiring.stop))
        if first < stop and any(node.can_fail for node in self.nodes):
            raise Unfit

    # --- carries ----------------------------------------------------------------------------------
    def _carries(self) -> None:
        carried = [(q, c) for q, c in enumerate(self.wiring.columns) if c.kind == "carried"]
        for q, column in sorted(carried, key=lambda pair: (pair[1].view != 0, pair[1].lag)):
            initial = [self.emitter.settled(r) for r in reversed(column.refs)]
            self.chain_of[q] = self._chain(column, initial)

    def _chain(self, column: Column, initial: list[Ref]) -> Chain:
        """The chain that gives the column, a new one if need be."""
        for chain in self.chains:
            if chain.place == column.place and chain.view in (0, column.view):
                through = column.view if chain.view != column.view else 0
                if all(self._through(through, a) == b for a, b in zip(chain.initial, initial, strict=False)) and (
                        len(initial) <= len(chain.initial) or not through):
                    chain.initial += initial[len(chain.initial):]
                    return chain
        number = column.view
        if number and all(v == number for _, v in initial):
            number, initial = 0, [(s, 0) for s, _ in initial]
        self.chains.append(Chain(column.place, number, initial))
        return self.chains[-1]

    def _through(self, number: int, ref: Ref) -> Ref:
        if not number:
            return ref
        views = self.spine.views
        return ref[0], (views.through(number, *views.parts(ref[1])) if ref[1] else number)

    def _carry_aval(self, chain: Chain) -> Aval:
        aval = self.nodes[chain.place].aval
        shape = self.spine.views.parts(chain.view)[0] if chain.view else aval.shape
        for ref in chain.initial:
            first = self.emitter.value(ref).aval
            if (first.shape, first.dtype) != (shape, aval.dtype):
                raise Unfit
        return _storable(Aval(shape, aval.dtype))

    # --- operands -----------------------------------------------------------------------------------
    def _operands(self) -> None:
        """What comes from outside: arrays to walk and invariants, each once."""
        known: dict[Any, tuple[str, int]] = {}
        for q, column in enumerate(self.wiring.columns):
            if column.kind in ("inside", "carried"):
                continue
            key = (column.kind, tuple(map(self.emitter.settled, column.refs)) if column.kind != "walked" else (
                column.refs[0], column.start, column.step))
            if key not in known:
                value = getattr(self, f"_{column.kind}")(column)
                _storable(value.aval)
                group = self.invariants if column.kind == "fixed" else self.scanned
                known[key] = ("fixed" if column.kind == "fixed" else "scanned", len(group))
                group.append(value)
            self.operand_of[q] = known[key]

    def _fixed(self, column: Column) -> Value:
        return self.emitter.value(column.refs[0])

    def _walked(self, column: Column) -> Value:
        shape, terms = self.spine.views.forms[column.refs[0][1]]                          # type: ignore[misc]
        source = self.emitter.value((column.refs[0][0], 0))
        _storable(source.aval)
        index = tuple(zip(column.start, terms, strict=True))
        return view(source, (self.wiring.length, *shape), led(index, column.step))

    def _listed(self, column: Column) -> Value:
        emitter, views = self.emitter, self.spine.views
        refs = [emitter.settled(ref) for ref in column.refs]
        nodes = [emitter.builder.nodes[s] for s, _ in refs]
        avals = {(n.aval.shape, n.aval.dtype) for n in nodes}
        same_view = all(v == refs[0][1] for _, v in refs)
        constants = [n.constant for n in nodes if n.constant is not None]
        if same_view and len(avals) == 1 and len(constants) == len(nodes):
            stack = emitter.builder.const(np.stack(constants))
            return self._rows(stack, refs[0][1])
        if all(s == refs[0][0] and v and views.form[v] == views.form[refs[0][1]] for s, v in refs):
            gathered = self._gathered(refs)
            if gathered is not None:
                return gathered
        place = {ref: i for i, ref in enumerate(dict.fromkeys(refs))}
        if len(place) * FEW <= len(refs):               # as when a value depends on the step modulo something
            return gather(self._stacked(list(place)), emitter.builder.const(np.array([place[r] for r in refs])),
                          axes=(0,))
        return self._stacked(refs)

    def _stacked(self, refs: list[Ref]) -> Value:
        """Values as the rows of one array."""
        parts = []
        for count, first, stop in turns(self.spine.views, refs):
            if stop - first == 1:
                parts.append(expand_dims(self.emitter.value(refs[first]), (0,)))
                continue
            walks = [self.emitter.row_by_row(refs[i:stop:count]) for i in range(first, first + count)]
            if len({(w.shape, w.dtype) for w in walks}) != 1:
                raise Unfit
            parts.append(walks[0] if count == 1 else reshape(
                concatenate(*(expand_dims(w, (1,)) for w in walks), axis=1), (stop - first, *walks[0].shape[1:])))
        if len({(p.shape[1:], p.dtype) for p in parts}) != 1:
            raise Unfit
        _storable(parts[0].aval)
        return concatenate(*parts, axis=0)

    def _rows(self, stack: Value, number: int) -> Value:
        """The view `number` of each row of a stack."""
        if not number:
            return stack
        shape, index = self.spine.views.parts(number)
        return view(stack, (stack.shape[0], *shape), ((0, ((0, 1),)), *led(index, [0] * len(index))))

    def _gathered(self, refs: list[Ref]) -> Value | None:
        """Elements of one array at irregular places."""
        views, builder = self.spine.views, self.emitter.builder
        shape, index = views.parts(refs[0][1])
        offsets = np.array([views.offsets[v] for _, v in refs], np.int64)
        axes = tuple(int(d) for d in np.flatnonzero((offsets != offsets[0]).any(axis=0)))
        if any(index[d][1] for d in axes):
            return None
        source = builder.value(refs[0][0])
        rows = gather(source, *(builder.const(offsets[:, d]) for d in axes), axes=axes)
        rest = tuple(pair for d, pair in enumerate(index) if d not in axes)
        return view(rows, (len(refs), *shape), ((0, ((0, 1),)), *led(rest, [0] * len(rest))))

    # --- outputs -----------------------------------------------------------------------------------------
    def _wanted(self) -> dict[int, list[int]]:
        """For each place the iterations whose value is read after the loop, those in carries apart."""
        wiring = self.wiring
        late = self.spine.last[wiring.begin:wiring.stop] >= wiring.stop
        rows, places = np.nonzero(late.reshape(wiring.length, wiring.period))
        wanted: dict[int, list[int]] = {}
        for j in np.unique(places).tolist():
            wanted[j] = rows[places == j].tolist()
        for chain in self.chains:
            ends = [wiring.length - 1 - i for i in range(len(chain.initial))]
            if not chain.view and chain.place in wanted and set(wanted[chain.place]) <= set(ends):
                del wanted[chain.place]
        for j in wanted:
            _storable(self.nodes[j].aval)
        return wanted

    def _body(self, held: list[int], stacked: list[int]) -> Tape:
        body = Builder()
        for c, chain in enumerate(self.chains):
            aval = self._carry_aval(chain)
            name = f"c{c}"
            chain.inputs = [body.input(aval, name if not i else f"{name}_{i}") for i in range(len(chain.initial))]
        for j in held:
            body.input(_bare(self.nodes[j].aval), f"last{j}")
        groups = {"scanned": [body.input(Aval(v.shape[1:], v.dtype), f"x{i}") for i, v in enumerate(self.scanned)],
                  "fixed": [body.input(_bare(v.aval), f"p{i}") for i, v in enumerate(self.invariants)]}
        made: list[Value] = []
        base = int(self.spine.start[self.wiring.begin])
        for j, node in enumerate(self.nodes):
            low, high = (int(self.spine.start[self.wiring.begin + i]) - base for i in (j, j + 1))
            operands = [self._operand(q, made, groups) for q in range(low, high)]
            made.append(body.value(body.apply(node.prim, [v.number for v in operands], node.params, node.where)))
            if (made[-1].shape, made[-1].dtype) != (node.aval.shape, node.aval.dtype):
                raise Unfit
        outputs: list[Value] = []
        for chain in self.chains:
            outputs += [self._viewed(made[chain.place], chain.view), *chain.inputs[:-1]]
        return body.tape([v.number for v in (*outputs, *(made[j] for j in held), *(made[j] for j in stacked))])

    def _operand(self, q: int, made: list[Value], groups: dict[str, list[Value]]) -> Value:
        column = self.wiring.columns[q]
        if column.kind == "inside":
            return self._viewed(made[column.place], column.view)
        if column.kind == "carried":
            chain = self.chain_of[q]
            return self._viewed(chain.inputs[column.lag - 1], column.view if not chain.view else 0)
        kind, i = self.operand_of[q]
        return groups[kind][i]

    def _viewed(self, value: Value, number: int) -> Value:
        return view(value, *self.spine.views.parts(number)) if number else value

    def _register(self, finals: list[Value], stacks: dict[int, Value], held: list[int]) -> None:
        wiring, emitter = self.wiring, self.emitter
        rolled = Rolled(wiring.begin, wiring.period, stacks, {})
        taken = iter(finals)
        for chain in self.chains:
            for i, value in zip(range(len(chain.initial)), taken, strict=False):
                if not chain.view and chain.place not in stacks:
                    rolled.finals[wiring.length - 1 - i, chain.place] = value
        for j, value in zip(held, taken, strict=True):
            rolled.finals[wiring.length - 1, j] = value
        emitter.loops.append(rolled)
        emitter.loop_of[wiring.begin:wiring.stop] = [len(emitter.loops) - 1] * (wiring.stop - wiring.begin)
        emitter.done = wiring.stop


def _bare(aval: Aval) -> Aval:
    return Aval(aval.shape, aval.dtype)


def _storable(aval: Aval) -> Aval:
    if aval.dtype == object:
        raise Unfit
    return aval
