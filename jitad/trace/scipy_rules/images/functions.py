"""scipy.ndimage: importing this module enters its rules."""
from jitad.trace.scipy_rules.images import filters, splines

__all__ = ["filters", "splines"]
