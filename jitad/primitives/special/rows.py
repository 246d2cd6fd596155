"""Kinds of row for functions of scipy.special: SciPy's own, called by pointer, and ours of `numeric.ROUTINES`."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitad.errors import UnsupportedOperationError
from jitad.primitives.core import draw, elementwise, loop_dtypes, pointwise, select
from jitad.primitives.elementwise import absolute, le
from jitad.primitives.numeric import ARRAYS, ROUTINES
from jitad.primitives.scipy_ufuncs import ufuncs
from jitad.tape.builder import Value
from jitad.tape.expr import Expr, call
from jitad.tape.types import Aval, Primitive

FLOAT32 = np.dtype(np.float32)


def refusing(y: Value, name: str, of: str, reason: str = "no practical formula for it is known") -> Callable[[], Value]:
    """In the place of a partial derivative: the error for who wants it. It is made when the derivative is."""
    def wanted() -> Value:
        place = f" at {y.builder.line}" if y.builder.line else ""
        raise UnsupportedOperationError(
            f"scipy.special.{name}{place} has no derivative with respect to {of}: {reason}; make that argument "
            "one that does not depend on what you differentiate by")
    return wanted


def pointer(name: str, partials: Callable[..., Any] | None, domain: Any = None, cost: int = 60,
            **traits: Any) -> Primitive:
    """A row for a ufunc of scipy.special whose scalar code is a call of SciPy's own function."""
    ufunc = getattr(ufuncs, name)
    row = elementwise(name, ufunc, partials, scalar=code_of(f"special_{name}"), cost=cost, domain=domain, pointer=True,
                      **traits)
    row.evaluate = lambda *operands: _rounded(ufunc, operands)
    return row


def _rounded(ufunc: np.ufunc, operands: Sequence[Any]) -> Any:
    """The ufunc, in single precision as its code computes it: in float64, rounded. SciPy's own loops are coarser."""
    if not any(x.dtype == FLOAT32 for x in operands):
        return ufunc(*operands)
    dtype = loop_dtypes(ufunc, tuple(x.dtype for x in operands))[-1]              # float64 if an integer is among them
    return ufunc(*(x.astype(float) if x.dtype == FLOAT32 else x for x in operands)).astype(dtype)


def code_of(op: str) -> Callable[..., Expr]:
    """A call of the operation `op`, which computes in float64; the result is a float."""
    return lambda *xs: call(op, *xs, dtype="f4" if any(x.dtype == "f4" for x in xs) else "f8")


def floats(*keys: Any) -> tuple[np.dtype[Any], ...]:
    """Loop dtypes of functions of floats: float32 if nothing is wider."""
    dtypes = [np.dtype(float) if k in (float, int) else np.dtype(k) for k in keys]
    strong = [d for d, k in zip(dtypes, keys, strict=True) if k not in (float, int)]
    single = bool(strong) and all(d == FLOAT32 for d in strong)
    return (FLOAT32 if single else np.dtype(float),) * (len(keys) + 1)


def own(name: str, partials: Callable[..., Any], domain: Any, evaluate: Callable[..., Any] | None = None,
        cost: int = 100, **traits: Any) -> Primitive:
    """A row for the routine ``special_<name>``, or for the results of a function of SciPy that has several: then
    `evaluate` takes float64 arrays."""
    meaning = evaluate or (lambda *xs: ROUTINES[f"special_{name}"](ARRAYS, *xs))

    def value(*operands: np.ndarray) -> np.ndarray:
        doubles = np.broadcast_arrays(*(np.asarray(x, np.float64) for x in operands))
        with np.errstate(all="ignore"):
            found = np.asarray(meaning(*doubles))
        return found.astype(floats(*(np.asarray(x).dtype for x in operands))[-1])

    intervals = domain if isinstance(domain[0], (tuple, range)) else (domain,)

    def samples(rng: np.random.Generator) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        return [(tuple(np.asarray(draw(rng, i, shape), float) for i in intervals), {}) for shape in ((2, 3), ())]

    return pointwise(name, value, lambda *avals: Aval(avals[0].shape, floats(*(a.dtype for a in avals))[-1]),
                     cost=cost, partials=partials, scalar=code_of(f"special_{name}"), samples=samples,
                     resolve=floats, **traits)


def several(name: str, partials: Callable[[int], Callable[..., Any]], domain: Any, count: int,
            **traits: Any) -> list[Primitive]:
    """Rows for a function of SciPy with several results, one for each, to which `partials` gives the rules."""
    ufunc = getattr(ufuncs, name)
    rows = [own(f"{name}_{i}", partials(i), domain, evaluate=lambda *xs, i=i: ufunc(*xs)[i], cost=80, **traits)
            for i in range(count)]
    SEVERAL[ufunc] = rows
    return rows


SEVERAL: dict[np.ufunc, list[Primitive]] = {}
"""The rows of the results of functions that have several."""


def near_zero(x: Value, bound: float, coefficients: Any, otherwise: Callable[[Value], Value]) -> Value:
    """A power series in x where ``abs(x) <= bound``, else ``otherwise(x)``, which need not be finite at 0."""
    small = le(absolute(x), bound)
    inner = select(small, x, 0.0)
    series = inner * coefficients[-1] + coefficients[-2]
    for c in reversed(coefficients[:-2]):
        series = series * inner + c
    return select(small, series, otherwise(select(small, 1.0, x)))
