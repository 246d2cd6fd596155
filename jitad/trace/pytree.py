"""Arguments as trees: dicts, tuples, lists, named tuples and dataclasses of leaves.

optree takes the containers apart; a dataclass instance, a leaf to optree, is taken apart here, field by
field, so that no class need be registered (a registry would keep the classes of a notebook alive). None,
strings and whatever else is not a container are leaves.
"""
from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import optree

from jitad.cache.keys.signature import Leaf, describe

__all__ = ["NAMESPACE", "TreeDef", "bare", "classes_in", "count_leaves", "flatten", "leaves_of", "maker",
           "objects_in", "rebuild", "shown", "unflatten"]

NAMESPACE = "jitad"
# The order of a dict's keys is part of the structure, since code that iterates over it sees it. Entered for good, and
# kept: once collected it would be left again.
_ORDERED = optree.dict_insertion_ordered(True, namespace=NAMESPACE)
_ORDERED.__enter__()


@dataclasses.dataclass(frozen=True, slots=True)
class TreeDef:
    """The structure of a tree, hashable. `spec` is optree's; `inner` maps the number of a leaf of
    `spec` that is a dataclass instance to its class, its field names and the structure of its fields. `keys` tells
    the keys of dicts apart that optree takes for equal, 1 and True."""

    spec: Any
    inner: tuple[tuple[int, type, tuple[str, ...], TreeDef], ...] = ()
    keys: tuple[Leaf, ...] = ()


def leaves_of(tree: Any) -> tuple[list[Any], TreeDef]:
    """The leaves of `tree` from left to right, dicts in their own order, and its structure.

    >>> leaves_of({"b": 2, "a": (1, None)})[0]
    [2, 1, None]
    """
    leaves, spec = optree.tree_flatten(tree, none_is_leaf=True, namespace=NAMESPACE)
    for leaf in leaves:
        if hasattr(type(leaf), "__dataclass_fields__"):
            return _with_dataclasses(leaves, spec)
    return leaves, TreeDef(spec, (), _keys(spec))


def _keys(spec: Any) -> tuple[Leaf, ...]:
    """What tells the keys of the dicts in a tree apart from equal ones; empty where all are plain text."""
    keys = [*_all_keys(spec)]
    return tuple(describe(key, static=True) for key in keys) if any(type(key) is not str for key in keys) else ()


def _all_keys(spec: Any) -> Iterator[Any]:
    if spec.is_leaf():
        return
    if issubclass(spec.type, dict):
        yield from spec.entries()
    for child in spec.children() if spec.num_nodes > spec.num_leaves + 1 else ():
        yield from _all_keys(child)


def _with_dataclasses(leaves: list[Any], spec: Any) -> tuple[list[Any], TreeDef]:
    flat: list[Any] = []
    inner = []
    for number, leaf in enumerate(leaves):
        fields = getattr(type(leaf), "__dataclass_fields__", None)
        if fields is None:
            flat.append(leaf)
            continue
        names = _field_names(leaf)
        below, structure = leaves_of(tuple(getattr(leaf, name) for name in names))
        flat += below
        real = getattr(type(leaf), "__jitad_class__", None)  # a stand-in of captures.objects.standins
        inner.append((number, real() if real else type(leaf), names, structure))
    return flat, TreeDef(spec, tuple(inner), _keys(spec))


def _field_names(instance: Any) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(instance))


def flatten(tree: Any, prefix: str) -> tuple[list[Any], list[str], TreeDef]:
    """As `leaves_of`, with the path of each leaf as the user would write it.

    >>> flatten({"beta": [1.0, 2.0]}, "p")[1]
    ["p['beta'][0]", "p['beta'][1]"]
    """
    leaves, structure = leaves_of(tree)
    return leaves, _paths(tree, prefix), structure


def _paths(tree: Any, prefix: str) -> list[str]:
    accessors, leaves, _ = optree.tree_flatten_with_accessor(tree, none_is_leaf=True, namespace=NAMESPACE)
    paths: list[str] = []
    for accessor, leaf in zip(accessors, leaves, strict=True):
        path = accessor.codify(prefix)
        if hasattr(type(leaf), "__dataclass_fields__"):
            for name in _field_names(leaf):
                paths += _paths(getattr(leaf, name), f"{path}.{name}")
        else:
            paths.append(path)
    return paths


def unflatten(structure: TreeDef, leaves: Sequence[Any]) -> Any:
    """The tree of `structure` with these leaves. Dataclass instances are made without running their
    ``__init__`` or ``__post_init__``, so that leaves of any type fit.

    >>> leaves, structure = leaves_of({"b": 2, "a": (1, None)})
    >>> unflatten(structure, [x and 10 * x for x in leaves])
    {'b': 20, 'a': (10, None)}
    """
    if not structure.inner:
        return optree.tree_unflatten(structure.spec, leaves)
    classes = {number: (cls, names, below) for number, cls, names, below in structure.inner}
    rest = iter(leaves)
    outer = []
    for number in range(structure.spec.num_leaves):
        if number in classes:
            cls, names, below = classes[number]
            values = unflatten(below, [next(rest) for _ in range(count_leaves(below))])
            outer.append(rebuild(cls, names, values))
        else:
            outer.append(next(rest))
    return optree.tree_unflatten(structure.spec, outer)


def objects_in(tree: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The containers and leaves of a tree, each container before what is in it, under the names by which code has them.

    >>> [path for path, _ in objects_in({"b": 2, "a": (1, None)}, "p")]
    ['p', "p['b']", "p['a']", "p['a'][0]", "p['a'][1]"]
    """
    yield name, tree
    kind = type(tree)
    if hasattr(kind, "__dataclass_fields__"):
        inside: Iterable[tuple[str, Any]] = ((f".{field}", getattr(tree, field)) for field in _field_names(tree))
    elif optree.is_namedtuple_class(kind) or kind in (list, tuple):
        inside = ((f"[{i}]", x) for i, x in enumerate(tree))
    elif optree.tree_is_leaf(tree, none_is_leaf=True, namespace=NAMESPACE):
        return
    else:
        children, _, entries, _ = optree.tree_flatten_one_level(tree, none_is_leaf=True, namespace=NAMESPACE)
        inside = ((f"[{entry!r}]", x) for entry, x in zip(entries, children, strict=True))
    for part, x in inside:
        yield from objects_in(x, name + part)


def classes_in(structure: TreeDef) -> set[type]:
    """The classes of the named tuples and dataclass instances in a tree."""
    found, pending = set(), [structure.spec]
    while pending:
        spec = pending.pop()
        if spec.type is not None and optree.is_namedtuple_class(spec.type):
            found.add(spec.type)
        pending += spec.children()
    for _, cls, _, below in structure.inner:
        found |= {cls, *classes_in(below)}
    return found


def count_leaves(structure: TreeDef) -> int:
    """How many leaves the structure has."""
    below = sum(count_leaves(inner) for _, _, _, inner in structure.inner)
    return structure.spec.num_leaves - len(structure.inner) + below


def bare(structure: TreeDef) -> bool:
    """Whether the structure is that of a leaf alone."""
    return structure.spec.is_leaf() and not structure.inner


LONGEST = 120  # text of a structure


class _Star:
    def __repr__(self) -> str:
        return "*"


def shown(structure: TreeDef) -> str:
    """The structure in words, a star for each leaf; of a long one the beginning, and how many leaves there are.

    >>> shown(leaves_of({"b": 2, "a": (1, None)})[1])
    "{'b': *, 'a': (*, *)}"
    """
    count = count_leaves(structure)
    text = repr(unflatten(structure, [_Star()] * count))
    return text if len(text) <= LONGEST else f"{text[:LONGEST // 2]}... with {count} leaves"


def maker(cls: type, names: tuple[str, ...]) -> Callable[[Sequence[Any]], Any]:
    """`rebuild` for this class and these fields: written out, which takes a third of the time, if the class sets
    attributes as all objects do."""
    return _writer(names)(cls, object.__new__) if cls.__setattr__ is object.__setattr__ else functools.partial(
        rebuild, cls, names)


@functools.lru_cache(maxsize=256)
def _writer(names: tuple[str, ...]) -> Callable[..., Callable[[Sequence[Any]], Any]]:
    values = [f"v{i}" for i in range(len(names))]
    lines = ["made = new(cls)", f"[{', '.join(values)}] = values",
             *(f"made.{name} = {value}" for name, value in zip(names, values, strict=True)), "return made"]
    scope: dict[str, Any] = {}
    exec("\n".join(["def bound(cls, new):", " def make(values):", *(f"  {line}" for line in lines), " return make"]),
         scope)
    return scope["bound"]


def rebuild(cls: type, names: Sequence[str], values: Sequence[Any]) -> Any:
    """An instance of a dataclass with these fields; nothing of its own runs."""
    instance: Any = object.__new__(cls)
    for name, value in zip(names, values, strict=True):
        object.__setattr__(instance, name, value)
    return instance
