"""The warm path: one generated function that checks, fetches the captures and calls the kernel.

It stands for a `Transformed` whose last call had this signature. Whatever it does not
expect ends in `Miss` or `TypeError`, and the slow path looks further. Types and
shapes of arrays are checked by the kernel itself.
"""
from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from keyword import iskeyword
from types import CodeType, FunctionType
from typing import Any

import optree

from jitad.cache.captures import PREFIX
from jitad.cache.guards import is_atom
from jitad.cache.identity import Target
from jitad.compile.kernel_errors import Miss
from jitad.entry import Entry
from jitad.trace.leaves import is_complex, is_dynamic, packed
from jitad.trace.pytree import TreeDef, bare, count_leaves, leaves_of

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
    counting = kernel.counting(counters.cell)
    bound: dict[str, Any] = {**source.bound, f"{PREFIX}miss": Miss, f"{PREFIX}kernel": counting or kernel.call,
                             f"{PREFIX}counters": counters, f"{PREFIX}error": Exception,
                             f"{PREFIX}finish": entry.result.build}
    heads = [name if named and name else f"{PREFIX}p{i}" for i, name in enumerate(names)]
    writer = _TakingApart(bound)
    given = [leaf for name, tree in zip([*heads, *entry.keywords], entry.structures, strict=True)
             for leaf in writer.tree(name, tree)]
    lines = _attempt(writer.lines)
    for name, leaf in zip(given, leaves, strict=True):
        if kernel.exact and is_dynamic(leaf) and not is_complex(leaf):
            continue
        check = _check(name, leaf, bound)
        if check is None:
            return None
        lines.append(f"if {check}: raise {PREFIX}miss")
    inputs = [n for n, d in zip(given, entry.dynamic, strict=True) if d]
    inputs, packing = _packed([*inputs, *source.inputs], [
        *(leaf for leaf, d in zip(leaves, entry.dynamic, strict=True) if d), *(entry.plan.values(target) or ())], bound)
    call = f"{PREFIX}kernel({', '.join(inputs)})"
    lines += [*_attempt([*source.lines, *packing]),
              f"{PREFIX}result = {call}", *([] if counting else [f"{PREFIX}counters.hits += 1"]),
              f"return {PREFIX}result" if entry.result.plain else f"return {PREFIX}finish({PREFIX}result)"]
    head = ", ".join([*heads, *(["*", *entry.keywords] if entry.keywords else ())])
    return _function(head, lines, bound, source.namespace)


def direct_function(entry: Entry, kernel: Any, target: Target, counters: Any, leaves: Sequence[Any],
                    otherwise: Callable[..., Any]) -> Callable[..., Any] | None:
    """The kernel itself, which then looks at the captures too, with nothing of Python around it; `otherwise` is called
    with what it does not serve. None where arguments or results are taken apart, or captures are inputs."""
    plain = kernel.exact and entry.result.plain and not entry.keywords and all(map(bare, entry.structures)) and all(
        is_dynamic(leaf) and not is_complex(leaf) for leaf in leaves)
    guards = entry.plan.places(target) if plain else None
    return None if guards is None else kernel.counting(counters.cell, otherwise, guards)


def free_function(structures: Sequence[TreeDef], leaves: Sequence[Any], call: Callable[..., Any],
                  finish: Callable[[Any], Any] | None) -> Callable[..., Any] | None:
    """`call` of the dynamic leaves, as a function of arguments of these structures; `finish` makes the result. Raises
    `Miss` for others. None where a static leaf could only be told by a snapshot."""
    bound: dict[str, Any] = {f"{PREFIX}miss": Miss, f"{PREFIX}kernel": call, f"{PREFIX}finish": finish,
                             f"{PREFIX}error": Exception}
    writer = _TakingApart(bound)
    heads = [f"{PREFIX}p{i}" for i in range(len(structures))]
    given = [leaf for name, tree in zip(heads, structures, strict=True) for leaf in writer.tree(name, tree)]
    lines = _attempt(writer.lines)
    for name, leaf in zip(given, leaves, strict=True):
        check = None if is_dynamic(leaf) else _check(name, leaf, bound)
        if check is None and not is_dynamic(leaf):
            return None
        lines += [] if check is None else [f"if {check}: raise {PREFIX}miss"]
    result = f"{PREFIX}kernel({', '.join(n for n, leaf in zip(given, leaves, strict=True) if is_dynamic(leaf))})"
    lines.append(f"return {PREFIX}finish({result})" if finish is not None else f"return {result}")
    return _function(", ".join(heads), lines, bound, {})


def _packed(names: list[str], values: Sequence[Any], bound: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The variables of the kernel's inputs, and the statements that pack the complex ones."""
    lines = []
    for place, (name, value) in enumerate(zip(names, values, strict=False)):
        if is_complex(value):
            bound[f"{PREFIX}packed"] = packed
            names[place] = f"{PREFIX}c{place}"
            lines.append(f"{names[place]} = {PREFIX}packed({name})")
    return names, lines


def _attempt(lines: Sequence[str]) -> list[str]:
    """The statements, where any error is a miss."""
    if not lines:
        return []
    return ["try:", *(f"    {line}" for line in lines), f"except {PREFIX}error:", f"    raise {PREFIX}miss"]


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


class _TakingApart:
    """Writes the statements that take arguments apart; they end in any error where one has another structure."""

    def __init__(self, bound: dict[str, Any]):
        self.bound = bound
        self.lines: list[str] = []

    def tree(self, name: str, tree: TreeDef) -> list[str]:
        """The variables of the leaves of `name`, an argument or a part of one."""
        if _plain(tree.spec):
            return self._branch(name, tree.spec, {number: rest for number, *rest in tree.inner}, itertools.count())
        parts = self._variables(count_leaves(tree))
        self.lines.append(f"[{', '.join(parts)}] = {self._bind(_flattener(tree))}({name})")
        return parts

    def _branch(self, name: str, spec: Any, inner: dict[int, Any], numbers: Iterator[int]) -> list[str]:
        if spec.is_leaf():
            number = next(numbers)
            return [name] if number not in inner else self._dataclass(name, *inner[number])
        self._check_class(name, spec.type)
        parts = self._variables(spec.num_children)
        if spec.type is dict:
            self.lines.append(f"if [*{name}] != {self._bind(list(spec.entries()))}: raise {PREFIX}miss")
            keys = [repr(k) if type(k) in (int, str) else self._bind(k) for k in spec.entries()]
            self.lines += [f"{part} = {name}[{key}]" for part, key in zip(parts, keys, strict=True)]
        else:
            self.lines.append(f"[{', '.join(parts)}] = {name}")
        return [leaf for part, child in zip(parts, spec.children(), strict=True)
                for leaf in self._branch(part, child, inner, numbers)]

    def _dataclass(self, name: str, cls: type, fields: Sequence[str], below: TreeDef) -> list[str]:
        self._check_class(name, cls)
        (parts,) = self._variables(1)
        self.lines.append(f"{parts} = ({''.join(f'{name}.{field}, ' for field in fields)})")
        return self.tree(parts, below)

    def _check_class(self, name: str, cls: type) -> None:
        self.lines.append(f"if {name}.__class__ is not {self._bind(cls)}: raise {PREFIX}miss")

    def _bind(self, value: Any) -> str:
        name = f"{PREFIX}s{len(self.bound)}"
        self.bound[name] = value
        return name

    def _variables(self, count: int) -> list[str]:
        return [f"{PREFIX}u{len(self.lines)}_{i}" for i in range(count)]


def _plain(spec: Any) -> bool:
    """Whether a tree is made of dicts, tuples, lists and named tuples alone."""
    cls = spec.type
    if spec.is_leaf():
        return True
    return (cls in (dict, tuple, list) or optree.is_namedtuple_class(cls)) and all(map(_plain, spec.children()))


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
    make = FunctionType(_compiled("\n".join(outer)), namespace)
    return make(*bound.values())


@functools.lru_cache(maxsize=1024)
def _compiled(source: str) -> CodeType:
    """The code of the one function that `source` defines; a function made again has the same source."""
    made: dict[str, Any] = {}
    exec(compile(source, "<captures>", "exec"), made)
    return made[f"{PREFIX}make"].__code__
