"""Functions of NumPy and SciPy that are written in Python and do not dispatch.

`SUBSTITUTES` maps each to a replacement which the function copies of a recording
see in its place. A replacement calls the original when nothing is traced. Nothing
here knows the functions themselves.
"""
from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, wraps
from inspect import signature
from typing import Any

from jitad.trace.dispatch import (
    COMPLEX,
    RESULTS,
    builder_in,
    complex_in,
    name_of,
    noted_line,
    plain,
    refused,
    repeated,
    settled,
)


class Substitutes(dict[Any, Callable[..., Any]]):
    """Replacements by original. Those for modules that are not imported yet wait: their functions cannot be met."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: dict[str, dict[str, Callable[..., Any]]] = {}            # by module and name

    def get(self, key: Any, default: Any = None) -> Any:
        self._enter()
        return super().get(key, default)

    def __missing__(self, key: Any) -> Callable[..., Any]:
        self._enter()
        if key not in self:
            raise KeyError(key)
        return self[key]

    def _enter(self) -> None:
        for module, names in self.waiting.items():
            if not names or module not in sys.modules:
                continue
            for name in list(names):
                original: Any = getattr(sys.modules[module], name, None)
                impl = names.pop(name, None) if original is not None else None
                if impl is not None:
                    self[original] = _replacement(original, impl)


SUBSTITUTES = Substitutes()
CALLING: set[Any] = set()        # rules of functions that call the user's
ALWAYS: set[Any] = set()         # rules that are for plain arguments too


class _Watch:
    """How a function is called that calls the user's, of plain arguments: as it is, or, once installed, by
    `trace.watched`."""

    by: Callable[..., Any] = staticmethod(lambda rule, function, args, kwargs: function(*args, **kwargs))


def watch_by(constant_or: Callable[..., Any]) -> None:
    """Install what sees to it that no traced value comes back from the user's."""
    _Watch.by = staticmethod(constant_or)


def substitute(original: Any, name: str = "", calls: bool = False,
               always: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter the decorated function as what recorded code sees in place of `original`, or of `name` in that module. With
    `calls`, it calls functions of the user's, which may come to something traced when all arguments are plain. With
    `always`, the rule is for plain arguments too, and says itself what is traced."""
    def enter(impl: Callable[..., Any]) -> Callable[..., Any]:
        if calls:
            CALLING.add(impl)
        if always:
            ALWAYS.add(impl)
        if name:
            SUBSTITUTES.waiting.setdefault(original, {})[name] = impl
        else:
            SUBSTITUTES[original] = _replacement(original, impl)
        return impl
    return enter


def _replacement(original: Callable[..., Any], impl: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def replacement(*args: Any, **kwargs: Any) -> Any:
        out = kwargs.get("out")
        if out is not None and builder_in(plain(args), plain(kwargs)) is not None:
            return RESULTS.into(out, replacement(*args, **{**kwargs, "out": None}), name_of(original))
        result = repeated(impl, run, args, kwargs)
        return result.handed_out() if hasattr(type(result), "handed_out") else result

    def run(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = plain(args), plain(kwargs)
        builder = builder_in(args, kwargs)
        if impl in ALWAYS:
            return impl(*args, **kwargs)
        if builder is None:
            return _Watch.by(impl, original, args, kwargs) if impl in CALLING else original(*args, **kwargs)
        chosen = COMPLEX.substitute(original, impl) if complex_in(args, kwargs) else impl
        args, kwargs = settled(original, impl, args, _known(original, chosen, builder, kwargs))
        with noted_line(builder):
            return chosen(*args, **kwargs) if builder_in(args, kwargs) is not None else original(*args, **kwargs)
    return replacement


def _known(original: Callable[..., Any], rule: Callable[..., Any], builder: Any,
           kwargs: dict[str, Any]) -> dict[str, Any]:
    """The options that the rule has. Those of newer libraries are refused, but at what they are by default."""
    known, there = _options(rule), _options(original)
    if known is None or there is None:
        return kwargs
    beyond = kwargs.keys() & (there.keys() - known.keys())
    for name in beyond:
        if kwargs[name] is not there[name] and kwargs[name] != there[name]:
            raise refused(builder, f"{name_of(original)} with {name}={kwargs[name]!r}", "leave the option out")
    return {name: value for name, value in kwargs.items() if name not in beyond}


@cache
def _options(function: Callable[..., Any]) -> dict[str, Any] | None:
    """The defaults of the parameters by name; None where it takes any, or does not say."""
    try:
        parameters = signature(function).parameters.values()
    except ValueError:                                  # written in C
        return None
    return None if any(p.kind is p.VAR_KEYWORD for p in parameters) else {p.name: p.default for p in parameters}
