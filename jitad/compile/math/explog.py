"""Branch-free exponentials and logarithms, and the pieces other expansions share.

Every function takes and returns float64 `Expr`s made of machine operations only,
so that a loop over them vectorises. Errors in the docstrings are the largest
found against mpmath, in units of the last place (ulp) of the result.

The error terms survive whether or not the target fuses a*b+c: sums use the two-sum of
Knuth and Dekker, and products that must be exact have factors with few bits.
Coefficients are Chebyshev interpolants derived with mpmath at 60 digits.
"""
from __future__ import annotations

from collections.abc import Sequence

from jitad.tape.expr import Expr, bits, call, const, select, unbits

INF, NAN = float("inf"), float("nan")
LARGEST_EXPONENT = 709.782712893384                         # exp of anything above is infinite
LOG2E, LN2 = 1.4426950408889634, 0.6931471805599453
LN2_HI, LN2_LO = 0.6931471805598903, 5.497923018708371e-14  # LN2_HI has 42 bits: k * LN2_HI is exact
ROUNDER = 1.5 * 2.0**52 + 2046  # adding it rounds to an integer n and leaves n + 2046 in the low bits
EXPONENT, MANTISSA = 0x7FF0000000000000, 0x000FFFFFFFFFFFFF
ONE, SQRT_HALF = 0x3FF0000000000000, 0x3FE6A09E667F3BCD  # bits of 1 and sqrt(1/2)

# (exp(r) - 1 - r) / r**2 on |r| <= ln(2)/2: relative error of exp 1.7e-17, 2.3e-19
EXP = (
    0.5, 0.16666666666666669, 0.04166666666662399, 0.008333333333330051, 0.0013888888917281794,
    0.00019841269863105968, 2.480152119021773e-05, 2.7557268378684192e-06, 2.7620138719733994e-07,
    2.5100424157005067e-08,
)
EXP_LONG = (
    0.5, 0.1666666666666667, 0.04166666666666667, 0.008333333333326112, 0.001388888888888373,
    0.0001984126987490126, 2.4801587325605324e-05, 2.7557255297969643e-06, 2.755727357010214e-07,
    2.5105259538448494e-08, 2.0914717341716378e-09,
)
# (log(1 + f) - f) / f**2 on sqrt(1/2) <= 1 + f <= sqrt(2): relative error of log 3.6e-17
LOG = (
    -0.5, 0.3333333333333326, -0.24999999999992914, 0.2000000000003205, -0.16666666668629854,
    0.14285714282688072, -0.12499999789537651, 0.11111111107631405, -0.10000011278050502,
    0.09090921329699266, -0.08332999126833501, 0.07691654615394775, -0.0714842058650094,
    0.06682376376443487, -0.06202559610787364, 0.0568658172849853, -0.05669641354743948,
    0.0644443183162291, -0.05943789794330196, 0.026259946456059655,
)
# (log(1 + e) - e) / e**2 in e - 1/2 on 0 <= e <= 1: relative error 2.7e-17
LOG1P = (
    -0.37813956756734246, 0.17922493693603628, -0.09323036636366504, 0.05108344610565852,
    -0.02894318316522819, 0.01678874247000762, -0.009909900709018689, 0.005929012347899714,
    -0.00358566675681427, 0.00218763196321537, -0.001344493715755721, 0.0008315234081490733,
    -0.0005169575993625731, 0.0003222161102992342, -0.00020204880268313708, 0.00013056054379050492,
    -8.24550194446244e-05, 4.138249661375945e-05, -2.6208826056265817e-05, 3.590740235781667e-05,
    -2.2938856818471438e-05,
)
# (2 artanh(s) - 2 s) / s**3 in s**2 on 0 <= s <= 1/3: relative error of log(1 + e) 7.2e-18
ARTANH = (
    0.6666666666666666, 0.40000000000014585, 0.2857142856710876, 0.22222222717427864, 0.18181789436132859,
    0.15385570064958623, 0.13314144209654935, 0.12001072809590713, 0.08800738486144674, 0.1616404561194353,
)
# (sinh(r) - r) / r**3 and (cosh(r) - 1) / r**2 in r**2 on |r| <= ln(2)/2: relative errors 2.0e-18 and 2.2e-20
SINH = (
    0.16666666666666669, 0.008333333333330051, 0.00019841269863105968, 2.7557268378684192e-06,
    2.5100424157005067e-08,
)
COSH = (
    0.5, 0.04166666666666668, 0.0013888888888879043, 2.4801587336526005e-05, 2.755726318947621e-07,
    2.0918170876658783e-09,
)
# (2**r - 1 - r ln2) / r**2 on |r| <= 1/2: relative error 2.7e-18
EXP2 = (
    0.24022650695910072, 0.0555041086648216, 0.009618129107628479, 0.0013333558146416842,
    0.00015403530393375868, 1.525273382999124e-05, 1.3215486802980713e-06, 1.0178062351388103e-07,
    7.0548999096177775e-09, 4.4549794711760616e-10, 2.5725173994577337e-11,
)


def polynomial(x: Expr, coefficients: Sequence[float]) -> Expr:
    """sum c_i x**i: even and odd halves apart, because Horner's rule alone is one long wait."""
    if len(coefficients) > 6:
        square = x * x
        return polynomial(square, coefficients[0::2]) + x * polynomial(square, coefficients[1::2])
    result = const(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        result = result * x + c
    return result


def quick_two_sum(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """a + b = high + low exactly, for |a| >= |b| or a = 0 (Dekker)."""
    high = a + b
    return high, (a - high) + b


def two_sum(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """a + b = high + low exactly (Knuth)."""
    high = a + b
    part = high - a
    return high, (a - (high - part)) + (b - part)


def split(x: Expr) -> tuple[Expr, Expr]:
    """x = high + low with 26 and 27 significant bits; masking is right under contraction, Veltkamp's product is not."""
    high = unbits(bits(x) & -0x8000000)
    return high, x - high


def two_product(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """a * b = high + low to about 2**-105 relative, without relying on fma or its absence."""
    (a1, a0), (b1, b0) = split(a), split(b)
    return quick_two_sum(a1 * b1, (a1 * b0 + a0 * b1) + a0 * b0)


def clamp(x: Expr, low: float | None, high: float | None) -> Expr:
    """x within bounds; NaN stays NaN, and each bound is one min or max instruction."""
    if high is not None:
        x = select(const(high) < x, high, x)
    return x if low is None else select(const(low) > x, low, x)


def reduce_exp(x: Expr, low: Expr | None = None) -> tuple[Expr, Expr, Expr, Expr]:
    """(r, high, correction, t): x + low = n ln2 + high + correction, r is their sum rounded, |r| <= ln2 / 2.

    t carries n + 2046 in its low bits.
    """
    t = x * LOG2E + ROUNDER
    n = t - ROUNDER
    high = x - n * LN2_HI
    correction = n * -LN2_LO if low is None else low - n * LN2_LO
    return high + correction, high, correction, bits(t)


def power_of_two(t: Expr) -> tuple[Expr, Expr]:
    """Two factors whose product is 2**n: one alone cannot reach subnormal results without losing bits."""
    first = (t << 51) & EXPONENT
    return unbits(first), unbits((t << 52) - first)


def exp_parts(x: Expr) -> Expr:
    """exp(x) for x within -746, 710 or NaN."""
    r, high, correction, t = reduce_exp(x)
    tail = r * r * polynomial(r, EXP) + correction
    a, b = power_of_two(t)
    return (1.0 + (high + tail)) * a * b


def exp_scaled(x: Expr, low: Expr, factor: Expr) -> Expr:
    """factor * exp(x + low), rounded once more where the result is subnormal."""
    r, high, correction, t = reduce_exp(x, low)
    a, b = power_of_two(t)
    return (factor + factor * (high + (r * r * polynomial(r, EXP) + correction))) * a * b


def exp(x: Expr) -> Expr:
    """Cody and Waite's reduction by ln 2, degree 11: 0.93 ulp."""
    return exp_parts(clamp(x, -746.0, 710.0))


def exp_negative(x: Expr) -> Expr:
    """exp for x <= 0 or NaN: needs no upper clamp."""
    return exp_parts(clamp(x, -746.0, None))


def reduce_log(x: Expr, half_low: Expr | None = None) -> tuple[Expr, Expr]:
    """(k, f): x + 2 half_low = 2**k (1 + f), 1 + f within sqrt(1/2), sqrt(2); x positive and normal."""
    i = bits(x) + (ONE - SQRT_HALF)
    # the biased exponent as the last bits of 2**52 + ...: machines without int64 -> float64 get by
    k = unbits(call("lshr", i, const(52, "i8")) | 0x4330000000000000) - (2.0**52 + 1023)
    f = unbits((i & MANTISSA) + SQRT_HALF) - 1.0
    if half_low is not None:  # halved, because 2**-1024 would have no exponent left
        f = f + half_low * unbits((2047 << 52) - (i & EXPONENT))
    return k, f


def log_parts(k: Expr, f: Expr) -> Expr:
    """k ln2 + log(1 + f)."""
    return k * LN2_HI + (f + (f * f * polynomial(f, LOG) + k * LN2_LO))


def normalise(x: Expr) -> tuple[Expr, Expr]:
    """(x 2**-shift, shift): subnormal x made normal."""
    tiny = x < 2.0**-1022
    return select(tiny, x * 2.0**54, x), select(tiny, const(-54.0), 0.0)


def log_special(x: Expr, result: Expr) -> Expr:
    """`result` with the values a logarithm has at 0, below 0, at inf and NaN."""
    result = select(x < INF, result, x)
    return select(x <= 0.0, select(x.eq(0.0), const(-INF), NAN), result)


def log(x: Expr) -> Expr:
    """log(2**k (1 + f)), degree 21 in f without a division: 1.1 ulp."""
    normal, shift = normalise(x)
    k, f = reduce_log(normal)
    return log_special(x, log_parts(k + shift, f))


def log1p_unit(e: Expr) -> Expr:
    """log(1 + e) for 0 <= e <= 1 or NaN: one polynomial of degree 21."""
    return e + e * e * polynomial(e - 0.5, LOG1P)


def log1p(x: Expr) -> Expr:
    """log(u + c) with u = 1 + x rounded, c its error, folded into f: 1.1 ulp."""
    u, c = two_sum(const(1.0), x)
    result = log_parts(*reduce_log(u, 0.5 * c))
    return select(abs(x) < 2.0**-54, x, log_special(u, result))


def expit(x: Expr) -> Expr:
    """q = e / (1 + e) or 1 - q with e = exp(-|x|), q corrected for the roundings of e and 1 + e: 1.4 ulp."""
    r, high, correction, t = reduce_exp(clamp(-abs(x), -746.0, None))
    unit, low = quick_two_sum(const(1.0), high + (r * r * polynomial(r, EXP) + correction))
    a, b = power_of_two(t)
    e = unit * a * b
    bottom, bottom_low = quick_two_sum(const(1.0), e)
    q = e / bottom
    q = q + q * (low - bottom_low)
    return select(x >= 0.0, 1.0 - q, q)


def softplus(x: Expr) -> Expr:
    """max(x, 0) + log1p(exp(-|x|)): 1.5 ulp."""
    return select(x > 0.0, x, 0.0) + log1p_unit(exp_negative(-abs(x)))


def log1p_exp(x: Expr) -> Expr:
    """log1p(exp(x)), infinite where exp(x) is: 1.5 ulp. It shares its exponential and its division with `exp_share`."""
    e = exp_negative(-abs(x))
    logarithm = log1p_quotient(e, e * (1.0 + e) * _common_inverse(e))
    return select(x > LARGEST_EXPONENT, INF, select(x > 0.0, x, 0.0) + logarithm)


def _common_inverse(e: Expr) -> Expr:
    return 1.0 / ((1.0 + e) * (2.0 + e))


def log1p_quotient(e: Expr, s: Expr) -> Expr:
    """log(1 + e) for 0 <= e <= 1 or NaN, from s = e / (2 + e): 2 artanh(s) = e - e**2/2 + s (e**2/2 + ...), where a
    relative error of s counts little."""
    w, half_square = s * s, 0.5 * e * e
    return e - (half_square - s * (half_square + w * polynomial(w, ARTANH)))


def exp_share(x: Expr) -> Expr:
    """exp(x) / (1 + exp(x)), NaN where exp(x) is infinite, as the quotient would be: 3 ulp."""
    e = exp_negative(-abs(x))
    q = _common_inverse(e) * (2.0 + e)
    return select(x > LARGEST_EXPONENT, NAN, select(x > 0.0, q, e * q))


def log_expit(x: Expr) -> Expr:
    """-softplus(-x): 1.6 ulp."""
    return select(x < 0.0, x, -0.0) - log1p_unit(exp_negative(-abs(x)))


def logaddexp(a: Expr, b: Expr) -> Expr:
    """max + log1p(exp(-|a - b|)): error relative to the larger argument, as NumPy's; a = b kept apart for inf."""
    top = select(a > b, a, b)
    return top + select(a.eq(b), const(LN2), log1p_unit(exp_negative(-abs(a - b))))


def exp2(x: Expr) -> Expr:
    """2**n 2**r with r exact, degree 12: 1.1 ulp."""
    x = clamp(x, -1080.0, 1025.0)
    t = x + ROUNDER
    r = x - (t - ROUNDER)
    a, b = power_of_two(bits(t))
    return (1.0 + (r * LN2 + r * r * polynomial(r, EXP2))) * a * b


def expm1_parts(x: Expr) -> tuple[Expr, Expr]:
    """(high, low): 2 (high + low) = exp(x) - 1 for x within -50, 710 or NaN; half, because 2**1024 overflows."""
    r, high, correction, t = reduce_exp(x)
    scale = unbits((t << 52) - (1024 << 52))  # 2**(n - 1)
    high, low = quick_two_sum(scale - 0.5, scale * high)
    return high, low + scale * (r * r * polynomial(r, EXP_LONG) + correction)


def expm1(x: Expr) -> Expr:
    """(2**n - 1) + 2**n expm1(r), its leading sum in two words: 1.2 ulp."""
    high, low = expm1_parts(clamp(x, -50.0, 710.0))
    return select(abs(x) < 2.0**-54, x, 2.0 * (high + low))


def tanh(x: Expr) -> Expr:
    """-u / (2 + u) with u = expm1(-2|x|), for large |x| 1 - 2 (1 + u) / (2 + u): 1.8 ulp.

    The first quotient is corrected for the roundings of u and 2 + u, by a linear guess of 1 / (2 + u).
    """
    half, low = quick_two_sum(*expm1_parts(clamp(-2.0 * abs(x), -50.0, None)))
    bottom, bottom_low = quick_two_sum(const(1.0), half)
    large = abs(x) > 0.55
    q = select(large, 1.0 + 2.0 * half, -half) / bottom
    error = low + q * (bottom_low + low)
    result = select(large, 1.0 - q, q - error * (2.45 - 1.46 * bottom))
    return select(abs(x) < 2.0**-28, x, call("copysign", result, x))


def hyperbolic_parts(x: Expr) -> tuple[Expr, ...]:
    """For x = n ln2 + r >= 0: cosh(n ln2) / 2, sinh(n ln2) / 2, r rounded, sinh(r) less that, cosh(r) - 1."""
    r, high, correction, t = reduce_exp(clamp(x, None, 710.5))
    top = unbits((t << 52) - (1025 << 52))  # 2**(n - 2)
    bottom = select(top < 2.0**60, unbits(const(3067 << 52, "i8") - (t << 52)), 0.0)
    square = r * r
    sinh_tail = r * square * polynomial(square, SINH) + correction
    return top + bottom, top - bottom, high, sinh_tail, square * polynomial(square, COSH)


def sinh(x: Expr) -> Expr:
    """sinh(n ln2 + r) by the addition theorem, its leading sum in two words: 1.2 ulp."""
    even, odd, high, sinh_tail, cosh_tail = hyperbolic_parts(abs(x))
    high, low = quick_two_sum(odd, even * high)
    result = 2.0 * (high + (low + (even * sinh_tail + odd * cosh_tail)))
    return select(abs(x) < 2.0**-28, x, call("copysign", result, x))


def cosh(x: Expr) -> Expr:
    """cosh(n ln2 + r) by the addition theorem: 1.2 ulp."""
    even, odd, high, sinh_tail, cosh_tail = hyperbolic_parts(abs(x))
    return 2.0 * (even + (even * cosh_tail + odd * (high + sinh_tail)))


def log_scaled(x: Expr, k_high: float, k_low: float, f_high: float, f_low: float) -> Expr:
    """k (k_high + k_low) + log(1 + f) (f_high + f_low), rounded once; log(1 + f) = high + low."""
    normal, shift = normalise(x)
    k, f = reduce_log(normal)
    k = k + shift
    high, low = quick_two_sum(f, f * f * polynomial(f, LOG))
    first, rest = split(high)
    total, error = quick_two_sum(k * k_high, first * f_high)
    small = (rest + low) * (f_high + f_low) + first * f_low
    return log_special(x, total + (error + (small + k * k_low)))


def log2(x: Expr) -> Expr:
    """k + log(1 + f) / ln2; exact at powers of two: 1.1 ulp."""
    return log_scaled(x, 1.0, 0.0, 1.4426950216293335, 1.9259629911266175e-08)


def log10(x: Expr) -> Expr:
    """k log10(2) + log(1 + f) / ln10: 0.9 ulp."""
    return log_scaled(x, 0.30102999566383914, 1.42050232272661e-13, 0.4342944622039795, 1.9699272335463627e-08)
