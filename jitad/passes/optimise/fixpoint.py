"""One pass over a tape, in which each node meets its rewrites; the next looks only at what this one changed.

A tape is replayed node by node into a new builder. Equal nodes become one (the builder sees to it), nodes of constants
are evaluated, each rewrite may answer with a simpler value, and what no output needs is left behind.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from jitad.errors import TapeError
from jitad.passes.optimise.scan import size
from jitad.tape.builder import Builder, Value
from jitad.tape.evaluate import evaluate_node
from jitad.tape.tape import Tape
from jitad.tape.types import Aval, Guard, Node, Primitive

Rewrite = Callable[..., "Value | None"]
REWRITES: dict[str, list[Rewrite]] = {}
FOLD_LIMIT = 1 << 16      # elements: larger constants are cheaper to compute than to carry
SEEN = 3                  # how far below its node a rewrite looks: the number under a view under an operand's operand


def rewrites(*names: str) -> Callable[[Rewrite], Rewrite]:
    """Register a rewrite for the primitives `names`, or for a kind: it gets the node, its new inputs and its params,
    and answers with a value or None."""
    def register(function: Rewrite) -> Rewrite:
        for name in names:
            REWRITES.setdefault(name, []).append(function)
        return function
    return register


@cache
def _rewrites_of(prim: Primitive) -> tuple[Rewrite, ...]:
    return (*REWRITES.get(prim.name, ()), *(REWRITES["elementwise"] if prim.elementwise else ()))


@dataclass(eq=False)
class Draft:
    """A tape between two passes: nodes, of which those in `order` are needed; `tried` are those for which no rewrite
    has an answer while what lies below them stays as it is."""

    nodes: list[Node] | tuple[Node, ...]
    order: list[int] | range
    inputs: list[int] | tuple[int, ...]
    names: list[str] | tuple[str, ...]
    outputs: list[int] | tuple[int, ...]
    guards: list[Guard] | tuple[Guard, ...]
    tried: set[int]
    builder: Builder | None = None

    @classmethod
    def of(cls, tape: Tape) -> Draft:
        return cls(tape.nodes, range(len(tape.nodes)), tape.inputs, tape.names, tape.outputs, tape.guards, set())

    @classmethod
    def made(cls, builder: Builder, outputs: list[int], tried: set[int]) -> Draft:
        """What these nodes of a builder need."""
        return cls(builder.nodes, builder.live(outputs), builder.inputs, builder.names, outputs,
                   list(builder.guards.values()), tried, builder)

    @property
    def size(self) -> int:
        """The number of nodes that are needed, bodies of loops included."""
        bodies = [body for i in self.order if (body := self.nodes[i].body) is not None]
        return len(self.order) + sum(map(size, bodies))

    @property
    def settled(self) -> bool:
        """Whether another pass would change nothing."""
        return bool(self.tried) and self.tried.issuperset(self.order)

    def rewritten(self) -> Draft:
        """After one more pass."""
        builder = Builder()
        numbers, tried = self._replayed(builder)
        for guard in self.guards:
            builder.guard(builder.value(numbers[guard.node]), guard.expected, guard.where)
        return Draft.made(builder, [numbers[o] for o in self.outputs], tried)

    def _replayed(self, builder: Builder) -> tuple[list[int], set[int]]:
        """For each node its number on `builder`, and which nodes there have been tried.

        What was tried is copied, unless something has changed no further below it than its rewrites look.
        """
        nodes, made, numbers = self.nodes, builder.nodes, [0] * len(self.nodes)
        near: dict[int, int] = {}       # nodes that are not what they were, and those above: how far above
        tried: set[int] = set()
        for number, name in zip(self.inputs, self.names, strict=True):
            builder.line = nodes[number].where
            numbers[number] = builder.input(nodes[number].aval, name).number
            tried.add(numbers[number])
        for number in self.order:
            node, before = nodes[number], len(made)
            if node.is_input:
                continue
            builder.line = node.where
            changed, above = False, None if near.keys().isdisjoint(node.inputs) else 1 + min(
                [near[i] for i in node.inputs if i in near])
            if node.constant is not None:
                found = builder.constant(node)
            elif above is not None or number not in self.tried:
                found, changed = _tried(builder, node, [numbers[i] for i in node.inputs])
            else:
                found = builder.enter(node.prim, tuple([numbers[i] for i in node.inputs]), node.params,
                                      tuple(sorted(node.params.items())) if node.params else (), node.aval)
            numbers[number] = found
            if not changed:
                tried.add(found)
            if changed or found < before:
                near[number] = 0
            elif above is not None and above < SEEN:
                near[number] = above
        return numbers, tried

    def tape(self, labels: tuple[str, ...]) -> Tape:
        """What it is as a tape."""
        assert self.builder is not None
        return self.builder.tape(self.outputs, labels)


def _tried(builder: Builder, node: Node, inputs: list[int]) -> tuple[int, bool]:
    """A node on `inputs`, and whether a rewrite, or folding, has made something else of it."""
    prim, params = node.prim, node.params
    below = [builder.nodes[i] for i in inputs]
    value = _folded(builder, node, below)
    if value is None:
        values = [Value(builder, i) for i in inputs]
        if prim.commutes:
            a, b = values
            if (number_of(a) is not None, a.number) > (number_of(b) is not None, b.number):
                values = [b, a]
        for rewrite in _rewrites_of(prim):
            value = rewrite(node, *values, **params)
            if value is not None:
                break
        else:
            aval = prim.infer(*[v.aval for v in values], **params)
            _check(aval, node)
            return builder.enter(prim, tuple([v.number for v in values]), params,
                                 tuple(sorted(params.items())) if params else (), aval), False
    _check(value.aval, node)
    return value.number, True


def _folded(builder: Builder, node: Node, below: list[Node]) -> Value | None:
    """The value of an operation on constants."""
    if below and below[0].constant is not None and _worth_folding(node):
        constants = [n.constant for n in below]
        if all([c is not None for c in constants]):
            return builder.const(evaluate_node(node, constants))
    return None


def _check(aval: Aval, node: Node) -> None:
    """Raise `TapeError` if a node has become something of another shape or dtype."""
    if aval.shape != node.aval.shape or aval.dtype != node.aval.dtype:
        raise TapeError(f"{node.prim} of {node.aval} at {node.where} has become {aval}")


def _worth_folding(node: Node) -> bool:
    """A broadcast number stays a number: loops read it for nothing."""
    return node.aval.size <= FOLD_LIMIT and node.prim.kind not in ("view", "call", "scan", "pick")


def number_of(value: Value) -> float | None:
    """The number that `value` is everywhere, if it is a constant one."""
    nodes = value.builder.nodes
    node = nodes[value.number]
    if node.index_map is not None:
        node = nodes[node.inputs[0]]
    constant = node.constant
    return constant.item() if constant is not None and constant.shape == () else None
