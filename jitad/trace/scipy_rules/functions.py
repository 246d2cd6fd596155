"""All of SciPy's functions in Python that have a rule: importing this module fills `SUBSTITUTES`."""
from jitad.trace.scipy_rules import (
    descriptive,
    distance,
    factors,
    harmonics,
    integrate,
    linalg,
    matrix_functions,
    special,
    structured,
    trees,
)
from jitad.trace.scipy_rules.images import functions as images
from jitad.trace.scipy_rules.interpolate import functions as interpolate
from jitad.trace.scipy_rules.signal import functions as signal
from jitad.trace.scipy_rules.solvers import functions as solvers
from jitad.trace.scipy_rules.sparse import functions as sparse
from jitad.trace.scipy_rules.stats import kernels

__all__ = ["descriptive", "distance", "factors", "harmonics", "images", "integrate", "interpolate", "kernels",
           "linalg", "matrix_functions", "signal", "solvers", "sparse", "special", "structured", "trees"]
