"""Functions of the user's that a library calls while a function is recorded: none may give back a traced value."""
from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from jitad.errors import ConcretizationError
from jitad.tape.builder import Builder
from jitad.trace import reasons
from jitad.trace.dispatch import builder_in, name_of, noted_line, plain, refused
from jitad.trace.recorder import current
from jitad.trace.substitutes import watch_by

__all__ = ["Watched", "constant_or", "traced_in"]


def constant_or(rule: Callable[..., Any], function: Callable[..., Any], args: tuple[Any, ...],
                kwargs: dict[str, Any]) -> Any:
    """What `function` gives for plain arguments if the functions that it calls come to nothing traced; else what the
    rule does."""
    recorder = current()
    if recorder is None:
        return function(*args, **kwargs)
    if traced_in(args, kwargs) is not None:              # in what they hold
        with noted_line(recorder):
            return rule(*args, **kwargs)
    guards, refusals, errors = dict(recorder.guards), len(recorder.refusals), len(recorder.errors)
    trial = Watched(name_of(function))
    try:
        return trial.call(function, args, kwargs)
    except Exception:
        if trial.refusal is None:
            raise
    recorder.guards = guards                             # of the points that were tried
    del recorder.refusals[refusals:], recorder.errors[errors:]
    with noted_line(recorder):
        return rule(*args, **kwargs)


watch_by(constant_or)


def traced_in(*things: Any) -> Builder | None:
    """The builder of a traced value in `things`, which may be a sparse matrix or a distribution of such values."""
    found = builder_in(*things)
    if found is not None:
        return found
    for thing in things:
        if isinstance(thing, (list, tuple)):
            found = traced_in(*thing)
        elif type(thing) is dict:
            found = traced_in(*thing.values())
        elif isinstance(thing, np.ndarray) and thing.dtype == object:
            found = traced_in(*thing.ravel().tolist())
        else:
            parts = getattr(type(thing), "jitad_holds", None)
            found = None if parts is None else traced_in(*parts.fget(thing))
        if found is not None:
            return found
    return None


class Watched:
    """One call of a function of SciPy's, which gets functions of the user's."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.refusal: Exception | None = None

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result, if no traced value came back from a function that is called; else the refusal is raised."""
        args, kwargs = self.watched(args), self.watched(kwargs)
        try:
            result = function(*args, **kwargs)
        except Exception:
            self._check()                                # compiled code makes other errors of those that come out
            raise
        self._check()
        return result

    def _check(self) -> None:
        if self.refusal is not None:
            raise self.refusal

    def watched(self, thing: Any) -> Any:
        """`thing` with functions, also in lists, tuples and dicts, that raise rather than return a traced value."""
        kind = type(thing)
        if kind in (tuple, list):
            new = [self.watched(t) for t in thing]
            changed = any(a is not b for a, b in zip(new, thing, strict=True))
            return kind(new) if changed else thing
        if kind is dict:
            items = {key: self.watched(value) for key, value in thing.items()}
            return items if any(items[key] is not thing[key] for key in items) else thing
        if hasattr(kind, "jitad_stands_for"):
            return thing.jitad_stands_for
        return self._watched_function(thing) if _calls_user(thing) else thing

    def _watched_function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if self.refusal is not None:
                raise self.refusal
            try:
                found = function(*args, **kwargs)
            except ConcretizationError as error:
                recorder = current()
                before = getattr(recorder, "refusals", [])
                before[:] = [e for e in before if e is not error]
                self.refusal = self._refused(recorder)
                raise self.refusal from error
            builder = traced_in(plain(found))
            if builder is not None:
                self.refusal = self._refused(builder)
                raise self.refusal
            return found
        named = type(function) in (FunctionType, MethodType, partial)
        return wraps(function, updated=())(call) if named else call

    def _refused(self, builder: Any) -> Exception:
        return refused(builder, f"{self.name} of a function that gives traced values", reasons.advice(self.name))


def _calls_user(thing: Any) -> bool:
    """Whether this is a callable that may come to a traced value."""
    kind = type(thing)
    if kind is FunctionType:
        return not str(thing.__module__).startswith(("numpy", "scipy"))
    if kind in (MethodType, partial):
        return True
    if issubclass(kind, (type, np.ufunc, BuiltinFunctionType)) or hasattr(kind, "_jitad_error"):
        return False
    return callable(thing) and not kind.__module__.startswith(("numpy", "scipy"))
