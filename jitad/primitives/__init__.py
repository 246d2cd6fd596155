"""The table of primitives: importing this package fills `core.TABLE`."""
from jitad.primitives import core, custom, elementwise, fft, index, order, reduce, scan, sparse, view
from jitad.primitives.linalg import failures, systems
from jitad.primitives.special import bessel, cdf, error, gamma, other, polynomials, power, ufuncs

__all__ = ["bessel", "cdf", "core", "custom", "elementwise", "error", "failures", "fft", "gamma", "index", "order",
           "other", "polynomials", "power", "reduce", "scan", "sparse", "systems", "ufuncs", "view"]
