"""Assignments: `linear_sum_assignment`, by SciPy's own code, whose positions are constants to derivatives."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.trace.scipy_rules.classes import lifted
from jitad.trace.scipy_rules.served import served
from jitad.trace.substitutes import substitute

__all__: list[str] = []


@substitute("scipy.optimize", "linear_sum_assignment")
def linear_sum_assignment(cost_matrix: Any, maximize: bool = False) -> Any:
    from scipy import optimize

    cost = lifted(cost_matrix)
    if cost.ndim != 2:
        raise ValueError(f"expected a matrix (2-D array), got a {cost.ndim} array")
    found = served("scipy.optimize.linear_sum_assignment", lambda c: np.stack(optimize.linear_sum_assignment(
        c, maximize)), [cost], (2, min(cost.shape)), np.int64)
    return found[0], found[1]
