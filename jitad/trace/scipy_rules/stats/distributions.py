"""Distributions of scipy.stats in recorded code.

SciPy's distributions are instances, its densities methods of theirs. Recorded code gets a `Distribution` in the place
of one, however it came by it, and a `Frozen` in the place of a frozen one. Their methods call SciPy when nothing
traced flows in, and else the rule of `stats.rules.RULES`; what has none is refused by name. SciPy itself is left as
it is.
"""
from __future__ import annotations

import inspect
import sys
import weakref
from collections.abc import Callable
from types import MethodType
from typing import Any

import numpy as np

from jitad.errors import MutationError
from jitad.trace.dispatch import builder_in, noted_line, plain, refused, repeated
from jitad.trace.impure import Impure
from jitad.trace.where import user_line

__all__ = ["Distribution", "Frozen", "freezing", "frozen_class", "is_distribution", "is_library_distribution",
           "original", "parameters", "stand_in"]

_STAND_INS: weakref.WeakKeyDictionary[Any, Distribution] = weakref.WeakKeyDictionary()
_DRAWING = ("rvs", "random_state")


def is_distribution(value: Any) -> bool:
    """Whether `value` is an instance of one of SciPy's classes of distributions, frozen ones and heirs too."""
    kind = type(value)
    return (hasattr(kind, "rvs") or hasattr(kind, "logpmf")) and any(
        c.__module__.startswith("scipy.stats.") for c in kind.__mro__)


def family_name(generator: Any) -> str:
    """``norm`` for ``scipy.stats.norm``."""
    return getattr(generator, "name", None) or type(generator).__name__.removesuffix("_gen")


def is_library_distribution(value: Any) -> bool:
    """Whether `value` is one of the objects in ``scipy.stats``, rather than an instance of the user's making."""
    return is_distribution(value) and getattr(sys.modules.get("scipy.stats"), family_name(value), None) is value


def stand_in(value: Any) -> Any:
    """What recorded code gets for a distribution of the library that it reads: always the same object."""
    found = _STAND_INS.get(value)
    return found if found is not None else _STAND_INS.setdefault(value, Distribution(value))


def original(value: Any) -> Any:
    """The distribution that a stand-in stands for; anything else is itself."""
    return value._jitad_real if type(value) is Distribution else value


class _StandIn:
    """What both kinds share: they cannot be written, and their methods look for traced values."""

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        raise MutationError(f"attribute `{name}` of a distribution is changed at {user_line(2)} while the function is "
                            "recorded. The change would be lost in later calls, which run compiled code.")

    def _drawing(self, name: str) -> Impure:
        return Impure(name, "draws random numbers", user_line)


class Distribution(_StandIn):
    """A distribution of the library in recorded code."""

    __slots__ = ("__weakref__", "_jitad_real")

    def __init__(self, real: Any) -> None:
        object.__setattr__(self, "_jitad_real", real)

    @property                                                       # type: ignore[misc]
    def __class__(self) -> type:                                    # type: ignore[override]
        return type(self._jitad_real)

    def __call__(self, *args: Any, **kwargs: Any) -> Frozen:
        args, kwargs = plain(args), plain(kwargs)
        real = self._jitad_real
        plainly = real(*args, **kwargs) if builder_in(args, kwargs) is None else None
        return Frozen(self, plainly, parameters(real, args, kwargs), (args, kwargs))

    @property
    def freeze(self) -> Callable[..., Frozen]:
        return self.__call__

    def __getattr__(self, name: str) -> Any:
        real = self._jitad_real
        value = getattr(real, name)
        if name in _DRAWING:
            return self._drawing(f"{family_name(real)}.{name}")
        if not isinstance(value, MethodType) or name.startswith("__"):
            return value

        def method(*args: Any, **kwargs: Any) -> Any:
            return call(real, name, args, kwargs)

        method.__name__ = name
        return method

    def __repr__(self) -> str:
        return repr(self._jitad_real)


class Frozen(_StandIn):
    """A frozen distribution in recorded code. `real` is SciPy's own, if its parameters are plain; `given` are the
    parameters by name, `call` the (args, kwds) with which it was made."""

    __slots__ = ("_jitad_call", "_jitad_dist", "_jitad_parameters", "_jitad_real")

    def __init__(self, dist: Distribution, real: Any, given: dict[str, Any], call: tuple[Any, Any]) -> None:
        for name, value in (("dist", dist), ("real", real), ("parameters", given), ("call", call)):
            object.__setattr__(self, f"_jitad_{name}", value)

    @property                                                       # type: ignore[misc]
    def __class__(self) -> type:                                    # type: ignore[override]
        real = self._jitad_real
        return type(real) if real is not None else frozen_class(self._jitad_dist._jitad_real)

    @property
    def jitad_holds(self) -> tuple[Any, ...]:
        """What may be traced of it."""
        return tuple(self._jitad_parameters.values())

    def __getattr__(self, name: str) -> Any:
        dist, real, given = self._jitad_dist._jitad_real, self._jitad_real, self._jitad_parameters
        if name in _DRAWING:
            return self._drawing(f"{family_name(dist)}.{name}")
        if name in ("dist", "_dist"):
            return self._jitad_dist
        if not callable(getattr(frozen_class(dist), name, None)):
            if name in ("args", "kwds") and hasattr(dist, "shapes"):
                return self._jitad_call[name == "kwds"]
            if name in given:
                return given[name]
            if real is not None and builder_in(given) is None:
                return getattr(real, name)
            raise refused(builder_in(given), f"the attribute .{name} of a frozen scipy.stats.{family_name(dist)}")

        def method(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = plain(args), plain(kwargs)
            if real is not None and builder_in(args, kwargs, given) is None:
                return getattr(real, name)(*args, **kwargs)
            return call(dist, name, args, {**kwargs, **_accepted(dist, name, given)})

        method.__name__ = name
        return method


def frozen_class(generator: Any) -> type:
    """The class of ``generator(...)``."""
    kind = type(generator)
    if hasattr(generator, "shapes"):
        home, name = "_distn_infrastructure", "rv_discrete" if hasattr(generator, "pmf") else "rv_continuous"
    else:
        home, name = kind.__module__.rpartition(".")[2], kind.__name__.removesuffix("_gen")
    found: type = getattr(sys.modules[f"scipy.stats.{home}"], f"{name}_frozen")
    return found


def parameters(generator: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """The parameters with which a distribution is frozen, by name; TypeError if they do not fit."""
    return dict(freezing(generator).bind(*args, **kwargs).arguments)


def freezing(generator: Any) -> inspect.Signature:
    if not hasattr(generator, "shapes"):
        return inspect.signature(type(generator).__call__.__get__(generator))
    shapes = [s.strip() for s in (generator.shapes or "").split(",") if s.strip()]
    rest = {"loc": 0} if hasattr(generator, "pmf") else {"loc": 0, "scale": 1}
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature([*(inspect.Parameter(s, kind) for s in shapes),
                              *(inspect.Parameter(n, kind, default=v) for n, v in rest.items())])


def _accepted(generator: Any, name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Those of the parameters of freezing that a method takes, flags by what they are when left out."""
    rule = _rules(generator).get(name)
    if rule is None:
        return given
    flags = {k: p.default for k, p in freezing(generator).parameters.items() if isinstance(p.default, bool)}
    return {k: v for k, v in {**flags, **given}.items() if k in rule.signature.parameters}


def _rules(generator: Any) -> dict[str, Any]:
    from jitad.trace.scipy_rules.stats.rules import RULES

    return RULES.get(family_name(generator), {})


def call(generator: Any, name: str, args: Any, kwargs: Any) -> Any:
    """``generator.name(*args, **kwargs)`` in recorded code."""
    args, kwargs = plain(args), plain(kwargs)
    builder = builder_in(args, kwargs)
    if builder is None:
        return getattr(generator, name)(*args, **kwargs)
    rule = _rules(generator).get(name)
    if rule is None:
        raise refused(builder, f"scipy.stats.{family_name(generator)}.{name} of a traced value")

    def run(*args: Any, **kwargs: Any) -> Any:
        with noted_line(builder), np.errstate(all="ignore"):
            bound = rule.signature.bind(*args, **kwargs)
            bound.apply_defaults()
            return rule(*bound.args, **bound.kwargs)
    return repeated(rule, run, args, kwargs)
