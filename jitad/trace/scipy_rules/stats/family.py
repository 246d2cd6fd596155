"""How a rule for a method of a distribution is made from one row: location and scale, support, parameters, edges.

A row (`continuous`, `discrete`) says what a distribution is in standard form (location 0, scale 1), in functions of
NumPy: the log density on the support, the support, which parameters are valid, and what it has of distribution
functions, quantiles and moments. Everything else follows here for all rows alike, as scipy.stats defines it: 0 and
-inf outside of the support, NaN at invalid parameters and at x = NaN, float64 results.

An invalid parameter is replaced by NaN before it is used. Where parameters are numbers that costs nothing in the loops
over data: no mask, and a value and derivatives that are NaN.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.primitives.scipy_ufuncs import ufuncs as sp
from jitad.tape.builder import Value
from jitad.trace.arrays.choice import choose
from jitad.trace.dispatch import as_value, builder_in

__all__ = ["EULER", "FAMILIES", "LOG2", "LOG_2PI", "LOG_SQRT_2PI", "Family", "Rule", "continuous", "discrete",
           "log1mexp", "sp", "where"]

Formula = Callable[..., Any]
LOG2, LOG_2PI, EULER = float(np.log(2.0)), float(np.log(2.0 * np.pi)), float(np.euler_gamma)
LOG_SQRT_2PI = LOG_2PI / 2.0


@dataclass(frozen=True, eq=False)
class Rule:
    """What a method does with traced values; `signature` is that of SciPy's method."""

    signature: inspect.Signature
    apply: Formula

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.apply(*args, **kwargs)


FAMILIES: dict[str, Family] = {}


@dataclass(frozen=True, eq=False)
class Family:
    """One row: a distribution in standard form.

    `density` is the log density (or log mass) at points of the support, a function of (x, \\*shapes); `support` are
    its ends, numbers or a function of the shapes; with `open_low` the lower end does not belong to it, and `off` says
    in another way which points do not. `valid` says which shapes are valid: by default those that are positive. `forms`
    are the other functions in standard form.
    """

    name: str
    shapes: tuple[str, ...]
    density: Formula
    support: Any = (-np.inf, np.inf)
    valid: Formula | None = None
    open_low: bool = False
    discrete: bool = False
    off: Formula | None = None
    forms: dict[str, Formula] = field(default_factory=dict)

    def __post_init__(self) -> None:
        FAMILIES[self.name] = self

    def rules(self) -> dict[str, Rule]:
        """The rule of each method that the row has, or that follows from what it has."""
        made = {**_DENSITIES[self.discrete], **{n: _POINTS[n] for n in _POINTS if _form(self, n) is not None},
                **{n: _MOMENTS[n] for n in _MOMENTS if _FROM.get(n, n) in self.forms}}
        return {name: Rule(self._signature(name), _bind(impl, self, name)) for name, impl in made.items()}

    def _signature(self, name: str) -> inspect.Signature:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        first = () if name in _MOMENTS else ("q",) if name in ("ppf", "isf") else ("k",) if self.discrete else ("x",)
        rest = {"loc": 0} if self.discrete else {"loc": 0, "scale": 1}
        return inspect.Signature([*(inspect.Parameter(n, kind) for n in (*first, *self.shapes)),
                                  *(inspect.Parameter(n, kind, default=v) for n, v in rest.items())])


def continuous(name: str, shapes: str, density: Formula, support: Any = (-np.inf, np.inf), *,
               valid: Formula | None = None, open_low: bool = False, symmetric: bool = False, **forms: Any) -> Family:
    """A row for a continuous distribution; with `symmetric` the upper half follows from the lower."""
    if symmetric:
        for one, other in (("cdf", "sf"), ("logcdf", "logsf")):
            if one in forms:
                forms[other] = _mirrored(forms[one])
        if "ppf" in forms:
            forms["isf"] = lambda q, *shapes: -forms["ppf"](q, *shapes)
    return Family(name, tuple(shapes.split()), density, support, valid, open_low, forms=forms)


def discrete(name: str, shapes: str, density: Formula, support: Any = (0.0, np.inf), *, valid: Formula,
             off: Formula | None = None, **forms: Any) -> Family:
    """A row for a distribution on integers."""
    return Family(name, tuple(shapes.split()), density, support, valid, discrete=True, off=off, forms=forms)


def _mirrored(form: Formula) -> Formula:
    return lambda z, *shapes: form(-z, *shapes)


def _bind(impl: Formula, family: Family, name: str) -> Formula:
    return lambda *args: impl(family, name, *args)


# --- helpers of the rows -------------------------------------------------------------------------

def where(condition: Any, a: Any, b: Any) -> Any:
    """``np.where`` of traced or plain values, by numbers rather than arrays of no dimensions."""
    if builder_in(condition, a, b) is None:
        return np.where(condition, a, b)[()]
    return choose(condition, a, b)


def log1mexp(x: Any) -> Any:
    """``log(1 - exp(-x))`` for x >= 0 (Mächler, Accurately computing log(1 - exp(-|a|)), 2012, eq. 7)."""
    return where(x < LOG2, np.log(-np.expm1(-x)), np.log1p(-np.exp(-x)))


# --- parameters and points -----------------------------------------------------------------------

def _float(builder: Any, x: Any) -> Any:
    """`x` in float64, in which scipy.stats computes: a traced value or, if plain, NumPy's."""
    if builder_in(x) is None:
        array = np.asarray(x)
        if array.dtype.kind in "biuf":
            return array.astype(np.float64)[()]
    return cast(as_value(builder, x), np.float64)


def _holds(condition: Any) -> bool:
    """Whether a condition is known to hold while recording."""
    return not isinstance(condition, Value) and bool(np.all(condition))


class _Standard:
    """Sanitised parameters, and what there is in place of 0, 1 and -inf where one is invalid: NaN."""

    def __init__(self, family: Family, builder: Any, shapes: Any, loc: Any, scale: Any) -> None:
        self.shapes = tuple(_float(builder, s) for s in shapes)
        self.loc, self.scale = _float(builder, loc), _float(builder, scale)
        conditions = [self.scale > 0]
        if family.valid is not None:
            conditions.append(family.valid(*self.shapes))
        else:
            conditions += [s > 0 for s in self.shapes]
        self.conditions = [c for c in conditions if not _holds(c)]
        if not _holds(conditions[0]):
            self.scale = where(conditions[0], self.scale, np.nan)
        ok = self._all(self.conditions[int(not _holds(conditions[0])):])
        if ok is not None:
            self.shapes = tuple(where(ok, s, np.nan) for s in self.shapes)
        support = family.support
        self.low, self.high = support(*self.shapes) if callable(support) else support
        self.family = family

    @staticmethod
    def _all(conditions: list[Any]) -> Any:
        """Their conjunction, None if there are none."""
        result = None
        for c in conditions:
            result = c if result is None else result & c
        return result

    def constant(self, number: float, also: Any = ()) -> Any:
        """`number` where all is valid, else NaN."""
        ok = self._all([*self.conditions, *also])
        return number if ok is None else where(ok, number, np.nan)

    def at(self, x: Any) -> Any:
        """The point in standard form."""
        z = x if _is(self.loc, 0.0) else x - self.loc
        return z if _is(self.scale, 1.0) else z / self.scale

    def back(self, z: Any) -> Any:
        """A point of the standard form as one of the distribution itself."""
        z = z if _is(self.scale, 1.0) else z * self.scale
        return z if _is(self.loc, 0.0) else z + self.loc

    def outside(self, z: Any) -> Any:
        """Where the density is zero; None if nowhere."""
        if self.family.off is not None:
            return self.family.off(z)
        parts = []
        if not _is(self.low, -np.inf):
            parts.append(z <= self.low if self.family.open_low else z < self.low)
        if not _is(self.high, np.inf):
            parts.append(z > self.high)
        if self.family.discrete:
            parts.append(np.floor(z) < z)
        result = None
        for p in parts:
            result = p if result is None else result | p
        return result


def _is(x: Any, number: float) -> bool:
    return not isinstance(x, Value) and np.ndim(x) == 0 and bool(x == number)


def _standard(family: Family, first: Any, params: Any) -> tuple[Any, _Standard]:
    builder = builder_in(first, *params)
    count = len(family.shapes)
    shapes, loc = params[:count], params[count]
    scale = params[count + 1] if len(params) > count + 1 else 1.0
    return _float(builder, first), _Standard(family, builder, shapes, loc, scale)


# --- densities -----------------------------------------------------------------------------------

def _log_density(family: Family, name: str, x: Any, *params: Any) -> Any:
    x, std = _standard(family, x, params)
    z = std.at(x)
    result = family.density(z, *std.shapes)
    if not _is(std.scale, 1.0):
        result = result - np.log(std.scale)
    outside = std.outside(z)
    return result if outside is None else where(outside, std.constant(-np.inf), result)


def _density(family: Family, name: str, x: Any, *params: Any) -> Any:
    return np.exp(_log_density(family, name, x, *params))


_DENSITIES: dict[bool, dict[str, Formula]] = {
    False: {"logpdf": _log_density, "pdf": _density}, True: {"logpmf": _log_density, "pmf": _density}}


# --- distribution functions and quantiles ----------------------------------------------------------

_OTHER = {"cdf": "sf", "sf": "cdf", "logcdf": "logsf", "logsf": "logcdf"}


def _form(family: Family, name: str) -> Formula | None:
    """The distribution function or quantile `name` in standard form: the row's, or made of what the row has."""
    forms = family.forms
    if name in forms:
        return forms[name]
    other = _OTHER.get(name)
    if name == "isf":
        ppf = forms.get("ppf")
        return None if ppf is None else lambda q, *shapes: ppf(1.0 - q, *shapes)
    if name in ("logcdf", "logsf"):
        whole, parts = name[3:], (forms.get(name[3:]), forms.get(_OTHER[name[3:]]))
        if None in parts:
            return None
        return lambda z, *shapes: _log_of(forms[whole](z, *shapes), forms[_OTHER[whole]](z, *shapes))
    if name in ("cdf", "sf"):
        log, rest = forms.get(f"log{name}"), forms.get(other or "")
        if log is not None:
            return lambda z, *shapes: np.exp(log(z, *shapes))
        return None if rest is None else lambda z, *shapes: 1.0 - rest(z, *shapes)
    return None


def _log_of(p: Any, rest: Any) -> Any:
    """log(p) where ``p + rest == 1``."""
    return where(p < 0.5, np.log(p), np.log1p(-rest))


def _distribution(family: Family, name: str, x: Any, *params: Any) -> Any:
    x, std = _standard(family, x, params)
    z = np.floor(std.at(x)) if family.discrete else std.at(x)
    form = _form(family, name)
    assert form is not None
    result = form(z, *std.shapes)
    if std.conditions and family.shapes:
        result = result + std.constant(0.0)                         # for forms that 1**nan lets through
    none, all_ = (-np.inf, 0.0) if name.startswith("log") else (0.0, 1.0)
    below, above = (none, all_) if name.endswith("cdf") else (all_, none)
    if not _is(std.low, -np.inf):
        result = where(z < std.low if family.discrete else z <= std.low, std.constant(below), result)
    if family.discrete or not _is(std.high, np.inf):
        result = where(z >= std.high, std.constant(above), result)
    return result                                                   # forms are right at infinite ends themselves


def _quantile(family: Family, name: str, q: Any, *params: Any) -> Any:
    q, std = _standard(family, q, params)
    form = _form(family, name)
    assert form is not None
    low, high = std.low * std.constant(1.0), std.high * std.constant(1.0)
    first, last = (low, high) if name == "ppf" else (high, low)
    # The ends are put in before the scale, which an infinite one would give the derivative 0 * inf.
    result = std.back(where(q == 0, first, where(q == 1, last, form(q, *std.shapes))))
    return where((q >= 0) & (q <= 1), result, np.nan)


_POINTS: dict[str, Formula] = {**dict.fromkeys(("cdf", "sf", "logcdf", "logsf"), _distribution),
                               **dict.fromkeys(("ppf", "isf"), _quantile)}


# --- moments and entropy ---------------------------------------------------------------------------

def _moment(family: Family, name: str, *params: Any) -> Any:
    loc, std = _standard(family, params[len(family.shapes)], params)
    half = (0.5,) if name == "median" else ()
    form = family.forms[_FROM.get(name, name)](*half, *std.shapes)
    one = std.constant(1.0, () if _is(loc, 0.0) else (loc == loc,))
    if name in ("mean", "median"):
        return std.back(form * one)
    if name == "entropy":
        form = form if _is(std.scale, 1.0) else form + np.log(std.scale)
        return form * one
    if name == "std":
        return np.sqrt(form * one) * std.scale
    return form * one * std.scale * std.scale


_MOMENTS: dict[str, Formula] = dict.fromkeys(("mean", "median", "var", "std", "entropy"), _moment)
_FROM = {"std": "var", "median": "ppf"}
