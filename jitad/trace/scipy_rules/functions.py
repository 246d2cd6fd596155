"""All functions that do not dispatch and have a rule: importing this module fills `SUBSTITUTES`."""
from jitad.trace.numpy_rules import substitutes
from jitad.trace.scipy_rules import distance, factors, integrate, linalg, special, structured
from jitad.trace.substitutes import SUBSTITUTES
from jitad.trace.ufuncs import math_functions, vectorize

__all__ = ["SUBSTITUTES", "distance", "factors", "integrate", "linalg", "math_functions", "special", "structured",
           "substitutes", "vectorize"]
