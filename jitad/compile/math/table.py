"""The table of math functions written in machine operations.

`EXPANSIONS[name]` takes float64 `Expr`s and returns one. The functions and their errors
are described where they are defined.
"""
from __future__ import annotations

from collections.abc import Callable

from jitad.compile.math import bessel, explog, gamma, inverse, power, special, trig
from jitad.compile.math import quantiles as quantile
from jitad.tape.expr import Expr

EXPANSIONS: dict[str, Callable[..., Expr]] = {
    name: getattr(family, name)
    for family, names in (
        (explog, "exp exp2 expm1 log log2 log10 log1p tanh sinh cosh expit log_expit softplus logaddexp "
         "log1p_exp exp_share"),
        (trig, "sin cos tan"),
        (inverse, "arctan arctan2 arcsin arccos arcsinh arccosh arctanh"),
        (power, "cbrt hypot"),
        (special, "erf erfc erfcx ndtr log_ndtr lgamma digamma"),
        (quantile, "ndtri erfinv erfcinv"),
        (bessel, "i0 i1 i0e i1e"),
        (gamma, "gamma_function betaln"),
    )
    for name in names.split()
}
EXPANSIONS["pow"] = power.power
WHOLE: dict[str, Callable[..., Expr]] = {"lgamma": special.lgamma_whole}       # the same for whole numbers, faster
