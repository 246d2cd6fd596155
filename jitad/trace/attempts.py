"""What may fail where user code would catch it: computed at once, and the outcome is a branch of the recording.

Recording computes only what code asks for. But inside of a ``try`` the code does ask, without a word, whether an
operation succeeds: what NumPy raises must be raised there, and the tape must say for which arguments it is raised.
Outside of any ``try`` nothing is asked: a kernel stops, and the call raises what NumPy raises.
"""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.primitives.index import concatenate, reshape
from jitad.primitives.linalg.failures import FAILS, condition
from jitad.primitives.reduce import reduce_all
from jitad.tape.builder import Builder, Value
from jitad.tape.evaluate import evaluate_node
from jitad.tape.tape import needed
from jitad.tape.types import TABLE, Primitive

NOT_FINITE = "array must not contain infs or NaNs"
FINITE: frozenset[Primitive] = frozenset({TABLE["cholesky"]})    # rows whose results are finite if their operands are


def attempted(recorder: Any, prim: Primitive, inputs: Sequence[int], params: Mapping[str, Any],
              caught: bool = True) -> int:
    """The node of `prim`, with a guard that it fails, or does not, as now; raises what NumPy raises if it does."""
    if not all(map(recorder.knows, inputs)):
        return Builder.apply(recorder, prim, inputs, params)
    operands = [recorder.concrete(i) for i in inputs]
    fails = Builder.apply(recorder, FAILS[prim], inputs, {**params, "leading": 0, "caught": caught})
    number = Builder.apply(recorder, prim, inputs, params)
    raised = None
    try:
        recorder.know(number, evaluate_node(recorder.nodes[number], operands))
    except np.linalg.LinAlgError as error:
        raised = error
    recorder.know(fails, np.asarray(raised is not None))
    recorder.guard(Value(recorder, fails), raised is not None, recorder.where())
    if raised is not None:
        if number < fails:                               # made before where nothing caught it: it has failed there
            recorder.refusals.append(raised)
        raise raised
    return number


def require_unread(recorder: Any, outputs: Sequence[Value]) -> None:
    """What may fail has to succeed also where nothing reads its result: raises what NumPy raises, and guards that."""
    if recorder.examples:
        return
    _require_within_unread(recorder, outputs)
    read = needed(recorder.nodes, [*(v.number for v in outputs), *recorder.guards])
    for number in dict.fromkeys(recorder.fallible):
        node = recorder.nodes[number]
        if not read[number]:
            recorder.line = node.where
            try:
                attempted(recorder, node.prim, node.inputs, node.params, caught=False)
            except np.linalg.LinAlgError as error:
                error.add_note(f"in {node.prim} at {node.where}")
                raise
    recorder.line = None


def _asked(value: Value) -> bool:
    """Whether the outcome of something about `value` is a branch: would be caught, and is known."""
    recorder: Any = value.builder
    return _records(recorder) and recorder.may_be_caught() and recorder.knows(value.number)


def _records(builder: Builder) -> bool:
    """Whether values have numbers behind them."""
    return hasattr(builder, "knows")


def require_within(index: Value, axis: int, length: int) -> None:
    """Where it would be caught, a computed index that is out of bounds raises what NumPy raises; elsewhere what reads
    the elements does, or `require_unread`."""
    recorder: Any = index.builder
    if not _records(recorder) or bound_of(index) <= length:
        return
    recorder.fine = False                                # for a template, which knows neither
    if _asked(index):
        _decide_within(index, axis, length)
    elif not recorder.bodies:
        recorder.indices.append((index.number, axis, length))


def bound_of(integers: Value) -> float:
    """A bound of integers that are never negative, by the row that computed them; infinity where none is known."""
    node, nodes = integers.node, integers.builder.nodes
    while node.prim.rearranges:
        node = nodes[node.inputs[0]]
    below = node.prim.below
    return below(*(nodes[i].aval for i in node.inputs), **node.params) if below else math.inf


def _decide_within(index: Value, axis: int, length: int) -> None:
    recorder: Any = index.builder
    with recorder.plain():
        i = cast(Value(recorder, index.number), np.int64)
        inside = TABLE["logical_and"](TABLE["ge"](i, -length), TABLE["lt"](i, length))
        inside = reduce_all(inside, axes=tuple(range(inside.ndim))) if inside.ndim else inside
        inside = condition(inside, text="")
    if not recorder.decide(inside):
        known = recorder.concrete(index.number)
        out = known[(known < -length) | (known >= length)].flat[0]
        raise IndexError(f"index {out} is out of bounds for axis {axis} with size {length}")


def _require_within_unread(recorder: Any, outputs: Sequence[Value]) -> None:
    """Indices by which nothing is read or written in the end. Those that one line has made, step by step, are looked at
    together, so that a loop stays one."""
    nodes = recorder.nodes
    read = needed(nodes, [*(v.number for v in outputs), *recorder.guards]) if recorder.indices else bytearray()
    used = {i for node, is_read in zip(nodes, read, strict=False) if is_read and (node.prim.indexed or node.prim.stores)
            for i in node.inputs[1:]}
    unread: dict[tuple[Any, ...], dict[int, None]] = {}
    for number, axis, length in recorder.indices:
        if number not in used and recorder.knows(number):
            unread.setdefault((axis, length, nodes[number].prim, nodes[number].where), {})[number] = None
    for (axis, length, *_), numbers in unread.items():
        with recorder.plain():
            flat = [reshape(i, (i.aval.size,)) for i in map(recorder.value, numbers)]
            _decide_within(concatenate(*flat, axis=0) if len(flat) > 1 else flat[0], axis, length)


def require_finite(check: Any, *arrays: Any) -> None:
    """What SciPy's functions do first with ``check_finite``: ValueError unless all numbers are finite."""
    for array in arrays if check else ():
        if hasattr(type(array), "jitad_parts"):
            require_finite(check, array.real, array.imag)
        elif not isinstance(array, Value):
            np.asarray_chkfinite(array)
        elif array.dtype.kind == "f" and _records(array.builder) and not _is_finite(array):
            _require_finite(array)


def _is_finite(x: Value) -> bool:
    """Whether the tape says so: it was required before, or is made of such by a row that keeps it."""
    nodes, required = x.builder.nodes, x.builder.required            # type: ignore[attr-defined]
    number = x.number
    while number not in required:
        node = nodes[number]
        if node.constant is not None:
            np.asarray_chkfinite(node.constant)
            return True
        if node.index_map is None and node.prim not in FINITE:
            return False
        number = node.inputs[0]
    return True


def _require_finite(x: Value) -> None:
    recorder: Any = x.builder
    with recorder.plain():
        fine = TABLE["isfinite"](Value(recorder, x.number))
        fine = reduce_all(fine, axes=tuple(range(x.ndim))) if x.ndim else fine
        asked, known = _asked(x), recorder.knows(x.number)
        fine = condition(fine, text="" if asked else NOT_FINITE)
    if asked:
        if not recorder.decide(fine):
            raise ValueError(NOT_FINITE)
    elif known:
        recorder.guard(fine, True, recorder.where())
    else:                                                # of steps of a loop
        return
    recorder.required.add(x.number)


__all__ = ["attempted", "bound_of", "require_finite", "require_unread", "require_within"]
