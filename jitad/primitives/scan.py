"""`scan`: a loop on the tape. One node walks `length` steps and carries values from each to the next.

Interface, for whoever builds scans (`jitad.control`, the re-rolling of Python loops, the rules)::

    finals, stacks = loop(builder, body, init, scanned, invariants, length,
                          counter=False, reverse=False, until=False, recompute=False)   # and `counted`, see below

    body        a `Tape`. Its inputs, in this order: the carries, the elements of the scanned arrays, the
                invariants and, if `counter`, the position t (int64 scalar). Its outputs: the new carries,
                in the order, with the shapes and the dtypes of the carries, then what is to be stacked.
                A body reads nothing but its inputs: constants are nodes of its own or invariants.
    init        the first values of the carries, each of the shape and the dtype of the body's input
    scanned     ``(array, offset, step)``: at position t the body gets ``array[offset + step * t]``, so that
                ``y[t - 1]`` is ``(y, -1, 1)`` and needs no copy. Every index must lie within the array:
                0 <= offset + step * t < len(array), negative ones do not wrap.
    invariants  values that are the same at every step, of any shape
    length      the number of steps: positions t = 0 .. length - 1, walked backwards if `reverse`
    until       carry 0 is a boolean, looked at before each step: the loop ends where it is False. `length` is then
                the most there can be. Rows of stacks that were not reached are undefined. Derivatives in reverse
                are for loops of at most one step, which is what `jitad.cond` makes, and for those with a carry that
                counts the steps (`Form.counts`)
    counted     the first invariant is an int64 scalar, how many steps there are, at most `length`: what follows a loop
                that ended by a value. Rows of stacks that were not reached are zero
    recompute   derivatives save nothing but the carries, and compute the step again (see `loop_in_chunks`)
    finals      the carries after the last step (the initial ones if length is 0)
    stacks      for each further output an array of shape (length, ...): what the body gave at position t is
                element t, whichever way the walk goes

On the tape this is a node ``scan(*init, *arrays, *invariants)`` with the params `body`, `length`, `carries` (how
many), `scanned` (a tuple of ``(offset, step)``), `counter`, `reverse`, `until`, `recompute`, `counted`.
A node has one value, so
a scan gives a *bundle* of dtype object, and nodes ``pick(bundle, index)`` take carry `index`, or stack
``index - carries``, out of it. Nothing but a pick reads a bundle. Tapes are compared by content, so that equal scans
are one node.

The rules live above: derivatives and rewrites in `scan.py` of the folders of `jitad/passes/`, the loop in
`jitad.compile.lower.scan.lower`.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jitad.primitives.index import concatenate, reshape
from jitad.primitives.view import view
from jitad.tape.builder import Builder, Value
from jitad.tape.evaluate import evaluate
from jitad.tape.tape import Tape
from jitad.tape.types import TABLE, Aval, Node, Primitive

CHUNK = 32                                      # steps of a loop in chunks
Step = tuple[int, int]                          # (offset, step) of a scanned array
Scanned = tuple[Value, int, int]                # the array with its offset and step


@dataclass(frozen=True)
class Form:
    """The params of a scan node, with names for the parts of its operands and outputs."""

    body: Tape
    length: int
    carries: int
    scanned: tuple[Step, ...] = ()
    counter: bool = False
    reverse: bool = False
    until: bool = False
    recompute: bool = False
    counted: bool = False

    @classmethod
    def of(cls, node: Node) -> Form:
        return cls(**node.params)

    @property
    def params(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @property
    def operands(self) -> int:
        return len(self.body.inputs) - self.counter

    @property
    def fixed(self) -> int:
        """The place of the first invariant among the operands and the body's inputs."""
        return self.carries + len(self.scanned)

    @property
    def stacks(self) -> int:
        return len(self.body.outputs) - self.carries

    @property
    def positions(self) -> range:
        """The positions in the order of the walk."""
        return range(self.length)[::-1] if self.reverse else range(self.length)

    def input(self, place: int) -> Aval:
        """The type of the body's input at `place`."""
        return self.body.nodes[self.body.inputs[place]].aval

    def output(self, index: int) -> Aval:
        """The type of output `index` of the bundle."""
        aval = self.body.nodes[self.body.outputs[index]].aval
        return Aval(aval.shape if index < self.carries else (self.length, *aval.shape), aval.dtype)

    def walk(self, operands: Sequence[Any]) -> Sequence[int]:
        """The positions in the order of the walk, for these operands; a loop may end before."""
        return self.positions if not self.counted else replace(self, length=int(operands[self.fixed])).positions

    @property
    def dynamic(self) -> bool:
        """Whether values decide how many steps there are, of more than one."""
        return self.counted or (self.until and self.length > 1)

    def counts(self, first: Sequence[Node]) -> int | None:
        """The carry that counts the steps, by what the carries are at first; None if there is none."""
        nodes = self.body.nodes
        for i, start in enumerate(first[:self.carries]):
            node = nodes[self.body.outputs[i]]
            if node.prim is TABLE["add"] and start.constant is not None and not start.constant.any() and (
                    node.aval.dtype == np.int64 and not node.aval.shape):
                other = [nodes[n].constant for n in node.inputs if n != self.body.inputs[i]]
                if len(other) == 1 and other[0] is not None and other[0] == 1:
                    return i
        return None

    def name(self, place: int) -> str:
        return self.body.names[place]


def _evaluate(*operands: Any, **params: Any) -> np.ndarray:
    form = Form(**params)
    state = [np.asarray(x) for x in operands[:form.carries]]
    arrays, rest = operands[form.carries:form.fixed], operands[form.fixed:]
    outputs = [form.output(i) for i in range(form.carries, len(form.body.outputs))]
    stacks = [np.zeros(aval.shape, aval.dtype) for aval in outputs]
    for t in form.walk(operands):
        if form.until and not state[0]:
            break
        elements = [np.asarray(a[o + s * t]) for a, (o, s) in zip(arrays, form.scanned, strict=True)]
        counter = [np.asarray(t, np.int64)] if form.counter else []
        results = evaluate(form.body, *state, *elements, *rest, *counter)
        state = results[:form.carries]
        for stack, result in zip(stacks, results[form.carries:], strict=True):
            stack[t] = result
    bundle = np.empty(len(form.body.outputs), object)
    for i, value in enumerate([*state, *stacks]):
        bundle[i] = value
    return bundle


def _infer(*avals: Aval, **params: Any) -> Aval:
    form = Form(**params)
    if len(avals) != form.operands or form.operands < form.fixed or form.stacks < 0:
        raise ValueError(f"a scan of {len(avals)} operands whose body has {form.operands} inputs and "
                         f"{len(form.body.outputs)} outputs for {form.carries} carries")
    for place, aval in enumerate(avals):
        wanted, scanned = form.input(place), form.carries <= place < form.fixed
        if scanned:
            _check_walk(form, aval, place)
        if (aval.shape[scanned:], aval.dtype) != (wanted.shape, wanted.dtype):
            raise ValueError(f"scan: operand {place} is {aval}, its body takes {wanted}")
        if place < form.carries and (form.output(place).shape, form.output(place).dtype) != (aval.shape, aval.dtype):
            raise ValueError(f"scan: carry {place} is {aval}, its body gives {form.output(place)}")
    return Aval((len(form.body.outputs),), np.dtype(object))


def _check_walk(form: Form, aval: Aval, place: int) -> None:
    offset, step = form.scanned[place - form.carries]
    ends = (offset, offset + step * (form.length - 1)) if form.length else (0, 0)
    if not aval.ndim or (form.length and (min(ends) < 0 or max(ends) >= aval.shape[0])):
        raise ValueError(f"scan: operand {place} is {aval}, read at {min(ends)} to {max(ends)}")


scan = Primitive("scan", kind="scan", evaluate=_evaluate, infer=_infer, cost=1000, loops=True,
                 can_fail=lambda node: any(inner.can_fail for inner in node.body.nodes))
"""The loop; gives a bundle. Build it with `loop`."""

pick = Primitive("pick", kind="pick", can_fail=False, picks=True, tame=True,
                 evaluate=lambda bundle, index, shape, dtype: bundle[index],
                 infer=lambda bundle, index, shape, dtype: Aval(shape, np.dtype(dtype)))
"""Output `index` of a bundle."""


def picked(bundle: Value, index: int) -> Value:
    """Output `index` of the scan node `bundle`."""
    aval = Form.of(bundle.node).output(index)
    params = {"index": index, "shape": aval.shape, "dtype": aval.dtype.name}
    return bundle.builder.value(bundle.builder.apply(pick, [bundle.number], params, bundle.node.where))


def bundle_of(builder: Builder, form: Form, operands: Iterable[Value], where: Any = None) -> Value:
    return Value(builder, builder.apply(scan, [v.number for v in operands], form.params, where))


def loop(builder: Builder, body: Tape, init: Sequence[Value], scanned: Sequence[Scanned],
         invariants: Sequence[Value], length: int, counter: bool = False, reverse: bool = False,
         until: bool = False, recompute: bool = False) -> tuple[list[Value], list[Value]]:
    """Append a scan (see the module) and its picks: the final carries and the stacks."""
    form = Form(body, length, len(init), tuple((o, s) for _, o, s in scanned), counter, reverse, until, recompute)
    bundle = bundle_of(builder, form, [*init, *(a for a, _, _ in scanned), *invariants])
    outputs = [picked(bundle, i) for i in range(len(body.outputs))]
    return outputs[:form.carries], outputs[form.carries:]


def loop_in_chunks(builder: Builder, body: Tape, init: Sequence[Value], scanned: Sequence[Scanned],
                   invariants: Sequence[Value], length: int, reverse: bool = False,
                   recompute: bool = False) -> tuple[list[Value], list[Value]]:
    """As `loop` without a counter, with logarithmic memory for the derivatives: loops of about `CHUNK` steps in loops
    of about `CHUNK` steps, and so on, of which all but the innermost save only their carries and run each step again.
    """
    if length <= CHUNK:
        return loop(builder, body, init, scanned, invariants, length, reverse=reverse, recompute=recompute)
    size = chunk_size(length)
    count, rest = divmod(length, size)
    state, stacks = list(init), []

    def remainder() -> None:
        tail = [(a, o + s * count * size, s) for a, o, s in scanned]
        state[:], rows = loop(builder, body, state, tail, invariants, rest, reverse=reverse, recompute=recompute)
        stacks.append(rows)
    if reverse and rest:
        remainder()
    outer, chunks = _chunk(body, state, scanned, invariants, (count, size), reverse, recompute)
    state[:], rows = loop_in_chunks(builder, outer, state, chunks, invariants, count, reverse, recompute=True)
    stacks.insert(0, [reshape(r, (count * size, *r.shape[2:])) for r in rows])
    if rest and not reverse:
        remainder()
    return state, [concatenate(*parts, axis=0) if rest else parts[0] for parts in zip(*stacks, strict=True)]


def chunk_size(length: int) -> int:
    """Steps in a chunk: the divisor of the length closest to `CHUNK`, so that no rest needs code of its own, if one is
    between half as many and half as many again."""
    sizes = sorted(range(CHUNK // 2, 3 * CHUNK // 2 + 1), key=lambda n: abs(n - CHUNK))
    return next((n for n in sizes if length % n == 0), CHUNK)


def _chunk(body: Tape, init: Sequence[Value], scanned: Sequence[Scanned], invariants: Sequence[Value],
           sizes: tuple[int, int], reverse: bool, recompute: bool) -> tuple[Tape, list[Scanned]]:
    """A body that does a chunk of steps of `body`, and the arrays of chunks that it walks; `sizes`: how many chunks,
    and of how many steps."""
    chunks = [(reshape(walked(a, sizes[0] * sizes[1], o, s), (*sizes, *a.shape[1:])), 0, 1) for a, o, s in scanned]
    inner = Builder()
    avals = [*(v.aval for v in init), *(Aval(a.shape[1:], a.dtype) for a, _, _ in chunks)]
    avals += [v.aval for v in invariants]
    values = [inner.input(Aval(a.shape, a.dtype), name) for a, name in zip(avals, body.names, strict=True)]
    fixed = len(init) + len(chunks)
    finals, stacks = loop(inner, body, values[:len(init)], [(v, 0, 1) for v in values[len(init):fixed]], values[fixed:],
                          sizes[1], reverse=reverse, recompute=recompute)
    return inner.finish([*finals, *stacks]), chunks


def transplant(nodes: Sequence[Node], leaves: Mapping[int, Value], wanted: Iterable[int],
               builder: Builder) -> list[Value]:
    """What the nodes `wanted` need, appended to `builder` with the values `leaves` in place of nodes."""
    done = dict(leaves)
    wanted = list(wanted)
    stack = [n for n in reversed(wanted) if n not in done]
    while stack:
        number = stack[-1]
        node = nodes[number]
        missing = [i for i in node.inputs if i not in done]
        if missing:
            stack += missing
            continue
        stack.pop()
        if number in done:
            continue
        done[number] = builder.again(node, [done[i].number for i in node.inputs])
    return [done[n] for n in wanted]


def walked(array: Value, length: int, offset: int, step: int) -> Value:
    """The elements that a scan reads of `array`, as an array by position."""
    shape = (length, *array.shape[1:])
    return view(array, shape, walk_map(array.ndim, offset, step))


def walk_map(ndim: int, offset: int, step: int) -> Any:
    return ((offset, ((0, step),)), *((0, ((d, 1),)) for d in range(1, ndim)))
