"""The pieces of code of an outlined kernel: small programs that are told lengths and strides when they are called, so
that few of them serve many nodes; and one for each other kind of node, made as kernels are."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from jitad.compile.loops import (
    ENDLESS,
    STATUS_GUARD,
    Accumulator,
    Buffer,
    Combine,
    Loop,
    Program,
    Return,
    SetElement,
    Statement,
    Update,
    tag,
)
from jitad.compile.lower.lower import program_of
from jitad.compile.plan.pull import Pull
from jitad.tape.builder import Builder
from jitad.tape.expr import Expr, call, cast, const, load, var
from jitad.tape.types import Aval, Node, Primitive

WAYS = {0: "0", 1: "1"}       # how an operand is walked along the innermost loop, else by a stride
Element = Callable[[list[Expr]], Expr]


def buffer(name: str, dtype: str, kind: str = "input", size: int = ENDLESS) -> Buffer:
    return Buffer(name, dtype, (size,), kind)


def place(name: str, ways: str, variables: Sequence[str]) -> Expr:
    """The index of an operand's element at the variables of the loops: its offset, and a stride for each loop, where
    the innermost one is `ways`: 0, 1 or a number that is told."""
    single = len(variables) == 1 and ways != "s"
    total = const(0, "i8") if single else var(f"{name}_at", "i8")
    for d, v in enumerate(variables):
        if d < len(variables) - 1 or ways == "s":
            total = total + var(v, "i8") * var(f"{name}_{d}", "i8")
        elif ways == "1":
            total = var(v, "i8") if single else total + var(v, "i8")
    return total


def numbers(name: str, ways: str, loops: int) -> list[tuple[str, str]]:
    """The integers that a piece is told of an operand."""
    if loops == 1 and ways != "s":
        return []
    strides = loops if ways == "s" else loops - 1
    return [(f"{name}_at", "i8"), *((f"{name}_{d}", "i8") for d in range(strides))]


def nested(count: int, body: list[Statement], first: int = 0) -> list[Statement]:
    for d in reversed(range(first, first + count)):
        body = [Loop(f"i{d}", 0, var(f"n{d}", "i8"), body)]
    return body


def element_of(prim: Primitive, params: Any, avals: Sequence[Aval]) -> Element:
    """The scalar expression of an elementwise row."""
    builder = Builder()
    xs = [builder.input(Aval((), a.dtype), f"x{i}") for i, a in enumerate(avals)]
    node = builder.apply(prim, [x.number for x in xs], params)
    tape = builder.tape([node])

    def made(operands: list[Expr]) -> Expr:
        given = dict(zip(tape.inputs, operands, strict=True))
        pull = Pull(tape, set(), lambda number, at: given[number] if number in given else const(
            tape.nodes[number].constant.item(), tag(tape.nodes[number].aval.dtype)))    # type: ignore[union-attr]
        return pull.element(tape.outputs[0], ())
    return made


def walk(element: Element, dtypes: Sequence[str], out: str, ways: str, loops: int, op: str) -> Program:
    """``y[...] = element(x0[...], x1[...], ...)`` in nested loops, or ``+=``. `ways` has a letter for each operand, and
    one for the result."""
    names = [*(f"x{k}" for k in range(len(dtypes))), "y"]
    variables = [f"i{d}" for d in range(loops)]
    at = [place(name, way, variables) for name, way in zip(names, ways, strict=True)]
    value = element([load(name, (index,), dtype) for name, index, dtype in zip(names, at, dtypes, strict=False)])
    last: Statement = Update("y", (at[-1],), op, value) if op != "store" else SetElement("y", (at[-1],), value)
    told = [(f"n{d}", "i8") for d in range(loops)]
    for name, way in zip(names, ways, strict=True):
        told += numbers(name, way, loops)
    return Program((*(buffer(n, d) for n, d in zip(names, dtypes, strict=False)), *told),
                   (buffer("y", out, "output"),), (), nested(loops, [last]), (), {})


def fold(element: Element, dtypes: Sequence[str], ways: str, kept: int, folded: int, op: str, first: Expr) -> Program:
    """``y[kept] = op over folded of element(x0[kept, folded], ...)``; the result is in C order."""
    names = [f"x{k}" for k in range(len(dtypes))]
    loops = kept + folded
    variables = [f"i{d}" for d in range(loops)]
    at = [place(name, way, variables) for name, way in zip(names, ways, strict=True)]
    value = element([load(name, (index,), dtype) for name, index, dtype in zip(names, at, dtypes, strict=True)])
    index: Expr = const(0, "i8")
    for d in range(kept):
        index = index * var(f"n{d}", "i8") + var(f"i{d}", "i8") if d else var("i0", "i8")
    body: list[Statement] = [Accumulator("total", first),
                             *nested(folded, [Combine("total", op, value)], kept),
                             SetElement("y", (index,), var("total", first.dtype))]
    told = [(f"n{d}", "i8") for d in range(loops)]
    for name, way in zip(names, ways, strict=True):
        told += numbers(name, way, loops)
    return Program((*(buffer(n, d) for n, d in zip(names, dtypes, strict=True)), *told),
                   (buffer("y", first.dtype, "output"),), (), nested(kept, body), (), {})


def product(dtype: str) -> Element:
    return lambda xs: call("and" if dtype == "b1" else "mul", *xs)


def same(xs: list[Expr]) -> Expr:
    return xs[0]


def guarding(dtype: str) -> Program:
    """Stops unless a number is the one expected."""
    found = cast(load("x0", (const(0, "i8"),), dtype), "i8")
    return Program((buffer("x0", dtype, size=1), ("expected", "i8")), (), (),
                   [Return(found.eq(var("expected", "i8")), STATUS_GUARD)], (), {})


def alone(builder: Builder, outputs: Sequence[int]) -> Program:
    """The program of a small tape of inputs in C order, with what it gives in buffers, all by flat indices."""
    tape = builder.tape(list(outputs))
    made = program_of(tape, ("C",) * len(tape.inputs))
    arrays, numbers, rest, body = iter(made.outputs), iter(made.results), [], list(made.body)
    for place, o in enumerate(tape.outputs):
        aval = tape.nodes[o].aval
        if aval.ndim:
            rest.append(next(arrays))
        else:
            rest.append(Buffer(f"result_{place}_", tag(aval.dtype), (1,), "output"))
            body.append(SetElement(rest[-1].name, (const(0, "i8"),), next(numbers)))
    flat: list[Any] = [replace(p, shape=(p.size,)) if isinstance(p, Buffer) else p for p in made.parameters]
    return replace(made, parameters=tuple(flat), outputs=tuple(replace(b, shape=(b.size,)) for b in rest),
                   body=body, results=())


def on_its_own(node: Node, avals: Sequence[Aval]) -> Program:
    """One node."""
    builder = Builder()
    builder.line = node.where
    inputs = [builder.input(Aval(a.shape, a.dtype), f"x{i}").number for i, a in enumerate(avals)]
    return alone(builder, [builder.apply(node.prim, inputs, node.params)])


def loop_of(node: Node, avals: Sequence[Aval], picks: Sequence[Node]) -> Program:
    """A loop, with what is picked of it."""
    builder = Builder()
    builder.line = node.where
    inputs = [builder.input(Aval(a.shape, a.dtype), f"x{i}").number for i, a in enumerate(avals)]
    bundle = builder.apply(node.prim, inputs, node.params)
    return alone(builder, [builder.apply(p.prim, [bundle], p.params) for p in picks])
