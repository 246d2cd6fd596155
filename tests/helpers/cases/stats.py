"""Parameters and points for the distributions of scipy.stats, from which the tests of every method are made."""
from __future__ import annotations

import itertools

import numpy as np
import scipy.stats as st

from jitad.trace.scipy_rules.stats.rules import RULES

SHAPES = {
    "s": [0.3, 1.0, 2.0], "K": [0.05, 0.5, 3.0], "a": [0.4, 1.0, 2.5, 40.0], "b": [0.6, 1.0, 3.0, 20.0],
    "kappa": [0.1, 2.0, 50.0], "df": [0.5, 2.5, 5.0, 80.0, 1e4], "c": [0.4, 1.0, 1.7, 8.0],
    "beta": [0.5, 1.3, 2.0, 5.0], "mu": [0.1, 1.0, 5.0], "p": [0.01, 0.2, 0.7], "n": [5.0, 40.0],
    "truncnorm.a": [-3.0, -1.0, 0.5, 10.0], "truncnorm.b": [1.0, 12.0, 40.0], "skewnorm.a": [-2.0, 0.0, 0.5],
    "nbinom.n": [0.7, 4.0, 30.0],
    "d": [0.5, 1.0, 4.0], "m": [1.5, 3.0], "k": [0.5, 3.0], "nu": [0.5, 1.0, 7.0], "nc": [0.2, 3.0],
    "dfn": [0.7, 2.0, 30.0], "dfd": [1.5, 5.0, 200.0], "skew": [-1.3, 0.0, 0.4], "chi": [0.3, 2.0], "rho": [0.5, 4.0],
    "low": [-3.0, 2.0], "high": [4.0, 9.0], "lambda_": [0.1, 1.5], "N": [6.0, 15.0], "M": [40.0, 60.0], "r": [3.0, 8.0],
    "mu1": [0.3, 4.0], "mu2": [0.5, 7.0], "alpha": [0.6, 3.0], "nhypergeom.n": [6.0, 20.0], "hypergeom.n": [6.0, 20.0],
    "genextreme.c": [-0.4, -1e-9, 0.0, 0.02, 0.7], "genpareto.c": [-0.4, 0.0, 1e-7, 0.3, 1.5],
    "gengamma.a": [0.6, 3.0], "gengamma.c": [-1.2, 0.7, 2.0], "johnsonsu.a": [-0.5, 1.0], "johnsonsb.a": [-0.5, 1.0],
    "exponweib.a": [0.5, 1.0, 3.0], "exponweib.c": [0.7, 1.6], "exponpow.b": [0.6, 1.0], "gompertz.c": [0.01, 1.0],
    "alpha.a": [0.5, 3.0], "loguniform.a": [0.02, 0.5], "loguniform.b": [1.2, 9.0], "reciprocal.a": [0.02, 0.5],
    "reciprocal.b": [1.2, 9.0], "wrapcauchy.c": [0.1, 0.8], "triang.c": [0.35, 0.6], "trapezoid.c": [0.1, 0.4],
    "trapezoid.d": [0.5, 0.8], "skewcauchy.a": [-0.6, 0.0, 0.4], "truncpareto.c": [1.5, 20.0],
    "truncweibull_min.a": [0.0, 0.4], "truncweibull_min.b": [1.5, 6.0], "truncweibull_min.c": [0.7, 2.0],
    "norminvgauss.a": [1.0, 3.0], "norminvgauss.b": [-0.4, 0.0, 0.9], "geninvgauss.p": [-0.7, 0.5, 2.0],
    "geninvgauss.b": [0.3, 4.0], "genhyperbolic.p": [-0.7, 0.5, 2.0], "genhyperbolic.a": [1.0, 3.0],
    "genhyperbolic.b": [-0.4, 0.0, 0.9], "ncx2.df": [0.5, 3.0, 9.0], "rice.b": [0.0, 0.7, 12.0],
    "foldnorm.c": [0.0, 0.7, 3.0], "foldcauchy.c": [0.0, 0.7, 3.0], "powernorm.c": [0.4, 3.0],
    "kappa3.a": [0.4, 1.0, 2.5], "rdist.c": [0.7, 2.5, 5.0], "jf_skew_t.a": [0.4, 1.5, 6.0], "jf_skew_t.b": [0.6, 3.0],
}
INVALID = {"n": [-1.0, 2.5], "p": [-0.1, 1.5], "nbinom.n": [0.0, -1.0], "skewnorm.a": [np.inf], "truncnorm.a": [50.0],
           "low": [0.5, 9.0], "high": [5.5], "N": [-1.0, 2.5], "M": [-1.0], "r": [-1.0, 99.0], "mu1": [0.0],
           "truncnorm.b": [-9.0], "poisson.mu": [-1.0], "vonmises.kappa": [-1.0], "vonmises_line.kappa": [-1.0],
           "genextreme.c": [np.inf], "genpareto.c": [np.inf], "gengamma.c": [0.0], "johnsonsu.a": [], "johnsonsb.a": [],
           "wrapcauchy.c": [1.0], "triang.c": [-0.1, 1.1], "trapezoid.c": [-0.1, 0.9], "trapezoid.d": [1.1],
           "skewcauchy.a": [1.0, -2.0], "truncpareto.c": [1.0], "truncpareto.b": [0.0],
           "truncweibull_min.a": [-0.1, 9.0],
           "truncweibull_min.b": [-9.0], "norminvgauss.b": [-1.5, 2.0], "geninvgauss.p": [], "genhyperbolic.p": [],
           "genhyperbolic.b": [-1.5, 2.0], "rice.b": [-0.1], "foldnorm.c": [-0.1], "foldcauchy.c": [-0.1],
           "skew": [np.inf], "loguniform.a": [-1.0, 99.0], "reciprocal.a": [-1.0, 99.0], "crystalball.m": [1.0]}
POINTS = np.array([-7.0, -2.0, -1.0, -0.3, 0.001, 0.2, 0.55, 0.92, 1.1, 2.0, 3.7, 7.0, 13.0])
EDGES = np.array([-np.inf, -1e10, 0.0, 0.25, 1.55, 1.0, 500.0, 1e10, np.nan])  # loc and loc + scale among them
COUNTS = np.array([0.0, 1.0, 2.0, 3.0, 5.0, 17.0])
COUNT_EDGES = np.array([-np.inf, -3.0, -1.0, 0.5, 4.99, 40.0, 1000.0, np.inf, np.nan])
PROBABILITIES = np.array([1e-5, 0.1, 0.3, 0.55, 0.77, 0.999])
PROBABILITY_EDGES = np.array([-0.1, 0.0, 1.0, 1.1, np.nan])
LOC, SCALE = 0.25, 1.3
MOMENTS = ("mean", "median", "var", "std", "entropy")

UNIVARIATE = [name for name in RULES if hasattr(getattr(st, name), "shapes")]
METHODS = [(name, method) for name in UNIVARIATE for method in RULES[name]]


def shape_names(name: str) -> list[str]:
    return [s.strip() for s in (getattr(st, name).shapes or "").split(",") if s.strip()]


def is_discrete(name: str) -> bool:
    return hasattr(getattr(st, name), "pmf")


def samples(table, name: str, shape: str):
    return table.get(f"{name}.{shape}", table.get(shape, [-1.0]))


def points_of(name: str, method: str, edges: bool) -> np.ndarray:
    if method in ("ppf", "isf"):
        return PROBABILITY_EDGES if edges else PROBABILITIES
    if is_discrete(name):
        return COUNT_EDGES if edges else COUNTS
    return EDGES if edges else POINTS


def arguments(name: str, method: str, edges: bool = False) -> list[np.ndarray]:
    """Arrays of points (but for moments), shapes, location and scale: all combinations of valid parameters."""
    combos = list(itertools.product(*(samples(SHAPES, name, s) for s in shape_names(name))))
    if name == "truncnorm":
        combos = [c for c in combos if c[0] < c[1]]
    tail = (LOC if not is_discrete(name) else 2.0, *(() if is_discrete(name) else (SCALE,)))
    if method in MOMENTS:
        rows = [(*c, *tail) for c in combos]
    else:
        shift = 2.0 if is_discrete(name) and method not in ("ppf", "isf") else 0.0
        rows = [(x + shift, *c, *tail) for c in combos for x in points_of(name, method, edges)]
    return [np.array(column) for column in zip(*rows, strict=True)]


def invalid_arguments(name: str, method: str) -> list[np.ndarray]:
    """As `arguments`, with one parameter out of its range, or NaN, in each row but the last, which is valid."""
    shapes = shape_names(name)
    good = [samples(SHAPES, name, s)[1 if s == "b" else 0] for s in shapes] + [0.0]
    bad = [[*samples(INVALID, name, s), np.nan] for s in shapes] + [[np.nan]]
    if not is_discrete(name):
        good, bad = [*good, 1.0], [*bad, [0.0, -1.0, np.nan]]
    combos = [[*good[:i], value, *good[i + 1:]] for i, values in enumerate(bad) for value in values]
    combos.append(good)
    first = () if method in MOMENTS else (0.5,) if method in ("ppf", "isf") else (1.0 if is_discrete(name) else 1.2,)
    return [np.array(column) for column in zip(*((*first, *c) for c in combos), strict=True)]


def differentiable(name: str, method: str) -> list[int]:
    """Places of the arguments in which the method has a derivative."""
    first = () if method in MOMENTS else ("x",)
    names = (*first, *shape_names(name), "loc", *(() if is_discrete(name) else ("scale",)))
    whole = {"n", "low", "high", "N", "M", "r"} if is_discrete(name) else set()
    if is_discrete(name) and method not in MOMENTS:
        whole |= {"x", "loc"}
    return [i for i, n in enumerate(names) if n not in (whole - {"n"} if name == "nbinom" else whole)]
