"""All of SciPy's solvers that have a rule: importing this module fills `SUBSTITUTES`."""
from jitad.trace.scipy_rules.solvers import odes, quadrature, roots, systems

__all__ = ["odes", "quadrature", "roots", "systems"]
