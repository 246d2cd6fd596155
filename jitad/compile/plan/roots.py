"""Roots: the pieces of work of a kernel, each a loop nest with one effect.

A node that must exist in memory (or, if 0-d, as a scalar variable) is
*materialised*; one or several roots make its value. Everything else on the tape
is virtual and pulled into the roots that need it.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from jitad.compile.plan.index import Affine, Indices, as_expr, through, variable, weighted
from jitad.compile.plan.pull import Pull, plain_view
from jitad.passes.optimise.crossed import addends, private
from jitad.primitives.elementwise import add
from jitad.primitives.reduce import parse
from jitad.tape.expr import Expr, cast
from jitad.tape.tape import Tape
from jitad.tape.types import Node

BOOLEAN_OPS = {"add": "or", "max": "or", "min": "and"}
Check = tuple[str, int, int]           # ("check", index node, length): a computed index is within bounds


@dataclass(eq=False)
class Root:
    """One loop nest: for every point of the domain, `value` is put at `target` of the node by `op`.

    `extents` are the domain's lengths; `reduced` its dimensions that the target does
    not have. `value(pull, at)` and `target(pull, at)` take one index for each
    dimension of the domain.
    """

    node: int | Check
    op: str                                     # store, add, max, min, and, or, running, call
    extents: tuple[int, ...]
    value: Callable[[Pull, Indices], Expr]
    target: Callable[[Pull, Indices], Indices]
    kind: str = "map"                           # map, reduce, update, running, check, call, scan
    reads: list[tuple[Any, Indices]] = field(default_factory=list)
    evaluated: list[tuple[int, Indices]] = field(default_factory=list)
    order: tuple[int, ...] = ()                 # loops, outermost first: dimensions of the domain
    axis: int | None = None                     # the dimension that the group walks
    group: int = -1
    level: int = 0
    after: list[Root] = field(default_factory=list)   # stores that this one may overwrite
    separate: bool = False                      # wants loops of its own (would keep others from vectorising)
    factor: Callable[[Pull, Indices], Expr] | None = None    # running: what the step before is multiplied by

    @property
    def looped(self) -> tuple[int, ...]:
        return tuple(d for d, n in enumerate(self.extents) if n != 1)

    def at(self, names: dict[int, str]) -> Indices:
        return tuple(variable(names[d]) if d in names else Affine(0) for d in range(len(self.extents)))

    @property
    def phase(self) -> tuple[Any, ...]:
        place = self.order.index(self.axis) if self.axis is not None else None
        return (self.level, tuple(self.extents[d] for d in self.order), place, self.separate or None)


def map_root(number: int, node: Node, tape: Tape) -> Root:
    return Root(number, "store", node.aval.shape, lambda pull, at: pull.body(number, at), lambda pull, at: at)


def _base_root(target: int, number: int, node: Node) -> Root:
    return Root(target, "add", node.aval.shape, lambda pull, at: pull.element(number, at), lambda pull, at: at,
                kind="update")


def _reduce_root(target: int, node: Node, tape: Tape) -> Root:
    operand, axes = node.inputs[0], node.params["axes"]
    shape = tape.nodes[operand].aval.shape
    return Root(target, node.prim.accumulate, shape, lambda pull, at: pull.element(operand, at),
                lambda pull, at: tuple(i for d, i in enumerate(at) if d not in axes), kind="reduce")


def _contract_root(target: int, node: Node, tape: Tape) -> Root:
    left, right, out = parse(node.params["spec"])
    letters = "".join(dict.fromkeys(left + right))
    sizes = dict(zip(left + right, tape.nodes[node.inputs[0]].aval.shape + tape.nodes[node.inputs[1]].aval.shape,
                     strict=True))
    place = {c: d for d, c in enumerate(letters)}
    return Root(target, "add", tuple(sizes[c] for c in letters),
                lambda pull, at: pull.product(node, dict(zip(letters, at, strict=True))),
                lambda pull, at: tuple(at[place[c]] for c in out), kind="reduce")


def _update_root(target: int, node: Node, tape: Tape) -> Root:
    operand = node.inputs[0]
    shape = tape.nodes[operand].aval.shape
    return Root(target, "add", shape, lambda pull, at: pull.element(operand, at),
                lambda pull, at: pull.scattered(node, at), kind="update")


def _part_roots(number: int, node: Node, tape: Tape) -> list[Root]:
    axis, start, roots = node.params["axis"], 0, []
    for part in node.inputs:
        shape = tape.nodes[part].aval.shape
        roots.append(Root(number, "store", shape, partial(_element, part), partial(_shifted, axis, start),
                          kind="update"))
        start += shape[axis]
    return roots


def _shifted(axis: int, start: int, pull: Pull, at: Indices) -> Indices:
    return tuple(weighted(start, [(1, i)]) if d == axis else i for d, i in enumerate(at))


def _assignment_roots(number: int, node: Node, tape: Tape) -> list[Root]:
    """The old elements, then what is stored over them."""
    base, *values = node.inputs
    first = Root(number, "store", node.aval.shape, partial(_element, base), lambda pull, at: at, kind="update")
    indices = node.params.get("indices")
    targets: list[Any] = [partial(_through, index) for index in indices or ()]
    if indices is None:                                 # at computed places, which are further operands
        values, targets = values[:1], [partial(_gathered, node)]
    return [first, *(Root(number, "store", tape.nodes[v].aval.shape, partial(_element, v), target, kind="update",
                          after=[first]) for v, target in zip(values, targets, strict=True))]


def _element(number: int, pull: Pull, at: Indices) -> Expr:
    return pull.element(number, at)


def _gathered(node: Node, pull: Pull, at: Indices) -> Indices:
    return pull.gathered(node, at, 2)


def _through(index: Any, pull: Pull, at: Indices) -> Indices:
    return through(index, at)


def _running_root(number: int, node: Node, tape: Tape) -> Root:
    axis, reverse, shape = node.params["axis"], node.params["reverse"], node.aval.shape

    def turned(at: Indices) -> Indices:
        return tuple(weighted(shape[d] - 1, [(-1, i)]) if d == axis and reverse else i for d, i in enumerate(at))
    def factor(pull: Pull, at: Indices) -> Expr:
        step = as_expr(at[axis])
        before = step - cast(step > 0, "i8") if node.params["late"] else at[axis]
        return pull.element(node.inputs[0], turned((*at[:axis], before, *at[axis + 1:])))
    operand = node.inputs[-1]
    return Root(number, "running", shape, lambda pull, at: pull.element(operand, turned(at)),
                lambda pull, at: turned(at), kind="running", factor=factor if len(node.inputs) == 2 else None)


def check_root(check: Check, tape: Tape) -> Root:
    _, index, length = check

    def value(pull: Pull, at: Indices) -> Expr:
        e = cast(pull.element(index, at), "i8")
        return (e >= -length) & (e < length)
    return Root(check, "and", tape.nodes[index].aval.shape, value, lambda pull, at: (), kind="check")


def sums(tape: Tape) -> dict[int, list[int]]:
    """The additions that are made by adding into one array, with their addends: those of arrays
    with an addend that spreads, scatters or accumulates and that nobody else reads."""
    result: dict[int, list[int]] = {}
    inner: set[int] = set()
    for number in range(len(tape.nodes) - 1, -1, -1):
        node = tape.nodes[number]
        if node.prim is not add or node.aval.ndim == 0 or number in inner:
            continue
        leaves = addends(tape, number)
        accumulating = [i for i in leaves if tape.nodes[i].prim.scatters and private(tape, i)]
        if not accumulating or len(set(leaves)) < len(leaves):
            continue
        result[number] = leaves
        stack = list(node.inputs)
        while stack:
            i = stack.pop()
            if i not in leaves:
                inner.add(i)
                stack.extend(tape.nodes[i].inputs)
    return result


def roots_of(tape: Tape, number: int, leaves: list[int] | None) -> list[Root]:
    """The roots that make node `number`; `leaves` if it is one of `sums`."""
    roots = _roots_of(tape, number, leaves)
    if tape.nodes[number].aval.dtype == bool:
        for root in roots:
            root.op = BOOLEAN_OPS.get(root.op, root.op)
    return roots


def _roots_of(tape: Tape, number: int, leaves: list[int] | None) -> list[Root]:
    if leaves is not None:
        return [_addend_root(tape, number, i) for i in leaves]
    return _own_roots(number, tape.nodes[number], tape)


def _own_roots(target: int, node: Node, tape: Tape) -> list[Root]:
    """Those that make `node` at the place of `target`, which may be a sum of it and others."""
    made = ROOTS.get(node.prim.kind, map_root)(target, node, tape)
    return made if isinstance(made, list) else [made]


def adds_up(node: Node) -> bool:
    """Whether the elements of a node are sums into which it adds one by one."""
    return node.prim.scatters or node.prim.accumulate == "add"


def views_of(tape: Tape, number: int) -> list[int]:
    """The node, what it is a view of, and so on."""
    chain = [number]
    while plain_view(tape.nodes[chain[-1]]):
        chain.append(tape.nodes[chain[-1]].inputs[0])
    return chain


def _scan_root(number: int, node: Node, tape: Tape) -> Root:
    return Root(number, "scan", (), _nothing, _nothing, kind="scan",
                reads=[(i, ()) for operand in node.inputs for i in views_of(tape, operand)])


def _call_root(number: int, node: Node, tape: Tape) -> Root:
    return Root(number, "call", (), _nothing, _nothing, kind="call", reads=[(i, ()) for i in node.inputs])


def _nothing(pull: Pull, at: Indices) -> Any:
    raise AssertionError("a call has no element")


def _addend_root(tape: Tape, target: int, number: int) -> Root:
    node = tape.nodes[number]
    if private(tape, number) and adds_up(node):
        root, = _own_roots(target, node, tape)
        return root
    return _base_root(target, number, node)


ROOTS: dict[str, Callable[[int, Node, Tape], Root | list[Root]]] = {
    "reduce": _reduce_root, "contract": _contract_root, "spread": _update_root, "scatter": _update_root,
    "concatenate": _part_roots, "update": _assignment_roots, "put": _assignment_roots, "cumulative": _running_root,
    "recurrence": _running_root, "scan": _scan_root, "call": _call_root}
"""By the kind of the row; any other has its value in one loop nest."""
