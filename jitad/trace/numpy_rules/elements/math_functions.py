"""The functions of `math` in recorded code: NumPy's, with the exceptions of `math`.

They take and give Python numbers. Where `math` raises (a result that is no number, or an infinity, of numbers that are
none), recording raises the same, and a guard on the tape sees to it that no later call goes on with what NumPy gives
there instead.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from jitad.errors import ConcretizationError
from jitad.primitives.core import cast
from jitad.tape.builder import Value
from jitad.tape.types import TABLE
from jitad.trace.arrays.choice import choose
from jitad.trace.dispatch import as_value, beyond, builder_in, noted_line, refused, stopped
from jitad.trace.substitutes import substitute
from jitad.trace.ufuncs import apply_ufunc
from jitad.trace.where import user_line

__all__: list[str] = []


def _operands(name: str, args: tuple[Any, ...]) -> list[Any]:
    """The arguments as float64 numbers, as `math` takes them."""
    builder = builder_in(args)
    found = []
    for x in args:
        value: Any = builder.lift(x if isinstance(x, Value) else float(x))       # type: ignore[union-attr]
        if value.ndim:
            raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
        if value.dtype.kind == "c":
            raise TypeError(f"must be real number, not complex (math.{name})")
        found.append(_handed(cast(value, np.float64)))
    return found


def _handed(value: Any) -> Any:
    made: Any = value.builder.value(value.number)
    made.weak = True
    return made


def _checked(function: Callable[..., Any], result: Any, operands: list[Any]) -> Any:
    """The result, which must not be NaN of no NaN, or infinite of finite numbers: what `math` makes exceptions of."""
    recorder = result.builder
    with recorder.plain():
        nan, finite, given = TABLE["isnan"], TABLE["isfinite"], [Value(recorder, x.number) for x in operands]
        some, all_finite = nan(given[0]), finite(given[0])
        for x in given[1:]:
            some, all_finite = TABLE["logical_or"](some, nan(x)), TABLE["logical_and"](all_finite, finite(x))
        end = Value(recorder, result.number)
        made = TABLE["logical_and"](nan(end), TABLE["logical_not"](some))
        over = TABLE["logical_and"](TABLE["isinf"](end), all_finite)
        bad = TABLE["logical_or"](made, over)
    return _watched(function, result, operands, bad)


def _watched(function: Callable[..., Any], result: Any, operands: list[Any], bad: Value) -> Any:
    recorder = result.builder
    explorer = recorder.explorer
    if explorer is not None and explorer.depends(bad.number):
        if function not in _ERRORS or not recorder.inside_try():
            explorer.forbid(bad, function, operands)
        elif explorer.decide(bad):
            kind, words = _ERRORS[function]
            raise kind(words)
        return _handed(result)
    try:
        raises = recorder.decide(bad)
    except ConcretizationError:
        raise ConcretizationError(
            f"math.{function.__name__} at {user_line()} raises where NumPy's function gives NaN or an infinity, and in "
            "the body of a scan or loop that cannot be foreseen; use NumPy's function there") from None
    if raises:
        _raise(function, result, operands)
    return _handed(result)


def _raise(function: Callable[..., Any], result: Any, operands: list[Any]) -> NoReturn:
    """What `function` raises. Where its class, which an ``except`` may ask for, is not always the same, it goes by
    whether the result is NaN and by the kind of the first operand: these are guards."""
    recorder = result.builder
    with recorder.plain():
        end, first = Value(recorder, result.number), Value(recorder, operands[0].number)
        kinds = [TABLE["isnan"](first), TABLE["isinf"](first), TABLE["gt"](first, 0.0), TABLE["lt"](first, 0.0)]
        if end.dtype.kind == "f":
            kinds.append(TABLE["isnan"](end))
    for kind in kinds if function not in _ERRORS else ():
        recorder.decide(kind)
    function(*(recorder.concrete(x.number).item() for x in operands))
    raise refused(result, f"math.{function.__name__} of a number for which NumPy and math disagree whether it is an "
                  "error", "use NumPy's function")


def _enter(function: Callable[..., Any], ufunc: Callable[..., Any], count: int = 1, fails: bool = True) -> None:
    name = function.__name__

    @substitute(function)
    def impl(*args: Any) -> Any:
        if len(args) != count:
            function(*(0.5,) * len(args))                    # raises Python's own message
        operands = _operands(name, args)
        result = ufunc(*operands) if not isinstance(ufunc, np.ufunc) else apply_ufunc(ufunc, *operands)
        return _checked(function, result, operands) if fails else _handed(result)


def _special(name: str) -> Callable[..., Any]:
    def call(x: Any) -> Any:
        import scipy.special

        return apply_ufunc(getattr(scipy.special, name), x)
    return call


# What those functions raise that always raise the same.
_ERRORS: dict[Any, tuple[type[Exception], str]] = {
    getattr(math, name): error for error, names in (
        ((ValueError, "math domain error"),
         "log log2 log10 log1p sqrt sin cos tan asin acos acosh atanh fmod remainder"),
        ((OverflowError, "math range error"), "exp expm1 exp2 sinh cosh ldexp")) for name in names.split()}


def _lgamma(x: Any) -> Any:
    return choose(x == -math.inf, math.inf, _special("gammaln")(x))          # where SciPy's is the other one


_CHECKED: dict[str, Callable[..., Any]] = {
    "exp": np.exp, "expm1": np.expm1, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sqrt": np.sqrt,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "sinh": np.sinh,
    "cosh": np.cosh, "acosh": np.arccosh, "atanh": np.arctanh, "lgamma": _lgamma,
    "gamma": _special("gamma"), "exp2": np.exp2}
_TOTAL: dict[str, Callable[..., Any]] = {
    "cbrt": np.cbrt, "atan": np.arctan, "asinh": np.arcsinh, "tanh": np.tanh, "fabs": np.absolute,
    "erf": _special("erf"), "erfc": _special("erfc"), "radians": np.radians,
    "degrees": np.degrees}
for _name, _ufunc in _CHECKED.items():
    if hasattr(math, _name):
        _enter(getattr(math, _name), _ufunc)
for _name, _ufunc in _TOTAL.items():
    if hasattr(math, _name):
        _enter(getattr(math, _name), _ufunc, fails=False)
_enter(math.pow, np.power, 2)
_enter(math.fmod, np.fmod, 2)
_enter(math.atan2, np.arctan2, 2, fails=False)
_enter(math.copysign, np.copysign, 2, fails=False)


@substitute(math.log)
def _log(x: Any, base: Any = None) -> Any:
    if base is None:
        (value,) = _operands("log", (x,))
        return _checked(math.log, apply_ufunc(np.log, value), [value])
    if not isinstance(base, Value):
        (value,), bottom = _operands("log", (x,)), math.log(base)
        top = _checked(math.log, apply_ufunc(np.log, value), [value])
    else:
        value, base = _operands("log", (x, base))
        top, bottom = (_checked(math.log, apply_ufunc(np.log, v), [v]) for v in (value, base))
    if bottom == 0.0:                                            # a guard, of a base that is computed
        raise ZeroDivisionError("division by zero")
    return _handed(apply_ufunc(np.true_divide, top, bottom))


@substitute(math.hypot)
def _hypot(*args: Any) -> Any:
    operands = _operands("hypot", args)
    total = apply_ufunc(np.absolute, operands[0])
    for x in operands[1:]:
        total = apply_ufunc(np.hypot, total, x)
    return _handed(total)


@substitute(math.dist)
def _dist(p: Any, q: Any) -> Any:
    p, q = list(p), list(q)
    if len(p) != len(q):
        raise ValueError("both points must have the same number of dimensions")
    return _hypot(*(a - b for a, b in zip(p, q, strict=True)))


@substitute(math.prod)
def _prod(iterable: Any, *, start: Any = 1) -> Any:
    for x in iterable:
        start = start * x
    return start


def _truth(function: Callable[..., Any], ufunc: np.ufunc) -> None:
    @substitute(function)
    def impl(x: Any) -> Any:
        return _handed(apply_ufunc(ufunc, *_operands(function.__name__, (x,))))


_truth(math.isnan, np.isnan)
_truth(math.isinf, np.isinf)
_truth(math.isfinite, np.isfinite)


def _whole(function: Callable[..., Any], ufunc: np.ufunc) -> None:
    """Rounding to a Python integer: of what is no number, or beyond 64 bits, refused."""
    @substitute(function)
    def impl(x: Any) -> Any:
        if x.dtype.kind in "iu":
            return x
        (value,) = _operands(function.__name__, (x,))
        rounded = apply_ufunc(ufunc, value)
        recorder = rounded.builder
        with recorder.plain():
            end = Value(recorder, rounded.number)
            bad = TABLE["logical_not"](TABLE["lt"](TABLE["abs"](end), 2.0**63))
            whole = cast(end, np.int64)
        checked = _watched(_refusing(function), _handed(whole), [value], bad)
        return checked


def _refusing(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: float) -> Any:
        function(x)                                              # raises for what is no number, and for an infinity
        raise beyond(None, f"math.{function.__name__}")
    call.__name__ = function.__name__
    return call


for _function, _rounding in ((math.floor, np.floor), (math.ceil, np.ceil), (math.trunc, np.trunc)):
    _whole(_function, _rounding)


@substitute(math.modf)
def _modf(x: Any) -> Any:
    fraction, whole = apply_ufunc(np.modf, *_operands("modf", (x,)))
    return _handed(fraction), _handed(whole)


@substitute(math.ldexp)
def _ldexp(x: Any, i: Any) -> Any:
    if not isinstance(i, (Value, int, np.integer)) or (isinstance(i, Value) and i.dtype.kind not in "iu"):
        raise TypeError("Expected an int as second argument to ldexp.")
    exact = builder_in((x, i)).lift(i)                                              # type: ignore[union-attr]
    value = _handed(cast(exact.builder.lift(x), np.float64))                       # type: ignore[union-attr]
    return _checked(math.ldexp, apply_ufunc(np.ldexp, value, exact), [value, exact])


@substitute(math.remainder)
def _remainder(x: Any, y: Any) -> Any:
    """The remainder of the nearest multiple, of the even one at a tie (IEEE 754-2008, 5.3.1), by exact steps."""
    x, y = _operands("remainder", (x, y))
    size, step = apply_ufunc(np.absolute, x), apply_ufunc(np.absolute, y)
    below = apply_ufunc(np.fmod, size, step)                     # from the multiple below, and above to the next
    above = step - below
    odd = apply_ufunc(np.fmod, 0.5 * (size - below), step)       # at a tie: 0 above an even multiple, else one step
    near = choose(below < above, below, choose(below > above, -above, below - 2.0 * odd))
    return _checked(math.remainder, near * apply_ufunc(np.copysign, 1.0, x), [x, y])


@substitute(math.isclose)
def _isclose(a: Any, b: Any, *, rel_tol: Any = 1e-9, abs_tol: Any = 0.0) -> Any:
    a, b, rel_tol, abs_tol = _operands("isclose", (a, b, rel_tol, abs_tol))
    if rel_tol < 0 or abs_tol < 0:                               # guards, of numbers that are computed
        raise ValueError("tolerances must be non-negative")
    larger = apply_ufunc(np.maximum, *(apply_ufunc(np.absolute, v) for v in (a, b)))
    close = apply_ufunc(np.absolute, a - b) <= apply_ufunc(np.maximum, rel_tol * larger, abs_tol)
    return _handed((a == b) | close & apply_ufunc(np.isfinite, larger))


@substitute(math.fsum, always=True)
def _fsum(iterable: Any) -> Any:
    """By a tree of exact sums (D. E. Knuth, The Art of Computer Programming 2, 4.2.2): the error of each is added up
    beside the sum, as in the `Sum2` of T. Ogita, S. M. Rump and S. Oishi (2005). The derivative is that of the sum."""
    terms: Any = iterable if isinstance(iterable, Value) else list(iterable)
    builder = builder_in(terms)
    if builder is None:
        return math.fsum(terms)
    with noted_line(builder):
        x = cast(as_value(builder, terms), np.float64)
        if x.ndim != 1:
            raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
        return _handed(_exact_sum(x)) if x.shape[0] else 0.0


def _exact_sum(x: Any) -> Any:
    total, error = x, 0.0 * stopped(x)
    while (n := total.shape[0]) > 1:
        half = n // 2
        a, b, rest = total[:half], total[half:2 * half], total[2 * half:]
        total = a + b
        first, second, whole = (stopped(v) for v in (a, b, total))
        moved = whole - first
        lost = (first - (whole - moved)) + (second - moved) + (error[:half] + error[half:2 * half])
        total, error = np.concatenate([total, rest]), np.concatenate([lost, error[2 * half:]])
    total, error = total[0], error[0]
    if np.isfinite(total):                               # a recorded branch, as those below are
        return total + error
    if np.isnan(total):
        if not np.any(np.isnan(x)):
            raise ValueError("-inf + inf in fsum")
    elif not np.any(np.isinf(x)):
        raise OverflowError("intermediate overflow in fsum")
    return total
