"""What `Result.build` does, written out: the end of a generated shortcut."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import optree

from jitad.cache.keys.getters import PREFIX
from jitad.call.request.results import Frame, Result
from jitad.trace.pytree import TreeDef, maker

Bind = Callable[[Any], str]                    # a name for a value


def returning(result: Result, outputs: str, bind: Bind) -> list[str]:
    """The statements that return the result of which the variable `outputs` has what the kernel gave."""
    if result.plain:
        return [f"return {outputs}"]
    leaves = [outputs] if len(result.forms) == 1 else [f"{PREFIX}o{i}" for i in range(len(result.forms))]
    taken = [f"[{', '.join(leaves)}] = {outputs}"] if len(leaves) > 1 else []
    try:
        formed = [_formed(x, form, dtype, bind) for x, (form, dtype) in zip(leaves, result.forms, strict=True)]
        return [*taken, f"return {_framed(result.frame, iter(formed), bind)}"]
    except _Unusual:
        return [f"return {bind(result.build)}({outputs})"]


class _Unusual(Exception):
    """Something that is not written out."""


def _formed(x: str, form: str, dtype: str, bind: Bind) -> str:
    if form in ("array", "number"):
        return x
    if form == "scalar":
        return f"{bind(np.dtype(dtype).type)}({x})"
    if form == "array0d":
        return f"{bind(np.array)}({x}, {bind(np.dtype(dtype))})"
    raise _Unusual


def _framed(frame: Frame, leaves: Iterator[str], bind: Bind) -> str:
    if frame is None:
        return next(leaves)
    parts = [_framed(below, leaves, bind) for below in frame[1]]
    if frame[0] is None:
        return f"({''.join(f'{part}, ' for part in parts)})"
    if not isinstance(frame[0], TreeDef):
        raise _Unusual
    return _tree(frame[0], iter(parts), bind)


def _tree(tree: TreeDef, leaves: Iterator[str], bind: Bind) -> str:
    inner = {place: (cls, names, below) for place, cls, names, below in tree.inner}
    number = iter(range(tree.spec.num_leaves))

    def branch(spec: Any) -> str:
        if spec.is_leaf():
            place = next(number)
            return next(leaves) if place not in inner else instance(*inner[place])
        parts = [branch(child) for child in spec.children()]
        if spec.type is dict:
            return f"{{{', '.join(f'{bind(key)}: {part}' for key, part in zip(spec.entries(), parts, strict=True))}}}"
        if spec.type is list:
            return f"[{', '.join(parts)}]"
        if spec.type is tuple or optree.is_namedtuple_class(spec.type):
            called = "" if spec.type is tuple else bind(spec.type)
            return f"{called}({''.join(f'{part}, ' for part in parts)})"
        raise _Unusual

    def instance(cls: type, names: tuple[str, ...], below: TreeDef) -> str:
        return f"{bind(maker(cls, names))}({_tree(below, leaves, bind)})"
    return branch(tree.spec)
