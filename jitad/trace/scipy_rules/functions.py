"""All functions that do not dispatch and have a rule: importing this module fills `SUBSTITUTES`."""
from jitad.trace.numpy_rules import substitutes
from jitad.trace.numpy_rules.elements import math_functions, vectorize
from jitad.trace.scipy_rules import distance, factors, integrate, linalg, special, structured
from jitad.trace.substitutes import SUBSTITUTES

__all__ = ["SUBSTITUTES", "distance", "factors", "integrate", "linalg", "math_functions", "special", "structured",
           "substitutes", "vectorize"]
