"""The warm path: one generated function that checks, fetches the captures and calls the kernel.

It stands for a `Transformed` whose last call had this signature. Whatever it does not
expect ends in `Miss` or `TypeError`, and the slow path looks further. Types and
shapes of arrays are checked by the kernel itself.
"""
from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from keyword import iskeyword
from types import FunctionType
from typing import Any

import optree

from jitad.cache.captures import PREFIX
from jitad.cache.guards import is_atom
from jitad.cache.identity import Target
from jitad.compile.runtime import Miss
from jitad.entry import Entry
from jitad.trace.leaves import is_dynamic
from jitad.trace.pytree import TreeDef, count_leaves, leaves_of

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
    given, lines = _take_apart([*heads, *entry.keywords], entry.structures, bound)
    for name, leaf in zip(given, leaves, strict=True):
        check = _check(name, leaf, bound)
        if check is None:
            return None
        lines.append(f"if {check}: raise {PREFIX}miss")
    inputs = [n for n, d in zip(given, entry.dynamic, strict=True) if d]
    call = f"{PREFIX}kernel({', '.join([*inputs, *source.inputs])})"
    if source.lines:
        lines += ["try:", *(f"    {line}" for line in source.lines)]
        lines += [f"except {PREFIX}error:", f"    raise {PREFIX}miss"]
    lines += [f"{PREFIX}result = {call}", f"{PREFIX}counters.hits += 1",
              f"return {PREFIX}result" if entry.result.plain else f"return {PREFIX}finish({PREFIX}result)"]
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


def _take_apart(names: Sequence[str], structures: Sequence[TreeDef],
                bound: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The variables of the leaves of the arguments, and the statements that put them there."""
    lines: list[str] = []
    leaves = [leaf for name, tree in zip(names, structures, strict=True) for leaf in _leaves(name, tree, bound, lines)]
    if lines:
        lines = ["try:", *(f"    {line}" for line in lines), f"except {PREFIX}error:", f"    raise {PREFIX}miss"]
    return leaves, lines


def _leaves(name: str, tree: TreeDef, bound: dict[str, Any], lines: list[str]) -> list[str]:
    """The variables of the leaves of the argument or part `name`; writes the statements that take it apart."""
    inner = {number: rest for number, *rest in tree.inner}
    numbers = itertools.count()

    def bind(value: Any) -> str:
        bound[f"{PREFIX}s{len(bound)}"] = value
        return f"{PREFIX}s{len(bound) - 1}"

    def variables(count: int) -> list[str]:
        return [f"{PREFIX}u{len(lines)}_{i}" for i in range(count)]

    def visit(name: str, spec: Any) -> list[str]:
        if spec.is_leaf():
            number = next(numbers)
            if number not in inner:
                return [name]
            cls, fields, below = inner[number]
            lines.append(f"if {name}.__class__ is not {bind(cls)}: raise {PREFIX}miss")
            (parts,) = variables(1)
            lines.append(f"{parts} = ({''.join(f'{name}.{field}, ' for field in fields)})")
            return _leaves(parts, below, bound, lines)
        cls = spec.type
        lines.append(f"if {name}.__class__ is not {bind(cls)}: raise {PREFIX}miss")
        parts = variables(spec.num_children)
        if cls is dict:
            lines.append(f"if {bind(len)}({name}) != {spec.num_children}: raise {PREFIX}miss")
            keys = [repr(k) if type(k) in (int, str) else bind(k) for k in spec.entries()]
            lines.extend(f"{part} = {name}[{key}]" for part, key in zip(parts, keys, strict=True))
        else:
            lines.append(f"[{', '.join(parts)}] = {name}")
        return [leaf for part, child in zip(parts, spec.children(), strict=True) for leaf in visit(part, child)]
    if _plain(tree.spec):
        return visit(name, tree.spec)
    parts = variables(count_leaves(tree))
    lines.append(f"[{', '.join(parts)}] = {bind(_flattener(tree))}({name})")
    return parts


def _plain(spec: Any) -> bool:
    """Whether a tree is made of dicts, tuples, lists and named tuples alone."""
    cls = spec.type
    return spec.is_leaf() or (cls in (dict, tuple, list) or optree.is_namedtuple_class(cls)) and all(
        map(_plain, spec.children()))


def _flattener(tree: TreeDef) -> Callable[[Any], list[Any]]:
    def flatten(value: Any) -> list[Any]:
        leaves, found = leaves_of(value)
        if found != tree:
            raise Miss
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
