"""Branch-free exp, log, log1p and lgamma for the hand-written kernels: LLVM turns loops over them into vector code.

Compiled with ``fastmath={'contract'}`` alone, so that their error terms survive. Polynomials are Chebyshev fits.
"""

from benchmarks.handwritten.lowlevel import as_bits, as_float, piece, strict

_MAGIC = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to an integer, kept in the low bits
_MAGIC_BITS = 0x4338000000000000
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
_LOG2_E = 1.4426950408889634
_LN2_HI = 0.6931471803691238
_LN2_LO = 1.9082149292705877e-10
_LN2 = 0.6931471805599453
_HALF_LOG_2PI = 0.9189385332046727


@strict
def exp(x: float) -> float:
    """e**x for -708.3 <= x <= 709.4, clamped outside."""
    x = 709.4 if x > 709.4 else x
    x = -708.3 if x < -708.3 else x
    shifted = x * _LOG2_E + _MAGIC
    k = shifted - _MAGIC
    r = (x - k * _LN2_HI) - k * _LN2_LO
    p = 2.510038549551032e-08
    p = p * r + 2.7620088445409746e-07
    p = p * r + 2.7557268459997064e-06
    p = p * r + 2.4801521295954376e-05
    p = p * r + 0.00019841269863053618
    p = p * r + 0.0013888888917213717
    p = p * r + 0.008333333333330062
    p = p * r + 0.04166666666662413
    p = p * r + 0.16666666666666669
    p = p * r + 0.5000000000000001
    y = 1.0 + (r + r * r * p)
    return as_float(as_bits(y) + (as_bits(shifted) << 52))


@strict
def _atanh_tail(w: float) -> float:
    """(2 atanh(s) - 2 s) / s**3 at w = s**2 <= 0.0295."""
    p = 0.14616721179861816
    p = p * w + 0.15331699633543858
    p = p * w + 0.18182889786191042
    p = p * w + 0.2222221112572281
    p = p * w + 0.28571428626031065
    p = p * w + 0.3999999999989938
    return p * w + 0.666666666666667


@strict
def log(x: float) -> float:
    """log x for positive normal x."""
    bits = as_bits(x)
    k = (bits - _SQRT_HALF_BITS) >> 52
    f = as_float(bits - (k << 52)) - 1.0
    k_float = as_float(k + _MAGIC_BITS) - _MAGIC
    s = f / (2.0 + f)
    w = s * s
    half_square = 0.5 * f * f
    return k_float * _LN2_HI - ((half_square - (s * (half_square + w * _atanh_tail(w)) + k_float * _LN2_LO)) - f)


@strict
def log1p_unit(e: float) -> float:
    """log(1 + e) for 0 <= e <= 1."""
    large = e > 0.4142135623730951
    f = 0.5 * e - 0.5 if large else e
    s = f / (2.0 + f)
    w = s * s
    return (s * w * _atanh_tail(w) + 2.0 * s) + (_LN2 if large else 0.0)


@strict
def lgamma_from_one(x: float) -> float:
    """log Gamma(x) for x >= 1, by Stirling's series at x + 7; absolute error about 1e-14 for small x."""
    product = x * (x + 1.0) * (x + 2.0) * (x + 3.0) * (x + 4.0) * (x + 5.0) * (x + 6.0)
    z = x + 7.0
    q = 1.0 / z
    w = q * q
    p = 0.00641025641025641
    p = p * w - 0.0019175269175269176
    p = p * w + 0.0008417508417508417
    p = p * w - 0.0005952380952380953
    p = p * w + 0.0007936507936507937
    p = p * w - 0.002777777777777778
    p = p * w + 0.08333333333333333
    return (z - 0.5) * log(z) - z + _HALF_LOG_2PI + p * q - log(product)


@piece
def softplus_and_expit(eta: float) -> tuple[float, float]:
    """log(1 + e**eta) and its derivative, from one exponential."""
    e = exp(-abs(eta))
    q = 1.0 / (1.0 + e)
    return (eta if eta > 0.0 else 0.0) + log1p_unit(e), (q if eta > 0.0 else e * q)
