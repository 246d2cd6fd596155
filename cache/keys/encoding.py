"""Signatures, snapshots and paths as JSON and back, without pickle: nothing that is read can run code.

Text, integers, booleans and None stand for themselves; anything else is a list that starts with a tag.
"""

from __future__ import annotations

import base64
import datetime
import enum
import fractions
import json
import pathlib
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from types import BuiltinFunctionType, GetSetDescriptorType, MethodDescriptorType, ModuleType, WrapperDescriptorType
from typing import Any

import numpy as np
import optree

from .computed import Call
from .identity import Same
from .paths import Path, Step
from .references import Unstorable, refer, resolve
from .signature import Leaf, Signature

__all__ = ["Unstorable", "decode", "dumps", "encode", "loads", "register"]


def encode(value: object) -> Any:
    """Return what `json` can write and `decode` turns into an equal value, also in another process.

    Takes what signatures and plans are made of: atoms, tuples, frozensets, dtypes, code keys, leaves, structures
    of trees; modules, classes, builtins, ufuncs and members of enums that can be found by their names; `Same`.

    Raises `Unstorable` for anything else.

    >>> encode((1, 2.5, np.sin))
    ['t', 1, ['f', '0x1.4000000000000p+1'], ['o', 'numpy', 'sin', '']]
    """
    kind = type(value)
    if kind in (str, int, bool) or value is None:
        return value
    encoder = _ENCODERS.get(kind)
    if encoder is not None:
        return encoder(value)
    if isinstance(value, np.dtype):
        return _dtype(value)
    if isinstance(value, (type, enum.Enum, ModuleType, np.ufunc)) or kind in _BY_NAME:
        return ["o", *refer(value, encode)]
    raise Unstorable(value)


def decode(data: Any) -> Any:
    """Return the value that `encode` was given.

    Raises `Unstorable` when it names something that is not in this process, or is made otherwise by now;
    `ValueError` for what `encode` has not written.
    """
    if isinstance(data, (str, int)) or data is None:
        return data
    try:
        tag, *parts = data
        return _DECODERS[tag](*parts)
    except Unstorable:
        raise
    except Exception as error:  # whatever broken data may cause
        raise ValueError(f"not an encoded value: {error!r}") from None


def dumps(value: object) -> bytes:
    """`encode`, as the bytes of canonical JSON: equal for equal values.

    Raises `Unstorable`, also for what is nested too deeply.
    """
    try:
        return json.dumps(encode(value), separators=(",", ":")).encode()
    except (RecursionError, ValueError):  # ValueError: an int of too many digits
        raise Unstorable(value, "is too deep or too large to store") from None


def loads(data: bytes) -> Any:
    """The value that `dumps` was given; raises what `decode` raises.

    >>> loads(dumps(("a", 1, None))) == ("a", 1, None)
    True
    """
    try:
        return decode(json.loads(data))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def register(cls: type, tag: str, parts: Callable[[Any], tuple[Any, ...]], make: Callable[..., Any]) -> None:
    """Teach `encode` another class: `parts(value)` are encoded in its place, and `make(*parts)` is called to decode.

    Raises `ValueError` for a tag that stands for another class.
    """
    if tag in _DECODERS and cls not in _ENCODERS:
        raise ValueError(f"the tag {tag!r} is taken")
    _ENCODERS[cls] = lambda value: [tag, *map(encode, parts(value))]
    _DECODERS[tag] = lambda *items: make(*map(decode, items))


# --- the parts -------------------------------------------------------------------------------------------------------


def _dtype(dtype: np.dtype[Any]) -> list[str]:
    if dtype.names is None and dtype.subdtype is None and not dtype.hasobject and dtype.metadata is None:
        try:
            if np.dtype(dtype.str) == dtype:
                return ["d", dtype.str]
        except TypeError:
            pass
    raise Unstorable(dtype)


def _set(value: frozenset[Any]) -> list[Any]:
    return ["fs", *sorted(map(encode, value), key=lambda item: json.dumps(item))]


_STAR = object()  # a leaf


def _spec(spec: optree.PyTreeSpec) -> list[Any]:
    tree = optree.tree_unflatten(spec, [_STAR] * spec.num_leaves)
    data = ["spec", spec.none_is_leaf, spec.namespace, _tree(tree)]
    if decode(data) != spec:  # a kind of container that means more than it shows
        raise Unstorable(spec)
    return data


def _tree(tree: Any) -> Any:
    kind = type(tree)
    if tree is _STAR:
        return "*"
    if tree is None:
        return None
    if kind in (tuple, list):
        return [kind.__name__, *map(_tree, tree)]
    if kind in (dict, OrderedDict):
        return [kind.__name__, *([encode(key), _tree(item)] for key, item in tree.items())]
    if kind is defaultdict:
        return ["defaultdict", encode(tree.default_factory), *([encode(k), _tree(v)] for k, v in tree.items())]
    if kind is deque:
        return ["deque", tree.maxlen, *map(_tree, tree)]
    if isinstance(tree, tuple) and hasattr(kind, "_fields"):
        return ["namedtuple", encode(kind), *map(_tree, tree)]
    raise Unstorable(tree)


def _plant(data: Any) -> Any:
    if data == "*":
        return _STAR
    if data is None:
        return None
    kind, *items = data
    if kind in ("tuple", "list"):
        return {"tuple": tuple, "list": list}[kind](map(_plant, items))
    if kind in ("dict", "OrderedDict"):
        return {"dict": dict, "OrderedDict": OrderedDict}[kind]((decode(key), _plant(item)) for key, item in items)
    first, *items = items
    if kind == "defaultdict":
        return defaultdict(decode(first), ((decode(key), _plant(item)) for key, item in items))
    if kind == "deque":
        return deque(map(_plant, items), first)
    if kind == "namedtuple":
        return tuple.__new__(decode(first), map(_plant, items))
    raise ValueError(f"no such container: {kind!r}")


def _make_spec(none_is_leaf: bool, namespace: str, tree: Any) -> optree.PyTreeSpec:
    return optree.tree_structure(_plant(tree), none_is_leaf=none_is_leaf, namespace=namespace)


def _items(*items: Any) -> tuple[Any, ...]:
    return tuple(map(decode, items))


_VALUES: dict[type, tuple[Callable[[Any], tuple[Any, ...]], Callable[..., Any]]] = {
    fractions.Fraction: (lambda v: (v.numerator, v.denominator), fractions.Fraction),
    datetime.timedelta: (lambda v: (v.days, v.seconds, v.microseconds), datetime.timedelta),
    datetime.date: (lambda v: (v.year, v.month, v.day), datetime.date),
    **{
        cls: (lambda v: (str(v),), cls)
        for cls in (pathlib.PurePosixPath, pathlib.PureWindowsPath, type(pathlib.Path()))
    },
}

_ENCODERS: dict[type, Callable[[Any], list[Any]]] = {
    tuple: lambda v: ["t", *map(encode, v)],
    frozenset: _set,
    float: lambda v: ["f", v.hex()],
    complex: lambda v: ["c", v.real.hex(), v.imag.hex()],
    bytes: lambda v: ["b", base64.b64encode(v).decode()],
    type(...): lambda v: ["..."],
    type(NotImplemented): lambda v: ["NotImplemented"],
    Same: lambda v: ["s", *refer(v.get(), encode)],
    Leaf: lambda v: ["leaf", *map(encode, v)],
    Step: lambda v: ["step", *map(encode, v)],
    Path: lambda v: ["path", *map(encode, v)],
    Call: lambda v: ["call", *map(encode, v)],
    Signature: lambda v: ["sig", encode(v.leaves), encode(v.structure), encode(v.static)],
    optree.PyTreeSpec: _spec,
    **{cls: lambda v, cls=cls: ["v", cls.__name__, *_VALUES[cls][0](v)] for cls in _VALUES},  # type: ignore[misc]
}

_DECODERS: dict[str, Callable[..., Any]] = {
    "t": _items,
    "fs": lambda *items: frozenset(map(decode, items)),
    "f": float.fromhex,
    "c": lambda real, imag: complex(float.fromhex(real), float.fromhex(imag)),
    "b": lambda text: base64.b64decode(text, validate=True),
    "...": lambda: ...,
    "NotImplemented": lambda: NotImplemented,
    "s": lambda module, name, digest: Same(resolve(module, name, digest, encode)),
    "o": lambda module, name, digest: resolve(module, name, digest, encode),
    "d": np.dtype,
    "leaf": lambda *items: Leaf(*_items(*items)),
    "step": lambda *items: Step(*_items(*items)),
    "call": lambda *items: Call(*_items(*items)),
    "path": lambda *items: Path.of(*_items(*items)),
    "sig": lambda *items: Signature(*_items(*items)),
    "spec": _make_spec,
    "v": lambda name, *parts: {cls.__name__: make for cls, (_, make) in _VALUES.items()}[name](*parts),
}

# Builtins and the like count by identity in snapshots; a builtin that is bound to a value has no name.
_BY_NAME = frozenset(
    {BuiltinFunctionType, type(np.sum), MethodDescriptorType, WrapperDescriptorType, GetSetDescriptorType}
)
