"""Distributions of scipy.stats in recorded code.

SciPy's distributions are instances, its densities methods of theirs. Recorded code gets a `Distribution` in the place
of one, however it came by it, and a `Frozen` in the place of a frozen one. Their methods call SciPy when nothing
traced flows in, and else the rule of `stats_rules.RULES`; what has none is refused by name. SciPy itself is left as
it is.
"""
from __future__ import annotations

import inspect
import sys
import weakref
from collections.abc import Callable
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from jitad.cache.keys.captures import Path
from jitad.errors import MutationError
from jitad.trace.captures import policy
from jitad.trace.dispatch import builder_in, noted_line, plain, refused
from jitad.trace.where import user_line

if TYPE_CHECKING:
    from jitad.trace.captures.captures import Captures

__all__ = ["Distribution", "Frozen", "is_distribution", "is_library_distribution", "method_of", "original", "stand_in",
           "take"]

_STAND_INS: weakref.WeakKeyDictionary[Any, Distribution] = weakref.WeakKeyDictionary()
_DRAWING = ("rvs", "random_state")


def is_distribution(value: Any) -> bool:
    """Whether `value` is an instance of one of SciPy's classes of distributions, frozen ones and heirs too."""
    kind = type(value)
    return hasattr(kind, "rvs") and any(c.__module__.startswith("scipy.stats.") for c in kind.__mro__)


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

    def _drawing(self, name: str) -> policy.Refused:
        return policy.Refused(name, "draws random numbers", user_line)


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
        return type(real) if real is not None else _frozen_class(self._jitad_dist._jitad_real)

    def __getattr__(self, name: str) -> Any:
        dist, real, given = self._jitad_dist._jitad_real, self._jitad_real, self._jitad_parameters
        if name in _DRAWING:
            return self._drawing(f"{family_name(dist)}.{name}")
        if name in ("dist", "_dist"):
            return self._jitad_dist
        if not callable(getattr(_frozen_class(dist), name, None)):
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


def _frozen_class(generator: Any) -> type:
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
    return dict(_freezing(generator).bind(*args, **kwargs).arguments)


def _freezing(generator: Any) -> inspect.Signature:
    if not hasattr(generator, "shapes"):
        return inspect.signature(type(generator).__call__.__get__(generator))
    shapes = [s.strip() for s in (generator.shapes or "").split(",") if s.strip()]
    rest = {"loc": 0} if hasattr(generator, "pmf") else {"loc": 0, "scale": 1}
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature([*(inspect.Parameter(s, kind) for s in shapes),
                              *(inspect.Parameter(n, kind, default=v) for n, v in rest.items())])


def _accepted(generator: Any, name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Those of the parameters of freezing that a method takes."""
    rule = _rules(generator).get(name)
    return given if rule is None else {k: v for k, v in given.items() if k in rule.signature.parameters}


def _rules(generator: Any) -> dict[str, Any]:
    from jitad.trace.scipy_rules.stats.rules import RULES

    return RULES.get(family_name(generator), {})


def call(generator: Any, name: str, args: Any, kwargs: Any) -> Any:
    """``generator.name(*args, **kwargs)`` in recorded code."""
    from jitad.trace.templates import repeated

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


# --- captured distributions ------------------------------------------------------------------

def method_of(owner: Any, function: Any) -> Any | None:
    """The method of a stand-in in place of a bound method of SciPy's; None if `owner` is no stand-in."""
    return getattr(owner, function.__name__) if type(owner) in (Distribution, Frozen) else None


def take(captures: Captures, value: Any, path: Path) -> Any:
    """The stand-in for a captured distribution, the parameters of a frozen one being captures themselves."""
    if is_library_distribution(value):
        _guard_class(captures, value, path)
        return stand_in(value)
    attribute = "dist" if hasattr(value, "dist") else "_dist"
    home = _home(getattr(value, attribute, None))
    ours = home is not None and isinstance(value, _frozen_class(home))
    if captures.is_static(path):
        captures.static(value, path)
        return Frozen(stand_in(home), value, *_parameters_of(value, home, None, path)) if ours else value
    if not ours:
        raise captures.error(path, "is a distribution of your own, whose methods SciPy runs on plain numbers only; "
                                   "write its log density as a function")
    captures.guard(type(value), path.step("type"))
    captures.met(value, path)
    if attribute == "dist":
        _guard_class(captures, value.dist, path.step("attr", "dist"))
    return Frozen(stand_in(home), value, *_parameters_of(value, home, captures, path))


def _parameters_of(value: Any, home: Any, captures: Captures | None, path: Path) -> tuple[dict[str, Any], Any]:
    """The parameters of a frozen distribution by name, and its (args, kwds); as they are without `captures`."""
    if hasattr(value, "dist"):
        args, kwds = value.args, value.kwds
        if captures is not None:
            args = captures.sequence(args, path.step("attr", "args"))
            at = path.step("attr", "kwds")
            captures.guard(tuple(kwds), at.step("keys"))
            kwds = {name: captures.take(v, at.step("item", name)) for name, v in kwds.items()}
        return parameters(home, args, kwds), (args, kwds)
    given = {name: getattr(value, name) for name in _freezing(home).parameters if hasattr(value, name)}
    if captures is not None:
        given = {name: captures.take(v, path.step("attr", name)) for name, v in given.items()}
    return given, ((), given)


def _guard_class(captures: Captures, generator: Any, path: Path) -> None:
    """That it is the same distribution, told by class and name: a frozen one has a generator of its own."""
    captures.guard(type(generator), path.step("type"))
    if hasattr(generator, "name"):
        captures.guard(generator.name, path.step("attr", "name"))


def _home(generator: Any) -> Any | None:
    """The distribution of the library that `generator` is a copy of, with the same support."""
    if not is_distribution(generator):
        return None
    home = getattr(sys.modules.get("scipy.stats"), family_name(generator), None)
    same = type(home) is type(generator) and all(getattr(home, n, 0) == getattr(generator, n, 0) for n in ("a", "b"))
    return home if same else None
