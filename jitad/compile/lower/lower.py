"""Lowering: the groups of a plan become a program of the loop language."""
from __future__ import annotations

from typing import Any

from jitad.compile.loops import Buffer, CallRoutine, Let, Loop, Note, Program, Statement, tag
from jitad.compile.lower.nest import Nest
from jitad.compile.lower.scan.lower import lower_scan
from jitad.compile.lower.scope import Scope
from jitad.compile.lower.slots import block_rows, workspace
from jitad.compile.plan.collapse import Addressing, collapse
from jitad.compile.plan.factors import share_factors
from jitad.compile.plan.fuse import FusionPlan, Group, fuse
from jitad.compile.plan.prepare import prepare
from jitad.compile.plan.pull import Pull
from jitad.passes.optimise.guards import without_implied
from jitad.primitives.linalg.matrices import routine_numbers
from jitad.tape.expr import Expr, const, load, var
from jitad.tape.tape import Tape


def program_of(tape: Tape, layouts: tuple[str, ...]) -> Program:
    """The kernel of an optimised tape, for inputs that lie in memory as `layouts` says (see `prepare`)."""
    return lower(plan_of(tape, layouts), layouts)


def plan_of(tape: Tape, layouts: tuple[str, ...]) -> FusionPlan:
    """The plan of its groups."""
    return fuse(prepare(share_factors(without_implied(tape)), layouts), layouts)


def lower(plan: FusionPlan, layouts: tuple[str, ...]) -> Program:
    """The program of `plan`; `layouts` as for `prepare`."""
    scope = begin(plan, layouts)
    lower_groups(scope)
    return finish(scope)


def begin(plan: FusionPlan, layouts: tuple[str, ...]) -> Scope:
    """What stands before the groups: the guards that look at inputs."""
    scope = Scope(plan, layouts)
    for number in scope.tape.inputs:
        scope.body += scope.guarded(number)
    return scope


def finish(scope: Scope) -> Program:
    """The program of a scope whose groups are lowered."""
    tape = scope.tape
    parameters: list[Any] = []
    for i in tape.inputs:
        aval = tape.nodes[i].aval
        parameters.append((scope.names[i], tag(aval.dtype)) if i in scope.numbers else Buffer(
            scope.names[i], tag(aval.dtype), aval.shape, "input", order=scope.layouts[i]))
    outputs = tuple(Buffer(scope.names[o], tag(tape.nodes[o].aval.dtype), tape.nodes[o].aval.shape, "output")
                    for o in tape.outputs if tape.nodes[o].aval.ndim)
    work, sizes = workspace(scope.arrays())
    results = tuple(var(scope.names[o], tag(tape.nodes[o].aval.dtype)) for o in tape.outputs
                    if not tape.nodes[o].aval.ndim)
    return Program(tuple(parameters), outputs, (*scope.data(), *work), scope.body, results, sizes)


def lower_groups(scope: Scope) -> None:
    """Append the statements of all groups to the body."""
    for number in range(len(scope.plan.groups)):
        lower_group(scope, number)


def lower_group(scope: Scope, number: int) -> None:
    """Append the statements of one group."""
    group = scope.plan.groups[number]
    scope.group = number
    if group.kind == "scalar":
        _scalar_group(scope, group)
    elif group.kind == "call":
        _call(scope, group)
    elif group.kind == "scan":
        lower_scan(scope, group, lower_groups)
    else:
        _loop_group(scope, group)


def _scalar_group(scope: Scope, group: Group) -> None:
    pull = Pull(scope.tape, scope.plan.materialised, scope.read)
    for root in group.roots:
        at = root.at({})
        value = root.value(pull, at)
        statements = scope.finished(root, value, at, pull)        # may start an accumulated array before itself
        scope.body += statements
        if isinstance(root.node, int) and scope.tape.nodes[root.node].aval.ndim == 0:
            pull.memo[root.node, ()] = var(scope.names[root.node], value.dtype)


def _call(scope: Scope, group: Group) -> None:
    for root in group.roots:
        node = scope.tape.nodes[root.node]                         # type: ignore[index]
        names = [scope.operand(i) for i in node.inputs]
        prim, avals = node.prim, [scope.tape.nodes[i].aval for i in node.inputs]
        result = scope.touch(root.node).name                      # type: ignore[arg-type]
        numbers = prim.numbers(*avals, node.aval) if prim.numbers is not None else routine_numbers(
            prim, [a.shape for a in avals], node.params)
        scope.body.append(CallRoutine(prim.name, (result, *names), numbers))
        if node.aval.ndim == 0:
            element = load(result, (const(0, "i8"),), tag(node.aval.dtype))
            scope.body.append(Let(scope.names[root.node], element))  # type: ignore[index]
            scope.body += scope.guarded(root.node)                 # type: ignore[arg-type]


def _loop_group(scope: Scope, group: Group) -> None:
    phases = group.phases()
    rows = block_rows(group)
    scope.block = rows if len(phases) > 1 and group.length > rows and group.kind == "loop" else 0
    _note(scope, group)
    before: list[Statement] = []
    after: list[Statement] = []
    loops: list[Statement] = []
    for roots in phases:
        if not scope.block:
            pull = Pull(scope.tape, scope.plan.materialised, scope.read)
            collapse(roots, Addressing(scope.tape, pull, scope.is_flat))
        nest = Nest(scope, roots, group.length, bool(scope.block))
        loops += nest.emit(before, after)
    scope.body += before
    if scope.block:
        stop = var("block", "i8") + scope.block
        if group.length % scope.block:
            stop = Expr("min", (stop, const(group.length, "i8")), "i8")
        scope.body.append(Loop("block", 0, group.length, [Let("end", stop), *loops], step=scope.block))
    else:
        scope.body += loops
    scope.body += after
    scope.block = 0


def _note(scope: Scope, group: Group) -> None:
    lines = sorted({f"{w.filename.rsplit('/', 1)[-1]}:{w.line}" for r in group.roots if isinstance(r.node, int)
                    and (w := scope.tape.nodes[r.node].where)})
    if lines:
        scope.body.append(Note(", ".join(lines[:4]) + (", ..." if len(lines) > 4 else "")))
