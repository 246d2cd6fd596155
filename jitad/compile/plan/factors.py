"""Routines of one matrix share its factors: a rewrite before fusion.

A system, an inverse and a determinant of the same matrix, or of its transpose as in the reverse sweep of a system,
would each factor it anew.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitad.primitives.linalg.matrices import mT, rectangle
from jitad.primitives.view import view
from jitad.tape.builder import Builder, Value
from jitad.tape.tape import Tape
from jitad.tape.types import Aval, Node, Primitive

FACTORING = ("solve", "inv", "det", "slogdet_sign", "slogdet_log")


def _made_by_compiler(name: str, infer: Callable[..., Aval]) -> Primitive:
    def evaluate(*operands: Any, **params: Any) -> Any:
        raise NotImplementedError(f"{name} is there in kernels only")
    return Primitive(name, evaluate=evaluate, infer=infer, cost=100)


factor = _made_by_compiler("factor", lambda a: Aval((*a.shape[:-2], a.shape[-1] + 2, a.shape[-1]), a.dtype))
"""The factors of a matrix, with two more rows for the pivots and for what they are."""

FACTORED = {
    "solve": _made_by_compiler("solve_factored", lambda f, b, trans: b),
    "inv": _made_by_compiler("inv_factored", lambda f, strict: Aval((*f.shape[:-2], *f.shape[-1:] * 2), f.dtype)),
    **{name: _made_by_compiler(f"{name}_factored", lambda f: Aval(f.shape[:-2], f.dtype))
       for name in ("det", "slogdet_sign", "slogdet_log")}}


VALUES = {"eigh": _made_by_compiler("eigvalsh", lambda a, **params: Aval(a.shape[:-1], a.dtype)),
          "svd": _made_by_compiler("svdvals", lambda a: Aval((*a.shape[:-2], min(a.shape[-2:])), a.dtype))}
"""Decompositions of which only the values are read."""
VALUES["svd"].sides = rectangle


def share_factors(tape: Tape) -> Tape:
    """`tape` with one factorization for each matrix of which several routines want one, and without vectors that
    nobody reads."""
    narrow = {number for number, node in enumerate(tape.nodes)
              if node.prim.name in VALUES and _only_values(tape, number)}
    users: dict[int, int] = {}
    for node in tape.nodes:
        if node.prim.name in FACTORING and tape.nodes[node.inputs[0]].aval.shape[-1]:
            source = _source(tape, node)[0]
            users[source] = users.get(source, 0) + 1
    shared = {number for number, count in users.items() if count > 1}
    if not shared and not narrow:
        return tape
    builder = Builder()
    values: dict[int, Value] = {}
    for number, name in zip(tape.inputs, tape.names, strict=True):
        values[number] = builder.input(tape.nodes[number].aval, name)
    for number in range(len(tape.nodes)):
        if number not in values:
            values[number] = _rebuilt(builder, tape, number, values, shared, narrow)
    for guard in tape.guards:
        builder.guard(values[guard.node], guard.expected, guard.where)
    return builder.finish([values[o] for o in tape.outputs], tape.labels)


def _source(tape: Tape, node: Node) -> tuple[int, bool]:
    """The matrix that is factored, and whether `node` has its transpose."""
    matrix = tape.nodes[node.inputs[0]]
    if matrix.prim.kind == "view":
        source = tape.nodes[matrix.inputs[0]]
        probe = Builder().input(source.aval, "a")
        if dict(mT(probe).node.params) == dict(matrix.params):
            return matrix.inputs[0], True
    return node.inputs[0], False


def _only_values(tape: Tape, number: int) -> bool:
    """Whether all that is read of a decomposition is its first column."""
    return number not in tape.outputs and all(
        tape.nodes[user].prim.kind == "view" and tape.nodes[user].params["index"][-1] == (0, ())
        for user in tape.uses[number])


def _rebuilt(builder: Builder, tape: Tape, number: int, values: dict[int, Value], shared: set[int],
             narrow: set[int]) -> Value:
    node = tape.nodes[number]
    if number in narrow:
        operands = [values[i].number for i in node.inputs]
        return builder.value(builder.apply(VALUES[node.prim.name], operands, node.params, node.where))
    if node.prim.kind == "view" and node.inputs[0] in narrow:
        return view(values[node.inputs[0]], node.params["shape"], node.params["index"][:-1])
    if node.prim.kind == "const":
        return builder.const(node.params["value"].value, node.aval.weak)
    if node.prim.name in FACTORING:
        source, trans = _source(tape, node)
        if source in shared and not (trans and node.prim.name == "inv"):
            factors = builder.apply(factor, [values[source].number], {}, node.where)
            strict = node.params.get("strict", True)
            params: dict[str, Any] = {"solve": {"trans": trans}, "inv": {"strict": strict}}.get(node.prim.name, {})
            operands = [factors, *(values[i].number for i in node.inputs[1:])]
            return builder.value(builder.apply(FACTORED[node.prim.name], operands, params, node.where))
    return builder.value(builder.apply(node.prim, [values[i].number for i in node.inputs], node.params, node.where))
