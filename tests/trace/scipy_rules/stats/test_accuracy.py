"""Densities and distribution functions where SciPy or the plain formula is inexact: against mpmath, with slopes."""
from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
import scipy.stats as st

from jitad.tape.evaluate import evaluate
from jitad.trace.scipy_rules.stats.distributions import stand_in
from tests.helpers.cases.functions import gradients, tape_of

FAR = 1e200


def t_log_density(x, df):
    return (mp.loggamma((df + 1) / 2) - mp.loggamma(df / 2) - mp.log(df * mp.pi) / 2
            - (df + 1) / 2 * mp.log1p(x * x / df))


def skew_cdf(x, a):
    """By Owen's integral from 0, which cancels: hence the digits."""
    def owen(u):
        return mp.exp(-x * x * (1 + u * u) / 2) / (1 + u * u) / (2 * mp.pi)

    return mp.ncdf(x) - 2 * mp.quad(owen, mp.linspace(0, a, 7))


def log_mass(a, b):
    half = [mp.erfc(v / mp.sqrt(2)) / 2 for v in ((a, b) if b > 0 else (-b, -a))]
    return mp.log(half[0] - half[1])


def exponnorm_log_density(x, k):
    return mp.log(mp.exp(1 / (2 * k * k) - x / k) * mp.erfc((1 / k - x) / mp.sqrt(2)) / (2 * k))


def exponnorm_cdf(x, k):
    return mp.ncdf(x) - k * mp.exp(exponnorm_log_density(x, k))


def invgauss_cdf(x, mu):
    root = 1 / mp.sqrt(x)
    return mp.ncdf(root * (x / mu - 1)) + mp.exp(2 / mu) * mp.ncdf(-root * (x / mu + 1))


def invgauss_sf(x, mu):
    g, h = (x / mu - 1) / mp.sqrt(x), (x / mu + 1) / mp.sqrt(x)
    return mp.erfc(g / mp.sqrt(2)) / 2 - mp.exp(2 / mu) * mp.erfc(h / mp.sqrt(2)) / 2


def gamma_entropy(a):
    return a + mp.loggamma(a) + (1 - a) * mp.digamma(a)


def log_normal_density(x):
    return -x * x / 2 - mp.log(2 * mp.pi) / 2


def gev_log_density(x, c):
    log = mp.log1p(-c * x)
    return -mp.exp(log / c) + (1 / c - 1) * log


# distribution, method, arguments, the function in mpmath; all derivatives are checked with it.
CASES = [
    ("norm", "logcdf", (-40.0,), lambda x: mp.log(mp.ncdf(x))),
    ("norm", "logsf", (41.5,), lambda x: mp.log(mp.ncdf(-x))),
    ("norm", "logpdf", (1e150,), log_normal_density),
    ("halfnorm", "logsf", (60.0,), lambda x: mp.log(2 * mp.ncdf(-x))),
    ("halfnorm", "ppf", (1 - 1e-12,), lambda q: mp.sqrt(2) * mp.erfinv(q)),
    ("logistic", "logpdf", (-800.0,), lambda x: x - 2 * mp.log1p(mp.exp(x))),
    ("logistic", "logsf", (750.0,), lambda x: -x - mp.log1p(mp.exp(-x))),
    ("cauchy", "logpdf", (FAR,), lambda x: -mp.log(mp.pi) - mp.log1p(x * x)),
    *(("cauchy", "logpdf", (x,), lambda x: -mp.log(mp.pi) - mp.log1p(x * x)) for x in (7e153, -1e300, 1.7e308)),
    ("cauchy", "cdf", (-1e30,), lambda x: mp.atan2(1, -x) / mp.pi),
    ("halfcauchy", "logpdf", (FAR,), lambda x: mp.log(2 / mp.pi) - mp.log1p(x * x)),
    ("t", "logpdf", (FAR, 3.0), t_log_density), ("t", "logpdf", (1.5, 1e9), t_log_density),
    ("t", "logpdf", (0.7, 23.0), t_log_density), ("t", "logpdf", (0.7, 25.0), t_log_density),
    ("gumbel_r", "logsf", (50.0,), lambda x: mp.log(-mp.expm1(-mp.exp(-x)))),
    ("gumbel_l", "logcdf", (-39.0,), lambda x: mp.log(-mp.expm1(-mp.exp(x)))),
    ("expon", "logcdf", (1e-20,), lambda x: mp.log(-mp.expm1(-x))),
    ("pareto", "logcdf", (1.0 + 1e-9, 2.0), lambda x, b: mp.log(1 - x ** -b)),
    ("truncnorm", "logpdf", (40.5, 40.0, 41.0), lambda x, a, b: log_normal_density(x) - log_mass(a, b)),
    ("truncnorm", "logpdf", (0.0, -1e-9, 1e-9), lambda x, a, b: log_normal_density(x) - log_mass(a, b)),
    ("truncnorm", "logcdf", (20.01, 20.0, 90.0), lambda x, a, b: log_mass(a, x) - log_mass(a, b)),
    ("truncnorm", "logsf", (-30.02, -31.0, -30.0), lambda x, a, b: log_mass(x, b) - log_mass(a, b)),
    ("exponnorm", "logpdf", (0.3, 1e-4), exponnorm_log_density),
    ("exponnorm", "logpdf", (-30.0, 2.0), exponnorm_log_density),
    ("exponnorm", "logpdf", (700.0, 0.5), exponnorm_log_density),
    ("exponnorm", "logcdf", (-50.0, 1.5), lambda x, k: mp.log(exponnorm_cdf(x, k))),
    ("skewnorm", "cdf", (-5.0, 0.5), skew_cdf), ("skewnorm", "sf", (2.0, -5.0), lambda x, a: 1 - skew_cdf(x, a)),
    ("skewnorm", "logcdf", (-3.0, 4.0), lambda x, a: mp.log(skew_cdf(x, a))),
    ("skewnorm", "logcdf", (-0.2, 30.0), lambda x, a: mp.log(skew_cdf(x, a))),
    ("skewnorm", "logcdf", (-45.0, -0.05), lambda x, a: mp.log(skew_cdf(x, a))),
    ("invgauss", "logsf", (90.0, 0.7), lambda x, mu: mp.log(1 - invgauss_cdf(x, mu))),
    ("invgauss", "logsf", (7e9, 0.9), lambda x, mu: mp.log(invgauss_sf(x, mu))),
    ("invgauss", "logsf", (5e3, 0.9), lambda x, mu: mp.log(invgauss_sf(x, mu))),
    ("invgauss", "logsf", (20.0, 0.7), lambda x, mu: mp.log(1 - invgauss_cdf(x, mu))),
    ("invgauss", "logcdf", (1e-3, 2.0), lambda x, mu: mp.log(invgauss_cdf(x, mu))),
    ("gamma", "entropy", (1e8,), gamma_entropy), ("gamma", "entropy", (251.0,), gamma_entropy),
    ("weibull_min", "logcdf", (1e-8, 2.5), lambda x, c: mp.log(-mp.expm1(-x ** c))),
    ("geom", "logcdf", (60.0, 0.7), lambda k, p: mp.log(1 - (1 - p) ** k)),
    ("laplace", "logsf", (900.0,), lambda x: -x - mp.log(2)),
    ("gennorm", "logpdf", (1e-3, 2.5), lambda x, b: mp.log(b / 2) - mp.loggamma(1 / b) - abs(x) ** b),
    *(("genextreme", "logpdf", (x, c), lambda x, c: gev_log_density(x, c)) for x, c in ((0.7, 1e-9), (1.2, 0.0199), (
        2.0, -0.03), (30.0, -0.4))),
    ("genextreme", "logsf", (60.0, 1e-6), lambda x, c: mp.log(-mp.expm1(-mp.power(1 - c * x, 1 / c)))),
    ("genpareto", "logsf", (3.0, 1e-10), lambda x, c: -mp.log1p(c * x) / c),
    ("genpareto", "ppf", (1 - 1e-12, 0.01), lambda q, c: mp.expm1(-c * mp.log1p(-q)) / c),
    ("alpha", "logsf", (1e9, 2.0), lambda x, a: mp.log((mp.ncdf(a) - mp.ncdf(a - 1 / x)) / mp.ncdf(a))),
    ("alpha", "logsf", (80.0, 0.5), lambda x, a: mp.log((mp.ncdf(a) - mp.ncdf(a - 1 / x)) / mp.ncdf(a))),
    ("burr12", "logpdf", (1e200, 2.5, 1.5), lambda x, c, d: mp.log(c * d) + (c - 1) * mp.log(x) - (d + 1) * mp.log1p(
        x ** c)),
    ("mielke", "logsf", (1e8, 1.5, 2.5), lambda x, k, s: mp.log(1 - x ** k / (1 + x ** s) ** (k / s))),
    ("skewcauchy", "logcdf", (-1e12, 0.3), lambda x, a: mp.log((1 - a) / mp.pi * mp.atan2(1, -x / (1 - a)))),
    ("truncweibull_min", "logsf", (5.9999, 0.7, 0.1, 6.0), lambda x, c, a, b: mp.log(
        (mp.exp(-x ** c) - mp.exp(-b ** c)) / (mp.exp(-a ** c) - mp.exp(-b ** c)))),
    ("jf_skew_t", "logpdf", (-1e6, 1.5, 3.0), lambda x, a, b: (
        (a + 0.5) * mp.log1p(x / mp.sqrt(a + b + x * x)) + (b + 0.5) * mp.log1p(-x / mp.sqrt(a + b + x * x))
        - mp.log(mp.beta(a, b)) - mp.log(a + b) / 2 - (a + b - 1) * mp.log(2))),
    ("rice", "logpdf", (400.0, 399.0), lambda x, b: mp.log(x) - (x * x + b * b) / 2 + mp.log(mp.besseli(0, x * b))),
    ("wrapcauchy", "logpdf", (0.3, 0.9999), lambda x, c: mp.log(
        (1 - c * c) / (1 + c * c - 2 * c * mp.cos(x)) / (2 * mp.pi))),
    ("halflogistic", "logcdf", (300.0,), lambda x: mp.log1p(-mp.exp(-x)) - mp.log1p(mp.exp(-x))),
    ("f", "logpdf", (2.0, 3.0, 1e12), lambda x, n, m: (
        n / 2 * mp.log(n / m) + (n / 2 - 1) * mp.log(x) - (n + m) / 2 * mp.log1p(n * x / m) - mp.log(
            mp.beta(n / 2, m / 2)))),
]


def value_and_slopes(name, method, args):
    arrays = [np.array([a]) for a in args]
    tape = tape_of(lambda *a: getattr(stand_in(getattr(st, name)), method)(*a), *arrays)
    return evaluate(tape, *arrays)[0], [s[0] for s in gradients(tape, arrays, [np.ones(1)])]


@pytest.mark.parametrize(("name", "method", "args", "exact"), CASES, ids=lambda v: v if isinstance(v, str) else "")
def test_against_mpmath(name, method, args, exact):
    (value,), slopes = value_and_slopes(name, method, args)
    with mp.workdps(120):
        point = [mp.mpf(a) for a in args]
        truth, exact_slopes = exact(*point), [mp.mpf(0)] * len(args)
        for i in range(int(name == "geom"), len(args)):
            h = point[i] * mp.mpf(10) ** -40 if point[i] else mp.mpf(10) ** -40
            up, down = (exact(*[p + s * h if j == i else p for j, p in enumerate(point)]) for s in (1, -1))
            exact_slopes[i] = (up - down) / (2 * h)
            rounding = 1e-15 * abs(truth) / abs(args[i]) if args[i] else 0.0
            assert abs(slopes[i] - exact_slopes[i]) <= 1e-11 * abs(exact_slopes[i]) + rounding, (i, slopes[i])
        condition = sum(abs(a * s) for a, s in zip(args, exact_slopes, strict=True))
        assert abs(value - truth) <= 5e-15 * (abs(truth) + condition), (value, truth)


def test_edges_known_on_paper():
    half_log = -0.5 * np.log(2 * np.pi)
    cases = [
        ("expon", "logpdf", (0.0,), 0.0, -1.0), ("gamma", "logpdf", (0.0, 1.0), 0.0, -1.0),
        ("beta", "logpdf", (0.0, 1.0, 2.0), np.log(2.0), -1.0), ("uniform", "logpdf", (1.0,), 0.0, 0.0),
        ("norm", "logpdf", (0.0,), half_log, 0.0), ("laplace", "logpdf", (0.0,), -np.log(2.0), 0.0),
        ("gennorm", "logpdf", (0.0, 0.5), np.log(0.25), 0.0), ("vonmises", "logpdf", (0.0, 0.0), 2 * half_log, 0.0),
        ("t", "logpdf", (2.0, np.inf), half_log - 2.0, -2.0), ("logistic", "logpdf", (0.0,), -2 * np.log(2.0), 0.0),
        ("t", "cdf", (0.0, 1.0), 0.5, 1 / np.pi), ("gennorm", "cdf", (0.0, 2.0), 0.5, 1 / np.sqrt(np.pi)),
    ]
    for name, method, args, value, slope in cases:
        got, slopes = value_and_slopes(name, method, args)
        np.testing.assert_allclose(got, value, rtol=1e-14, atol=1e-16, err_msg=name)
        np.testing.assert_allclose(slopes[0], slope, rtol=1e-13, err_msg=name)
