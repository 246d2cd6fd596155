"""Constrained parameters: each a map from free numbers, with its log-Jacobian and its inverse, in plain NumPy.

>>> import numpy as np
>>> from jitad.constraints import cholesky_corr, interval, positive
>>> tau, log_jacobian = positive().forward(np.array([1.0]), {})
>>> tau.round(3), float(log_jacobian)
(np.float64(2.718), 1.0)
>>> interval(0.0, 10.0).inverse(5.0, {})
array([0.])

They follow Stan's reference manual in definition and order of the free numbers, so that a density carried over from
Stan gives Stan's numbers. What is here is recorded as users' code is.
"""
from jitad.constraints.base import Constraint
from jitad.constraints.matrices import cholesky_corr, cholesky_cov, corr, cov
from jitad.constraints.scalars import interval, lower, offset_scale, positive, real, upper
from jitad.constraints.vectors import (
    ordered,
    positive_ordered,
    simplex,
    stick_breaking,
    stochastic_rows,
    sum_to_zero,
    unit_vector,
)

__all__ = ["Constraint", "cholesky_corr", "cholesky_cov", "corr", "cov", "interval", "lower", "offset_scale", "ordered",
           "positive", "positive_ordered", "real", "simplex", "stick_breaking", "stochastic_rows", "sum_to_zero",
           "unit_vector", "upper"]
