"""Lambert's W, the solution of ``w exp(w) = z`` (DLMF 4.13), by its real and imaginary parts, on any branch."""
# mypy: disable-error-code="has-type"
from __future__ import annotations

import math
from typing import Any

from jitad.primitives.elementwise import cos, exp, sin
from jitad.primitives.numeric import Numeric, routine
from jitad.primitives.special.rows import own, refusing
from jitad.tape.builder import Value

INF, NAN = math.inf, math.nan
CUT, REST = 0.36787944117144233, -1.2428753672788363e-17      # 1 / e, to twice the precision
Parts = tuple[Any, Any]


def _times(a: Parts, b: Parts) -> Parts:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def _over(m: Numeric, a: Parts, b: Parts) -> Parts:
    size = m.call("hypot", *b)
    c, s = b[0] / size, b[1] / size
    return (a[0] * c + a[1] * s) / size, (a[1] * c - a[0] * s) / size


def _log(m: Numeric, z: Parts) -> Parts:
    return m.call("log", m.call("hypot", *z)), m.call("arctan2", z[1], z[0])


def _either(m: Numeric, condition: Any, a: Parts, b: Parts) -> Parts:
    return m.select(condition, a[0], b[0]), m.select(condition, a[1], b[1])


def _first(m: Numeric, k: Any, z: Parts) -> Parts:
    """Where the iteration begins: the series about the branch point -1/e in ``p = sqrt(2 (e z + 1))``, Pade's [2/2] of
    W / z about 0, and else ``log z + 2 pi i k`` less its logarithm (R. M. Corless et al., On the Lambert W function,
    Adv. Comput. Math. 5 (1996) 329)."""
    x, y = z
    main, low = m.equal(k, 0.0), m.equal(k, -1.0) & m.equal(y, 0.0) & (x < 0.0) & (x >= -CUT)
    log = _log(m, z)
    log = _either(m, low, (m.call("log", abs(x)), 0.0 * y), (log[0], log[1] + 2.0 * math.pi * k))
    apart = m.call("hypot", log[0], log[1]) > 0.5
    tail = _log(m, _either(m, apart, _either(m, low, (-log[0], 0.0 * y), log), (0.0 * x + 1.0, 0.0 * y)))
    start = log[0] - tail[0], log[1] - tail[1]

    middle = main & (x > -1.0) & (x < 1.5) & (abs(y) < 1.0) & (-2.5 * abs(y) - 0.2 < x)
    square = _times(z, z)
    top = 60.0 + 114.0 * x + 17.0 * square[0], 114.0 * y + 17.0 * square[1]
    bottom = 60.0 + 174.0 * x + 101.0 * square[0], 174.0 * y + 101.0 * square[1]
    start = _either(m, middle, _times(z, _over(m, top, bottom)), start)

    above = 2.0 * math.e * ((x + CUT) + REST), 2.0 * math.e * y
    near = m.call("hypot", *above) < 1.6
    size, angle = m.call("sqrt", m.call("hypot", *above)), 0.5 * m.call("arctan2", above[1], above[0])
    sign = m.select(low, -size, size)
    p = sign * m.call("cos", angle), m.select(m.equal(y, 0.0) & (above[0] >= 0.0), y, sign * m.call("sin", angle))
    cube = _times(above, p)
    series = (-1.0 + p[0] - above[0] / 3.0 + cube[0] * (11.0 / 72.0),
              p[1] - above[1] / 3.0 + cube[1] * (11.0 / 72.0))
    return _either(m, near & (main | low), series, start)


def _lambert(m: Numeric, k: Any, x: Any, y: Any) -> tuple[Any, Parts]:
    """Whether z is finite and not 0, and W there: by Halley's iteration on ``w - z exp(-w)``, or on ``w exp(w) - z``
    where Re w < 0, so that nothing overflows."""
    inside = (abs(x) < INF) & (abs(y) < INF) & ~(m.equal(x, 0.0) & m.equal(y, 0.0))
    z, branch = (m.select(inside, x, 1.0), m.select(inside, y, 0.0)), m.select(inside, k, 0.0)

    def step(u: Any, v: Any, moved: Any, count: Any) -> Any:
        w, right = (u, v), u >= 0.0
        size = m.call("exp", m.select(right, -u, u))
        e = size * m.call("cos", v), m.select(right, -size, size) * m.call("sin", v)
        ze, we = _times(z, e), _times(w, e)
        f = _either(m, right, (u - ze[0], v - ze[1]), (we[0] - z[0], we[1] - z[1]))
        slope = _either(m, right, (u + 1.0, v), (we[0] + e[0], we[1] + e[1]))
        bend = _over(m, _times((u + 2.0, v), f), (2.0 * u + 2.0, 2.0 * v))
        change = _over(m, f, (slope[0] - bend[0], slope[1] - bend[1]))
        return u - change[0], v - change[1], m.call("hypot", *change), count + 1.0

    def going(u: Any, v: Any, moved: Any, count: Any) -> Any:
        at_branch = m.call("hypot", u + 1.0, v) < 1e-5            # where the series is as exact as numbers are
        return inside & ~at_branch & (moved > 1e-9 * m.call("hypot", u, v)) & (count < 60.0)

    u, v, _, _ = m.loop((*_first(m, branch, z), 0.0 * z[0] + 1.0, 0.0 * z[0]), going, step)
    return inside, (u, v)


@routine
def lambert_re(m: Numeric, k: Any, x: Any, y: Any) -> Any:
    inside, w = _lambert(m, k, x, y)
    edge = m.select(m.equal(x, 0.0) & m.equal(y, 0.0), m.select(m.equal(k, 0.0), 0.0, -INF), m.select(
        m.equal(abs(x), INF), INF, NAN))
    return m.select(inside, w[0], edge)


@routine
def lambert_im(m: Numeric, k: Any, x: Any, y: Any) -> Any:
    inside, w = _lambert(m, k, x, y)
    turns = 2.0 * math.pi * k
    edge = m.select(m.equal(x, 0.0) & m.equal(y, 0.0), 0.0, m.select(m.equal(x, INF), y + turns, m.select(
        m.equal(x, -INF), turns + math.pi - y, m.select(m.equal(x, x), NAN, y))))
    return m.select(inside, w[1], edge)


def _slope(re: Value, im: Value) -> tuple[Value, Value]:
    """``W' = 1 / (exp(W) (1 + W))``: DLMF 4.13.4, by parts."""
    c, s = cos(im), sin(im)
    a, b = (1.0 + re) * c - im * s, (1.0 + re) * s + im * c
    scale = exp(-re) / (a * a + b * b)
    return a * scale, -b * scale


def _branch(y: Value) -> Any:
    return refusing(y, "lambertw", "its branch", "it is an integer")


def _re(u: Value, k: Value, x: Value, y: Value) -> Any:
    by_re, by_im = _slope(u, lambert_im_(k, x, y))
    return _branch(u), by_re, -by_im


def _im(v: Value, k: Value, x: Value, y: Value) -> Any:
    by_re, by_im = _slope(lambert_re_(k, x, y), v)
    return _branch(v), by_im, by_re


_DOMAIN = (range(-1, 2), (0.3, 3.0), (0.2, 2.0))
lambert_re_ = own("lambert_re", _re, _DOMAIN, cost=600, fixed=(0,))
lambert_im_ = own("lambert_im", _im, _DOMAIN, cost=600, fixed=(0,))

__all__ = ["lambert_im_", "lambert_re_"]
