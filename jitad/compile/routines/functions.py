"""Functions of matrices and matrix equations: exponential, square root, Sylvester; banded systems."""
from __future__ import annotations

from typing import Any

from jitad.compile.routines.code import BOOL, INT32, Index, RoutineCode, registered
from jitad.compile.routines.general import log_of
from jitad.compile.routines.lu import Factors
from jitad.compile.routines.products.gemm import gemm

PADE = (64764752532480000., 32382376266240000., 7771770303897600., 1187353796428800., 129060195264000.,
        10559470521600., 670442572800., 33522128640., 1323241920., 40840800., 960960., 16380., 182., 1.)
PADE_REACH = {"d": 5.371920351148152, "s": 3.925724783138660}    # norms for which the approximant needs no scaling
SQUARINGS = 1100
ITERATIONS = 60


# --- the exponential ---------------------------------------------------------------------------

@registered
def expm(code: RoutineCode, out: Any, a: Any, batch: int, n: int) -> None:
    """Scaling and squaring with the approximant of degree 13 (N. J. Higham, 2005)."""
    if not n:
        return
    size, pade = n * n, _Approximant(code, n)

    def each(i: Index) -> None:
        result, source = code.at(out, code.mul(i, size)), code.at(a, code.mul(i, size))
        count, scale = _scaling(code, source, n)
        code.loop(0, size, lambda j: code.store(code.times(code.load(source, j), scale), pade.x, j))
        pade.write(result)

        def square(_: Index) -> None:
            code.copy(pade.x, result, size)
            pade.product(result, pade.x, pade.x)
        code.rolled(0, count, square)
    code.rolled(0, batch, each)


class _Approximant:
    """The quotient of polynomials of one matrix `x` after another."""

    def __init__(self, code: RoutineCode, n: int):
        self.code, self.n, self.size = code, n, n * n
        self.x, self.x2, self.x4, self.x6, self.u, self.v = (code.work(n * n) for _ in range(6))
        self.factors = Factors(code, n)

    def write(self, result: Any) -> None:
        """Powers, the odd part ``u`` and the even part ``v``, and ``(v - u)^-1 (v + u)``; `x` is lost."""
        code, size, x, x2, x4, x6, u, v = self.code, self.size, self.x, self.x2, self.x4, self.x6, self.u, self.v
        self.product(x2, x, x)
        self.product(x4, x2, x2)
        self.product(x6, x4, x2)
        self._combine(v, [(13, x6), (11, x4), (9, x2)], 0.0)
        self.product(u, x6, v)
        self._combine(v, [(7, x6), (5, x4), (3, x2)], PADE[1])
        self._add(v, u)
        self.product(u, x, v)
        self._combine(result, [(12, x6), (10, x4), (8, x2)], 0.0)
        self.product(v, x6, result)
        self._combine(result, [(6, x6), (4, x4), (2, x2)], PADE[0])
        self._add(v, result)
        code.loop(0, size, lambda j: code.store(code.builder.fsub(code.load(v, j), code.load(u, j)), x, j))
        code.loop(0, size, lambda j: code.store(code.builder.fadd(code.load(v, j), code.load(u, j)), result, j))
        self.factors.factor(x)
        self.factors.solve(result, self.n)

    def product(self, target: Any, p: Any, q: Any) -> None:
        gemm(self.code, target, p, q, self.n, self.n, self.n, 0, 0, 0)

    def _combine(self, target: Any, terms: list[tuple[int, Any]], one: float) -> None:
        """``target = sum(c * matrix) + one * I`` with coefficients of the approximant."""
        code, n = self.code, self.n

        def element(i: Index) -> None:
            total = code.number(0.0)
            for place, matrix in terms:
                total = code.builder.fadd(total, code.times(code.number(PADE[place]), code.load(matrix, i)))
            code.store(total, target, i)
        code.loop(0, self.size, element)
        if one:
            code.loop(0, n, lambda i: code.store(code.builder.fadd(
                code.load(target, code.mul(i, n + 1)), code.number(one)), target, code.mul(i, n + 1)))

    def _add(self, target: Any, other: Any) -> None:
        code = self.code
        code.loop(0, self.size, lambda i: code.store(
            code.builder.fadd(code.load(target, i), code.load(other, i)), target, i))


def _scaling(code: RoutineCode, a: Any, n: int) -> tuple[Any, Any]:
    """How often to halve the matrix, and the power of two for it."""
    def column(j: Index, largest: Any) -> Any:
        total = code.folded(0, n, code.number(0.0), lambda i, s: code.builder.fadd(
            s, code.magnitude(code.load(a, code.add(code.mul(i, n), j)))))
        return code.builder.select(code.builder.fcmp_ordered(">", total, largest), total, largest)
    norm = code.folded(0, n, code.number(0.0), column)
    reach, count = code.slot(code.kind), code.slot(code.integer(0).type)
    scale = code.slot(code.kind)
    code.builder.store(code.number(PADE_REACH[code.prefix]), reach)
    code.builder.store(code.number(1.0), scale)
    code.builder.store(code.integer(0), count)

    def halve(_: Index) -> None:
        known = code.builder.load(reach)
        more = code.builder.fcmp_ordered(">", norm, known)
        twice, half = code.times(known, code.number(2.0)), code.times(code.builder.load(scale), code.number(0.5))
        code.builder.store(code.builder.select(more, twice, known), reach)
        code.builder.store(code.builder.select(more, half, code.builder.load(scale)), scale)
        number = code.builder.load(count)
        code.builder.store(code.builder.select(more, code.builder.add(number, code.integer(1)), number), count)
    code.rolled(0, SQUARINGS, halve)
    return code.builder.load(count), code.builder.load(scale)


# --- Sylvester equations -----------------------------------------------------------------------

class _Schur:
    """``a.T = u @ t @ u.T`` of one matrix after another, u and t column-major."""

    def __init__(self, code: RoutineCode, n: int):
        self.code, self.n = code, n
        self.t, self.u = code.work(n * n), code.work(n * n)
        self.values, self.length = code.work(2 * n), 32 * n + 32
        self.scratch, self.found, self.flags = code.work(self.length), code.slot(INT32), code.work(n, INT32)

    def factor(self, a: Any) -> None:
        code, n = self.code, self.n
        code.copy(self.t, a, n * n)
        code.lapack("gees", "V", "N", code.null(), n, self.t, n, self.found, self.values, code.at(self.values, n),
                    self.u, n, self.scratch, self.length, self.flags, code.info)
        code.require(code.succeeded())


@registered
def sylvester(code: RoutineCode, out: Any, a: Any, b: Any, q: Any, batch: int, n: int, k: int) -> None:
    """``a @ out + out @ b = q`` by Schur forms (R. H. Bartels and G. W. Stewart, 1972)."""
    if not n * k:
        return
    left, right = _Schur(code, n), _Schur(code, k)
    inside, moved, scale = code.work(n * k), code.work(n * k), code.slot(code.kind)

    def each(i: Index) -> None:
        result = code.at(out, code.mul(i, n * k))
        left.factor(code.at(a, code.mul(i, n * n)))
        right.factor(code.at(b, code.mul(i, k * k)))
        gemm(code, moved, left.u, code.at(q, code.mul(i, n * k)), n, k, n, 0, 0, 0)
        gemm(code, inside, moved, right.u, n, k, k, 0, 1, 0)
        code.lapack("trsyl", "N", "N", 1, k, n, right.t, k, left.t, n, inside, k, scale, code.info)
        gemm(code, moved, left.u, inside, n, k, n, 1, 0, 0)
        gemm(code, result, moved, right.u, n, k, k, 0, 0, 0)
        factor = code.over(code.number(1.0), code.builder.load(scale))
        code.loop(0, n * k, lambda j: code.store(code.times(code.load(result, j), factor), result, j))
    code.rolled(0, batch, each)


# --- the square root ---------------------------------------------------------------------------

@registered
def sqrtm(code: RoutineCode, out: Any, a: Any, batch: int, n: int) -> None:
    """The product form of the iteration of Denman and Beavers, scaled by determinants (N. J. Higham, 2008, (6.29));
    fails where it does not converge."""
    if not n:
        return
    size = n * n
    m, inverse, moved = (code.work(size) for _ in range(3))
    factors, going, regular = Factors(code, n), code.slot(BOOL), code.slot(BOOL)
    eps = 2.220446049250313e-16 if code.prefix == "d" else 1.1920929e-07

    def step(x: Any) -> None:
        code.builder.store(factors.factor(m), regular)
        factors.invert(inverse)
        far = code.builder.fcmp_ordered(">", _distance(code, m, n), code.number(1e-2))
        log = code.builder.fmul(log_of(code, factors), code.double(-0.5 / n))
        scale = code.builder.select(far, code.narrow(code.math("exp", log)), code.number(1.0))
        square = code.times(scale, scale)

        def element(j: Index) -> None:
            turned = code.over(code.load(inverse, j), square)
            code.store(turned, inverse, j)
            both = code.builder.fadd(code.times(code.load(m, j), square), turned)
            code.store(code.times(both, code.number(0.25)), m, j)
        code.loop(0, size, element)

        def diagonal(j: Index) -> None:
            place = code.mul(j, n + 1)
            code.store(code.builder.fadd(code.load(m, place), code.number(0.5)), m, place)
            code.store(code.builder.fadd(code.load(inverse, place), code.number(1.0)), inverse, place)
        code.loop(0, n, diagonal)
        gemm(code, moved, x, inverse, n, n, n, 0, 0, 0)
        half = code.times(scale, code.number(0.5))
        code.loop(0, size, lambda j: code.store(code.times(code.load(moved, j), half), x, j))
        rest = code.builder.fcmp_ordered(">", _distance(code, m, n), code.number(n * eps))
        code.builder.store(code.builder.and_(rest, code.builder.load(regular)), going)

    def each(i: Index) -> None:
        x, source = code.at(out, code.mul(i, size)), code.at(a, code.mul(i, size))
        code.copy(x, source, size)
        code.copy(m, source, size)
        code.builder.store(BOOL(1), going)
        code.rolled(0, ITERATIONS, lambda _: code.branch(code.builder.load(going), lambda: step(x)))
        code.require(code.builder.fcmp_ordered("<", _distance(code, m, n), code.number(1e-6 if eps < 1e-10 else 1e-3)))
    code.rolled(0, batch, each)


def _distance(code: RoutineCode, m: Any, n: int) -> Any:
    """The largest element of ``m - I``; NaN is not small."""
    def row(i: Index, largest: Any) -> Any:
        def element(j: Index, known: Any) -> Any:
            same = code.builder.icmp_signed("==", code.integer(i), code.integer(j))
            one = code.builder.select(same, code.number(1.0), code.number(0.0))
            size = code.magnitude(code.builder.fsub(code.load(m, code.add(code.mul(i, n), j)), one))
            return code.builder.select(code.builder.fcmp_ordered("<=", size, known), known, size)
        return code.folded(0, n, largest, element)
    return code.folded(0, n, code.number(0.0), row)


# --- bands -------------------------------------------------------------------------------------

@registered
def solve_banded(code: RoutineCode, out: Any, ab: Any, b: Any, _: int, n: int, k: int, lower: int, upper: int) -> None:
    """The system of a banded matrix, by LU factors."""
    if not n * k:
        return
    rows = 2 * lower + upper + 1
    band, pivots, x = code.work(rows * n), code.work(n, INT32), code.work(n * k)
    code.fill(band, rows * n, 0.0)
    code.loop(0, lower + upper + 1, lambda r: code.loop(0, n, lambda j: code.store(
        code.load(ab, code.add(code.mul(r, n), j)), band, code.add(code.add(r, lower), code.mul(j, rows)))))
    code.transposed(x, b, n, k)
    code.lapack("gbsv", n, lower, upper, k, band, rows, pivots, x, n, code.info)
    code.require(code.succeeded())
    code.transposed(out, x, k, n)


@registered
def solveh_banded(code: RoutineCode, out: Any, ab: Any, b: Any, _: int, rows: int, n: int, k: int) -> None:
    """The system of a symmetric positive definite banded matrix, by Cholesky factors."""
    if not n * k:
        return
    band, x = code.work(rows * n), code.work(n * k)
    code.transposed(band, ab, rows, n)
    code.transposed(x, b, n, k)
    code.lapack("pbsv", "L", n, rows - 1, k, band, rows, x, n, code.info)
    code.require(code.succeeded())
    code.transposed(out, x, k, n)
