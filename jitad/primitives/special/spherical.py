"""Spherical Bessel functions of scipy.special: DLMF 10.47."""
# mypy: disable-error-code="has-type"
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from jitad.primitives.core import select
from jitad.primitives.elementwise import eq
from jitad.primitives.numeric import Numeric, routine
from jitad.primitives.special.rows import own, refusing
from jitad.tape.builder import Value

INF, NAN = math.inf, math.nan
ARGUMENT = (0.5, 4.0)


# --- spherical Bessel functions ------------------------------------------------------------------

def _ratio(m: Numeric, name: str, n: Any, z: Any) -> Any:
    return m.call("sqrt", 0.5 * math.pi / z) * m.call(name, n + 0.5, z)


def _odd(m: Numeric, n: Any) -> Any:
    """Whether a degree is odd, which is what the sign for negative arguments depends on."""
    return ~m.equal(0.5 * n, m.call("floor", 0.5 * n))


def _whole(m: Numeric, n: Any, value: Any) -> Any:
    return m.select((n >= 0.0) & m.equal(n, m.call("floor", n)), value, NAN)


@routine
def spherical_j(m: Numeric, n: Any, x: Any) -> Any:
    inside = (abs(x) > 0.0) & (abs(x) < INF) & (n >= 0.0)
    value = _ratio(m, "special_jv", m.select(inside, n, 0.0), m.select(inside, abs(x), 1.0))
    edge = m.select(m.equal(x, 0.0), m.select(m.equal(n, 0.0), 1.0, 0.0), m.select(m.equal(x, x), 0.0, NAN))
    return _whole(m, n, m.select(inside, m.select((x < 0.0) & _odd(m, n), -value, value), edge))


@routine
def spherical_y(m: Numeric, n: Any, x: Any) -> Any:
    inside = (abs(x) > 0.0) & (abs(x) < INF) & (n >= 0.0)
    value = _ratio(m, "special_yv", m.select(inside, n, 0.0), m.select(inside, abs(x), 1.0))
    edge = m.select(m.equal(x, 0.0), -INF, m.select(m.equal(x, x), 0.0, NAN))
    return _whole(m, n, m.select(inside, m.select((x < 0.0) & ~_odd(m, n), -value, value), edge))


@routine
def spherical_i(m: Numeric, n: Any, x: Any) -> Any:
    inside = (abs(x) > 0.0) & (abs(x) < INF) & (n >= 0.0)
    value = _ratio(m, "special_iv", m.select(inside, n, 0.0), m.select(inside, abs(x), 1.0))
    value = m.select(inside, value, m.select(m.equal(x, 0.0), m.select(m.equal(n, 0.0), 1.0, 0.0), abs(x)))
    return _whole(m, n, m.select((x < 0.0) & _odd(m, n), -value, value))


@routine
def spherical_k(m: Numeric, n: Any, x: Any) -> Any:
    """For negative arguments ``-(-1)**n k(abs(x)) - pi i(abs(x))``: DLMF 10.47.11 and 10.47.17."""
    inside = (abs(x) > 0.0) & (abs(x) < INF) & (n >= 0.0)
    degree, z = m.select(inside, n, 0.0), m.select(inside, abs(x), 1.0)
    value = _ratio(m, "special_kv", degree, z)
    below = m.select(_odd(m, n), value, -value) - math.pi * _ratio(m, "special_iv", degree, z)
    edge = m.select(m.equal(x, 0.0), INF, m.select(m.equal(x, INF), 0.0, m.select(m.equal(x, -INF), -INF, NAN)))
    return _whole(m, n, m.select(inside, m.select(x < 0.0, below, value), edge))


def slope(row: Callable[..., Any], n: Value, x: Value, below: float, above: float) -> Value:
    """``(below n f(n - 1) + above (n + 1) f(n + 1)) / (2 n + 1)``: DLMF 10.51.2 and 10.51.5."""
    none = eq(n, 0.0)
    first = select(none, 0.0, below * n * row(select(none, 1.0, n - 1.0), x))
    return (first + above * (n + 1.0) * row(n + 1.0, x)) / (2.0 * n + 1.0)


SIGNS = {"j": (1.0, -1.0), "y": (1.0, -1.0), "i": (1.0, 1.0), "k": (-1.0, -1.0)}
SPHERICAL: dict[str, Any] = {}


def _row(kind: str) -> None:
    def partials(y: Value, n: Value, x: Value) -> Any:
        return (refusing(y, f"spherical_{kind}n", "its order", "it is an integer"),
                slope(SPHERICAL[kind], n, x, *SIGNS[kind]))

    SPHERICAL[kind] = own(f"spherical_{kind}", partials, (range(4), ARGUMENT), cost=250, fixed=(0,))


for _kind in SIGNS:
    _row(_kind)

__all__ = ["SIGNS", "SPHERICAL", "slope"]
