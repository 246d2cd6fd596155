"""All of SciPy's solvers that have a rule: importing this module fills `SUBSTITUTES`."""
from jitad.trace.scipy_rules.solvers import fits, matching, minima, odes, quadrature, roots, systems, valleys

__all__ = ["fits", "matching", "minima", "odes", "quadrature", "roots", "systems", "valleys"]
