"""All functions that do not dispatch and have a rule: importing this module fills `SUBSTITUTES`."""
from jitad.trace import (
    numpy_substitutes,
    scipy_distance,
    scipy_integrate,
    scipy_linalg,
    scipy_linalg_factors,
    scipy_linalg_structured,
    scipy_special,
)
from jitad.trace.substitutes import SUBSTITUTES

__all__ = ["SUBSTITUTES", "numpy_substitutes", "scipy_distance", "scipy_integrate", "scipy_linalg",
           "scipy_linalg_factors", "scipy_linalg_structured", "scipy_special"]
