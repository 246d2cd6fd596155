"""The warm path: one generated function that checks, fetches the captures and calls the kernel.

It stands for a `Transformed` whose last call had this signature. Whatever it does not
expect ends in `Miss` or `TypeError`, and the slow path looks further. Types and
shapes of arrays are checked by the kernel itself.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from keyword import iskeyword
from types import FunctionType
from typing import Any

from jitad.cache.captures import PREFIX
from jitad.cache.guards import is_atom
from jitad.cache.identity import Target
from jitad.compile.runtime import Miss
from jitad.entry import Entry
from jitad.trace.leaves import is_dynamic
from jitad.trace.pytree import TreeDef, leaves_of

BY_VALUE = (str, bytes)


def warm_function(entry: Entry, kernel: Any, target: Target, counters: Any, leaves: Sequence[Any],
                  names: Sequence[str | None]) -> Callable[..., Any] | None:
    """The warm function of `entry` for `target`, or None where none can be made.

    `names` are those by which the positional arguments may be passed, None where there is none.
    """
    source = entry.plan.generate(target, fail=f"raise {PREFIX}miss")
    if source is None:
        return None
    named = not {*names, *entry.keywords} & {*_NAME.findall("\n".join(source.lines))}
    if entry.keywords and not (named and all(n.isidentifier() and not iskeyword(n) for n in entry.keywords)):
        return None
    bound: dict[str, Any] = {**source.bound, f"{PREFIX}miss": Miss, f"{PREFIX}kernel": kernel.call,
                             f"{PREFIX}counters": counters, f"{PREFIX}error": Exception,
                             f"{PREFIX}finish": entry.result.build}
    heads = [name if named and name else f"{PREFIX}p{i}" for i, name in enumerate(names)]
    given, lines = [*heads, *entry.keywords], []
    if not all(s.spec.is_leaf() and not s.inner for s in entry.structures):
        bound[f"{PREFIX}flatten"] = _flattener(entry.structures)
        call = f"{PREFIX}flatten({', '.join(given)})"
        given = [f"{PREFIX}a{i}" for i in range(len(leaves))]
        lines = [f"[{', '.join(given)}] = {call}"]
    for name, leaf in zip(given, leaves, strict=True):
        check = _check(name, leaf, bound)
        if check is None:
            return None
        lines.append(f"if {check}: raise {PREFIX}miss")
    inputs = [n for n, d in zip(given, entry.dynamic, strict=True) if d]
    call = f"{PREFIX}kernel({', '.join([*inputs, *source.inputs])})"
    if source.lines:
        lines += ["try:", *(f"    {line}" for line in source.lines), f"except {PREFIX}error:", f"    raise {PREFIX}miss"]
    lines += [f"{PREFIX}counters.hits += 1",
              f"return {call}" if entry.result.plain else f"return {PREFIX}finish({call})"]
    head = ", ".join([*heads, *(["*", *entry.keywords] if entry.keywords else ())])
    return _function(head, lines, bound, source.namespace)


_NAME = re.compile(r"(?<![\w.'\"])[^\W\d]\w*")


def _check(name: str, leaf: Any, bound: dict[str, Any]) -> str | None:
    """When a leaf is not as it was, of what the kernel does not check: subclasses of arrays, kinds of numbers, static
    values. None for a static value that only a snapshot can tell."""
    key = f"{PREFIX}t{name.removeprefix(PREFIX)}"
    if is_dynamic(leaf):
        bound[key] = type(leaf)
        return f"{name}.__class__ is not {key}"
    bound[key] = leaf
    if type(leaf) in BY_VALUE:
        bound[f"{key}type"] = type(leaf)
        return f"{name}.__class__ is not {key}type or {name} != {key}"
    return f"{name} is not {key}" if is_atom(leaf) else None


def _flattener(structures: tuple[TreeDef, ...]) -> Callable[..., list[Any]]:
    def flatten(*args: Any) -> list[Any]:
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
