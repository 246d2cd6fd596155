"""Branch-free sine, cosine and tangent in machine operations, right for every float64.

The argument is multiplied by as many bits of 2 / pi as it needs (M. Payne and R. Hanek, SIGNUM Newsletter 18
(1983) 19) in integers. A branch on large arguments would forbid vector code, so all arguments take this way;
only those below pi / 4, which need no reduction, are kept as they are.
"""
from __future__ import annotations

from jitad.compile.math.explog import INF, MANTISSA, polynomial, quick_two_sum
from jitad.tape.expr import Expr, bits, call, const, select, unbits

# 64 zero bits, then 2 / pi in binary
TWO_OVER_PI = (
    0x0000000000000000, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041,
    0xFE5163ABDEBBC561, 0xB7246E3A424DD2E0, 0x06492EEA09D1921C, 0xFE1DEB1CB129A73E,
    0xE88235F52EBB4484, 0xE99C7026B45F7E41, 0x3991D639835339F4, 0x9C845F8BBDF9283B,
    0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7, 0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB,
)
LOW32 = 0xFFFFFFFF
HALF_PI, HALF_PI_HI, HALF_PI_LO = 1.5707963267948966, 1.5707963109016418, 1.5893254773528196e-08  # HI: 26 bits

# (sin(r) - r) / r**3 and (cos(r) - 1 + r**2 / 2) / r**4 in r**2 on |r| <= pi/4: errors 2.0e-17 and 8.7e-19
SIN = (
    -0.16666666666666666, 0.008333333333330946, -0.0001984126983675497, 2.755731610068303e-06,
    -2.5051131455427946e-08, 1.591810123027412e-10,
)
COS = (
    0.041666666666666664, -0.0013888888888887395, 2.4801587298763433e-05, -2.7557317270560326e-07,
    2.0876146024689747e-09, -1.1382614868556325e-11,
)


def lshr(x: Expr, by: Expr | int) -> Expr:
    return call("lshr", x, by if isinstance(by, Expr) else const(by, "i8"))


def window(position: Expr) -> tuple[Expr, Expr, Expr]:
    """192 bits of the table from bit `position`, 0 <= position < 1088, by a tree of selections: no gather needed."""
    words = [const(w, "i8") for w in TWO_OVER_PI]
    for step in (16, 8, 4, 2, 1):
        there = (position & (64 * step)).ne(0)
        count = 4 if step == 16 else 3 + step  # selected now; with step 16 only position >> 6 = 16 is left
        moved = [select(there, words[i + step], words[i]) for i in range(count)]
        words = moved + words[count:] if step == 16 else moved
    left = position & 63
    right = 63 - left  # after one shift by 1, since a shift by 64 is undefined
    first, second, third = ((words[i] << left) | lshr(lshr(words[i + 1], 1), right) for i in range(3))
    return first, second, third


def turns(x: Expr) -> list[Expr]:
    """The fraction of x / (2 pi), x >= pi / 4 finite: words of 32 bits, most significant first, the last truncated."""
    exponent = lshr(bits(x), 52)
    mantissa = (bits(x) & MANTISSA) | (1 << 52)
    v = [part for word in window(exponent - 1013) for part in (word & LOW32, lshr(word, 32))]
    v = [v[i] for i in (4, 5, 2, 3, 0, 1)]  # least significant first
    m0, m1 = mantissa & LOW32, lshr(mantissa, 32)
    carry = const(0, "i8")
    result = []
    for i in range(1, 6):
        total = ((m0 * v[i]) & LOW32) + lshr(m0 * v[i - 1], 32) + m1 * v[i - 1] + carry
        result.append(total & LOW32)
        carry = lshr(total, 32)
    return result[::-1]


def word_value(word: Expr, exponent: int) -> Expr:
    """word * 2**exponent for an integer below 2**32 in magnitude, without int64 -> float64."""
    anchor = 1.5 * 2.0 ** (52 + exponent)
    return unbits(word + ((1075 + exponent) << 52) + (1 << 51)) - anchor


def reduce_angle(x: Expr) -> tuple[Expr, Expr, Expr]:
    """(r, low, q): |x| = q pi / 2 + r + low modulo 2 pi, |r| <= pi / 4, q an int64 in 0..3 (and above, modulo 4)."""
    a = abs(x)
    w = turns(a)
    q = lshr(w[0] + (1 << 29), 30)
    high, low = quick_two_sum(word_value(w[0] - (q << 30), -30), word_value(w[1], -62))
    high, low = quick_two_sum(high, low + (word_value(w[2], -94) + word_value(w[3], -126)))
    first = unbits(bits(high) & -0x8000000)
    rest = first * HALF_PI_LO + ((high - first) + low) * HALF_PI
    high, low = quick_two_sum(first * HALF_PI_HI, rest)
    inside = a < 0.7853981633974483
    return select(inside, a, high), select(inside, const(0.0), low), select(inside, const(0, "i8"), q)


def sine_cosine(r: Expr, low: Expr) -> tuple[Expr, Expr, Expr, Expr]:
    """(s, s_tail, c, c_tail): sin(r + low) = s + s_tail, cos(r + low) = c + c_tail."""
    square = r * r
    half = 0.5 * square
    c, c_low = quick_two_sum(const(1.0), -half)
    s_tail = r * square * polynomial(square, SIN) + low * c
    return r, s_tail, c, c_low + (square * square * polynomial(square, COS) - r * low)


def finish(x: Expr, result: Expr, sign: Expr) -> Expr:
    """`result` with its sign changed where the top bit of `sign` is set; NaN for inf and NaN."""
    return select(abs(x) < INF, unbits(bits(result) ^ (sign & (1 << 63))), x - x)


def sin(x: Expr) -> Expr:
    """The reduced sine or cosine with the sign of the quadrant: 0.8 ulp at every magnitude."""
    r, low, q = reduce_angle(x)
    s, s_tail, c, c_tail = sine_cosine(r, low)
    odd = (q & 1).ne(0)
    return finish(x, select(odd, c, s) + select(odd, c_tail, s_tail), (q << 62) ^ bits(x))


def cos(x: Expr) -> Expr:
    """The reduced sine or cosine with the sign of the quadrant: 0.8 ulp at every magnitude."""
    r, low, q = reduce_angle(x)
    s, s_tail, c, c_tail = sine_cosine(r, low)
    odd = (q & 1).ne(0)
    return finish(x, select(odd, s, c) + select(odd, s_tail, c_tail), (q + 1) << 62)


def tan(x: Expr) -> Expr:
    """The quotient of the two, corrected for their roundings: 1.4 ulp at every magnitude."""
    r, low, q = reduce_angle(x)
    s, s_tail, c, c_tail = sine_cosine(r, low)
    (s, s_tail), (c, c_tail) = quick_two_sum(s, s_tail), quick_two_sum(c, c_tail)
    odd = (q & 1).ne(0)
    top, top_low = select(odd, c, s), select(odd, c_tail, s_tail)
    bottom, bottom_low = select(odd, s, c), select(odd, s_tail, c_tail)
    quotient = top / bottom
    result = quotient + (top_low - quotient * bottom_low) / bottom
    return finish(x, result, (q << 63) ^ bits(x))
