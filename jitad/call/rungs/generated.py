"""Code that is generated for a shortcut: it checks the arguments, fetches the captures and calls the kernel.

It stands for a function whose last call had this signature. Whatever it does not expect ends in `KernelMiss` or
`TypeError`, and the ladder goes on. Types and shapes of arrays are checked by the kernel itself.
"""
from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from keyword import iskeyword
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import optree

from jitad.cache.keys.getters import PREFIX
from jitad.cache.keys.guards import is_atom
from jitad.cache.keys.identity import Target
from jitad.cache.keys.signature import describe
from jitad.call.build.specialization import Specialization
from jitad.call.request.changes import Change
from jitad.call.request.results import Result
from jitad.call.request.sameness import conditions, paths_in
from jitad.call.rungs.results import returning
from jitad.compile.entry.kernel_errors import KernelMiss
from jitad.trace.leaves import as_plain, is_complex, is_dynamic, is_plain, packed
from jitad.trace.pytree import TreeDef, bare, count_leaves, leaves_of, objects_in

BY_VALUE = (str, bytes)
_TELLING = frozenset({str, bytes, int, bool})            # of one of these types, what is equal is the same
_described = functools.partial(describe, static=True)


def python_shortcut(known: Specialization, kernel: Any, target: Target, counters: Any, leaves: Sequence[Any],
                    names: Sequence[str | None], loose: Sequence[str] = (), changes: Sequence[Change] = (),
                    passed: Sequence[Any] = ()) -> Callable[..., Any] | None:
    """The function that calls a kernel of `known` for `target`, or None where none can be made.

    `changes` say of each leaf how it is made of what is given.
    `names` are those by which the positional arguments may be passed, None where there is none; `loose` the keywords
    that no parameter has, whose order the function can see. `passed` are the arguments.
    """
    source = known.plan.generate(target, f"raise {PREFIX}miss", paths_in(known.asked))
    if source is None:
        return None
    named = not {*names, *known.keywords} & {*_NAME.findall("\n".join(source.lines))}
    if known.keywords and not (named and all(n.isidentifier() and not iskeyword(n) for n in known.keywords)):
        return None
    counting = kernel.counting(counters.cell)
    bound: dict[str, Any] = {**source.bound, f"{PREFIX}miss": KernelMiss, f"{PREFIX}kernel": counting or kernel.call,
                             f"{PREFIX}counters": counters, f"{PREFIX}error": Exception}
    heads = [name if named and name else f"{PREFIX}p{i}" for i, name in enumerate(names)]
    writer = _TakingApart(bound)
    more, several = f"{PREFIX}more", len(loose) > 1
    if several:
        writer.check_keys(more, loose)
        writer.lines.append(f"[{', '.join(loose)}] = {more}.values()")
    given = [leaf for name, tree in zip([*heads, *known.keywords], known.structures, strict=True)
             for leaf in writer.tree(name, tree)]
    compared = _compared(known.asked, [*heads[:len(passed) - len(known.keywords)], *known.keywords], passed, source)
    lines = _attempt([*writer.lines, *(source.lines if compared else ()), *compared])
    for name, change in zip(given, changes, strict=False):
        lines += _changed(name, change, bound)
    for name, leaf in zip(given, leaves, strict=True):
        if kernel.exact and is_dynamic(leaf) and not is_complex(leaf):
            continue
        check = _check(name, leaf, bound)
        if check is None:
            return None
        lines.append(f"if {check}: raise {PREFIX}miss")
    inputs = [n for n, d in zip(given, known.dynamic, strict=True) if d]
    inputs, packing = _converted([*inputs, *source.inputs], [
        *(leaf for leaf, d in zip(leaves, known.dynamic, strict=True) if d), *(known.plan.values(target) or ())], bound)
    call = f"{PREFIX}kernel({', '.join(inputs)})"
    lines += [*_attempt([*(() if compared else source.lines), *packing]),
              f"{PREFIX}result = {call}", *([] if counting else [f"{PREFIX}counters.hits += 1"]),
              *returning(known.result, f"{PREFIX}result", writer.bind)]
    single = [name for name in known.keywords if not several or name not in loose]
    head = ", ".join([*heads, *(["*", *single] if single else ()), *([f"**{more}"] if several else ())])
    return function_of(head, lines, bound, source.namespace)


def _compared(asked: Sequence[Any], names: Sequence[str], passed: Sequence[Any], source: Any) -> list[str]:
    """The statements that compare arguments by ``is`` as the code does."""
    if not asked:
        return []
    objects = [name for head, value in zip(names, passed, strict=True) for name, _ in objects_in(value, head)]
    return [f"if {condition}: raise {PREFIX}miss" for condition in conditions(asked, objects, source.objects)]


def native_shortcut(known: Specialization, kernel: Any, target: Target, counters: Any, leaves: Sequence[Any],
                    otherwise: Callable[..., Any]) -> Callable[..., Any] | None:
    """The kernel itself, which then looks at the captures too, with nothing of Python around it; `otherwise` is called
    with what it does not serve. None where arguments or results are taken apart, or captures are inputs."""
    plain = kernel.exact and known.result.plain and not (known.keywords or known.asked) and all(
        map(bare, known.structures)) and all(is_dynamic(leaf) and not is_complex(leaf) for leaf in leaves)
    guards = known.plan.places(target) if plain else None
    return None if guards is None else kernel.counting(counters.cell, otherwise, guards)


def from_leaves(structures: Sequence[TreeDef], leaves: Sequence[Any], call: Callable[..., Any],
                result: Result) -> Callable[..., Any] | None:
    """`call` of the dynamic leaves, as a function of arguments of these structures, with its `result`. Raises
    `KernelMiss` for others. None where a static leaf could only be told by a snapshot."""
    bound: dict[str, Any] = {f"{PREFIX}miss": KernelMiss, f"{PREFIX}kernel": call, f"{PREFIX}error": Exception}
    writer = _TakingApart(bound)
    heads = [f"{PREFIX}p{i}" for i in range(len(structures))]
    given = [leaf for name, tree in zip(heads, structures, strict=True) for leaf in writer.tree(name, tree)]
    lines = _attempt(writer.lines)
    for name, leaf in zip(given, leaves, strict=True):
        check = None if is_dynamic(leaf) else _check(name, leaf, bound)
        if check is None and not is_dynamic(leaf):
            return None
        lines += [] if check is None else [f"if {check}: raise {PREFIX}miss"]
    inputs = ", ".join(n for n, leaf in zip(given, leaves, strict=True) if is_dynamic(leaf))
    lines += [f"{PREFIX}result = {PREFIX}kernel({inputs})", *returning(result, f"{PREFIX}result", writer.bind)]
    return function_of(", ".join(heads), lines, bound, {})


def _converted(names: list[str], values: Sequence[Any], bound: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The variables of the kernel's inputs, and the statements that pack the complex ones and take subclasses off: off
    those that were seen alone, as others may have operations of their own."""
    lines = []
    for place, (name, value) in enumerate(zip(names, values, strict=False)):
        if is_complex(value) or not is_plain(value):
            convert = packed if is_complex(value) else np.asarray if isinstance(value, np.ndarray) else as_plain
            made = names[place] = f"{PREFIX}c{place}"
            bound[f"{made}type"], bound[f"{PREFIX}{convert.__name__}"] = type(value), convert
            lines += [f"if {name}.__class__ is not {made}type: raise {PREFIX}miss",
                      f"{made} = {PREFIX}{convert.__name__}({name})"]
    return names, lines


def _changed(name: str, change: Change, bound: dict[str, Any]) -> list[str]:
    """The statements that make a leaf of what was given."""
    if change is None:
        return []
    key = f"{PREFIX}g{name.removeprefix(PREFIX)}"
    bound[f"{key}type"], bound[f"{key}dtype"], bound[f"{key}make"] = change
    told = f" or {name}.dtype is not {key}dtype" if change[1] is not None else ""
    return [f"if {name}.__class__ is not {key}type{told}: raise {PREFIX}miss", f"{name} = {key}make({name})"]


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
        self.lines.append(f"[{', '.join(parts)}] = {self.bind(_flattener(tree))}({name})")
        return parts

    def _branch(self, name: str, spec: Any, inner: dict[int, Any], numbers: Iterator[int]) -> list[str]:
        if spec.is_leaf():
            number = next(numbers)
            return [name] if number not in inner else self._dataclass(name, *inner[number])
        self._check_class(name, spec.type)
        parts = self._variables(spec.num_children)
        if spec.type is dict:
            self.check_keys(name, spec.entries())
            self.lines.append(f"[{', '.join(parts)}] = {name}.values()")
        else:
            self.lines.append(f"[{', '.join(parts)}] = {name}")
        return [leaf for part, child in zip(parts, spec.children(), strict=True)
                for leaf in self._branch(part, child, inner, numbers)]

    def _dataclass(self, name: str, cls: type, fields: Sequence[str], below: TreeDef) -> list[str]:
        self._check_class(name, cls)
        (parts,) = self._variables(1)
        self.lines.append(f"{parts} = ({''.join(f'{name}.{field}, ' for field in fields)})")
        return self.tree(parts, below)

    def check_keys(self, name: str, keys: Sequence[Any]) -> None:
        """The keys of a dict, in their order. An equal key of another type is another one."""
        found = self._variables(len(keys))
        self.lines.append(f"[{', '.join(found)}] = {name}")
        self.lines += [f"if {' or '.join(map(self._other_key, found, keys))}: raise {PREFIX}miss"] if keys else []

    def _other_key(self, name: str, key: Any) -> str:
        """When a key is another one, which needs a closer look only where it is not the very same object."""
        mine = self.bind(key)
        if type(key) in _TELLING:
            return f"{name} is not {mine} and ({name} != {mine} or {name}.__class__ is not {self.bind(type(key))})"
        return f"{name} is not {mine} and {self.bind(_described)}({name}) != {self.bind(_described(key))}"

    def _check_class(self, name: str, cls: type) -> None:
        self.lines.append(f"if {name}.__class__ is not {self.bind(cls)}: raise {PREFIX}miss")

    def bind(self, value: Any) -> str:
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
            raise KernelMiss
        return leaves
    return flatten


def function_of(head: str, lines: list[str], bound: dict[str, Any], namespace: dict[str, Any]) -> Callable[..., Any]:
    """The function with its own names as closure cells, in the user's globals."""
    outer = [f"def {PREFIX}make({', '.join(bound)}):", f" def shortcut({head}):", *(f"  {line}" for line in lines),
             " return shortcut"]
    make = FunctionType(_compiled("\n".join(outer)), namespace)
    return make(*bound.values())


@functools.lru_cache(maxsize=1024)
def _compiled(source: str) -> CodeType:
    """The code of the one function that `source` defines; a function made again has the same source."""
    made: dict[str, Any] = {}
    exec(compile(source, "<captures>", "exec"), made)
    return made[f"{PREFIX}make"].__code__
