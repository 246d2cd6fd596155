"""Last rewrites before fusion: outputs of their own, operands of routines in memory, BLAS for large products."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jitad.primitives.core import Primitive, alias
from jitad.primitives.reduce import parse
from jitad.tape import Aval, Builder, Node, Tape, Value

gemm = Primitive("gemm", kind="call", evaluate=lambda a, b, spec: np.einsum(spec, a, b, optimize=True),
                 infer=lambda a, b, spec: Aval(tuple(dict(zip(
                     "".join(parse(spec)[:2]), a.shape + b.shape, strict=True))[c] for c in parse(spec)[2]), a.dtype))
"""A matrix product that BLAS does."""

BLAS_WORK = 32 * 32 * 32      # multiplications from which a call of BLAS pays
BLAS_SIDE = 12                # and the shortest side it needs


def prepare(tape: Tape, layouts: tuple[str, ...]) -> Tape:
    """`layouts` says of each input how it lies in memory: C, F, A (any strides) or ``number``."""
    builder = Builder()
    in_memory = {number: layout == "C" for number, layout in zip(tape.inputs, layouts, strict=True)}
    values: dict[int, Value] = {}
    for number, name in zip(tape.inputs, tape.names, strict=True):
        values[number] = builder.input(tape.nodes[number].aval, name)
    for number, node in enumerate(tape.nodes):
        if number not in values:
            operands = [values[i] for i in node.inputs]
            values[number] = _rebuilt(builder, node, operands, [in_memory.get(i, True) for i in node.inputs])
    outputs: list[Value] = []
    for place, o in enumerate(tape.outputs):
        value = values[o]
        fresh = value.node.prim.kind not in ("input", "const") and value.number not in [v.number for v in outputs]
        outputs.append(value if fresh else _copied(value, place))
    for guard in tape.guards:
        builder.guard(values[guard.node], guard.expected, guard.where)
    return builder.finish(outputs, tape.labels)


def _rebuilt(builder: Builder, node: Node, operands: list[Value], contiguous: list[bool]) -> Value:
    if node.prim.kind == "const":
        return builder.const(node.params["value"].value, node.aval.weak)
    prim = gemm if node.prim.kind == "contract" and for_blas(node, [v.aval for v in operands]) else node.prim
    if prim.kind == "call":
        operands = [v if c else _copied(v, -1) for v, c in zip(operands, contiguous, strict=True)]
    return builder.value(builder.apply(prim, [v.number for v in operands], node.params, node.where))


def _copied(value: Value, slot: int) -> Value:
    return value.builder.value(value.builder.apply(alias, [value.number], {"slot": slot}, value.node.where))


def for_blas(node: Node, operands: Sequence[Aval]) -> bool:
    """Whether a contraction is a product of matrices so large that BLAS does it."""
    left, right, out = parse(node.params["spec"])
    if (len(left), len(right), len(out)) != (2, 2, 2) or node.aval.dtype.name != "float64":
        return False
    sizes = dict(zip(left + right, operands[0].shape + operands[1].shape, strict=True))
    sides = list(sizes.values())
    return len(sizes) == 3 and min(sides) >= BLAS_SIDE and sides[0] * sides[1] * sides[2] >= BLAS_WORK
