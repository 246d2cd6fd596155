"""All of SciPy's functions in Python that have a rule: importing this module fills `SUBSTITUTES`."""
from jitad.trace.scipy_rules import distance, factors, integrate, linalg, special, structured
from jitad.trace.scipy_rules.interpolate import functions as interpolate

__all__ = ["distance", "factors", "integrate", "interpolate", "linalg", "special", "structured"]
