"""Structural sparsity of a loop: the body's once, with its inputs as columns, then step by step.

A step is a product of boolean matrices: what an output of the body may depend on, times what the inputs of the body
depend on at that position. Only what stacks read of the carries is followed through the steps; the other carries are
wanted after the last one, and get all that any step may bring.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.passes.sparsity.patterns import Pattern, empty, of_matrix, stacked, units
from jitad.passes.sparsity.propagate import Application, constants_of, propagate, rule
from jitad.primitives.scan import Form

STEPS = 4096                       # of longer loops the carries are what they may be at any step


@rule("scan")
def through_scan(step: Application) -> list[Pattern | None]:
    """A pattern for each output of a scan."""
    form, width = Form.of(step.node), next(p for p in step.operands if p is not None).table.shape[1]
    inside, spans = _body(form)
    cut, height = sum(form.output(i).size for i in range(form.carries)), inside.shape[0]
    start = _matrix(step, form, range(form.carries), width)
    brought = _brought(step, form, inside, spans, width)
    steps = np.arange(form.length)[:, None] * height
    own, shown = inside[:cut, :spans[form.carries]], inside[cut:, :spans[form.carries]]
    at_any = _repeated(np.arange(cut), (steps + np.arange(cut)).T, brought.shape[0]) @ brought
    anything = _closed(own, start + at_any)
    stacks = brought[(steps + np.arange(cut, height)).ravel()]
    followed = _followed(own, shown)
    if form.length and followed is not None:
        states = [anything] * form.length if form.length > STEPS else _states(
            form, followed @ own, start, followed, brought, height)
        stacks = stacks + _along(shown, form.length) @ stacked(states)
    return _outputs(form, anything, stacks, height - cut)


def _body(form: Form) -> tuple[Any, list[int]]:
    """What each element of the body's outputs may depend on, and where the columns of each of its inputs begin."""
    body, spans = form.body, [0]
    for place in range(form.operands):
        spans.append(spans[-1] + form.input(place).size)
    known = {body.inputs[p]: units(form.input(p).shape, spans[p], spans[-1]) for p in range(form.operands)
             if form.input(p).dtype.kind == "f"}
    found = propagate(body.nodes, body.outputs, known, constants_of(body))
    parts = [empty(spans[-1], body.nodes[o].aval.size) if p is None else p.matrix()
             for o, p in zip(body.outputs, found, strict=True)]
    return stacked(parts), spans


def _matrix(step: Application, form: Form, places: range, width: int) -> Any:
    """The sets of the operands at some places, below one another."""
    parts = [empty(width, form.input(p).size) if step.operands[p] is None else step.operands[p].matrix()  # type: ignore[union-attr]
             for p in places]
    return stacked(parts) if parts else empty(width, 0)


def _brought(step: Application, form: Form, inside: Any, spans: list[int], width: int) -> Any:
    """What the arrays that are walked, and what is the same at each step, bring to the outputs of the body: a row for
    each position and element."""
    height = inside.shape[0]
    rest = inside[:, spans[form.fixed]:] @ _matrix(step, form, range(form.fixed, form.operands), width)
    found = _repeated(np.arange(form.length * height), np.tile(np.arange(height), form.length)[:, None], height) @ rest
    for place, (offset, stride) in zip(range(form.carries, form.fixed), form.scanned, strict=True):
        pattern = step.operands[place]
        if pattern is not None:
            walked = pattern.moved(pattern.rows[offset + stride * np.arange(form.length)])
            found = found + _along(inside[:, spans[place]:spans[place + 1]], form.length) @ walked.matrix()
    return found


def _along(matrix: Any, length: int) -> Any:
    """The block diagonal matrix that applies a matrix at each position."""
    from scipy.sparse import eye_array, kron

    return kron(eye_array(length, dtype=bool), matrix, format="csr").astype(bool)


def _repeated(rows: np.ndarray, columns: np.ndarray, width: int) -> Any:
    """The boolean matrix with a one in row ``rows[k]`` at each of the columns ``columns[k]``."""
    from scipy.sparse import csr_array

    each = columns.shape[1] if columns.ndim == 2 else 1
    return csr_array((np.ones(columns.size, bool), (np.repeat(rows, each), columns.ravel())), shape=(len(rows), width))


def _states(form: Form, own: Any, start: Any, followed: Any, brought: Any, height: int) -> list[Any]:
    """What the carries that matter may depend on before each step, by position."""
    states: list[Any] = [None] * form.length
    state, cut = followed @ start, start.shape[0]
    for t in form.positions:
        states[t] = state
        state = own @ state + followed @ brought[t * height:t * height + cut]
    return states


def _closed(own: Any, start: Any) -> Any:
    """All that carries may depend on after any number of steps."""
    found = start
    while True:
        more = found + own @ found
        if more.nnz == found.nnz:
            return found
        found = more


def _followed(own: Any, shown: Any) -> Any:
    """The carries that stacks read now or after some steps, as a projection; None if there are none."""
    from scipy.sparse import diags_array

    read = np.zeros(own.shape[0], bool)
    read[shown.indices] = True
    while True:
        more = read.copy()
        more[own[np.flatnonzero(read)].indices] = True
        if (more == read).all():
            break
        read = more
    return diags_array(read, dtype=bool).tocsr() if read.any() else None


def _outputs(form: Form, carries: Any, stacks: Any, each: int) -> list[Pattern | None]:
    """The patterns of the outputs: of the carries, and of the stacks, which have `each` elements at a position."""
    found, start = [], 0
    for index in range(form.carries):
        aval = form.output(index)
        found.append(of_matrix(carries[start:start + aval.size], aval.shape))
        start += aval.size
    start = 0
    for index in range(form.carries, len(form.body.outputs)):
        aval = form.output(index)
        size = aval.size // max(form.length, 1)
        rows = np.arange(form.length)[:, None] * each + np.arange(start, start + size)
        found.append(of_matrix(stacks[rows.ravel()], aval.shape))
        start += size
    return found

