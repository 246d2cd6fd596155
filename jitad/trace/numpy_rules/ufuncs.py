"""NumPy's and SciPy's ufuncs as recorded code sees them: they take lists of traced numbers, and give local arrays."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.trace.dispatch import as_value, builder_in, noted_line, plain
from jitad.trace.values.local import local

__all__ = ["UfuncView", "ufunc_view"]

_LISTS = (list, tuple)
_METHODS = frozenset({"reduce", "accumulate", "outer", "reduceat"})


class UfuncView:
    """Stands for a ufunc; what is no list is for the ufunc itself to take."""

    __slots__ = ("_jitad_ufunc", "_methods")

    def __init__(self, ufunc: np.ufunc) -> None:
        self._jitad_ufunc = ufunc
        self._methods: dict[str, Any] = {}

    __class__ = property(lambda self: np.ufunc)                     # type: ignore[assignment]
    __name__ = property(lambda self: self._jitad_ufunc.__name__)    # type: ignore[assignment]
    __doc__ = property(lambda self: self._jitad_ufunc.__doc__)      # type: ignore[assignment]

    @property
    def jitad_current(self) -> np.ufunc:
        """For rules, the ufunc."""
        return self._jitad_ufunc

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for x in args:
            if type(x) in _LISTS:
                return _of_lists(self._jitad_ufunc, args, kwargs)
        result = self._jitad_ufunc(*args, **kwargs)
        return local(result) if type(result) is np.ndarray else result

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._jitad_ufunc, name)
        if name not in _METHODS:
            return found
        method = self._methods.get(name)
        if method is None:
            method = self._methods[name] = lambda *args, **kwargs: _of_lists(found, args, kwargs)
        return method

    def __eq__(self, other: object) -> bool:
        return self._jitad_ufunc is (other._jitad_ufunc if type(other) is UfuncView else other)

    def __hash__(self) -> int:
        return hash(self._jitad_ufunc)

    def __repr__(self) -> str:
        return repr(self._jitad_ufunc)

    def __reduce__(self) -> Any:
        return self._jitad_ufunc.__reduce__()


def _of_lists(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``function(*args, **kwargs)``, the first of which may be lists."""
    if not any(type(x) in _LISTS for x in args):
        result = function(*args, **kwargs)
        return local(result) if type(result) is np.ndarray else result
    args = plain(args)
    builder = builder_in(args, plain(kwargs))
    if builder is None:
        return local(function(*args, **kwargs))
    with noted_line(builder):
        first = [as_value(builder, x) if type(x) in _LISTS and builder_in(x) is not None else x for x in args]
        return function(*first, **kwargs)


_VIEWS: dict[np.ufunc, UfuncView] = {}


def ufunc_view(ufunc: np.ufunc) -> UfuncView:
    """What recorded code gets for a ufunc: one object for each."""
    known = _VIEWS.get(ufunc)
    if known is None:
        known = _VIEWS[ufunc] = UfuncView(ufunc)
    return known
