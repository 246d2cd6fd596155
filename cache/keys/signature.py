"""Signatures: what of the arguments a compiled tape depends on, and the difference of two signatures in words."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import optree

from .guards import Unguardable, freeze, show
from .identity import Same

__all__ = ["SCALARS", "Leaf", "Signature", "describe", "difference", "layout", "leaf_difference", "leaf_names"]


class Leaf(NamedTuple):
    """What a tape depends on in one argument leaf.

    kind is one of

    - "array": `shape` and `dtype` count, the contents do not; `static` is the class if it is a subclass
    - "scalar": a NumPy scalar; `dtype` counts; `static` as for an array
    - "float", "int", "bool", "complex": Python numbers, whose values are data; "bigint" for an int beyond 64 bits
    - "static": a value that counts by type and value; `static` is its snapshot by `freeze`
    - "object": anything else, functions too; `static` stands for it by equality if its class defines a hash,
      else by identity. Whether that is enough is for the caller to judge
    """

    kind: str
    shape: tuple[int, ...] = ()
    dtype: np.dtype[Any] | None = None
    static: Hashable = None

    @property
    def weak(self) -> bool:
        """Whether this is a Python number, which takes on the dtype of what it is combined with."""
        return self.kind in _NUMBERS

    def __str__(self) -> str:
        if self.kind == "array":
            prefix = f"{self.static} " if self.static is not None else ""
            return f"{prefix}array of shape {self.shape} and dtype {self.dtype}"
        if self.kind == "scalar":
            prefix = f"{self.static}, a " if self.static is not None else ""
            return f"{prefix}NumPy scalar of dtype {self.dtype}"
        if self.kind == "static":
            return show(self.static)
        if self.kind == "object":
            return _short(self.static)
        return "Python int beyond 64 bits" if self.kind == "bigint" else f"Python {self.kind}"


SCALARS: frozenset[type] = frozenset(np.sctypeDict.values())  # the classes of NumPy scalars, without the users' own
_NUMBERS = frozenset({"float", "int", "bool", "complex", "bigint"})
_PLAIN = {float: Leaf("float"), bool: Leaf("bool"), complex: Leaf("complex")}
_INT, _BIGINT = Leaf("int"), Leaf("bigint")


def describe(value: object, static: bool = False) -> Leaf:
    """Return the leaf for one value; with `static`, numbers count by value too. Never raises.

    >>> describe(np.zeros(3)), describe(2.0).kind, describe("a") == describe("a")
    (Leaf(kind='array', shape=(3,), dtype=dtype('float64'), static=None), 'float', True)
    """
    kind = type(value)
    if static:
        return _by_value(value)
    if kind is np.ndarray:
        return Leaf("array", value.shape, value.dtype)  # type: ignore[attr-defined]
    plain = _PLAIN.get(kind)
    if plain is not None:
        return plain
    if kind is int:
        return _INT if -(2**63) <= value < 2**63 else _BIGINT  # type: ignore[operator]
    if isinstance(value, np.ndarray):
        return Leaf("array", value.shape, value.dtype, Same(kind))
    if isinstance(value, np.generic) and not isinstance(value, enum.Enum):
        return Leaf("scalar", (), value.dtype, None if kind in SCALARS else Same(kind))
    return _by_value(value)


def _by_value(value: object) -> Leaf:
    try:
        return Leaf("static", static=freeze(value, functions=False))
    except Unguardable:
        pass
    if type(value).__hash__ is not object.__hash__:
        with contextlib.suppress(Exception):  # unhashable, or a user's __hash__ that raises anything
            hash(value)
            return Leaf("object", static=(type(value), value))
    return Leaf("object", static=Same(value))


def layout(array: np.ndarray) -> str:
    """Return how an array lies in memory: "C", "F" or "A" (any strides), with "u" if unaligned, "r" if read-only.

    One-dimensional contiguous arrays are "C". Kernels for different layouts may serve one signature.

    >>> layout(np.zeros((2, 3)).T)
    'F'
    """
    flags = array.flags
    order = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
    if flags.writeable and flags.aligned:
        return order
    return f"{order}{'' if flags.aligned else 'u'}{'' if flags.writeable else 'r'}"


class Signature:
    """Hashable key of a call: the leaves of its arguments, their pytree structure, and static settings.

    `structure` is usually the optree spec of the tuple of arguments, but any hashable will do. `static` maps
    names to values that count by type and value. Comparison never looks at names of arguments.

    >>> a = Signature.of([np.zeros(3), 1.0], structure=2)
    >>> a == Signature.of([np.ones(3), 7.5], structure=2), a == Signature.of([np.ones(4), 1.0], structure=2)
    (True, False)
    """

    __slots__ = ("_hash", "leaves", "static", "structure")

    def __init__(self, leaves: tuple[Leaf, ...], structure: Hashable, static: tuple[tuple[str, Leaf], ...] = ()):
        self.leaves = leaves
        self.structure = structure
        self.static = static
        self._hash = hash((leaves, structure, static))

    @classmethod
    def of(
        cls, values: Iterable[object], structure: Hashable = None, static: Mapping[str, object] | None = None
    ) -> Signature:
        """Describe each leaf value and build the signature. Never raises for any kind of leaf."""
        fixed = tuple([(name, describe(value, static=True)) for name, value in static.items()]) if static else ()
        return cls(tuple([describe(value) for value in values]), structure, fixed)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Signature):
            return NotImplemented
        return (
            self._hash == other._hash
            and self.leaves == other.leaves
            and self.structure == other.structure
            and self.static == other.static
        )

    def __repr__(self) -> str:
        return f"Signature({', '.join(map(str, self.leaves))})"


def leaf_names(structure: Hashable, names: Sequence[str]) -> list[str]:
    """Return the path of each leaf, as one would write it: `theta`, `p['beta']`, `q.mu`, `args[2]`.

    `names` are the names of the arguments when `structure` is the optree spec of their tuple; otherwise they
    are already the names of the leaves.

    >>> leaf_names(optree.tree_structure((1, {"beta": 2})), ["theta", "p"])
    ['theta', "p['beta']"]
    """
    if not isinstance(structure, optree.PyTreeSpec):
        return list(names)
    return [accessor[1:].codify(names[accessor[0].entry]) for accessor in structure.accessors()]


LONGEST = 120  # text of a structure


def difference(new: Signature, known: Iterable[Signature], names: Sequence[str]) -> list[str]:
    """Say in words how `new` differs from the closest of the `known` signatures, one line for each cause.

    `names` are as for `leaf_names`, and must fit `new`. Returns an empty list when nothing is known or when
    `new` is known.

    >>> old, new = (Signature.of([np.zeros(n)], structure=None) for n in (3, 4))
    >>> difference(new, [old], ["X"])
    ['argument `X`: shape (3,) -> (4,)']
    """
    best: list[str] | None = None
    for old in known:
        lines = _compare(new, old, names)
        if best is None or len(lines) < len(best):
            best = lines
    return best or []


def _compare(new: Signature, old: Signature, names: Sequence[str]) -> list[str]:
    lines: list[str] = []
    now, before = _arguments(new, len(names)), _arguments(old, len(names))
    if new.structure == old.structure or now is None or before is None:
        if new.structure != old.structure or len(new.leaves) != len(old.leaves):
            lines.append(f"structure of the arguments: {_plain(old.structure)} -> {_plain(new.structure)}")
        else:
            for name, a, b in zip(leaf_names(new.structure, names), old.leaves, new.leaves, strict=False):
                lines += leaf_difference(f"argument `{name}`", a, b)
    else:
        for name, (spec, leaves), (old_spec, old_leaves) in zip(names, now, before, strict=True):
            if spec != old_spec:
                lines.append(f"structure of argument `{name}`: {_plain(old_spec)} -> {_plain(spec)}")
                continue
            for accessor, a, b in zip(spec.accessors(), old_leaves, leaves, strict=True):
                lines += leaf_difference(f"argument `{accessor.codify(name)}`", a, b)
    before_static, now_static = dict(old.static), dict(new.static)
    for name in dict.fromkeys([*before_static, *now_static]):
        absent = Leaf("static", static="(absent)")
        lines += leaf_difference(f"`{name}`", before_static.get(name, absent), now_static.get(name, absent))
    return lines


def _arguments(signature: Signature, count: int) -> list[tuple[Any, tuple[Leaf, ...]]] | None:
    """Cut the leaves up by argument: (spec, leaves) of each, or None where the structure does not say."""
    spec = signature.structure
    if not isinstance(spec, optree.PyTreeSpec) or spec.num_children != count:
        return None
    cut, start = [], 0
    for child in spec.children():
        cut.append((child, signature.leaves[start : start + child.num_leaves]))
        start += child.num_leaves
    return cut


def leaf_difference(name: str, old: Leaf, new: Leaf) -> list[str]:
    """Say in words how two leaves of one name differ, in one line; an empty list when they do not.

    >>> leaf_difference("`x`", Leaf("float"), Leaf("int"))
    ['`x`: Python float -> Python int']
    """
    if old == new:
        return []
    if old.kind != new.kind or old.kind not in ("array", "scalar") or old.static != new.static:
        return [f"{name}: {old} -> {new}"]
    parts = []
    if old.shape != new.shape:
        parts.append(f"shape {old.shape} -> {new.shape}")
    if old.dtype != new.dtype:
        parts.append(f"dtype {old.dtype} -> {new.dtype}")
    return [f"{name}: {', '.join(parts)}"]


def _plain(structure: Hashable) -> str:
    text = str(structure)
    text = text[len("PyTreeSpec(") : -1] if text.startswith("PyTreeSpec(") else text
    count = getattr(structure, "num_leaves", 0)
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}... with {count} leaves"


def _short(static: Hashable) -> str:
    value = static[1] if isinstance(static, tuple) else static
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
