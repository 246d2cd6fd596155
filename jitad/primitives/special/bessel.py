"""Bessel and Airy functions of scipy.special, with the derivatives by argument and order."""
# mypy: disable-error-code="has-type"
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitad.primitives.core import cast, elementwise, select
from jitad.primitives.elementwise import absolute, eq, exp, sign
from jitad.primitives.scipy_ufuncs import ufuncs
from jitad.primitives.special import orders as special_orders  # noqa: F401  (fills the table of routines)
from jitad.primitives.special.rows import own, pointer, refusing, several
from jitad.tape.builder import Value

ORDER, ARGUMENT, ANY = (0.2, 3.0), (0.5, 4.0), (-3.0, 3.0)
TWICE = "the second derivative by the order is not implemented"

# --- integer orders ------------------------------------------------------------------------------


def _over(y: Value, x: Value, slope: float) -> Value:
    """``y / x`` for a function y that is 0 at 0 with the given slope there."""
    zero = eq(x, 0.0)
    return select(zero, slope, y / select(zero, 1.0, x))


j0 = pointer("j0", lambda y, x: -j1(x), domain=ARGUMENT)
j1 = pointer("j1", lambda y, x: j0(x) - _over(y, x, 0.5), domain=ARGUMENT)
y0 = pointer("y0", lambda y, x: -y1(x), domain=ARGUMENT)
y1 = pointer("y1", lambda y, x: y0(x) - y / x, domain=ARGUMENT)
i0 = elementwise("i0", ufuncs.i0, lambda y, x: i1(x), domain=ANY, cost=40)
i1 = elementwise("i1", ufuncs.i1, lambda y, x: i0(x) - _over(y, x, 0.5), domain=ANY, cost=40)
i0e = elementwise("i0e", ufuncs.i0e, lambda y, x: i1e(x) - sign(x) * y, domain=ANY, cost=40)
i1e = elementwise("i1e", ufuncs.i1e, lambda y, x: i0e(x) - sign(x) * y - _over(y, x, 0.5), domain=ANY, cost=40)
k0 = pointer("k0", lambda y, x: -k1(x), domain=ARGUMENT)
k1 = pointer("k1", lambda y, x: -k0(x) - y / x, domain=ARGUMENT)
k0e = pointer("k0e", lambda y, x: y - k1e(x), domain=ARGUMENT)
k1e = pointer("k1e", lambda y, x: y - k0e(x) - y / x, domain=ARGUMENT)

# --- real orders: DLMF 10.6.1, 10.29.1 -----------------------------------------------------------


def _oscillating(name: str) -> Any:
    """J or Y: the derivative by x is half the difference of the neighbours in order, at every order of derivation by
    the order."""
    def slopes(row: Callable[..., Any], by_order: Any) -> Callable[..., Any]:
        def partials(y: Value, v: Value, x: Value) -> Any:
            return by_order(y, v, x), 0.5 * (row(v - 1.0, x) - row(v + 1.0, x))
        return partials

    domain = (ORDER, ARGUMENT)
    twice = own(f"{name}_order2", slopes(lambda v, x: twice(v, x), lambda y, v, x: refusing(
        y, name, "its order, a third time", "it is computed by differences, which would lose their accuracy")),
        domain, cost=2000, fixed=(0,))
    once = own(f"{name}_order1", slopes(lambda v, x: once(v, x), lambda y, v, x: twice(v, x)), domain, cost=2000,
               refuses=True)
    row = pointer(name, slopes(lambda v, x: row(v, x), lambda y, v, x: once(v, x)), domain=domain, cost=200)
    return row


jv, yv = _oscillating("jv"), _oscillating("yv")


def _kv_rows() -> tuple[Any, Any]:
    """K and ``exp(x) K``."""
    rows: list[Any] = []

    def slopes(n: int) -> Callable[..., Any]:
        def partials(y: Value, v: Value, x: Value) -> Any:
            if n + 1 < len(rows):
                further: Any = rows[n + 1](v, x)
            else:
                further = refusing(y, "kve", "its order, a fourth time", "it is not implemented")
            return further, y - 0.5 * (rows[n](v - 1.0, x) + rows[n](v + 1.0, x))
        return partials

    def plain(y: Value, v: Value, x: Value) -> Any:
        return rows[1](v, x) * exp(-x), -0.5 * (kv(v - 1.0, x) + kv(v + 1.0, x))

    domain = (ORDER, ARGUMENT)
    rows.append(pointer("kve", slopes(0), domain=domain, cost=200))
    rows.extend(own(f"kve_order{n}", slopes(n), domain, cost=800, refuses=n == 2, fixed=(0,) if n == 3 else ())
                for n in (1, 2, 3))
    return pointer("kv", plain, domain=domain, cost=200), rows[0]


kv, kve = _kv_rows()


def _ive_order(y: Value, v: Value, x: Value) -> Any:
    return (refusing(y, "ive", "its order, a second time", TWICE),
            0.5 * (ive_order1(v - 1.0, x) + ive_order1(v + 1.0, x)) - sign(x) * y)


def _ive(y: Value, v: Value, x: Value) -> Any:
    return ive_order1(v, x), _by_x(ive, v, x) - sign(x) * y


def _iv(y: Value, v: Value, x: Value) -> Any:
    return ive_order1(v, x) * exp(absolute(x)), _by_x(iv, v, x)


def _by_x(row: Any, v: Value, x: Value) -> Value:
    return 0.5 * (row(v - 1.0, x) + row(v + 1.0, x))


ive_order1 = own("ive_order1", _ive_order, (ORDER, ARGUMENT), cost=800, fixed=(0,))
ive = pointer("ive", _ive, domain=(ORDER, ARGUMENT), cost=200, refuses=True)
iv = pointer("iv", _iv, domain=(ORDER, ARGUMENT), cost=200, refuses=True)

def _whole_order(name: str, real: Any, sign: float) -> Any:
    def partials(y: Value, n: Value, x: Value) -> Any:
        v = cast(n, y.dtype)
        by_x = 0.5 * (real(v - 1.0, x) + sign * real(v + 1.0, x))
        return refusing(y, name, "its order", "it is an integer"), by_x if sign < 0 else -by_x
    return partials


kn = pointer("kn", _whole_order("kn", kv, 1.0), domain=(range(4), ARGUMENT), cost=200)
yn = pointer("yn", _whole_order("yn", yv, -1.0), domain=(range(4), ARGUMENT), cost=200)

# --- Airy ------------------------------------------------------------------------------------------


def _airy(i: int) -> Callable[..., Any]:
    """Ai, Ai', Bi, Bi': DLMF 9.2.1."""
    return lambda y, x: airy[i + 1](x) if i % 2 == 0 else x * airy[i - 1](x)


airy = several("airy", _airy, ANY, 4)

__all__ = ["airy", "iv", "ive", "jv", "kv", "kve", "yv"]
