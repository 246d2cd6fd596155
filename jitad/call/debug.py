"""Looking for NaN and infinity in what compiled functions return: the `debug_nonfinite` context."""
from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from jitad.call.nonfinite import require_finite
from jitad.call.transformed import Transformed
from jitad.trace.recorder import current

__all__ = ["debug_nonfinite"]

_looking: ContextVar[bool] = ContextVar("looking", default=False)
_lock = threading.Lock()
_users = 0
_plain = Transformed.__call__


def _call(self: Transformed, /, *args: Any, **kwargs: Any) -> Any:
    result = self._call(*args, **kwargs)
    if _looking.get() and current() is None:
        require_finite(self, result, args, kwargs)
    return result


def _switch(by: int) -> None:
    """Calls are looked at while there are users of the context; otherwise they cost what they cost without it."""
    global _users
    with _lock:
        _users += by
        Transformed.__call__ = _call if _users else _plain           # type: ignore[method-assign]


@contextmanager
def debug_nonfinite() -> Iterator[None]:
    """Within, every call of a jitad function raises if its result has a NaN or an infinity, and says where that arose.

    The call runs as compiled; only if its result is not finite are its operations done one by one, forward and
    reverse, to find the first that made such a number of finite ones. Holds for the thread that entered it. C
    functions (``compiled.cfunc``) and functions whose data are bound (``g.bind``) are not looked at.

    Raises
    ------
    NonFiniteError
        From the call: names the part of the result, the operation with its operands, and the line of your code; or
        the argument or captured value that was not finite from the start.

    Examples
    --------
    >>> import numpy as np, jitad
    >>> g = jitad.jit_grad(lambda x: np.sum(np.sqrt(x)))
    >>> with jitad.debug_nonfinite():
    ...     g(np.array([1.0, 4.0]))
    array([0.5 , 0.25])
    """
    token = _looking.set(True)
    _switch(1)
    try:
        yield
    finally:
        _switch(-1)
        _looking.reset(token)
