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
from jitad.errors import ArgumentTypeError
from jitad.primitives.core import alias, cast
from jitad.tape.builder import Value
from jitad.trace.values.pairs import Complex, constant, pack, unpacked
from jitad.trace.dispatch import plain
from jitad.trace.leaves import is_complex
from jitad.trace.pytree import TreeDef, flatten, leaves_of, unflatten
from jitad.trace.recorder import Recorder, as_output
from jitad.trace.where import user_line

_slots = itertools.count()


def differentiated(recorder: Recorder, request: Request, function: Callable[..., Any], args: Sequence[Any],
                   kwargs: dict[str, Any], name: str) -> Any:
    """What is asked of a function, on the tape of the recording that calls for it: with respect to aliases of the
    arguments, so that other uses of the same values are constants."""
    if not request.seed_name:
        return results_on(recorder, recorded_on(recorder, request, function, args, kwargs, name))
    *args, seed = args
    seeds = seeds_on(recorder, seed, request.seed_name, name)
    return results_on(recorder, replace(recorded_on(recorder, request, function, args, kwargs, name), **seeds))


def results_on(recorder: Recorder, derivation: Derivation) -> Any:
    """What is asked for, as values of the recording."""
    with recorder.plain():
        found, _, result = derivation.parts()
    return framed(result.frame, [_result(recorder, v, form) for v, (form, _) in zip(found, result.forms, strict=True)])


def _result(recorder: Recorder, value: Value, form: str) -> Any:
    traced: Any = recorder.value(value.number)
    if not form.startswith("complex"):
        return traced
    return Complex(traced[0], traced[1]) if form == "complex number" else Complex(traced[..., 0], traced[..., 1])


def recorded_on(recorder: Recorder, request: Request, function: Callable[..., Any], args: Sequence[Any],
                kwargs: dict[str, Any], name: str) -> Derivation:
    """The function run in the recording that calls it, ready to be differentiated."""
    check_places(request, len(args), name)
    fresh, taken = list(args), []
    for place in request.places:
        given, tree = plain_leaves(args[place])
        paths = flatten(args[place], f"argument {place % len(args)}")[1]
        likes = tuple(_like(plain(leaf)) for leaf in given)
        values = tuple(_aliased(recorder, leaf, name) for leaf in given)
        fresh[place] = unflatten(tree, [unpacked(v, like) if is_complex(like) else v for v, like in zip(
            values, likes, strict=True)])
        if recorder.captures is not None:
            recorder.captures.asked.mean(fresh[place], args[place])
        taken.append(Argument(tuple(Value(recorder, v.number) for v in values), tree, tuple(paths), likes))
    result = function(*fresh, **kwargs)
    leaves, tree = plain_leaves(result)
    paths = flatten(result, "result")[1]
    outputs = tuple(as_output(recorder, leaf, path, user_line()) for leaf, path in zip(leaves, paths, strict=True))
    return Derivation(recorder, request, name, tuple(Value(recorder, v.number) for v in outputs), tree,
                      (False,) * len(outputs), tuple(taken))


def plain_leaves(value: Any) -> tuple[list[Any], TreeDef]:
    """Leaves and structure, that of a captured dict as of any other."""
    leaves, tree = leaves_of(value)
    return leaves, leaves_of(unflatten(tree, leaves))[1]


def seeds_on(recorder: Recorder, seed: Any, what: str, name: str) -> dict[str, Any]:
    """A seed as the fields of a `Derivation` that hold it."""
    leaves, tree = plain_leaves(seed)
    return {"seeds": tuple(_seed_value(recorder, leaf, what, name) for leaf in leaves), "seed_tree": tree,
            "packed_seeds": tuple(_is_complex(leaf) for leaf in leaves)}


def _seed_value(recorder: Recorder, leaf: Any, what: str, name: str) -> Value:
    """A leaf of a seed as a value of the recording."""
    value = Value(recorder, _as_value(recorder, leaf).number)
    if value.dtype.kind == "b":
        raise ArgumentTypeError(f"`{what}` for `{name}` has a boolean (called at {user_line()}); a seed is made of "
                                "floats, as what it is for")
    return cast(value, np.float64) if value.dtype.kind in "iu" else value


def _as_value(recorder: Recorder, leaf: Any) -> Value:
    """A leaf on the tape; of what is complex, both parts in one real array."""
    leaf = plain(leaf)
    if is_complex(leaf):
        leaf = constant(recorder, leaf)
    if isinstance(leaf, Complex):
        return pack(leaf)
    return leaf if isinstance(leaf, Value) else recorder.const(leaf, weak=type(leaf) in (int, float))


def _is_complex(leaf: Any) -> bool:
    return isinstance(plain(leaf), Complex) or is_complex(leaf)


def _like(leaf: Any) -> Any:
    """What a derivative by this leaf is like: a number, or an array without elements' values."""
    if not _is_complex(leaf):
        return 0.0
    number = not np.ndim(leaf) and not getattr(leaf, "boxed", isinstance(leaf, np.ndarray))
    return leaf.dtype.type(0) if number and hasattr(leaf, "dtype") else 0j if number else np.zeros((), leaf.dtype)


def _aliased(recorder: Recorder, leaf: Any, name: str) -> Value:
    value = _as_value(recorder, leaf)
    if value.dtype.kind in "iu":
        value = cast(value, np.float64)
    if value.dtype.kind != "f":
        raise ArgumentTypeError(f"an argument of `{name}` of dtype {value.dtype} cannot be differentiated "
                                f"(called at {user_line()})")
    return recorder.value(recorder.apply(alias, [value.number], {"slot": next(_slots)}))
