"""Functions of libraries, and objects that they make, as what a transform is given: no function of the user's around."""
from __future__ import annotations

import functools
import math
import operator
import statistics

import numpy as np
import scipy.interpolate
import scipy.linalg
import scipy.special
import scipy.stats

from tests.programs.table import P3, X3, Table

rows = Table()
A = np.array([[2.0, 0.5, 0.3], [0.5, 3.0, 0.2], [0.3, 0.2, 4.0]])
dot, total, accumulate = A.dot, np.add.reduce, np.multiply.accumulate
knots = np.array([0.0, 1.0, 2.0, 3.0])

for _name in "sum prod mean std exp sin square cumsum sort max ptp median diff flip".split():
    rows(f"np.{_name}", getattr(np, _name), P3)
for _name in "norm det inv cholesky eigvalsh svd slogdet".split():
    rows(f"np.linalg.{_name}", getattr(np.linalg, _name), A, smooth=_name not in ("cholesky", "eigvalsh"))  # they read a triangle
for _name in "gammaln expit erf logsumexp softmax digamma".split():
    rows(f"scipy.special.{_name}", getattr(scipy.special, _name), P3)
rows("scipy.linalg.expm", scipy.linalg.expm, A / 4)
rows("np.dot", np.dot, X3, P3)
rows("np.polynomial polyval", np.polynomial.polynomial.polyval, 0.5, P3)
rows("a partial of np.sum", functools.partial(np.sum, axis=0), A)
rows("a partial of a partial", functools.partial(functools.partial(np.linalg.norm, ord=1), axis=1), A)
rows("a partial with an array", functools.partial(np.dot, A), X3)
rows("a method of a captured array", dot, X3)
rows("np.add.reduce", total, X3)
rows("np.multiply.accumulate", accumulate, X3)
rows("max", max, 1.5, 0.5)
rows("sum", sum, X3)
rows("abs", abs, X3)
rows("float", float, 1.5)
rows("math.hypot", math.hypot, 1.5, 0.5)
rows("operator.mul", operator.mul, X3, P3)
rows("statistics.fmean", statistics.fmean, [0.5, 1.5, 0.25])
rows("np.vectorize", np.vectorize(lambda v: v * math.exp(v)), X3)
rows("np.poly1d", np.poly1d([1.0, 2.0, 3.0]), 0.5)
rows("a Polynomial", np.polynomial.Polynomial([1.0, 2.0, 3.0]), X3)
rows("a spline", scipy.interpolate.CubicSpline(knots, knots ** 2 - knots), 1.3)
rows("interp1d", scipy.interpolate.interp1d(knots, np.exp(-knots)), 1.3)
rows("scipy.stats.norm.logpdf", scipy.stats.norm.logpdf, X3)
rows("a frozen distribution", scipy.stats.gamma(2.0, scale=1.5).logpdf, P3)
rows("a multivariate one", scipy.stats.multivariate_normal(np.zeros(3), A).logpdf, X3)
rows("the methods of arrays by their class", lambda x, sums=np.ndarray.sum: list(map(sums, [x, x * x])), X3)
