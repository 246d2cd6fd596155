"""The table of math functions written in machine operations.

`EXPANSIONS[name]` takes float64 `Expr`s and returns one. The functions and their errors
are described where they are defined.
"""
from __future__ import annotations

from collections.abc import Callable

from . import vectormath_explog as explog
from . import vectormath_inverse as inverse
from . import vectormath_power as power
from . import vectormath_special as special
from . import vectormath_special_bessel as bessel
from . import vectormath_special_gamma as gamma
from . import vectormath_special_inverse as quantile
from . import vectormath_trig as trig
from .scalar import Expr

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
