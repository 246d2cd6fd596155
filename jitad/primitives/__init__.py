"""The table of primitives: importing this package fills `jitad.tape.types.TABLE`."""
from jitad.primitives import core, custom, elementwise, fft, index, linalg, order, reduce, scan, sparse, view
from jitad.primitives.linalg import failures
from jitad.primitives.special import (
    bessel,
    cdf,
    error,
    gamma,
    lambert,
    other,
    polynomials,
    power,
    spherical,
    ufuncs,
)

__all__ = ["bessel", "cdf", "core", "custom", "elementwise", "error", "failures", "fft", "gamma", "index", "lambert",
           "linalg", "order", "other", "polynomials", "power", "reduce", "scan", "sparse", "spherical", "ufuncs",
           "view"]
