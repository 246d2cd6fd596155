"""A derivative in recorded code: what is asked of a function, on the tape of the recording that calls for it."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jitad.call.build.derive import Argument, Derivation
from jitad.call.request.request import Request, check_places
from jitad.call.request.results import framed
from jitad.errors import ArgumentTypeError, OutputError
from jitad.primitives.core import alias, cast
from jitad.tape.builder import Value
from jitad.trace.values.pairs import is_packed
from jitad.trace.dispatch import plain
from jitad.trace.leaves import aval_of
from jitad.trace.pytree import TreeDef, flatten, leaves_of, unflatten
from jitad.trace.recorder import Recorder, as_output
from jitad.trace.where import user_line

_slots = itertools.count()


def differentiated(recorder: Recorder, request: Request, function: Callable[..., Any], args: Sequence[Any],
                   kwargs: dict[str, Any], name: str) -> Any:
    """What is asked of a function, on the tape of the recording that calls for it: with respect to aliases of the
    arguments, so that other uses of the same values are constants."""
    seeds: tuple[Value, ...] = ()
    seed_tree = None
    if request.seed_name:
        *args, seed = args
        leaves, seed_tree = plain_leaves(seed)
        seeds = tuple(seed_value(recorder, leaf, request.seed_name, name) for leaf in leaves)
    derivation = recorded_on(recorder, request, function, args, kwargs, name)
    with recorder.plain():
        found, _, result = replace(derivation, seeds=seeds, seed_tree=seed_tree).parts()
    return framed(result.frame, [recorder.value(v.number) for v in found])


def recorded_on(recorder: Recorder, request: Request, function: Callable[..., Any], args: Sequence[Any],
                kwargs: dict[str, Any], name: str) -> Derivation:
    """The function run in the recording that calls it, ready to be differentiated."""
    check_places(request, len(args), name)
    fresh, taken = list(args), []
    for place in request.places:
        given, tree = plain_leaves(args[place])
        paths = flatten(args[place], f"argument {place % len(args)}")[1]
        values = tuple(_aliased(recorder, leaf, name) for leaf in given)
        fresh[place] = unflatten(tree, values)
        taken.append(Argument(tuple(Value(recorder, v.number) for v in values), tree, tuple(paths),
                              tuple(0.0 for _ in paths)))
    result = function(*fresh, **kwargs)
    leaves, tree = plain_leaves(result)
    paths = flatten(result, "result")[1]
    outputs = tuple(as_output(recorder, leaf, path, user_line()) for leaf, path in zip(leaves, paths, strict=True))
    if any(map(is_packed, outputs)):
        raise OutputError(f"`{name}` returned a complex value to be differentiated inside a recorded function, at "
                          f"{user_line()}; return its .real, .imag or np.abs")
    return Derivation(recorder, request, name, tuple(Value(recorder, v.number) for v in outputs), tree,
                      (False,) * len(outputs), tuple(taken))


def plain_leaves(value: Any) -> tuple[list[Any], TreeDef]:
    """Leaves and structure, that of a captured dict as of any other."""
    leaves, tree = leaves_of(value)
    return leaves, leaves_of(unflatten(tree, leaves))[1]


def seed_value(recorder: Recorder, leaf: Any, what: str, name: str) -> Value:
    """A leaf of a seed as a value of the recording."""
    value = Value(recorder, as_value(recorder, leaf).number)
    if value.dtype.kind == "b":
        raise ArgumentTypeError(f"`{what}` for `{name}` has a boolean (called at {user_line()}); a seed is made of "
                                "floats, as what it is for")
    return cast(value, np.float64) if value.dtype.kind in "iu" else value


def as_value(recorder: Recorder, leaf: Any) -> Value:
    leaf = plain(leaf)
    return leaf if isinstance(leaf, Value) else recorder.const(leaf, weak=type(leaf) in (int, float))


def _aliased(recorder: Recorder, leaf: Any, name: str) -> Value:
    value = as_value(recorder, leaf)
    if value.dtype.kind in "iu":
        value = cast(value, np.float64)
    if value.dtype.kind != "f":
        raise ArgumentTypeError(f"an argument of `{name}` of dtype {value.dtype} cannot be differentiated "
                                f"(called at {user_line()})")
    return recorder.value(recorder.apply(alias, [value.number], {"slot": next(_slots)}))
