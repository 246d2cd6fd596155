"""scipy.sparse: importing this module enters its rules."""
from jitad.trace.scipy_rules.sparse import build, iterative, solve

__all__ = ["build", "iterative", "solve"]
