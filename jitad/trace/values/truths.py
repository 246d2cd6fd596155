"""Truth values of functions that tell them by identity: ``flag is True``, ``(x[0] > 0) is np.True_``.

There a comparison is what it is in Python, Python's `bool` or NumPy's, as soon as the user's code gets it; the tape is
right for that one only.
"""
from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from types import FrameType
from typing import Any

import numpy as np

from jitad.trace.values.tracer import Tracer
from jitad.trace.where import is_copied, is_library_file

__all__ = ["Concluding", "PYTHONS", "NUMPYS", "concluded"]

PYTHONS, NUMPYS = "Python's", "NumPy's"
_FORWARDING = ("/jitad/trace/values/", "/jitad/trace/captures/libraries/functions.py", "/jitad/trace/substitutes.py",
               "/jitad/trace/numpy_rules/ufuncs.py")


def concluded(result: Any) -> Any:
    """A traced truth value as the object that it is, if the function asks for such ones by identity."""
    kind = PYTHONS if result.weak else NUMPYS
    if not result.is_number or result.dtype != np.bool_ or kind not in result.recorder.truths:
        return result
    truth = result.recorder.decide(result)
    return truth if kind is PYTHONS else np.bool_(truth)


def _for_the_user(frame: FrameType | None) -> bool:
    """Whether what is returned to a frame comes to the user's code, and not to a rule."""
    while frame is not None and any(part in frame.f_code.co_filename.replace("\\", "/") for part in _FORWARDING):
        frame = frame.f_back
    return frame is not None and (is_copied(frame) or not is_library_file(frame.f_code.co_filename))


class Concluding(Tracer):
    """A traced value of such a function."""

    __slots__ = ()

    def handed_out(self) -> Any:
        """What a function gives that is written in Python."""
        return concluded(self) if _for_the_user(sys._getframe(1)) else self


def _concluding(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = method(self, *args, **kwargs)
        return concluded(result) if type(result) is Concluding and _for_the_user(sys._getframe(1)) else result
    return call


for _name in """__array_ufunc__ __array_function__ __getitem__ __lt__ __le__ __gt__ __ge__ __eq__ __ne__ __and__
__rand__ __or__ __ror__ __xor__ __rxor__ __invert__ all any astype""".split():
    setattr(Concluding, _name, _concluding(getattr(Tracer, _name)))
Concluding.__hash__ = Tracer.__hash__                               # type: ignore[method-assign]
