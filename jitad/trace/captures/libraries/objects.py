"""Captured objects of libraries: distributions of scipy.stats, sparse matrices, `numpy.vectorize`."""
from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from jitad.cache.keys.captures import Path
from jitad.trace.captures.containers import take_tuple
from jitad.trace.captures.libraries.labelled import labelled
from jitad.trace.captures.notes import Notes
from jitad.trace.numpy_rules.elements.vectorize import Vectorized
from jitad.trace.scipy_rules.classes import CLASSES, name_of_class, of_instance
from jitad.trace.scipy_rules.sparse.values import PARTS, TracedSparse, is_sparse
from jitad.trace.scipy_rules.stats.distributions import (
    Distribution,
    Frozen,
    family_name,
    freezing,
    frozen_class,
    is_distribution,
    is_library_distribution,
    parameters,
    stand_in,
)

__all__ = ["library_object", "method_of", "take_vectorized"]


def method_of(owner: Any, function: Any) -> Any | None:
    """The method of a stand-in in place of a bound method of SciPy's; None if `owner` is no stand-in."""
    return getattr(owner, function.__name__) if type(owner) in (Distribution, Frozen) else None


def take_distribution(captures: Notes, value: Any, path: Path) -> Any:
    """The stand-in for a captured distribution, the parameters of a frozen one being captures themselves."""
    if is_library_distribution(value):
        _guard_class(captures, value, path)
        return stand_in(value)
    attribute = "dist" if hasattr(value, "dist") else "_dist"
    home = _home(getattr(value, attribute, None))
    ours = home is not None and isinstance(value, frozen_class(home))
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


def _parameters_of(value: Any, home: Any, captures: Notes | None, path: Path) -> tuple[dict[str, Any], Any]:
    """The parameters of a frozen distribution by name, and its (args, kwds); as they are without `captures`."""
    if hasattr(value, "dist"):
        args, kwds = value.args, value.kwds
        if captures is not None:
            args = take_tuple(captures, args, path.step("attr", "args"))
            at = path.step("attr", "kwds")
            captures.guard(tuple(kwds), at.step("keys"))
            kwds = {name: captures.take(v, at.step("item", name)) for name, v in kwds.items()}
        return parameters(home, args, kwds), (args, kwds)
    given = {name: getattr(value, name) for name in freezing(home).parameters if hasattr(value, name)}
    if captures is not None:
        given = {name: captures.take(v, path.step("attr", name)) for name, v in given.items()}
    return given, ((), given)


def _guard_class(captures: Notes, generator: Any, path: Path) -> None:
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


def take_sparse(captures: Notes, value: Any, path: Path) -> Any:
    """The stand-in for a captured one."""
    if captures.is_static(path):
        return captures.static(value, path)
    names = PARTS.get(value.format)
    if names is None or value.ndim != 2:
        raise captures.error(path, f"is a {type(value).__name__}: convert it with .tocsr() outside of the function")
    captures.guard(type(value), path.step("type"))
    captures.guard(value.shape, path.step("attr", "shape"))
    captures.met(value, path)
    parts = (captures.take(getattr(value, n), path.step("attr", n)) for n in names)
    return TracedSparse(type(value), value.shape, *parts)


def library_object(value: Any) -> Callable[[Notes, Any, Path], Any] | None:
    """How a captured object of SciPy's is taken apart."""
    if is_distribution(value):
        return take_distribution
    if is_sparse(value):
        return take_sparse
    return take_instance if is_instance(value) else labelled(value)


def is_instance(value: Any) -> bool:
    """Whether this is an instance of a class of SciPy's with a rule."""
    cls = type(value)
    return cls.__module__.startswith("scipy.") and name_of_class(cls) in CLASSES


def take_instance(captures: Notes, value: Any, path: Path) -> Any:
    """The stand-in for a captured one, whose attributes are captures."""
    captures.guard(type(value), path.step("type"))
    captures.met(value, path)

    def take(names: tuple[str, ...]) -> Any:
        at, found = path, value
        for name in names:
            at, found = at.step("attr", name), getattr(found, name, None)
        return None if found is None else captures.take(found, at)
    return of_instance(CLASSES[name_of_class(type(value))], value, take)


def take_vectorized(captures: Notes, value: Any, path: Path) -> Vectorized:
    """The stand-in for a captured `numpy.vectorize` object, whose function is a capture."""
    captures.guard(type(value), path.step("type"))
    options: dict[str, Any] = {}
    for name in ("otypes", "signature", "excluded"):
        options[name] = getattr(value, name)
        captures.guard(options[name], path.step("attr", name))
    function: Callable[..., Any] = captures.take(value.pyfunc, path.step("attr", "pyfunc"))
    vectorized = Vectorized(function, **options)
    captures.attributes.hold(vectorized, path)
    return vectorized
