"""Branch-free error functions and gamma functions in machine operations.

The table of this family is `table`; the conventions are those of `explog`.
Coefficients are Chebyshev interpolants derived with mpmath at 60 digits.
"""
from __future__ import annotations

from collections.abc import Sequence

from jitad.compile.math.explog import (
    INF,
    LN2_HI,
    LN2_LO,
    LOG,
    NAN,
    clamp,
    exp_scaled,
    log_parts,
    normalise,
    polynomial,
    quick_two_sum,
    reduce_log,
)
from jitad.tape.expr import Expr, bits, call, const, select, unbits

SMALL = 0.65  # where erf is a polynomial
SQRT_HALF = 0.7071067811865476
PI = 3.141592653589793
LOG_PI = 1.1447298858494002
HALF_LOG_2PI = 0.9189385332046728
DIGAMMA_ROOT = (0.46163214496836236, -1.5522348162858677e-17)  # digamma(1 + root) = 0

# erf(x) / x - 1 in x**2 on |x| <= 0.65: relative error 2.1e-17
ERF = (
    0.12837916709551256, -0.3761263890318355, 0.11283791670939086, -0.026866170640268566,
    0.0052239775505047775, -0.0008548320381468409, 0.00012054973853848739, -1.4913590120628523e-05,
    1.6215664030958353e-06, -1.3529605365196195e-07,
)
# (1 + 2 x) exp(x**2) erfc(x) in (x - 4) / (x + 4) for all x >= 0: relative error 4.1e-17
GAUSS = (
    1.2329951186255526, -0.1396211168405625, 0.015379652102610162, 0.0680970542546862, -0.10103906603585294,
    0.09373283499865172, -0.06633036582050367, 0.0371675155318432, -0.01619773397992426, 0.005031970032548695,
    -0.0007577737141838885, -0.00019925700412184815, 0.0001506231178516207, -2.439811794207995e-05,
    -1.1225140354449658e-05, 5.707239573693257e-06, 2.980596055322769e-07, -8.218020654813044e-07,
    7.111912428010423e-08, 1.0683442926744586e-07, -1.6357383982124768e-08, -1.2544825403855518e-08,
    1.5712153638319064e-09, 9.655408225482863e-10,
)
# log(gamma(2 + e)) / e in e + 1/2 on -3/4 <= e <= 1/2: relative error 4.8e-17
LGAMMA = (
    0.24156447527049044, 0.4101490025838278, -0.11450419537702358, 0.04725715732406984, -0.02290993818544532,
    0.01208428740602396, -0.006702393522157682, 0.0038404208366009966, -0.0022506162177763837,
    0.001340708712622318, -0.0008086488265257645, 0.0004925151895964125, -0.00030238427625295676,
    0.00018699886137927389, -0.00011634298205590149, 7.213801263884512e-05, -4.313721684960085e-05,
    2.3319965904696356e-05, -1.0430683261104948e-05, 3.4718676208402e-06, -7.433823157972355e-07,
    7.558472696788447e-08,
)
# (lgamma(z) - (z - 1/2) log(z) + z - log(2 pi) / 2) z in 1 / z**2 for z >= 8
STIRLING = (
    0.08333333333333333, -0.002777777777773988, 0.000793650789752374, -0.0005952365844987332,
    0.0008414700845084233, -0.0018903829559755586, 0.005065904614765912,
)
# the same for z >= 2.5: relative error of lgamma 3.5e-18
STIRLING_LONG = (
    0.08333333333333333, -0.0027777777777693072, 0.000793650790142904, -0.0005952375135520769,
    0.0008416995179118486, -0.0019147451477015194, 0.006309103536112234, -0.02692131299823508,
    0.12798862176272194, -0.5761891073390012, 2.1363625445446437, -5.775768193222592, 9.831640759734448,
    -7.799039484906417,
)
# digamma(1 + d) / (d - root) in d - 3/4 on 0 <= d <= 3/2: relative error 3.2e-17
DIGAMMA = (
    0.8581832171262995, -0.3262546278681057, 0.1571201133520356, -0.08228558635577421, 0.04479965445346671,
    -0.024890048489327913, 0.013985786157589093, -0.007910468765597353, 0.004491814230188876,
    -0.002556686700917371, 0.0014573685124658021, -0.0008314950930624974, 0.000474727616562906,
    -0.00027110565826077765, 0.00015459265153371102, -8.831673837151642e-05, 5.1398705126837106e-05,
    -2.9367803644173363e-05, 1.4487003402656893e-05, -8.277907777699667e-06, 8.507077411101826e-06,
    -4.86113586531963e-06, -1.2335673403459895e-06, 7.049012638469318e-07, 2.0776397503965925e-06,
    -1.1872212713245974e-06,
)
# (log(z) - 1 / (2 z) - digamma(z)) z**2 in 1 / z**2 for z >= 2.5: relative error of digamma 1.9e-17
DIGAMMA_LARGE = (
    0.08333333333333333, -0.008333333333172483, 0.003968253901552892, -0.0041666555790601705,
    0.00757477549863857, -0.02103925711040969, 0.08136951730856672, -0.39153496701913143, 2.016786241801458,
    -9.536094055886467, 36.41520181835897, -100.25803909760218, 172.67957008683638, -138.07538488499677,
)
# sin(pi r) / r and cos(pi r) in r**2 on |r| <= 1/2
SINPI = (
    3.141592653589793, -5.167712780049969, 2.5501640398773002, -0.5992645293189403, 0.08214588657302717,
    -0.007370430505217146, 0.0004662998126284068, -2.1903487684769023e-05, 7.697726639610672e-07,
)
COSPI = (
    1.0, -4.934802200544679, 4.058712126416768, -1.3352627688545549, 0.23533063035799287,
    -0.025806891376566235, 0.001929574187086913, -0.00010463741599777275, 4.300722315174145e-06,
    -1.3435038170437607e-07,
)


def erfcx_positive(x: Expr) -> Expr:
    """exp(x**2) erfc(x) for x >= 0, on all of the half line by t = (x - 4) / (x + 4).

    M. M. Shepherd and J. G. Laframboise, Math. Comp. 36 (1981) 249, with other k and degree.
    """
    b = clamp(x, None, 1e300)
    return 0.5 * constant_last((b - 4.0) / (b + 4.0), GAUSS) / (0.5 + x)


def constant_last(x: Expr, coefficients: Sequence[float]) -> Expr:
    """`polynomial`, rounded about once: the largest coefficient is added last."""
    return coefficients[0] + x * polynomial(x, coefficients[1:])


def minus_square(x: Expr, half: float = 1.0) -> tuple[Expr, Expr]:
    """-half x**2 in two words, |half| a power of two: a factor of 26 bits has an exact square."""
    first = unbits(bits(x) & -0x8000000)
    return first * (first * -half), (x - first) * (x + first) * -half


def erf_small(x: Expr) -> Expr:
    """erf(x) for |x| <= 0.65."""
    return x + x * polynomial(x * x, ERF)


def erfc_positive(x: Expr) -> Expr:
    """erfc(x) for x >= 0 by erfcx."""
    x = clamp(x, None, 28.0)
    return exp_scaled(*minus_square(x), erfcx_positive(x))


def erfcx(x: Expr) -> Expr:
    """exp(x**2) erfc(x): about 0 and, as 2 exp(x**2) - erfcx(-x), below 0 from the exponential: 1.7 ulp."""
    a = abs(x)
    central, tail = a < SMALL, erfcx_positive(a)
    high, low = minus_square(clamp(a, None, 28.0), -1.0)
    growing = exp_scaled(high, low, select(central, 1.0 - erf_small(x), 2.0)) - select(central, const(0.0), tail)
    return select(central | (x < 0.0), growing, tail)


def erf(x: Expr) -> Expr:
    """x + x P(x**2) below 0.65, else 1 - erfc(|x|): 1.4 ulp."""
    return select(abs(x) < SMALL, erf_small(x), call("copysign", 1.0 - erfc_positive(abs(x)), x))


def erfc(x: Expr) -> Expr:
    """1 - erf(x) about 0, else erfc(|x|) or 2 - erfc(|x|): 2.9 ulp."""
    tail = erfc_positive(abs(x))
    return select(abs(x) < SMALL, 1.0 - erf_small(x), select(x < 0.0, 2.0 - tail, tail))


def normal_tail(x: Expr) -> tuple[Expr, Expr, Expr]:
    """(z, g, tail): tail = ndtr(-x) for x >= 0, z = x sqrt(1/2), g = erfcx(z) / 2."""
    z = clamp(x, None, 1e300) * SQRT_HALF
    g = 0.5 * erfcx_positive(z)
    return z, g, exp_scaled(*minus_square(clamp(x, None, 39.0), 0.5), g)


def ndtr(x: Expr) -> Expr:
    """The normal distribution function: 1/2 + erf(x sqrt(1/2)) / 2 about 0, else a tail: 3.2 ulp."""
    z, _, tail = normal_tail(abs(x))
    centre = 0.5 + 0.5 * erf_small(x * SQRT_HALF)
    return select(z < SMALL, centre, select(x < 0.0, tail, 1.0 - tail))


def log_ndtr(x: Expr) -> Expr:
    """log of ndtr(x) about 0, of 1 - ndtr(-x) above, of erfcx(z) exp(-x**2 / 2) / 2 below, by one log: 3.3 ulp."""
    z, g, tail = normal_tail(abs(x))
    positive, central = x > 0.0, z < SMALL
    centre, centre_low = quick_two_sum(const(0.5), 0.5 * erf_small(x * SQRT_HALF))
    upper, upper_low = quick_two_sum(const(1.0), -tail)
    u = select(central, centre, select(positive, upper, g))
    low = select(central, centre_low, select(positive, upper_low, 0.0))
    result = log_parts(*reduce_log(u, 0.5 * low))
    high, rest = minus_square(clamp(abs(x), None, 1e200), 0.5)
    below = select(central, result, (result + rest) + high)
    return select(positive, select(tail < 2.0**-54, -tail, result), below)


def log_double(x: Expr, shift: Expr) -> tuple[Expr, Expr]:
    """log(x 2**shift) for normal x > 0 as high + low, to about 2**-60 relative."""
    k, f = reduce_log(x)
    k = k + shift
    high, low = quick_two_sum(k * LN2_HI, f)
    high, rest = quick_two_sum(high, f * f * polynomial(f, LOG) + k * LN2_LO)
    return high, rest + low


def falling(a: Expr, start: Expr) -> Expr:
    """start (a - 1) (a - 2) ... down to the factor in [1.5, 2.5), for a < 8."""
    for i in range(1, 7):
        start = start * select(a >= i + 1.5, a - float(i), 1.0)
    return start


def sinpi_over(r: Expr) -> Expr:
    """sin(pi r) / r for |r| <= 1/2."""
    return polynomial(r * r, SINPI)


def lgamma(x: Expr) -> Expr:
    """log |gamma(x)|: recurrence to [1.25, 2.5] below, Stirling's series above, reflection below 0: 2.5 ulp.

    log(gamma(2 + e)) / e is a polynomial, so the zero at 2 is exact, and that at 1 comes from e - log(1 + e) with the
    logarithm in two words. That logarithm serves recurrence and series, another the reflection
    log(pi / |sin(pi x)|) - lgamma(1 - x). Below 0 the error is within 8 * 2**-52 of the larger of 1 and the value.
    """
    a, negative = abs(x), x < 0.0
    below, near = a < 1.25, a < 2.5
    e = a - select(a < 0.5, const(0.0), select(below, const(1.0), 2.0))
    start = select(a < 0.5, (1.0 + a) * select(negative, const(1.0), a), select(negative ^ below, a, 1.0))
    high, low = log_double(*normalise(select(near, start, select(a < INF, a, 1.0))))
    base = e * constant_last(e + 0.5, LGAMMA)
    recurrence = select(below, (base - low) - high, (base + low) + high)
    value = select(near, recurrence, stirling(a, negative, high, low))
    r, shift = normalise(abs(a - call("rint", a)))  # before the sine, which would lose the bits of a subnormal
    sine_high, sine_low = log_double(r * sinpi_over(r), shift)
    value = select(negative, ((LOG_PI - sine_high) - sine_low) - value, value)
    value = select(a.eq(0.0) | (negative & a.eq(call("floor", a))), const(INF), value)
    return select(a.eq(INF), x, value)


def lgamma_whole(x: Expr) -> Expr:
    """The same for whole numbers: no recurrence and no reflection, 1.0 ulp."""
    a = select(x < 2.5, const(3.0), x)
    value = stirling(a, const(False, "b1"), *log_double(a, const(0.0)))
    return select(x <= 0.0, const(INF), select(x < 2.5, const(0.0), value))


def stirling(a: Expr, beyond: Expr, high: Expr, low: Expr) -> Expr:
    """lgamma(a), or lgamma(1 + a) where `beyond`, for a >= 2.5 and its logarithm in two words."""
    inverse = 1.0 / a
    factor = select(beyond, a + 0.5, a - 0.5)
    rest = select(beyond, const(HALF_LOG_2PI + 0.5), HALF_LOG_2PI - 0.5)
    series = inverse * polynomial(inverse * inverse, STIRLING_LONG)
    return factor * (high - 1.0) + (factor * low + (rest + series))


def digamma(x: Expr) -> Expr:
    """Recurrence to [1, 2.5] below, the asymptotic series above, reflection below 0: 3.2 ulp.

    On [1, 2.5] the root is divided out, so the error is relative there; below 0 it is within 16 * 2**-52 of
    the larger of 1 and the value.
    """
    a, negative = abs(x), x < 0.0
    below = a < 1.0
    d = a - select(below, const(0.0), 1.0)
    top = select(negative, select(below, const(0.0), 1.0), select(below, const(-1.0), 0.0))
    bottom = select(negative ^ below, a, 1.0)
    base = ((d - DIGAMMA_ROOT[0]) - DIGAMMA_ROOT[1]) * polynomial(d - 0.75, DIGAMMA)
    inverse = 1.0 / a
    high, low = log_double(select(a < INF, a, 1.0), const(0.0))
    square = inverse * inverse
    half = select(negative, 0.5 * inverse, -0.5 * inverse)
    series = high + (low + (half - square * polynomial(square, DIGAMMA_LARGE)))
    value = select(a < 2.5, base + top / bottom, series)
    r = a - call("rint", a)
    cotangent = polynomial(r * r, COSPI) / (r * sinpi_over(r))
    value = select(negative, value + PI * cotangent, value)
    value = select(negative & a.eq(call("floor", a)), const(NAN), value)
    value = select(x.eq(INF), x, value)
    return select(x.eq(0.0), call("copysign", const(INF), -x), value)
