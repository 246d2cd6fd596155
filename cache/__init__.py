"""The cache of compiled tapes, seen by users: what is in it, why the last call missed, how to empty or bound it.

>>> from jitad import cache
>>> cache.clear()
>>> cache.info().currsize
0

All functions act on one store for the whole process. They may be called while other threads compute.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from .memory import CacheInfo, Store

__all__ = ["CacheInfo", "clear", "explain", "info", "resize"]

store = Store()

_resolve: Callable[[object], Hashable] | None = None


class Explanation(str):
    """Text that shows itself as it is, also at the prompt of an interpreter or notebook."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def set_resolver(resolve: Callable[[object], Hashable] | None) -> None:
    """Install what turns a user's function, or its decorated form, into the owner that the store knows.

    `resolve` raises `TypeError` for what is neither. Without a resolver the object itself is the owner.
    """
    global _resolve
    _resolve = resolve


def _owner(f: object) -> Hashable | None:
    if f is None or _resolve is None:
        return f
    return _resolve(f)


def info(f: object = None) -> CacheInfo:
    """Return `hits`, `misses`, `compiles`, `currsize` and `maxsize` of one function, or of all together.

    Raises `TypeError` if `f` is not a function.

    >>> clear()
    >>> info()[:4]
    (0, 0, 0, 0)
    """
    return store.info(_owner(f))


def explain(f: object) -> Explanation:
    """Say in words why the last calls of `f` that had to compile found nothing in the cache, latest first.

    Raises `TypeError` if `f` is not a function.
    """
    misses = store.misses(_owner(f) if f is not None else None)
    if not misses:
        return Explanation("No call has missed the cache.")
    lines: list[str] = []
    for miss in reversed(misses):
        title = f"miss {miss.number}" + (" (the last)" if miss is misses[-1] else "")
        lines.append(f"{title}: {'; '.join(miss.reasons) or 'first call'}")
    return Explanation("\n".join(lines))


def clear(f: object = None) -> None:
    """Forget every compiled tape and all counts of one function, or of all; the next call compiles again.

    Raises `TypeError` if `f` is not a function.
    """
    store.clear(_owner(f))


def resize(maxsize: int) -> None:
    """Set how many compiled tapes are kept in all; beyond it the least recently used go.

    Raises `ValueError` if `maxsize` is below 1, `TypeError` if it is not an integer.

    >>> resize(1024)
    """
    store.resize(maxsize)
