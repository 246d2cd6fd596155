"""Warnings that stand at the user's line."""
from __future__ import annotations

import sys
import warnings

from jitad.errors import SamplingWarning
from jitad.trace.where import is_library_file


def warn(words: str, category: type[Warning] = SamplingWarning) -> None:
    """Warn at the innermost line of the user's code."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and is_library_file(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    warnings.warn(words, category, stacklevel=level)
