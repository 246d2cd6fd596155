"""Factors of general matrices: LU with partial pivoting as in NumPy, and Cholesky where it serves.

The factored copy is column-major, for LAPACK and for the loops of our own that small matrices run.
"""
from __future__ import annotations

from typing import Any

from jitad.compile.llvm.ir import DOUBLE, INT64
from jitad.compile.routines.cholesky import invert_definite
from jitad.compile.routines.code import BOOL, INT32, Index, RoutineCode, registered

LU_UNROLLED, LU_LOOPS = 2, 16                 # sides up to which code of our own is faster than LAPACK
DEFINITE_FROM = 32                            # sides from which it pays to look for symmetry


class Factors:
    """The factors of one matrix after another, in the same memory or at pointers that are given: LU factors, or, of
    larger matrices that are exactly symmetric and positive definite, the Cholesky factor, for half the work.

    `LENGTH` rows of n are needed beside the matrix itself: for the pivots and for the state.
    """

    LENGTH = 2

    def __init__(self, code: RoutineCode, n: int, given: bool = False):
        self.code, self.n = code, n
        self.own = n <= LU_LOOPS
        self.mixed = n >= DEFINITE_FROM
        if not given:
            self.lu, self.pivots = code.work(n * n), code.work(n, INT32)
        self.regular, self.definite = code.slot(BOOL), code.slot(BOOL)

    def factor(self, a: Any) -> Any:
        """Factor `a`; the value says whether all pivots are nonzero."""
        code = self.code
        code.builder.store(BOOL(0), self.definite)
        if self.mixed:
            code.branch(self._symmetric(a), lambda: self._cholesky(a))
            code.branch(self.is_definite, lambda: code.builder.store(BOOL(1), self.regular), lambda: self._factor(a))
        else:
            self._factor(a)
        return code.builder.load(self.regular)

    def _factor(self, a: Any) -> None:
        code, n = self.code, self.n
        code.transposed(self.lu, a, n, n)
        if not self.own:
            code.lapack("getrf", n, n, self.lu, n, self.pivots, code.info)
            code.builder.store(code.succeeded(), self.regular)
        else:
            code.builder.store(BOOL(1), self.regular)
            code.loop(0, n, self._column)

    @property
    def is_definite(self) -> Any:
        """Whether there is a Cholesky factor."""
        return self.code.builder.load(self.definite)

    def _symmetric(self, a: Any) -> Any:
        """Whether `a` equals its transpose; a few rows at a time, until the first that do not."""
        code, n, same = self.code, self.n, self.definite
        code.builder.store(BOOL(1), same)

        def block(first: Index) -> None:
            end = code.least(code.add(first, 8), n)

            def column(j: Index, so_far: Any) -> Any:
                def element(i: Index, known: Any) -> Any:
                    mine, across = code.load(a, code.add(code.mul(i, n), j)), code.load(a, code.add(code.mul(j, n), i))
                    return code.builder.and_(known, code.builder.fcmp_ordered("==", mine, across))
                return code.folded(code.greatest(first, j), end, so_far, element)
            code.branch(code.builder.load(same), lambda: code.builder.store(code.folded(0, end, BOOL(1), column), same))
        code.loop(0, n, block, step=8)
        found = code.builder.load(same)
        code.builder.store(BOOL(0), same)
        return found

    def _cholesky(self, a: Any) -> None:
        code, n = self.code, self.n
        code.copy(self.lu, a, n * n)
        code.lapack("potrf", "U", n, self.lu, n, code.info)
        code.builder.store(code.succeeded(), self.definite)

    # --- kept for later -----------------------------------------------------------------------
    def at(self, memory: Any) -> None:
        """Use the memory at `memory` from here on."""
        code, n = self.code, self.n
        self.lu = memory
        self.pivots = code.builder.bitcast(code.at(memory, n * n), INT32.as_pointer())

    def _state(self) -> Any:
        return self.code.at(self.lu, self.n * (self.n + 1))

    def keep(self) -> None:
        """Note beside the factors what they are."""
        code = self.code
        definite = code.builder.select(self.is_definite, code.number(2.0), code.number(1.0))
        code.store(code.builder.select(code.builder.load(self.regular), definite, code.number(0.0)), self._state())

    def recall(self) -> Any:
        """Read what was kept; the value says whether all pivots are nonzero."""
        code = self.code
        state = code.load(self._state())
        regular = code.builder.fcmp_ordered(">", state, code.number(0.0))
        code.builder.store(regular, self.regular)
        code.builder.store(code.builder.fcmp_ordered(">", state, code.number(1.0)), self.definite)
        return regular

    def _at(self, i: Index, j: Index) -> Index:
        return self.code.add(i, self.code.mul(j, self.n))

    def _column(self, j: Index) -> None:
        code, n, lu = self.code, self.n, self.lu

        def larger(i: Index, best: Any) -> Any:
            mine = code.magnitude(code.load(lu, self._at(i, j)))
            known = code.magnitude(code.load(lu, self._at(best, j)))
            return code.builder.select(code.builder.fcmp_ordered(">", mine, known), code.integer(i), best)

        following = code.add(j, 1)
        pivot = code.folded(following, n, code.integer(j), larger)
        code.store(code.builder.trunc(code.builder.add(pivot, code.integer(1)), INT32), self.pivots, j)
        code.loop(0, n, lambda c: _swap(code, lu, self._at(j, c), self._at(pivot, c)))
        head = code.load(lu, self._at(j, j))
        fine = code.builder.fcmp_unordered("!=", head, code.number(0.0))
        code.builder.store(code.builder.and_(fine, code.builder.load(self.regular)), self.regular)
        scale = code.over(code.number(1.0), head)
        code.loop(following, n, lambda i: code.store(
            code.times(code.load(lu, self._at(i, j)), scale), lu, self._at(i, j)))

        def update(c: Index) -> None:
            above = code.load(lu, self._at(j, c))
            code.loop(following, n, lambda i: code.store(code.minus(
                code.load(lu, self._at(i, c)), code.load(lu, self._at(i, j)), above), lu, self._at(i, c)))
        code.loop(following, n, update)

    def solve(self, x: Any, k: int, trans: bool = False) -> None:
        """Replace the row-major right-hand sides at `x`, `k` columns, by the solutions, of the transpose if `trans`.

        Two triangular solves rather than LAPACK's getrs, which OpenBLAS runs in threads at any size."""
        def general() -> None:
            if trans:
                self._triangles(x, k, trans)
            self._permute(x, k, trans)
            if not trans:
                self._triangles(x, k, trans)

        def definite() -> None:
            self._triangle(x, k, "U", "T", "N")
            self._triangle(x, k, "U", "N", "N")
        if self.mixed:
            self.code.branch(self.is_definite, definite, general)
        else:
            general()

    def _permute(self, x: Any, k: int, trans: bool) -> None:
        code, n = self.code, self.n

        def each(step: Index) -> None:
            i = code.sub(n - 1, step) if trans else step
            first, second = code.mul(i, k), code.mul(self._pivot(i), k)
            code.loop(0, k, lambda c: _swap(code, x, code.add(first, c), code.add(second, c)))
        code.loop(0, n, each)

    def _triangles(self, x: Any, k: int, trans: bool) -> None:
        if self.own:
            (self._substitute_transposed if trans else self._substitute)(x, k)
        elif trans:
            self._triangle(x, k, "U", "T", "N")
            self._triangle(x, k, "L", "T", "U")
        else:
            self._triangle(x, k, "L", "N", "U")
            self._triangle(x, k, "U", "N", "N")

    def _triangle(self, x: Any, k: int, half: str, trans: str, unit: str) -> None:
        """``op(triangle) @ x = x``; several row-major columns are rows to LAPACK."""
        if k == 1:
            self.code.lapack("trsv", half, trans, unit, self.n, self.lu, self.n, x, 1)
        else:
            self.code.lapack("trsm", "R", half, "NT"[trans == "N"], unit, k, self.n, 1.0, self.lu, self.n, x, k)

    def _take(self, x: Any, k: int, i: Index, j: Index, place: Index) -> None:
        """Take from row i of the right-hand sides row j times the factor at `place`."""
        code = self.code
        factor, mine, row = code.load(self.lu, place), code.mul(i, k), code.mul(j, k)
        code.loop(0, k, lambda c: code.store(code.minus(
            code.load(x, code.add(mine, c)), factor, code.load(x, code.add(row, c))), x, code.add(mine, c)))

    def _substitute_transposed(self, x: Any, k: int) -> None:
        code, n, lu = self.code, self.n, self.lu

        def down(j: Index) -> None:
            row, pivot = code.mul(j, k), code.load(lu, self._at(j, j))
            code.loop(0, k, lambda c: code.store(code.over(
                code.load(x, code.add(row, c)), pivot), x, code.add(row, c)))
            code.loop(code.add(j, 1), n, lambda i: self._take(x, k, i, j, self._at(j, i)))

        def up(step: Index) -> None:
            j = code.sub(n - 1, step)
            code.loop(0, j, lambda i: self._take(x, k, i, j, self._at(j, i)))
        code.loop(0, n, down)
        code.loop(0, n, up)

    def _substitute(self, x: Any, k: int) -> None:
        code, n, lu = self.code, self.n, self.lu

        def back(step: Index) -> None:
            j = code.sub(n - 1, step)
            row, pivot = code.mul(j, k), code.load(lu, self._at(j, j))
            code.loop(0, k, lambda c: code.store(code.over(
                code.load(x, code.add(row, c)), pivot), x, code.add(row, c)))
            code.loop(0, j, lambda i: self._take(x, k, i, j, self._at(i, j)))
        code.loop(0, n, lambda j: code.loop(
            code.add(j, 1), n, lambda i: self._take(x, k, i, j, self._at(i, j))))
        code.loop(0, n, back)

    def invert(self, x: Any) -> None:
        """Write the inverse, row-major."""
        code, n = self.code, self.n

        def general() -> None:
            code.fill(x, n * n, 0.0)
            code.loop(0, n, lambda j: code.store(code.number(1.0), x, code.mul(j, n + 1)))
            self._permute(x, n, False)
            self._triangles(x, n, False)

        def definite() -> None:
            code.copy(x, self.lu, n * n)
            invert_definite(code, x, n)
        if self.mixed:
            code.branch(self.is_definite, definite, general)
        else:
            general()

    def _pivot(self, i: Index) -> Any:
        code = self.code
        return code.sub(code.builder.sext(code.load(self.pivots, i), code.integer(0).type), 1)

    def diagonal(self, i: Index) -> Any:
        """A pivot, as float64."""
        pivot = self.code.wide(self.code.load(self.lu, self._at(i, i)))
        if not self.mixed:
            return pivot
        return self.code.builder.select(self.is_definite, self.code.builder.fmul(pivot, pivot), pivot)

    def parity(self) -> Any:
        """The sign of the permutation, as float64."""
        code = self.code

        def body(i: Index, sign: Any) -> Any:
            moved = code.builder.icmp_signed("!=", self._pivot(i), code.integer(i))
            return code.builder.select(moved, code.builder.fneg(sign), sign)
        sign = code.folded(0, self.n, DOUBLE(1.0), body)
        return code.builder.select(self.is_definite, DOUBLE(1.0), sign) if self.mixed else sign


def _swap(code: RoutineCode, p: Any, i: Index, j: Index) -> None:
    first, second = code.load(p, i), code.load(p, j)
    code.store(second, p, i)
    code.store(first, p, j)


# --- LU, as a result ---------------------------------------------------------------------------

class _Lu:
    """The factors of one matrix after another, column-major; of packed complex ones if `packed`."""

    def __init__(self, code: RoutineCode, n: int, packed: int = 0):
        self.code, self.n, self.packed = code, n, packed
        self.size = (1 + packed) * n * n
        self.a, self.pivots = code.work(self.size), code.work(n, INT32)
        self.transposed = code.transposed_pairs if packed else code.transposed

    def factor(self, a: Any) -> None:
        """Singular matrices have factors too."""
        code, n = self.code, self.n
        self.transposed(self.a, a, n, n)
        code.lapack("getrf", n, n, self.a, n, self.pivots, code.info, pairs=bool(self.packed))


@registered
def lu(code: RoutineCode, out: Any, a: Any, order: Any, batch: int, n: int) -> None:
    """Both factors of each matrix in one."""
    _both(code, out, a, batch, n, 0)


@registered
def clu(code: RoutineCode, out: Any, a: Any, order: Any, batch: int, n: int) -> None:
    """The same of complex matrices."""
    _both(code, out, a, batch, n, 1)


def _both(code: RoutineCode, out: Any, a: Any, batch: int, n: int, packed: int) -> None:
    if not n:
        return
    factors = _Lu(code, n, packed)

    def each(i: Index) -> None:
        place = code.mul(i, factors.size)
        factors.factor(code.at(a, place))
        factors.transposed(code.at(out, place), factors.a, n, n)
    code.rolled(0, batch, each)


@registered
def lu_order(code: RoutineCode, out: Any, a: Any, batch: int, n: int, packed: int = 0) -> None:
    """The order of rows of each factorization."""
    if not n:
        return
    code.compute_as(a.type.pointee)
    factors = _Lu(code, n, packed)

    def each(i: Index) -> None:
        order = code.at(out, code.mul(i, n))
        factors.factor(code.at(a, code.mul(i, factors.size)))
        code.loop(0, n, lambda j: code.store(code.integer(j), order, j))

        def swap(j: Index) -> None:
            pivot = code.sub(code.builder.sext(code.load(factors.pivots, j), code.integer(0).type), 1)
            first, second = code.load(order, j), code.load(order, pivot)
            code.store(second, order, j)
            code.store(first, order, pivot)
        code.loop(0, n, swap)
    code.rolled(0, batch, each)


@registered
def lu_pivots(code: RoutineCode, out: Any, order: Any, batch: int, n: int) -> None:
    """The pivots of each order of rows."""
    if not n:
        return
    rows = code.work(n, INT64)

    def each(i: Index) -> None:
        wanted, pivots = code.at(order, code.mul(i, n)), code.at(out, code.mul(i, n))
        code.loop(0, n, lambda j: code.store(code.integer(j), rows, j))

        def swap(j: Index) -> None:
            row = code.load(wanted, j)
            pivot = code.folded(j, n, code.integer(j), lambda k, found: code.builder.select(
                code.builder.icmp_signed("==", code.load(rows, k), row), code.integer(k), found))
            code.store(pivot, pivots, j)
            code.store(code.load(rows, j), rows, pivot)
        code.loop(0, n, swap)
    code.rolled(0, batch, each)
