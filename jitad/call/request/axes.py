"""Where the examples of a batch lie: along which axis of each array, in trees of arguments and of results."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optree

from jitad.errors import ArgumentTypeError
from jitad.tape.builder import Value
from jitad.trace.leaves import is_dynamic
from jitad.trace.pytree import NAMESPACE, TreeDef, flatten, leaves_of, unflatten
from jitad.trace.where import user_line

Place = int | None


@dataclass(frozen=True, repr=False)
class Axes:
    """The `in_axes` and `out_axes` of one batch, as trees of ints and None, taken apart so that they are hashable."""

    in_leaves: tuple[Place, ...]
    in_tree: TreeDef
    out_leaves: tuple[Place, ...]
    out_tree: TreeDef

    @classmethod
    def of(cls, in_axes: Any, out_axes: Any) -> Axes:
        """Raises `ArgumentTypeError` for what is not made of ints and None."""
        return cls(*_taken_apart(in_axes, "in_axes"), *_taken_apart(out_axes, "out_axes"))

    @property
    def in_axes(self) -> Any:
        return unflatten(self.in_tree, self.in_leaves)

    @property
    def out_axes(self) -> Any:
        return unflatten(self.out_tree, self.out_leaves)

    def __repr__(self) -> str:
        return f"in_axes={self.in_axes!r}, out_axes={self.out_axes!r}"

    def of_call(self, args: Sequence[Any], kwargs: dict[str, Any], names: Sequence[str],
                name: str) -> tuple[list[Place], int]:
        """The axis of each leaf of a call, positional arguments first, and how many examples there are.

        Raises `ArgumentTypeError` where the arguments do not have such axes, or axes of different lengths.
        """
        spec = self.in_axes
        if isinstance(spec, (tuple, list)) and len(spec) != len(args):
            raise ArgumentTypeError(f"in_axes={spec!r} of `{name}` is for {len(spec)} positional arguments, but it was "
                                    f"called with {len(args)} (at {user_line()}); give one entry for each")
        entries = list(spec) if isinstance(spec, (tuple, list)) else [spec] * len(args)
        rest = spec if spec is None or isinstance(spec, int) else None
        places: list[Place] = []
        found: dict[str, int] = {}
        for entry, value, prefix in [*zip(entries, args, names, strict=True), *((rest, v, k) for k, v in
                                                                               kwargs.items())]:
            leaves, paths, _ = flatten(value, prefix)
            for axis, leaf, path in zip(_spread(entry, value, f"in_axes for `{prefix}`"), leaves, paths, strict=True):
                places.append(_axis_of(leaf, axis, path, name))
                if places[-1] is not None:
                    found[path] = leaf.shape[places[-1]]
        if not found:
            raise ArgumentTypeError(f"no argument of `{name}` has examples: in_axes={spec!r} (called at {user_line()})")
        if len(set(found.values())) > 1:
            shown = ", ".join(f"`{path}` has {n}" for path, n in found.items())
            raise ArgumentTypeError(f"the arguments of `{name}` have different numbers of examples: {shown} (called at "
                                    f"{user_line()}); say in_axes=None for what all examples share")
        return places, next(iter(found.values()))

    def of_result(self, result: Any, name: str) -> list[Place]:
        """The axis for each leaf of a result."""
        return _spread(self.out_axes, result, f"out_axes of `{name}`")


def _taken_apart(axes: Any, what: str) -> tuple[tuple[Place, ...], TreeDef]:
    leaves, tree = leaves_of(axes)
    if not all(x is None or (isinstance(x, (int, np.integer)) and not isinstance(x, bool)) for x in leaves):
        raise ArgumentTypeError(f"{what} must be an int or None, or one of them for each argument or part of it, not "
                                f"{axes!r} (at {user_line()})")
    return tuple(x if x is None else int(x) for x in leaves), tree


def _spread(axes: Any, value: Any, what: str) -> list[Place]:
    """`axes`, a tree that ends where `value` may go on, for each leaf of `value`."""
    if axes is None or isinstance(axes, int):
        return [axes] * len(leaves_of(value)[0])
    try:
        outer = optree.broadcast_prefix(axes, value, none_is_leaf=True, namespace=NAMESPACE)
    except (ValueError, TypeError) as error:
        raise ArgumentTypeError(f"{what}, {axes!r}, has another structure than what it is for (at {user_line()}): "
                                f"{error}") from None
    parts = optree.tree_leaves(value, none_is_leaf=True, namespace=NAMESPACE)
    return [axis for axis, part in zip(outer, parts, strict=True) for _ in leaves_of(part)[0]]


def _axis_of(leaf: Any, axis: Place, path: str, name: str) -> Place:
    """The axis, counted from the front. What is no data is the same for all examples."""
    if axis is None or not (isinstance(leaf, Value) or is_dynamic(leaf)):
        return None
    ndim = leaf.ndim if isinstance(leaf, Value) else np.ndim(leaf)
    if not -ndim <= axis < ndim:
        kind = f"has {ndim} dimensions" if ndim else "is a number"
        raise ArgumentTypeError(f"argument `{path}` of `{name}` {kind} and no axis {axis} of examples (called at "
                                f"{user_line()}); say in_axes=None for what all examples share")
    return axis % ndim


def example(leaf: Any, axis: Place, number: int = 0) -> Any:
    """One example of an array; zeros if there is none."""
    if axis is None:
        return leaf
    if not leaf.shape[axis]:
        return np.zeros((*leaf.shape[:axis], *leaf.shape[axis + 1:]), leaf.dtype)[()]
    return leaf[(slice(None),) * axis + (number,)]
