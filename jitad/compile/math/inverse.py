"""Branch-free inverse trigonometric and inverse hyperbolic functions in machine operations.

The conventions are those of `explog`.
"""
from __future__ import annotations

from jitad.compile.math.explog import (
    INF,
    NAN,
    clamp,
    log_parts,
    polynomial,
    quick_two_sum,
    reduce_log,
    two_product,
    two_sum,
)
from jitad.tape.expr import Expr, bits, call, const, select

PI_HI, PI_LO = 3.141592653589793, 1.2246467991473532e-16

# (arctan(t) - t) / t**3 in t**2 - 1/2 on 0 <= t <= 1: relative error of arctan 3.5e-17
ARCTAN = (
    -0.2591604972657936, 0.11081482513071414, -0.054814840604579904, 0.029135862645225958,
    -0.016172974900145312, 0.009243096224092707, -0.005394792734515503, 0.0031991751955030576,
    -0.0019209389488175712, 0.0011650648417818904, -0.000712529877324769, 0.0004387712318266148,
    -0.0002713884068435811, 0.00016895422802807932, -0.00010789905799306997, 6.77580169120214e-05,
    -3.504433556095341e-05, 2.2095024431396628e-05, -2.8373324902198374e-05, 1.806195461861215e-05,
)
# (arcsin(t) - t) / t**3 in t**2 on 0 <= t <= 0.55: relative error of arcsin 8.8e-18
ARCSIN = (
    0.16666666666666666, 0.07500000000002141, 0.04464285713827423, 0.030381944829695792, 0.022372142249968974,
    0.01735320363146582, 0.013957459687662422, 0.011635531975919511, 0.009105554604136656,
    0.011967901915894072, -0.006126285218184018, 0.040049399034923494, -0.0459307129304864,
    0.04500105280024437,
)


def sqrt(x: Expr) -> Expr:
    return call("sqrt", x)


def arctan_unit(t: Expr) -> Expr:
    """arctan(t) for 0 <= t <= 1."""
    square = t * t
    return t + t * square * polynomial(square - 0.5, ARCTAN)


def arctan(x: Expr) -> Expr:
    """arctan(t) or pi / 2 - arctan(1 / t), degree 41: 1.8 ulp."""
    a = abs(x)
    large = a > 1.0
    angle = arctan_unit(select(large, const(1.0), a) / select(large, a, 1.0))
    angle = select(large, (0.5 * PI_HI - angle) + 0.5 * PI_LO, angle)
    return call("copysign", angle, x)


def arctan2(y: Expr, x: Expr) -> Expr:
    """The angle of the smaller over the larger argument, unfolded into its octant: 1.6 ulp."""
    a, b = abs(y), abs(x)
    steep = a > b
    t = select(steep, b, a) / select(steep, a, b)
    t = select(a.eq(b), select(a.eq(0.0), a, 1.0), t)
    angle = arctan_unit(t)
    angle = select(steep, (0.5 * PI_HI - angle) + 0.5 * PI_LO, angle)
    angle = select(bits(x) < 0, (PI_HI - angle) + PI_LO, angle)
    return call("copysign", select(y.ne(y) | x.ne(x), const(NAN), angle), y)


def arcsin_parts(a: Expr) -> tuple[Expr, Expr]:
    """(a <= 0.55, angle): the angle is arcsin(a) for 0 <= a <= 0.55, else arcsin(sqrt((1 - a) / 2))."""
    small = a <= 0.55  # beyond it the other angle is below 1/2, and rounded more finely
    half = 0.5 - 0.5 * a
    t, square = select(small, a, sqrt(half)), select(small, a * a, half)
    return small, t + t * (square * polynomial(square, ARCSIN))


def arcsin(x: Expr) -> Expr:
    """A polynomial up to 0.55, else pi / 2 - 2 arcsin(sqrt((1 - |x|) / 2)): 1.5 ulp."""
    small, angle = arcsin_parts(abs(x))
    return call("copysign", select(small, angle, (0.5 * PI_HI - 2.0 * angle) + 0.5 * PI_LO), x)


def arccos(x: Expr) -> Expr:
    """2 arcsin(sqrt((1 - x) / 2)) above 0.55, pi less that of -x below -0.55, pi / 2 - arcsin(x) between: 1.1 ulp."""
    small, angle = arcsin_parts(abs(x))
    middle = (0.5 * PI_HI - call("copysign", angle, x)) + 0.5 * PI_LO
    outer = select(x < 0.0, (PI_HI - 2.0 * angle) + PI_LO, 2.0 * angle)
    return select(small, middle, outer)


def sqrt_double(high: Expr, low: Expr) -> tuple[Expr, Expr]:
    """The square root of high + low in two words."""
    root = sqrt(high)
    square, square_low = two_product(root, root)
    rest = ((high - square) - square_low) + low
    return root, select(root > 0.0, rest / (root + root), 0.0)


def arcsinh(x: Expr) -> Expr:
    """log(a + sqrt(a**2 + 1)) with its argument in two words, a = |x|; x - x**3 / 6 about 0: 1.4 ulp."""
    a = abs(x)
    large = a > 2.0**30
    b = clamp(a, None, 2.0**30)
    high, low = two_product(b, b)
    total, error = two_sum(high, const(1.0))
    root, root_low = sqrt_double(total, error + low)
    u, u_low = two_sum(root, b)
    k, f = reduce_log(select(large, a, u), select(large, const(0.0), 0.5 * (u_low + root_low)))
    result = log_parts(k + select(large, const(1.0), 0.0), f)
    result = select(a < 2.0**-14, a - a * a * a * (1 / 6), result)
    return call("copysign", select(a < INF, result, a), x)


def arccosh(x: Expr) -> Expr:
    """log(x + sqrt(x**2 - 1)) with its argument in two words: 1.5 ulp."""
    large = x > 2.0**30
    b = clamp(x, None, 2.0**30)
    high, low = two_product(b, b)
    total, error = two_sum(high, const(-1.0))
    total, error = quick_two_sum(total, error + low)
    root, root_low = sqrt_double(total, error)
    u, u_low = two_sum(b, root)
    k, f = reduce_log(select(large, x, u), select(large, const(0.0), 0.5 * (u_low + root_low)))
    result = log_parts(k + select(large, const(1.0), 0.0), f)
    return select(x >= 1.0, select(x < INF, result, x), NAN)


def arctanh(x: Expr) -> Expr:
    """log1p(q) / 2 with q = 2 a / (1 - a) in two words, a = |x|: 1.4 ulp."""
    a = abs(x)
    bottom, bottom_low = quick_two_sum(const(1.0), -a)
    double = a + a
    q = double / bottom
    product, product_low = two_product(q, bottom)
    q_low = (((double - product) - product_low) - q * bottom_low) / bottom
    u, u_low = two_sum(const(1.0), q)
    result = 0.5 * log_parts(*reduce_log(u, 0.5 * (u_low + q_low)))
    result = select(a < 1.0, select(a < 2.0**-28, a, result), select(a.eq(1.0), const(INF), NAN))
    return call("copysign", result, x)
