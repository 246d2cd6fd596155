"""Lowering of `scan`: a sequential loop of its own.

Scalar carries are variables, the elements of scanned arrays are loads at the position of the step, stacks are
stores. A body of scalars and small arrays is written out element by element (`unroll`), so that everything
stays in registers; any other body goes through the planner like a tape of its own, with its carries in buffers.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from jitad.compile.loops import Accumulator, Assign, Let, Loop, SetElement, Statement, tag
from jitad.compile.lower.names import VARIABLES
from jitad.compile.lower.scan.loop import ScanLoop
from jitad.compile.lower.scan.tiles import TiledLoop, tiled
from jitad.compile.lower.scan.unroll import Unrolled, unrollable
from jitad.compile.lower.scope import Scope
from jitad.compile.plan.fuse import Group, fuse
from jitad.compile.plan.index import Affine, Indices, as_expr, flattened
from jitad.compile.plan.prepare import prepare
from jitad.primitives.scan import Form
from jitad.tape.expr import Expr, load, var


def lower_scan(scope: Scope, group: Group, lower_groups: Callable[[Scope], None]) -> None:
    """Append the loops of the scans of `group` to the statements; `lower_groups` lowers the plan of a body."""
    for root in group.roots:
        number: int = root.node                                       # type: ignore[assignment]
        form = Form.of(scope.tape.nodes[number])
        if not unrollable(form):
            _planned(ScanLoop(scope, number), lower_groups)
        else:
            _unrolled(TiledLoop(scope, number) if tiled(form) else ScanLoop(scope, number))


def cells(shape: tuple[int, ...]) -> Iterator[Indices]:
    """The index of every element, in C order."""
    for at in np.ndindex(shape):
        yield tuple(map(Affine, at))


def _unrolled(loop: ScanLoop) -> None:
    """Every element of every carry is a variable."""
    form = loop.form
    carried: list[list[Expr]] = []
    for i in range(form.carries):
        name = loop.unique(_plain(form.name(i)))
        carried.append([])
        for k, at in enumerate(cells(form.input(i).shape)):
            variable = f"{name}{k}" if at else name
            loop.before.append(Accumulator(variable, loop.first(i, at)))
            carried[-1].append(var(variable, tag(form.input(i).dtype)))
    lines = Unrolled(loop, carried)
    lines.statements += loop.leave(carried[0][0]) if carried else []
    outputs = lines.run()
    body = lines.statements
    for i in range(form.carries, len(form.body.outputs)):
        shape = form.body.nodes[form.body.outputs[i]].aval.shape
        for at, value in zip(cells(shape), outputs[i], strict=True):
            body += loop.stack(i, at, value)
    changes = [(old, new) for i in range(form.carries) for old, new in zip(carried[i], outputs[i], strict=True)
               if old != new]
    olds = {old.args[0] for old, _ in changes}
    for place, (old, new) in enumerate(changes):
        if new.op == "var" and new.args[0] in olds:                  # it must be read before it changes
            held = loop.unique("old")
            body.append(Let(held, new))
            changes[place] = (old, var(held, new.dtype))
    body += [Assign(old.args[0], new) for old, new in changes]
    for i in range(form.carries):
        for at, value in zip(cells(form.input(i).shape), carried[i], strict=True):
            loop.finals(i, at, value)
    loop.finish(body)


def _plain(name: str) -> str:
    clean = "".join(c if c.isalnum() and c.isascii() else "_" for c in name)
    return clean if clean and not clean[0].isdigit() else f"x{clean}"


# --- bodies with larger arrays ----------------------------------------------------------------

def _planned(loop: ScanLoop, lower_groups: Callable[[Scope], None]) -> None:
    """The body is planned and lowered as a tape of its own inside the loop."""
    form, outer = loop.form, loop.scope
    whole = {p for p in range(form.fixed, form.operands) if loop.is_whole(p)}
    layouts = tuple("number" if form.input(p).shape == () else "C" if p < form.carries or p in whole else "A"
                    for p in range(len(form.body.inputs)))
    tape = prepare(form.body, layouts)
    inner = Scope(fuse(tape, layouts), layouts, outer)
    inner.names |= {tape.inputs[p]: outer.operand(loop.node.inputs[p]) for p in whole}
    outer.inner.append((inner, outer.group))
    body: list[Statement] = []
    body += loop.leave(var(inner.names[tape.inputs[0]], "b1")) if form.carries else []
    buffers = [_bind(loop, inner, body, p) for p in range(len(form.body.inputs))]
    lower_groups(inner)
    body += inner.body
    for i in range(form.carries, len(tape.outputs)):
        body += _copy(tape.nodes[tape.outputs[i]].aval.shape,
                      lambda at, i=i: inner.read(tape.outputs[i], at),
                      lambda at, value, i=i: loop.stack(i, at, value))
    body += _next_carries(loop, inner, buffers)
    for i in range(form.carries):
        if form.input(i).shape == ():
            loop.finals(i, (), inner.read(tape.inputs[i], ()))
        elif i in loop.picks:
            loop.after += _copy(form.input(i).shape, lambda at, i=i: inner.read(tape.inputs[i], at),
                                lambda at, value, i=i: [SetElement(*outer.target(loop.picks[i], at), value)])
    loop.finish(body)


def _bind(loop: ScanLoop, inner: Scope, body: list[Statement], place: int) -> Any:
    """Give input `place` of the body its value: a variable, a buffer (carries that are arrays), or a way to read."""
    form, number = loop.form, inner.tape.inputs[place]
    name, aval = inner.names[number], form.input(place)
    if form.counter and place == len(inner.tape.inputs) - 1:
        body.append(Let(name, as_expr(loop.position)))
    elif aval.shape == () and place < form.carries:
        loop.before.append(Accumulator(name, loop.first(place, ())))
    elif aval.shape == ():
        (loop.before if place >= form.fixed else body).append(Let(name, loop.operand(place, ())))
    elif place >= form.carries:
        inner.sources[number] = lambda at: loop.operand(place, at)
    else:
        inner.buffer(number)
        loop.before += _copy(aval.shape, lambda at: loop.first(place, at),
                             lambda at, value: [SetElement(name, (as_expr(flattened(at, aval.shape)),), value)])
        inner.sources[number] = lambda at: load(name, (as_expr(flattened(at, aval.shape)),), tag(aval.dtype))
    return name


def _next_carries(loop: ScanLoop, inner: Scope, names: list[str]) -> list[Statement]:
    """Assign what the body has made of the carries; outputs of a prepared tape are never its inputs."""
    statements: list[Statement] = []
    for i in range(loop.form.carries):
        shape, number = loop.form.input(i).shape, inner.tape.outputs[i]
        if shape == ():
            statements.append(Assign(names[i], inner.read(number, ())))
        else:
            statements += _copy(shape, lambda at, number=number: inner.read(number, at),
                                lambda at, value, i=i, shape=shape: [
                                    SetElement(names[i], (as_expr(flattened(at, shape)),), value)])
    return statements


def _copy(shape: tuple[int, ...], read: Any, write: Any) -> list[Statement]:
    """Loops over an array; `write(at, value)` gives the statements for one element."""
    at = tuple(Affine(0, ((VARIABLES[d], 1),)) for d in range(len(shape)))
    body = write(at, read(at))
    if not body:
        return []
    for d in reversed(range(len(shape))):
        body = [Loop(VARIABLES[d], 0, shape[d], body)]
    return body
