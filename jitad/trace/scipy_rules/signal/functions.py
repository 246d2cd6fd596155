"""scipy.signal: importing this module enters its rules."""
from jitad.trace.scipy_rules.signal import convolving, designs, filters, smoothing, spectra

__all__ = ["convolving", "designs", "filters", "smoothing", "spectra"]
