"""Loops for a whole batch: a scan whose carries, elements and invariants have the batch's dimension where needed."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from jitad.passes.batching.rules import Batched, from_front, full, in_turn, to_front
from jitad.primitives.core import select, zeros_like
from jitad.primitives.reduce import reduce_any
from jitad.primitives.scan import Form, bundle_of, picked
from jitad.primitives.view import broadcast_to, expand_dims
from jitad.tape.builder import Builder, Value
from jitad.tape.tape import Tape
from jitad.tape.types import TABLE, Aval, Node

Run = Callable[[Builder, Sequence[Node], dict[int, Batched], int, Sequence[int]], list[Batched]]


def batch_scan(node: Node, operands: Sequence[Batched], length: int, run: Run) -> list[Batched]:
    """The outputs of a scan for every example; `run` computes nodes of a batch (`batched.batched`)."""
    form = Form.of(node)
    flags = [batched for _, batched in operands]
    while True:                                     # a carry that meets the batch in the body has its dimension too
        body, outputs = _body(form, flags, length, run)
        late = [i for i in range(form.carries) if outputs[i][1] and not flags[i]]
        if not late:
            break
        for i in late:
            flags[i] = True
    if form.until and flags[0]:
        return _each_as_long(node, form, operands, length, run)
    if form.counted and flags[form.fixed]:
        return _each_as_far(node, form, operands, length, run)
    values = [outputs[i][0] if i >= form.carries or outputs[i][1] or not flags[i] else full(outputs[i], length)
              for i in range(len(outputs))]
    again = replace(form, body=body.finish(values))
    bundle = bundle_of(operands[0][0].builder, again, _operands(form, operands, flags, length), node.where)
    moving = [flags[i] if i < form.carries else outputs[i][1] for i in range(len(outputs))]
    return [_output(form, bundle, i, i, batched) for i, batched in enumerate(moving)]


def _operands(form: Form, operands: Sequence[Batched], flags: Sequence[bool], length: int) -> list[Value]:
    """The scan's operands: of an array that is walked, the batch's dimension comes after the one that is walked."""
    values = []
    for place, ((value, batched), flag) in enumerate(zip(operands, flags, strict=True)):
        if form.carries <= place < form.fixed and batched:
            value = from_front(value, 1)
        elif flag and not batched:
            value = full((value, batched), length)
        values.append(value)
    return values


def _output(form: Form, bundle: Value, index: int, place: int, batched: bool) -> Batched:
    """Output `index` of `form`, which is number `place` of the bundle."""
    value = picked(bundle, place)
    return (to_front(value, 1) if batched and index >= form.carries else value), batched


def _body(form: Form, flags: Sequence[bool], length: int, run: Run) -> tuple[Builder, list[Batched]]:
    """The body on a new builder, its operands batched as `flags` says."""
    builder = Builder()
    leaves = {number: _input(builder, form, place, place < len(flags) and flags[place], length)
              for place, number in enumerate(form.body.inputs)}
    return builder, run(builder, form.body.nodes, leaves, length, form.body.outputs)


def _input(builder: Builder, form: Form, place: int, batched: bool, length: int) -> Batched:
    aval = form.input(place)
    shape = (length, *aval.shape) if batched else aval.shape
    return builder.input(Aval(shape, aval.dtype), form.name(place)), batched


# --- loops that end at different times -----------------------------------------------------------

def _each_as_long(node: Node, form: Form, operands: Sequence[Batched], length: int, run: Run) -> list[Batched]:
    """A loop that each example leaves when its own condition says so. All go on while one does; those that are done
    keep their carries. Where a step may fail, examples that are done must not do it: then one after the other."""
    if any(n.can_fail for n in form.body.nodes):
        return [(v, True) for v in in_turn(operands, length, lambda inner, values: _alone(inner, node, form, values))]
    builder = operands[0][0].builder
    flags = [place < form.carries or batched for place, (_, batched) in enumerate(operands)]
    body = Builder()
    body.input(Aval((), form.input(0).dtype), "any")
    leaves = {number: _input(body, form, place, place < len(flags) and flags[place], length)
              for place, number in enumerate(form.body.inputs)}
    before = [leaves[n][0] for n in form.body.inputs[:form.carries]]
    after = run(body, form.body.nodes, leaves, length, form.body.outputs)
    going = TABLE["logical_and"](before[0], full(after[0], length))
    carries = [going, *(_kept(before[0], full(new, length), old) for new, old in zip(
        after[1:form.carries], before[1:], strict=True))]
    tape: Tape = body.finish([reduce_any(going, axes=(0,)), *carries, *(v for v, _ in after[form.carries:])])
    again = replace(form, body=tape, carries=form.carries + 1)
    values = _operands(form, operands, flags, length)
    bundle = bundle_of(builder, again, [reduce_any(values[0], axes=(0,)), *values], node.where)
    return [_output(form, bundle, i, i + 1, i < form.carries or after[i][1]) for i in range(len(after))]


def _each_as_far(node: Node, form: Form, operands: Sequence[Batched], length: int, run: Run) -> list[Batched]:
    """A loop of which each example does its own number of steps. Walked from the first position on, or back to it, all
    go as far as the longest; for positions that an example does not have it keeps its carries."""
    if any(n.can_fail for n in form.body.nodes):
        return [(v, True) for v in in_turn(operands, length, lambda inner, values: _alone(inner, node, form, values))]
    builder, counts = operands[0][0].builder, operands[form.fixed][0]
    flags = [place < form.carries or batched for place, (_, batched) in enumerate(operands)]
    body = Builder()
    leaves = {}
    for place, number in enumerate(form.body.inputs[:form.operands]):
        if place == form.fixed:
            body.input(Aval((), np.dtype(np.int64)), "most")
        leaves[number] = _input(body, form, place, flags[place], length)
    position = body.input(Aval((), np.dtype(np.int64)), "t")
    leaves |= {number: (position, False) for number in form.body.inputs[form.operands:]}
    before = [leaves[n][0] for n in form.body.inputs[:form.carries]]
    after = run(body, form.body.nodes, leaves, length, form.body.outputs)
    going = TABLE["lt"](broadcast_to(position, (length,)), leaves[form.body.inputs[form.fixed]][0])
    carries = [_kept(going, full(new, length), old) for new, old in zip(after[:form.carries], before, strict=True)]
    rows = [_kept(going, full(row, length), zeros_like(full(row, length))) for row in after[form.carries:]]
    again = replace(form, body=body.finish([*carries, *rows]), counter=True)
    values = _operands(form, operands, flags, length)
    values.insert(form.fixed, TABLE["reduce_max"](counts, axes=(0,)))
    bundle = bundle_of(builder, again, values, node.where)
    return [_output(form, bundle, i, i, True) for i in range(len(after))]


def _kept(going: Value, new: Value, old: Value) -> Value:
    """`new` for the examples that are going on, else `old`."""
    return select(expand_dims(going, tuple(range(1, new.ndim))), new, old)


def _alone(inner: Builder, node: Node, form: Form, values: list[Value]) -> list[Value]:
    bundle = bundle_of(inner, form, values, node.where)
    return [picked(bundle, i) for i in range(len(form.body.outputs))]
