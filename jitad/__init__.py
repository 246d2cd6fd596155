"""jitad: gradients of plain NumPy code at machine-code speed.

>>> import numpy as np
>>> from jitad import jit_grad
>>> @jit_grad
... def logp(theta):
...     return -0.5 * np.sum(theta**2)
>>> logp(np.array([1.0, 2.0]))
array([-1., -2.])
"""
from __future__ import annotations

from jitad import cache
from jitad.api import grad, jit, jit_grad, value_and_grad
from jitad.control import cond, fori_loop, scan, while_loop
from jitad.errors import (
    ArgumentTypeError,
    CaptureError,
    ConcretizationError,
    JitadError,
    LeakedTracerError,
    MutationError,
    OutputError,
    SignatureError,
    TapeError,
    TapeMismatchError,
    TapeMismatchWarning,
    UnsupportedOperationError,
)
from jitad.version import __version__

__all__ = [
    "__version__",
    "ArgumentTypeError", "CaptureError", "ConcretizationError", "JitadError", "LeakedTracerError", "MutationError",
    "OutputError", "SignatureError", "TapeError", "TapeMismatchError", "TapeMismatchWarning",
    "UnsupportedOperationError", "cache", "cond", "fori_loop", "grad", "jit", "jit_grad", "scan", "value_and_grad",
    "while_loop",
]
