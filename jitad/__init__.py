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

from importlib import import_module

from jitad import cache
from jitad.api.batch import batch
from jitad.api.control import cond, fori_loop, scan, while_loop
from jitad.api.custom.primitive import checkpoint, custom_gradient, primitive, stop_gradient
from jitad.api.derivatives import (
    derivative,
    hessian,
    hvp,
    jacobian,
    second_derivative,
    value_and_derivative,
    value_and_jacobian,
    value_derivative_and_second_derivative,
    value_gradient_and_hessian,
)
from jitad.api.elementwise import elementwise
from jitad.api.implicit import implicit
from jitad.api.transforms import grad, jit, jit_grad, value_and_grad
from jitad.api.vjp_jvp import jvp, linearize, vjp
from jitad.call.debug import debug_nonfinite
from jitad.call.pickling import restored as restored  # the name that stands in pickles
from jitad.errors import (
    ArgumentTypeError,
    CaptureError,
    ClusterError,
    ConcretizationError,
    ConstraintError,
    EstimateWarning,
    InternalError,
    JitadError,
    LeakedTracerError,
    MutationError,
    NonFiniteError,
    OutputError,
    SamplerError,
    SamplingWarning,
    SignatureError,
    StartError,
    TapeError,
    TapeFileError,
    TapeMismatchError,
    TapeMismatchWarning,
    UnsupportedOperationError,
)
from jitad.export.saved import SavedTape, load
from jitad.version import __version__

__all__ = [
    "__version__", "ArgumentTypeError", "CaptureError", "ClusterError", "ConcretizationError", "ConstraintError",
    "EstimateWarning", "InternalError", "JitadError", "LeakedTracerError", "MutationError", "NonFiniteError",
    "OutputError", "SamplerError", "SamplingWarning", "SavedTape", "SignatureError", "StartError", "TapeError",
    "TapeFileError", "TapeMismatchError", "TapeMismatchWarning", "UnsupportedOperationError", "batch", "cache",
    "checkpoint", "cond", "custom_gradient", "debug_nonfinite", "derivative", "elementwise", "fori_loop", "grad",
    "hessian", "hvp", "implicit", "jacobian", "jit", "jit_grad", "jvp", "linearize", "load", "primitive", "scan",
    "second_derivative", "stop_gradient", "value_and_derivative", "value_and_grad", "value_and_jacobian",
    "value_derivative_and_second_derivative", "value_gradient_and_hessian", "vjp", "while_loop",
]


_LATER = {
    "posterior": "jitad.inference.model", "ravel": "jitad.inference.ravel", "sharded": "jitad.distributed.sharded",
    "fit_many": "jitad.inference.many.fits", "calibrate": "jitad.inference.many.calibrate",
    "cross_validate": "jitad.inference.many.crossvalidate",
}


def __getattr__(name: str) -> object:
    """What is imported when it is first used."""
    if name in ("testing", "constraints"):
        return import_module(f"jitad.{name}")
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'jitad' has no attribute {name!r}")
