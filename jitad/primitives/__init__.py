"""The table of primitives: importing this package fills `core.TABLE`."""
from jitad.primitives import (
    core,
    custom,
    elementwise,
    fft,
    index,
    linalg,
    order,
    reduce,
    scan,
    sparse,
    special,
    special_bessel,
    special_cdf,
    special_error,
    special_gamma,
    special_other,
    special_polynomials,
    special_power,
    view,
)

__all__ = ["core", "custom", "elementwise", "fft", "index", "linalg", "order", "reduce", "scan", "sparse", "special",
           "special_bessel", "special_cdf", "special_error", "special_gamma", "special_other", "special_polynomials",
           "special_power", "view"]
