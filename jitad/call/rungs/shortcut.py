"""Shortcuts: the kernels that a function calls without asking the cache, and how they are tried."""
from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from jitad.cache.keys.signature import Signature
from jitad.call.build.specialization import Specialization
from jitad.compile.entry.kernel_errors import KernelMiss, StatusMiss, is_marked

MISSED: Any = object()                                   # instead of a result
NOT_SERVED = (KernelMiss, TypeError, OverflowError)      # the last for integers beyond 64 bits


class Shortcut:
    """The way from `home` to a kernel of a specialization, until the cache drops that. Holds `home` weakly: no cycles,
    so that a function made in a loop goes, with the arrays that it captures, as soon as it is no longer used. One that
    is `changing` takes leaves that the kernel does not, and changes them."""

    strict: Callable[..., Any] | None = None             # raises one of `NOT_SERVED` for what it does not serve
    call: Callable[..., Any] | None = None               # climbs down the ladder of `home` then
    entry: Callable[..., Any] | None = None              # makes the compiled entry with another fallback, if it can

    def __init__(self, home: Any, signature: Signature, specialization: Specialization, changing: bool = False):
        self.home, self.signature, self.changing = weakref.ref(home), signature, changing
        self.specialization: Specialization | None = specialization
        self.guarded = specialization.guarded
        self.compares = bool(specialization.asked)       # the very arguments, as the caller has them

    def forget(self) -> None:
        """Called when the specialization is gone, or its kernel another one."""
        home = self.home()
        if home is not None:
            home._call = home.fallback
        self.strict = self.call = self.entry = self.specialization = None


def attempt(strict: Callable[..., Any] | None, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The result of a strict function, or `MISSED`."""
    try:
        return MISSED if strict is None else strict(*args, **kwargs)
    except NOT_SERVED as error:
        if is_marked(error):
            raise
        return MISSED


def with_fallback(strict: Callable[..., Any], fallback: Callable[..., Any],
                  write: Callable[[Any, Any], Any] | None) -> Callable[..., Any]:
    """`strict`, or `fallback` for what that does not serve. `write` puts a result into what is given as ``out=``; None
    where that is the user's."""
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return strict(*args, **kwargs)
        except NOT_SERVED as error:
            if is_marked(error):
                raise
        return fallback(*args, **kwargs)

    def writing(*args: Any, out: Any = MISSED, **kwargs: Any) -> Any:
        try:
            result = strict(*args, **kwargs)
        except NOT_SERVED as error:
            if is_marked(error):
                raise
        else:
            return result if out is MISSED else write(result, out)              # type: ignore[misc]
        return fallback(*args, **kwargs) if out is MISSED else fallback(*args, out=out, **kwargs)
    return call if write is None else writing


def first_on_its_way(ways: Sequence[Any]) -> Callable[..., Any]:
    """Ways through one function's branches, tried in turn: each kernel knows whether it is on its way."""
    def strict(*args: Any, **kwargs: Any) -> Any:
        for way in ways:
            try:
                return way(*args, **kwargs)
            except StatusMiss:
                continue
        raise KernelMiss
    return strict
