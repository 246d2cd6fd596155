"""The algorithms of `jitad.primitives.numeric.ROUTINES` as functions of scalar expressions."""
from __future__ import annotations

from collections.abc import Callable
from functools import partial

from jitad.primitives.numeric import ROUTINES as ALGORITHMS
from jitad.primitives.numeric import SCALARS
from jitad.primitives.special import incomplete as special_incomplete  # noqa: F401  (fills the table)
from jitad.tape.expr import Expr

ROUTINES: dict[str, Callable[..., Expr]] = {name: partial(f, SCALARS) for name, f in ALGORITHMS.items()}
