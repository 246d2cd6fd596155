"""scipy.sparse: importing this module enters its rules."""
from jitad.trace.scipy_rules.sparse import build, iterative, operators, solve, spectra

__all__ = ["build", "iterative", "operators", "solve", "spectra"]
