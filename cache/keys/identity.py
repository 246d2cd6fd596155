"""What makes two functions "the same", and values guarded by what they are rather than by where they live.

`unwrap` finds the plain Python function under a callable, `code_key` names its code, and `freeze` takes a
hashable, type-aware snapshot of a value. None of them keeps a user's function, class or module alive, and none
relies on `id`: short-lived closures reuse the ids of dead ones.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import inspect
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import CodeType, FunctionType, MethodType
from typing import Any

__all__ = ["Same", "Target", "code_key", "living_codes", "unwrap"]


class Same:
    """Hashable stand-in for an object that is equal only to a stand-in for the very same living object.

    Holds the object weakly where the object allows it. Once the object is dead it equals no other one, so a
    reused `id` cannot confuse it.

    >>> import math
    >>> Same(math) == Same(math)
    True
    """

    __slots__ = ("_get", "_hash", "text")

    def __init__(self, value: object) -> None:
        self._hash = id(value)
        self.text = _named(value)
        try:
            self._get: Callable[[], object] = weakref.ref(value)
        except TypeError:
            self._get = functools.partial(_itself, value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Same):
            return NotImplemented
        mine = self._get()
        return self is other or (mine is not None and mine is other._get())

    def __hash__(self) -> int:
        return self._hash

    def get(self) -> object:
        """The object itself, None once it is dead."""
        return self._get()

    def __repr__(self) -> str:
        return self.text


def _itself(value: object) -> object:
    return value


def _named(value: object) -> str:
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    return name.rpartition("<locals>.")[2] if isinstance(name, str) else f"<{type(value).__qualname__} object>"


@dataclass(frozen=True, eq=False)
class Target:
    """A callable taken apart: calling it is `function(self, *args, ..., **keywords)`, `self` only if not None.

    `keywords` maps a name to the dict that holds its value, since the keywords of a partial can be changed in
    place. `callable_type` is the class whose `__call__` was used, for callable objects. `static` are the captured
    names (`model`, `self.model`) whose objects are used as they are, and guarded by identity. `partials` are the
    partials on the way, their parts, and how many keywords there were.
    """

    function: FunctionType
    self: object = None
    args: tuple[object, ...] = ()
    keywords: Mapping[str, dict[str, object]] = field(default_factory=dict)
    callable_type: type | None = None
    static: tuple[str, ...] = ()
    partials: tuple[tuple[functools.partial[Any], tuple[Any, ...], int], ...] = ()

    @property
    def shape(self) -> tuple[bool, int, tuple[str, ...]]:
        """What is bound: `self`, how many arguments, which keywords. ``partial(f, k=3)`` is another function than `f`,
        though it has its code and, in a call, its arguments."""
        return self.self is not None, len(self.args), tuple(sorted(self.keywords))

    @property
    def recalled(self) -> bool:
        """Whether the class of a callable object has another ``__call__`` by now, or the object another class."""
        kind = self.callable_type
        return kind is not None and (type(self.self) is not kind or (
            inspect.getattr_static(kind, "__call__", None) is not self.function))

    @property
    def stale(self) -> bool:
        """Whether keywords were added to a partial, or taken from it, since it was taken apart."""
        return any(_other_parts(*p) for p in self.partials) or any(
            name not in home for name, home in self.keywords.items())

    @property
    def bound(self) -> tuple[object, ...]:
        """The leading positional arguments that the callable supplies itself."""
        return self.args if self.self is None else (self.self, *self.args)


def _other_parts(partial: functools.partial[Any], parts: tuple[Any, ...], count: int) -> bool:
    """Whether a partial has got other parts (`__setstate__` does that) or more or fewer keywords."""
    now = partial.func, partial.args, partial.keywords
    return any(a is not b for a, b in zip(now, parts, strict=True)) or len(partial.keywords) != count


def unwrap(f: Callable[..., Any]) -> Target:
    """Take a callable apart into its plain Python function and what is bound to it.

    Sees through `functools.partial` (nested too), bound methods, objects with `__call__`, `staticmethod` and
    `classmethod` objects. It does not follow `__wrapped__`: the code of the wrapper is what runs.

    Raises `TypeError` for anything without a Python function of its own: builtins, ufuncs, classes, and the
    wrappers of `functools.lru_cache`.

    >>> unwrap(functools.partial(lambda x, y: x + y, 1)).args
    (1,)
    """
    if isinstance(f, FunctionType):
        return Target(f)
    if isinstance(f, functools.partial):
        inner = unwrap(f.func)
        homes = {**inner.keywords, **dict.fromkeys(f.keywords, f.keywords)}
        return replace(inner, args=inner.args + f.args, keywords=homes,
                       partials=(*inner.partials, (f, (f.func, f.args, f.keywords), len(f.keywords))))
    if isinstance(f, MethodType):
        return _bind(unwrap(f.__func__), f.__self__)
    if isinstance(f, (staticmethod, classmethod)):
        return unwrap(f.__func__)
    call = inspect.getattr_static(type(f), "__call__", None) if not isinstance(f, type) else None
    if isinstance(call, FunctionType):
        return Target(call, self=f, callable_type=type(f))
    if isinstance(call, staticmethod):
        return unwrap(call.__func__)
    if isinstance(call, classmethod):
        return _bind(unwrap(call.__func__), type(f))
    raise TypeError(f"{_described(f)} is not a Python function, method, partial or object with a Python __call__")


def _bind(target: Target, owner: object) -> Target:
    if not target.bound:
        return replace(target, self=owner)
    return replace(target, args=(*target.args, owner))


def _described(f: object) -> str:
    name = getattr(f, "__name__", None)
    return f"{type(f).__name__} `{name}`" if isinstance(name, str) else f"a {type(f).__name__} object"


_CODE_KEYS: dict[int, tuple[weakref.ref[CodeType], str]] = {}


def code_key(function: FunctionType | CodeType) -> str:
    """Return a key that is equal for the same code made again and different for different source.

    A lambda made again in a loop, a notebook cell executed again, the same text under another file name or
    line all give the same key. Constants count by type and sign (`1`, `1.0`, `True`, `-0.0` all differ).
    Defaults and closures do not count: they are captures. The key is text, stable across processes of one
    Python version.

    >>> a, b = [lambda x: x + k for k in (1, 2)]
    >>> code_key(a) == code_key(b)
    True
    """
    code = function if isinstance(function, CodeType) else function.__code__
    known = _CODE_KEYS.get(id(code))
    if known is not None and known[0]() is code:
        return known[1]
    digest = hashlib.blake2b(digest_size=16)
    _feed(digest.update, code)
    key = f"{code.co_name}-{digest.hexdigest()}"
    ident = id(code)
    _CODE_KEYS[ident] = (weakref.ref(code, lambda dead: _drop_code_key(ident, dead)), key)
    return key


def living_codes() -> set[str]:
    """Return the keys, as far as `code_key` was asked for them, of the code that is still alive."""
    return {key for code, key in _CODE_KEYS.copy().values() if code() is not None}


def _drop_code_key(ident: int, dead: weakref.ref[CodeType]) -> None:
    known = _CODE_KEYS.get(ident)
    if known is not None and known[0] is dead:  # else the id belongs to a newer code object by now
        del _CODE_KEYS[ident]


def _feed(update: Callable[[bytes], None], value: object) -> None:
    """Feed a constant of a code object, or a code object, to a digest: type, length, content, without ambiguity."""
    if isinstance(value, CodeType):
        layout = (value.co_flags & ~inspect.CO_NESTED, value.co_argcount, value.co_posonlyargcount)
        names = (value.co_name, value.co_names, value.co_varnames, value.co_freevars, value.co_cellvars)
        parts = (layout, value.co_kwonlyargcount, names, value.co_code, value.co_exceptiontable, value.co_consts)
        _feed_many(update, b"code", parts)
    elif isinstance(value, tuple):
        _feed_many(update, b"tuple", value)
    elif isinstance(value, frozenset):
        # The order of a set changes from process to process: sort by what each item would feed.
        _feed_many(update, b"frozenset", tuple(sorted(_bytes_of(item) for item in value)))
    else:
        content = _content(value)
        update(f"{type(value).__name__}:{len(content)}:".encode() + content)


def _feed_many(update: Callable[[bytes], None], tag: bytes, items: tuple[object, ...]) -> None:
    update(b"%s:%d(" % (tag, len(items)))
    for item in items:
        _feed(update, item)
    update(b")")


def _bytes_of(value: object) -> bytes:
    chunks: list[bytes] = []
    _feed(chunks.append, value)
    return b"".join(chunks)


def _content(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, float):
        return value.hex().encode()  # tells -0.0 from 0.0 and equals itself for nan
    if isinstance(value, complex):
        return f"{value.real.hex()},{value.imag.hex()}".encode()
    return repr(value).encode()  # int, bool, None, Ellipsis
