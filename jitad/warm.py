"""The warm path: one generated function that checks, fetches the captures and calls the kernel.

It stands for a `Transformed` whose last call had this signature. Whatever it does not
expect ends in `Miss` or `TypeError`, and the slow path looks further. Types and
shapes of arrays are checked by the kernel itself.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from jitad.cache.captures import PREFIX
from jitad.cache.identity import Target
from jitad.compile.runtime import Miss
from jitad.entry import Entry
from jitad.trace.pytree import TreeDef, leaves_of

ATOMS = (str, bytes, bool, type(None))


def warm_function(entry: Entry, kernel: Any, target: Target, counters: Any,
                  leaves: Sequence[Any]) -> Callable[..., Any] | None:
    """The warm function of `entry` for `target`, or None where none can be made."""
    source = entry.plan.generate(target, fail=f"raise {PREFIX}miss")
    if source is None or entry.keywords:
        return None
    bound: dict[str, Any] = {**source.bound, f"{PREFIX}miss": Miss, f"{PREFIX}kernel": kernel.call,
                             f"{PREFIX}counters": counters, f"{PREFIX}error": Exception,
                             f"{PREFIX}finish": entry.result.build}
    flat = all(s.spec.is_leaf() and not s.inner for s in entry.structures)
    names = [f"{PREFIX}a{i}" for i in range(len(entry.structures if flat else leaves))]
    head, unpack = ", ".join(names), []
    if not flat:
        bound |= {f"{PREFIX}flatten": _flattener(entry.structures)}
        head, unpack = f"*{PREFIX}args", [f"{', '.join(names)}, = {PREFIX}flatten({PREFIX}args)"]
    checks = [line for name, leaf in zip(names, leaves, strict=True) for line in _check(name, leaf, bound)]
    inputs = [n for n, d in zip(names, entry.dynamic, strict=True) if d]
    call = f"{PREFIX}kernel({', '.join([*inputs, *source.inputs])})"
    lines = [*unpack, *checks]
    if source.lines:
        lines += ["try:", *(f"    {line}" for line in source.lines), f"except {PREFIX}error:", f"    raise {PREFIX}miss"]
    lines += [f"{PREFIX}counters.hits += 1",
              f"return {call}" if entry.result.plain else f"return {PREFIX}finish({call})"]
    return _function(head, lines, bound, source.namespace)


def _check(name: str, leaf: Any, bound: dict[str, Any]) -> list[str]:
    """What the kernel does not check: subclasses of arrays, kinds of numbers, static values."""
    kind = type(leaf)
    key = f"{PREFIX}t{name.removeprefix(PREFIX)}"
    bound[key] = kind
    lines = [f"if {name}.__class__ is not {key}: raise {PREFIX}miss"]
    if kind is not np.ndarray and not isinstance(leaf, (np.generic, float, int)):
        bound[f"{key}v"] = leaf
        lines.append(f"if {name} != {key}v: raise {PREFIX}miss")
    return lines


def _flattener(structures: tuple[TreeDef, ...]) -> Callable[[tuple[Any, ...]], list[Any]]:
    def flatten(args: tuple[Any, ...]) -> list[Any]:
        if len(args) != len(structures):
            raise Miss
        leaves: list[Any] = []
        for value, known in zip(args, structures, strict=True):
            below, structure = leaves_of(value)
            if structure != known:
                raise Miss
            leaves += below
        return leaves
    return flatten


def _function(head: str, lines: list[str], bound: dict[str, Any], namespace: dict[str, Any]) -> Callable[..., Any]:
    """The function with its own names as closure cells, in the user's globals."""
    outer = [f"def {PREFIX}make({', '.join(bound)}):", f" def warm({head}):", *(f"  {line}" for line in lines),
             " return warm"]
    made: dict[str, Any] = {}
    exec(compile("\n".join(outer), "<captures>", "exec"), made)
    make = FunctionType(made[f"{PREFIX}make"].__code__, namespace)
    return make(*bound.values())
