"""What complex numbers mean: the way into this room, which is entered when the first of them is met."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.trace.dispatch import COMPLEX

__all__ = ["function", "substitute", "ufunc"]


def function(numpy_function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``numpy_function(*args, **kwargs)``, where something is complex."""
    from jitad.trace.complexes import factors, linalg, spectra  # noqa: F401  (fills the table)
    from jitad.trace.complexes.functions import apply

    return apply(numpy_function, args, kwargs)


def substitute(original: Any, impl: Any) -> Any:
    """What the rule `impl` of a function of SciPy is where something is complex."""
    from jitad.trace.complexes import factors, spectra  # noqa: F401  (fills the table)

    return spectra.substitute(original, impl)


def ufunc(numpy_ufunc: np.ufunc, *operands: Any) -> Any:
    """``numpy_ufunc(*operands)``, one of which is complex."""
    from jitad.trace.complexes import circular, faddeeva  # noqa: F401  (fills the table)
    from jitad.trace.complexes.ufuncs import apply

    return apply(numpy_ufunc, *operands)


COMPLEX.function, COMPLEX.substitute, COMPLEX.ufunc = function, substitute, ufunc
