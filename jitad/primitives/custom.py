"""Rows that users fill: values with derivative rules of their own, and Python code that the tape calls.

``custom(y, *inputs, *reads)`` is `y`, with other derivatives: those of tapes among its params, on which the user's
rules were recorded. ``solution(y, *reads)`` is `y` with the derivatives of a solution of an equation.
``opaque(*inputs)`` is what a Python function gives, as a vector.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from jitad.errors import UnsupportedOperationError
from jitad.tape.builder import Value
from jitad.tape.evaluate import evaluate
from jitad.tape.types import Aval, Primitive

custom = Primitive("custom", kind="custom", evaluate=lambda y, *rest, **params: y, infer=lambda y, *rest, **params: y,
                   cost=0, trusts="a derivative rule, of which compiled tapes have none")
"""The first operand, whose derivatives with respect to the next `inputs` operands are those of the rules.

Params: `name` for errors; `inputs`, how many; `split`, how many of the operands that follow are read by the first rule,
the others by the second; `vjp`, a tape ``(ct, y, *reads) -> cotangents`` of the inputs numbered `reach`, those of the
others being zero; `jvp`, a tape ``(*tangents, y, *reads) -> tangent``. One of the tapes may be None. What the first
operand depends on by itself, not by way of the inputs, is differentiated as ever. The rules are in
`jitad.passes.differentiate.custom`; optimisation drops the node."""


solution = Primitive("solution", kind="solution", evaluate=lambda y, *reads, **params: y,
                     infer=lambda y, *reads, **params: y, cost=0, instead=lambda builder, inputs, params: inputs[0])
"""The first operand, y, which some solver has found, as a function of the others by what it solves.

Params: `tape`, ``(y, *reads) -> F`` with F zero at y and of its shape, or, if `minimum`, a number that is least there;
`apart`, how many of the first dimensions of y are of solutions that do not depend on each other. How y was found is not
differentiated. The rules are in `jitad.passes.differentiate.solutions`; optimisation drops the node."""


forwards = Primitive("forwards", kind="forwards", cost=1000, evaluate=lambda *inputs, tape: evaluate(tape, *inputs)[0],
                     infer=lambda *avals, tape: tape.nodes[tape.outputs[0]].aval,
                     instead=lambda builder, inputs, params: builder.replay(params["tape"], inputs)[0])
"""The only output of the param `tape`, a function of few inputs that is differentiated forwards, in either mode: for
loops whose number of steps is known when they have been made. The rules are in
`jitad.passes.differentiate.forwards`; optimisation puts the tape in the node's place. An input of the name `MOVED` is 1
where a derivative is computed, else 0: what stops by an error may look at that of the derivative, too."""
MOVED = "moved"


class Code:
    """Python code on a tape: `serve` makes the vector of the result, of `size` and `dtype`, from arrays of the types
    `operands`. Equal only to itself; a kernel that calls it keeps it alive. `function` is the user's. Code of our own
    has rules, written in rows: `vjp(ct, y, *inputs)` and `jvp(tangents, y, *inputs)`."""

    vjp: Callable[..., Any] | None = None
    jvp: Callable[..., Any] | None = None

    def __init__(self, name: str, function: Callable[..., Any], serve: Callable[[Sequence[np.ndarray]], np.ndarray],
                 operands: tuple[Aval, ...], size: int, dtype: np.dtype[Any]) -> None:
        self.name, self.function, self.serve = name, function, serve
        self.operands, self.size, self.dtype = operands, size, dtype
        self.entry: Any = None                           # how compiled code calls it: `jitad.compile.routines.opaque`

    def __repr__(self) -> str:
        return f"`{self.name}`"


def _no_derivative(like: Value, code: Code) -> NoReturn:
    raise UnsupportedOperationError(
        f"`{code.name}` at {like.builder.line} is opaque Python, which has no derivative of its own; give "
        "jitad.primitive a vjp= or jvp= rule, or wrap the argument in jitad.stop_gradient if it is no variable")


def _opaque_vjp(ct: Value, y: Value, *inputs: Value, code: Code) -> Any:
    return code.vjp(ct, y, *inputs) if code.vjp is not None else _no_derivative(y, code)


def _opaque_jvp(tangents: Any, y: Value, *inputs: Value, code: Code) -> Any:
    return code.jvp(tangents, y, *inputs) if code.jvp is not None else _no_derivative(y, code)


opaque = Primitive("opaque", kind="call", evaluate=lambda *inputs, code: code.serve(inputs),
                   infer=lambda *inputs, code: Aval((code.size,), code.dtype), vjp=_opaque_vjp, jvp=_opaque_jvp,
                   cost=1000)
"""What the `Code` of the param `code` makes of arrays with at least one dimension."""


def has_code(nodes: Sequence[Any]) -> bool:
    """Whether nodes, or loops among them, call Python."""
    return any(n.prim is opaque or (n.prim.kind == "scan" and has_code(n.params["body"].nodes)) for n in nodes)


__all__ = ["Code", "MOVED", "custom", "forwards", "has_code", "opaque", "solution"]
