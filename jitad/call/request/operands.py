"""What a transform is given that no user has written: functions of NumPy, SciPy and Python, and objects that they make.

``grad(np.sum)`` is ``grad(lambda *args, **kwargs: np.sum(*args, **kwargs))``: the function is a capture of one that
only calls it, so that recorded code sees in its place what it sees everywhere else.
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

from jitad.cache.keys.identity import unwrap
from jitad.trace.captures.policy import holds_user_code, is_user_class, is_user_function
from jitad.trace.where import is_library_file

__all__ = ["calling", "is_foreign", "signature_of"]


def is_foreign(f: Any) -> bool:
    """Whether this is a callable without a Python function of the user's in it."""
    if not callable(f) or isinstance(f, (staticmethod, classmethod)):
        return False
    while isinstance(f, (functools.partial, MethodType)):
        f = f.func if isinstance(f, functools.partial) else f.__func__
    if isinstance(f, FunctionType):
        return is_library_file(f.__code__.co_filename) and not (is_user_function(f) or holds_user_code(f))
    try:
        unwrap(f)
    except TypeError:                                    # a builtin, a ufunc, a class, the wrapper of an lru_cache
        return True
    return not is_user_class(type(f))


def calling(function: Callable[..., Any]) -> Callable[..., Any]:
    """A plain function that calls another one. Its code bears the name of what it calls: those are different functions.
    """
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)
    call.__code__ = call.__code__.replace(co_name=_whole_name(function))
    return functools.update_wrapper(call, function, updated=())


def _whole_name(f: Any) -> str:
    """``numpy.linalg.norm``, ``numpy.add.reduce``, ``scipy.stats._continuous_distns.norm_gen.logpdf``."""
    if isinstance(f, functools.partial):
        return f"partial of {_whole_name(f.func)}"
    name = getattr(f, "__name__", None)
    if not isinstance(name, str):
        return f"{type(f).__module__}.{type(f).__qualname__}"
    owner = getattr(f, "__self__", None)
    if owner is not None and not inspect.ismodule(owner):
        return f"{_whole_name(owner if hasattr(owner, '__name__') else type(owner))}.{name}"
    return f"{getattr(f, '__module__', None) or type(f).__module__}.{getattr(f, '__qualname__', name)}"


def signature_of(given: Any, plain: Any) -> inspect.Signature:
    """The parameters of what was given, or, where Python does not know them, those of what calls it."""
    try:
        return inspect.signature(plain.__func__ if isinstance(plain, classmethod) else given)
    except ValueError:
        if not is_foreign(given):
            raise
        return inspect.signature(plain, follow_wrapped=False)
