"""The cache of compiled tapes, seen by users: what is in it, why the last call missed, how to empty or bound it.

>>> from jitad import cache
>>> cache.clear()
>>> cache.info().currsize
0

All functions act on one store for the whole process. They may be called while other threads compute.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING

from .keys.identity import living_codes
from .memory import CacheInfo, ShapeChurnWarning, Store
from .settings import KEEP, Configuration, Keep, initial
from .tables import Explanation, Report
from .tables import explain as _explain

if TYPE_CHECKING:
    from .persistent import Persistent

__all__ = [
    "CacheInfo", "Configuration", "Explanation", "Report", "ShapeChurnWarning", "clear", "configuration", "configure",
    "explain", "info", "report", "resize",
]  # fmt: skip

store = Store()

_resolve: Callable[[object], Hashable] | None = None
_warn: Callable[[str, type[Warning]], None] | None = None
_release: Callable[[], object] | None = None
_limit: Callable[[int | None], object] | None = None
_configuration = initial(store.limits)
_persistent: Persistent | None = None


def info(f: object = None) -> CacheInfo:
    """Return `hits`, `misses`, `compiles`, `currsize` and `maxsize` of one function, or of all together.

    Raises `TypeError` if `f` is not a function.

    >>> clear()
    >>> info()[:4]
    (0, 0, 0, 0)
    """
    return store.info(_owner(f))


def report() -> Report:
    """Return a table of what is in the cache: entries, hits, misses, compile time and bytes of each function.

    >>> clear()
    >>> report()
    The cache is empty.
    """
    return Report(store.report())


def explain(f: object) -> Explanation:
    """Say in words why the last calls of `f` that had to compile found nothing in the cache, latest first.

    With each goes how long the compilation took and how often its result was used since. Raises `TypeError` if
    `f` is not a function.

    >>> explain(lambda: None)
    No call has missed the cache.
    """
    return _explain(store.misses(_owner(f)) if f is not None else ())


def clear(f: object = None) -> None:
    """Forget every compiled tape and all counts of one function, or of all; the next call compiles again.

    Without `f` the memory that kernels keep from call to call is given back too.
    What is on disk stays: `python -m jitad cache clear` empties that. Raises `TypeError` if `f` is not a function.
    """
    store.clear(_owner(f))
    if f is None and _release is not None:
        _release()


def resize(maxsize: int) -> None:
    """Set how many compiled tapes are kept in all; beyond it the least recently used go.

    Raises `ValueError` if `maxsize` is below 1, `TypeError` if it is not an integer.

    >>> resize(1024)
    """
    configure(maxsize=maxsize)


def configure(
    *,
    maxsize: int | Keep = KEEP,
    maxbytes: int | Keep | None = KEEP,
    policy: str | Keep = KEEP,
    ttl: float | Keep | None = KEEP,
    per_function: int | Keep | None = KEEP,
    on_mismatch: str | Keep = KEEP,
    disk: bool | Keep = KEEP,
    ways: int | Keep = KEEP,
    parallel: bool | Keep = KEEP,
    threads: int | Keep | None = KEEP,
) -> None:
    """Set options of the cache; those not given stay as they are.

    - `maxsize`, `maxbytes`: how many compiled tapes are kept in memory, and how many bytes of machine code and
      constants; None for any number of bytes
    - `policy`: what goes first, "lru" (not used for the longest time), "lfu" (used least often) or "ttl" (not
      used for `ttl` seconds, noticed when the cache is used next)
    - `per_function`: how many tapes of one function are kept, so that one with many shapes leaves room for others
    - `on_mismatch`: whether a known function that meets another shape or captured value compiles with a warning
      ("warn"), without ("silent"), or not at all ("error")
    - `disk`: whether compiled code is read from and written to disk
    - `ways`: how many ways through the branches of a function are compiled for one signature; what takes yet
      another one runs uncompiled
    - `parallel`: whether functions that do not say it themselves (``jit_grad(f, parallel=True)``) run on several cores;
      a change empties the cache in memory, and does not reach what is bound already
    - `threads`: how many threads those functions use in all; None for one on each core that the process may run on,
      but no more than ``OMP_NUM_THREADS`` in its environment says. Results do not depend on it

    Raises `TypeError` or `ValueError` for a value that makes no sense, and then changes nothing.

    >>> configure(maxbytes=2**29)
    >>> configuration().maxbytes == 2**29
    True
    """
    global _configuration
    options = {"maxsize": maxsize, "maxbytes": maxbytes, "policy": policy, "ttl": ttl, "per_function": per_function}
    with store.lock:
        old = configuration()
        new = old.changed(**options, on_mismatch=on_mismatch, disk=disk, ways=ways, parallel=parallel, threads=threads)
        if new.limits != store.limits:
            store.limit(new.limits)
        _configuration = new
    if new.parallel != old.parallel:
        store.clear(None)
    if new.threads != old.threads and _limit is not None:
        _limit(new.threads)


def configuration() -> Configuration:
    """Return the options in force.

    >>> configuration().policy
    'lru'
    """
    return _configuration._replace(**store.limits._asdict())


# --- for jitad: what the cache cannot know by itself ---------------------------------------------------------------


def set_resolver(resolve: Callable[[object], Hashable] | None) -> None:
    """Install what turns a user's function, or its decorated form, into the owner that the store knows.

    `resolve` raises `TypeError` for what is neither. Without a resolver the object itself is the owner.
    """
    global _resolve
    _resolve = resolve


def set_warner(warn: Callable[[str, type[Warning]], None] | None) -> None:
    """Install what issues the warnings of the cache, `warn(message, category)`, with the user's line as their place."""
    global _warn
    _warn = warn


def set_releaser(release: Callable[[], object] | None) -> None:
    """Install what gives back memory that lives outside of the store when all of it is cleared."""
    global _release
    _release = release


def set_limiter(limit: Callable[[int | None], object] | None) -> None:
    """Install what is told the number of threads when it changes."""
    global _limit
    _limit = limit


def persistent_store() -> Persistent | None:
    """Return the store on disk, opened at the first call, or None while it is turned off."""
    global _persistent
    if not _configuration.disk:
        return None
    if _persistent is None:
        from .disk import DiskCacheWarning, DiskStore, default_root
        from .persistent import Persistent

        _persistent = Persistent(DiskStore(default_root(), warn=lambda text: _issue(text, DiskCacheWarning)))
    return _persistent


def _owner(f: object) -> Hashable | None:
    if f is None or _resolve is None:
        return f
    return _resolve(f)


def _issue(message: str, category: type[Warning]) -> None:
    if _warn is not None:
        _warn(message, category)
    else:
        warnings.warn(message, category, stacklevel=4)


def _gone(owners: Iterable[Hashable]) -> set[Hashable]:
    """Owners that end in a `code_key` whose code is not alive any more. Others are taken to live."""
    living = living_codes()
    keys = {owner: owner.rpartition(" ")[2] for owner in owners if isinstance(owner, str)}
    return {owner for owner, key in keys.items() if key not in living and _is_code_key(key)}


def _is_code_key(text: str) -> bool:
    digest = text.rpartition("-")[2]
    return len(digest) == 32 and digest != text and not digest.strip("0123456789abcdef")


store.gone = _gone
store.warn = lambda owner, message: _issue(message, ShapeChurnWarning)
