"""All functions that do not dispatch and have a rule: importing this module fills `SUBSTITUTES`."""
from jitad.trace import (
    math_functions,
    numpy_substitutes,
    scipy_distance,
    scipy_integrate,
    scipy_linalg,
    scipy_linalg_factors,
    scipy_linalg_structured,
    scipy_special,
    vectorize,
)
from jitad.trace.substitutes import SUBSTITUTES

__all__ = ["SUBSTITUTES", "math_functions", "numpy_substitutes", "scipy_distance", "scipy_integrate", "scipy_linalg",
           "scipy_linalg_factors", "scipy_linalg_structured", "scipy_special", "vectorize"]
