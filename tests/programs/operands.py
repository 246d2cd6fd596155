"""Functions of libraries, and objects that they make, as what a transform is given: no function of the user's around."""
from __future__ import annotations

import functools
import io
import logging
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

# Methods, operators and properties by their class; what Python's own code asks of numbers.
log, journal = logging.getLogger("jitad.tests"), io.StringIO()
plus, lengths, bits, form = float.__add__, {"norm": np.ndarray.dot}, int.bit_length, "%.3f|%5.1e|%s"


class Celsius(float):
    def kelvin(self):
        return self + 273.15


rows("np.ndarray.sum", lambda x: np.ndarray.sum(x))
rows("np.ndarray with options", lambda x: np.ndarray.std(np.ndarray.reshape(x, 3, 1), axis=0, ddof=1))
rows("np.ndarray of an array made there", lambda x: np.ndarray.sum(np.array([x[0], x[1]])) + np.ndarray.mean(np.ones(2)))
rows("np.ndarray in place", lambda x: (a := np.zeros(3), np.ndarray.__setitem__(a, 1, x[0]), np.ndarray.fill(a[:1], x[2]))[0])
rows("a property of np.ndarray", lambda x: np.ndarray.T.__get__(x) * np.ndarray.shape.__get__(x)[0])
rows("map of np.ndarray.max", lambda x: list(map(np.ndarray.max, [x, -x])))
rows("a method in a dict", lambda x: lengths["norm"](x, x))
rows("float.__add__", lambda x: float.__add__(x, 1.0) * plus(2.0, x) * float.__rsub__(x, 1.0), 0.5)
rows("float.__pow__", lambda x: float.__pow__(x, 3.0) + float.__neg__(x), 1.5)
rows("float.__float__", lambda x: float.__float__(x) * float.__abs__(-x), 1.5)
rows("float.is_integer", lambda x: x * 2.0 if float.is_integer(x) else -x, 2.0, smooth=False)
rows("reduce by float.__mul__", lambda x: functools.reduce(float.__mul__, [x, x + 1.0, 2.0]), 1.5)
rows("np.float64.__add__", lambda x: np.float64.__add__(x[0], 2.0) + np.float64.sum(x[1]))
rows("complex.__mul__", lambda x: complex.__mul__(x, 1j) + complex.conjugate(x), 1.0 + 2.0j, smooth=False)
rows("int.bit_length", lambda n: [bits(n) * 1.0, n.bit_count() * 2.0, int.__add__(n, 1)], 5, smooth=False)
rows("an operator that declines", lambda n: 1.0 if int.__add__(n, 0.5) is NotImplemented else 2.0, 5, smooth=False)
rows("as_integer_ratio", lambda x: x.as_integer_ratio()[0] / x.as_integer_ratio()[1] + len(x.hex()), 0.5, smooth=False)
rows("pow with a modulus", lambda n: pow(n, 2, 5) * 1.0, 3, smooth=False)
rows("a list so many times", lambda n: [1.0, 2.0] * n + [*(3.0,) * n] + [len("ab" * n) * 1.0], 2, smooth=False)
rows("a whole number as a key", lambda n, x: {2: x, 3: -x}[n] * (n in {2, 3}), 2, 1.5, smooth=False)
rows("text by %", lambda x: len(form % (x, x, x)) * x, 0.5, smooth=False)
rows("a log by %", lambda x: (log.debug("%.3f of %s", x[0], x), log.warning("%(a)f", {"a": x[0]}), logging.debug("%d", x[1]), x)[-1])
rows("a journal", lambda x: (print(x[0], x, file=journal), print(form % (x[0], x[1], x), file=journal), x)[-1])
rows("a kind of float made there", lambda x: x * kelvins(20.0))
rows("int of texts and numbers", lambda x: x * int("3") + int(2.7) * isinstance(len(x), int))
rows("tables by class", lambda x: x * {np.ndarray: 2.0, float: 3.0}[type(x)] * {int: 1.5}[type(len(x))])


def kelvins(degrees):
    class Kelvin(float):
        def celsius(self):
            return self - 273.15
    return Kelvin(degrees).celsius() + Celsius(degrees).kelvin()


for _name, _function, _args in (("np.ndarray of a number", lambda x: np.ndarray.sum(x), (0.5,)), ("float of an array", lambda x: float.__neg__(x), (X3,)),
                                ("a list so many and a half times", lambda x: [1.0] * x, (1.5,)), ("a modulus of floats", lambda x: pow(x, 2, 5), (1.5,))):
    rows.refused(_name, _function, *_args, says=("operands.py",), raises=TypeError)
rows.refused("the floor of float", lambda x: float.__floor__(x), 1.5, says=("float.__floor__", "math.floor(x)", "operands.py"))
