"""A batch in recorded code: the function runs once, on placeholders for one example, and what it did is then done for
all of them."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitad.call.request.axes import Axes
from jitad.passes.batching.batched import batched
from jitad.passes.batching.rules import to_front
from jitad.call.build.batch import guard_all, placed
from jitad.errors import ConcretizationError
from jitad.tape.types import INPUT
from jitad.tape.builder import Value
from jitad.tape.types import Aval, Node
from jitad.trace.dispatch import plain
from jitad.trace.pytree import flatten, leaves_of, unflatten
from jitad.trace.recorder import Recorder, as_output
from jitad.trace.where import user_line

Run = Callable[[Sequence[Any], dict[str, Any]], Any]


def batched_on(recorder: Recorder, batches: Sequence[Axes], run: Run, args: Sequence[Any], kwargs: dict[str, Any],
               names: Sequence[str], name: str) -> Any:
    """`run` for every example of the arguments, on the tape of `recorder`."""
    if not batches:
        return run(args, kwargs)
    axes, known = batches[0], set(recorder.guards)
    args, kwargs = _arrays(args), dict(zip(kwargs, _arrays(list(kwargs.values())), strict=True))
    places, length = axes.of_call(args, kwargs, names, name)
    rest, leaves = iter(places), {}

    def one(leaf: Any) -> Any:
        place = next(rest)
        if place is None:
            return leaf
        value = leaf if isinstance(leaf, Value) else recorder.const(leaf)
        with recorder.plain():
            rows = to_front(Value(recorder, value.number), place)
        found = _placeholder(recorder, rows)
        leaves[found.number] = (rows, True)
        return found
    fresh = [_mapped(one, value) for value in (*args, *kwargs.values())]
    result = batched_on(recorder, batches[1:], run, fresh[:len(args)],
                        dict(zip(kwargs, fresh[len(args):], strict=True)), names, name)
    found, paths, tree = flatten(result, "result")
    outputs = [as_output(recorder, leaf, path, user_line()) for leaf, path in zip(found, paths, strict=True)]
    with recorder.plain():
        made = batched(recorder, recorder.nodes, leaves, length, [v.number for v in outputs])
        ends = axes.of_result(unflatten(tree, outputs), name)
        values = [placed(value, end, length, name) for value, end in zip(made, ends, strict=True)]
        _guards(recorder, known, leaves, length)
    return unflatten(tree, [recorder.value(v.number) for v in values])


def _arrays(values: Sequence[Any]) -> list[Any]:
    """The arguments with traced arrays as they are now."""
    return [_mapped(plain, value) for value in values]


def _mapped(function: Callable[[Any], Any], value: Any) -> Any:
    leaves, tree = leaves_of(value)
    return unflatten(tree, [function(leaf) for leaf in leaves])


def _placeholder(recorder: Recorder, rows: Value) -> Value:
    """A value for one example; where code asks for its number, that of the first."""
    recorder.nodes.append(Node(INPUT, (), {}, Aval(rows.shape[1:], rows.dtype), None))
    found = recorder.value(len(recorder.nodes) - 1)
    recorder.examples[found.number] = rows.number
    return found


def _guards(recorder: Recorder, known: set[int], leaves: dict[int, Any], length: int) -> None:
    """The guards on one example become guards that all agree.

    Raises `ConcretizationError` if they do not, since there is no way that all could take.
    """
    new = [n for n in recorder.guards if n not in known]
    for n, value in zip(new, batched(recorder, recorder.nodes, leaves, length, new), strict=True):
        if not value[1]:
            continue
        guard = recorder.guards.pop(n)
        agree = guard_all(recorder, guard, value)
        if not np.all(recorder.concrete(agree.number)):
            raise ConcretizationError(
                f"the examples of a batch take different ways at {guard.where}, in code that is recorded, where all "
                "must take one; choose between values by np.where")
