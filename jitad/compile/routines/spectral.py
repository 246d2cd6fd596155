"""Eigenvalues of symmetric matrices, singular values, and what is made of them.

LAPACK gets column-major copies, as it does from NumPy, so that signs of vectors are NumPy's.
"""
from __future__ import annotations

from typing import Any

from jitad.compile.routines.code import INT32, Index, RoutineCode, registered
from jitad.compile.routines.products.gemm import gemm

# --- symmetric eigenvalues ---------------------------------------------------------------------

class _Eigen:
    """Memory for the eigenvalues, and perhaps vectors, of one symmetric matrix after another."""

    def __init__(self, code: RoutineCode, n: int, vectors: bool):
        self.code, self.n, self.vectors = code, n, vectors
        self.a, self.w = code.work(n * n), code.work(n)
        self.length, self.integers = 1 + 6 * n + 2 * n * n + 32 * n, 3 + 5 * n
        self.scratch, self.places = code.work(self.length), code.work(self.integers, INT32)

    def decompose(self, a: Any, upper: int) -> None:
        code, n = self.code, self.n
        code.transposed(self.a, a, n, n)
        code.lapack("syevd", "V" if self.vectors else "N", "U" if upper else "L", n, self.a, n, self.w, self.scratch,
                    self.length, self.places, self.integers, code.info)
        code.require(code.succeeded())


@registered
def eigh(code: RoutineCode, out: Any, a: Any, batch: int, n: int, upper: int = 0) -> None:
    """Rows of eigenvalue and eigenvector of each matrix."""
    if not n:
        return
    eigen, width = _Eigen(code, n, True), n + 1

    def each(i: Index) -> None:
        target = code.at(out, code.mul(i, n * width))
        eigen.decompose(code.at(a, code.mul(i, n * n)), upper)
        code.loop(0, n, lambda j: _row(code, code.at(target, code.mul(j, width)), [
            (code.at(eigen.w, j), 1, 1), (code.at(eigen.a, code.mul(j, n)), n, 1)]))
    code.rolled(0, batch, each)


@registered
def eigvalsh(code: RoutineCode, out: Any, a: Any, batch: int, n: int, upper: int = 0) -> None:
    """The eigenvalues of each symmetric matrix."""
    if not n:
        return
    eigen = _Eigen(code, n, False)

    def each(i: Index) -> None:
        eigen.decompose(code.at(a, code.mul(i, n * n)), upper)
        code.copy(code.at(out, code.mul(i, n)), eigen.w, n)
    code.rolled(0, batch, each)


def _row(code: RoutineCode, target: Any, parts: list[tuple[Any, int, int]]) -> None:
    """Join parts, each a pointer with length and stride, at `target`."""
    start = 0
    for source, count, stride in parts:
        _stretch(code, code.at(target, start), source, count, stride)
        start += count


def _stretch(code: RoutineCode, target: Any, source: Any, count: int, stride: int) -> None:
    code.loop(0, count, lambda c: code.store(code.load(source, code.mul(c, stride)), target, c))


# --- singular values ---------------------------------------------------------------------------

class _Singular:
    """Memory for the singular values, and perhaps vectors, of one matrix after another."""

    def __init__(self, code: RoutineCode, m: int, n: int, vectors: bool):
        self.code, self.m, self.n, self.k, self.vectors = code, m, n, min(m, n), vectors
        k = self.k
        self.a, self.s = code.work(m * n), code.work(k)
        self.u, self.vt = (code.work(m * k), code.work(k * n)) if vectors else (code.work(1), code.work(1))
        self.length = 4 * k * k + 7 * k + 64 * (m + n) + 64
        self.scratch, self.integers = code.work(self.length), code.work(8 * k, INT32)

    def decompose(self, a: Any) -> None:
        """Column-major u and vt, and s."""
        code, m, n = self.code, self.m, self.n
        code.transposed(self.a, a, m, n)
        code.lapack("gesdd", "S" if self.vectors else "N", m, n, self.a, m, self.s, self.u, m, self.vt,
                    self.k if self.vectors else 1, self.scratch, self.length, self.integers, code.info)
        code.require(code.succeeded())


@registered
def svd(code: RoutineCode, out: Any, a: Any, batch: int, m: int, n: int) -> None:
    """Rows of singular value, left and right vector of each matrix."""
    k, width = min(m, n), 1 + m + n
    if not k:
        return
    singular = _Singular(code, m, n, True)

    def each(i: Index) -> None:
        target = code.at(out, code.mul(i, k * width))
        singular.decompose(code.at(a, code.mul(i, m * n)))
        code.loop(0, k, lambda j: _row(code, code.at(target, code.mul(j, width)), [
            (code.at(singular.s, j), 1, 1), (code.at(singular.u, code.mul(j, m)), m, 1),
            (code.at(singular.vt, j), n, k)]))
    code.rolled(0, batch, each)


@registered
def svdvals(code: RoutineCode, out: Any, a: Any, batch: int, m: int, n: int) -> None:
    """The singular values of each matrix."""
    k = min(m, n)
    if not k:
        return
    singular = _Singular(code, m, n, False)

    def each(i: Index) -> None:
        singular.decompose(code.at(a, code.mul(i, m * n)))
        code.copy(code.at(out, code.mul(i, k)), singular.s, k)
    code.rolled(0, batch, each)


@registered
def pinv(code: RoutineCode, out: Any, a: Any, batch: int, m: int, n: int, rcond: float) -> None:
    """The pseudoinverse of each matrix; singular values up to `rcond` times the largest count as zero."""
    k = min(m, n)
    if not k:
        return
    singular = _Singular(code, m, n, True)

    def each(i: Index) -> None:
        singular.decompose(code.at(a, code.mul(i, m * n)))
        least = code.times(code.load(singular.s), code.number(rcond))

        def scale(j: Index) -> None:
            value = code.load(singular.s, j)
            small = code.builder.fcmp_ordered("<=", value, least)
            inverse = code.builder.select(small, code.number(0.0), code.over(code.number(1.0), value))
            row = code.at(singular.u, code.mul(j, m))
            code.loop(0, m, lambda c: code.store(code.times(code.load(row, c), inverse), row, c))
        code.loop(0, k, scale)
        gemm(code, code.at(out, code.mul(i, m * n)), singular.vt, singular.u, n, m, k, 0, 0, 0)
    code.rolled(0, batch, each)


@registered
def orthogonal_factor(code: RoutineCode, out: Any, a: Any, batch: int, m: int, n: int) -> None:
    """``u @ vt`` of each matrix."""
    if not n:
        return
    singular = _Singular(code, m, n, True)

    def each(i: Index) -> None:
        singular.decompose(code.at(a, code.mul(i, m * n)))
        gemm(code, code.at(out, code.mul(i, m * n)), singular.u, singular.vt, m, n, n, 1, 1, 0)
    code.rolled(0, batch, each)


# --- QR and LU ---------------------------------------------------------------------------------

@registered
def qr(code: RoutineCode, out: Any, a: Any, batch: int, m: int, n: int) -> None:
    """Rows of a column of Q and a row of R of each matrix."""
    if not n:
        return
    width, length = m + n, 64 * n
    q, tau, scratch = code.work(m * n), code.work(n), code.work(length)

    def each(i: Index) -> None:
        target = code.at(out, code.mul(i, n * width))
        code.transposed(q, code.at(a, code.mul(i, m * n)), m, n)
        code.lapack("geqrf", m, n, q, m, tau, scratch, length, code.info)
        code.require(code.succeeded())

        def upper(j: Index) -> None:
            row = code.at(target, code.add(code.mul(j, width), m))
            code.loop(0, j, lambda c: code.store(code.number(0.0), row, c))
            code.loop(j, n, lambda c: code.store(code.load(q, code.add(j, code.mul(c, m))), row, c))
        code.loop(0, n, upper)
        code.lapack("orgqr", m, n, n, q, m, tau, scratch, length, code.info)
        code.require(code.succeeded())
        code.loop(0, n, lambda j: code.loop(0, m, lambda c: code.store(
            code.load(q, code.add(code.mul(j, m), c)), target, code.add(code.mul(j, width), c))))
    code.rolled(0, batch, each)


@registered
def cqr(code: RoutineCode, out: Any, a: Any, batch: int, m: int, n: int) -> None:
    """Rows of a column of Q and a row of R of each packed complex matrix, real parts before imaginary ones."""
    if not n:
        return
    width, length = 2 * (m + n), 64 * n
    q, tau, scratch = code.work(2 * m * n), code.work(2 * n), code.work(2 * length)

    def each(i: Index) -> None:
        target = code.at(out, code.mul(i, n * width))
        code.transposed_pairs(q, code.at(a, code.mul(i, 2 * m * n)), m, n)
        code.lapack("geqrf", m, n, q, m, tau, scratch, length, code.info, pairs=True)
        code.require(code.succeeded())

        def entry(j: Index, c: Index, part: int) -> Any:
            return code.load(q, code.add(code.mul(code.add(j, code.mul(c, m)), 2), part))

        def upper(j: Index) -> None:
            for part in (0, 1):
                row = code.at(target, code.add(code.mul(j, width), 2 * m + part * n))
                code.loop(0, j, lambda c, row=row: code.store(code.number(0.0), row, c))  # type: ignore[misc]
                code.loop(j, n, lambda c, row=row, part=part: code.store(entry(j, c, part), row, c))  # type: ignore[misc]

        def column(j: Index) -> None:
            for part in (0, 1):
                row = code.at(target, code.add(code.mul(j, width), part * m))
                code.loop(0, m, lambda c, row=row, part=part: code.store(entry(c, j, part), row, c))  # type: ignore[misc]
        code.loop(0, n, upper)
        code.lapack("ungqr", m, n, n, q, m, tau, scratch, length, code.info, pairs=True)
        code.require(code.succeeded())
        code.loop(0, n, column)
    code.rolled(0, batch, each)


# --- complex matrices, packed ------------------------------------------------------------------

def _complex_row(code: RoutineCode, target: Any, first: list[tuple[Any, int, int]],
                 vectors: list[tuple[Any, int, int]]) -> None:
    """Numbers, then of each vector, a pointer with length and stride, the real and the imaginary parts."""
    parts = [(code.at(source, part), count, 2 * stride) for source, count, stride in vectors for part in (0, 1)]
    _row(code, target, [*first, *parts])


@registered
def heigh(code: RoutineCode, out: Any, h: Any, batch: int, n: int, upper: int = 0) -> None:
    """Rows of eigenvalue and eigenvector of each Hermitian matrix."""
    if not n:
        return
    a, w, width = code.work(2 * n * n), code.work(n), 1 + 2 * n
    length, reals, integers = 2 * n + n * n + 32 * n, 1 + 5 * n + 2 * n * n, 3 + 5 * n
    scratch, numbers, places = code.work(2 * length), code.work(reals), code.work(integers, INT32)

    def each(i: Index) -> None:
        target = code.at(out, code.mul(i, n * width))
        code.transposed_pairs(a, code.at(h, code.mul(i, 2 * n * n)), n, n)
        code.lapack("heevd", "V", "U" if upper else "L", n, a, n, w, scratch, length, numbers, reals, places, integers,
                    code.info, pairs=True)
        code.require(code.succeeded())
        code.loop(0, n, lambda j: _complex_row(code, code.at(target, code.mul(j, width)), [(code.at(w, j), 1, 1)], [
            (code.at(a, code.mul(j, 2 * n)), n, 1)]))
    code.rolled(0, batch, each)


@registered
def csvd(code: RoutineCode, out: Any, a: Any, batch: int, m: int, n: int) -> None:
    """Rows of singular value, left and right vector of each complex matrix."""
    k, width = min(m, n), 1 + 2 * m + 2 * n
    if not k:
        return
    copy, s, u, vt = code.work(2 * m * n), code.work(k), code.work(2 * m * k), code.work(2 * k * n)
    length = 2 * k * k + 4 * k + 66 * (m + n) + 64
    scratch, integers = code.work(2 * length), code.work(8 * k, INT32)
    reals = code.work(max(5 * k * k + 5 * k, 2 * max(m, n) * k + 2 * k * k + k))

    def each(i: Index) -> None:
        target = code.at(out, code.mul(i, k * width))
        code.transposed_pairs(copy, code.at(a, code.mul(i, 2 * m * n)), m, n)
        code.lapack("gesdd", "S", m, n, copy, m, s, u, m, vt, k, scratch, length, reals, integers, code.info,
                    pairs=True)
        code.require(code.succeeded())
        code.loop(0, k, lambda j: _complex_row(code, code.at(target, code.mul(j, width)), [(code.at(s, j), 1, 1)], [
            (code.at(u, code.mul(j, 2 * m)), m, 1), (code.at(vt, code.mul(j, 2)), n, k)]))
    code.rolled(0, batch, each)


# --- general matrices --------------------------------------------------------------------------

@registered
def eig(code: RoutineCode, out: Any, a: Any, batch: int, n: int, packed: int = 0) -> None:
    """Rows of eigenvalue and eigenvector of each general matrix, which must be finite."""
    if not n:
        return
    size, width, length, element = (1 + packed) * n * n, 2 + 2 * n, 68 * n, code.kind
    code.compute_in_double()
    copy, w, v, wide, rows = (code.work(count) for count in (size, 2 * n, size, size, n * width))
    scratch, reals = code.work((1 + packed) * length), code.work(2 * n)

    def each(i: Index) -> None:
        target, given, source = code.at(out, code.mul(i, n * width)), code.at(a, code.mul(i, size)), wide
        code.loop(0, size, lambda j: code.store(code.wide(code.load(given, j)), source, j))
        nothing = code.folded(0, size, code.number(0.0), lambda j, total: code.builder.fadd(
            total, code.times(code.load(source, j), code.number(0.0))))
        code.require(code.builder.fcmp_ordered("==", nothing, code.number(0.0)))
        if packed:
            code.transposed_pairs(copy, source, n, n)
            code.lapack("geev", "N", "V", n, copy, n, w, code.null(), 1, v, n, scratch, length, reals, code.info,
                        pairs=True)
        else:
            code.transposed(copy, source, n, n)
            code.lapack("geev", "N", "V", n, copy, n, w, code.at(w, n), code.null(), 1, v, n, scratch, length,
                        code.info)
        code.require(code.succeeded())
        code.rolled(0, n, lambda j: _eigen_row(code, code.at(rows, code.mul(j, width)), w, v, n, j, packed))

        def result(j: Index) -> None:
            value = code.load(rows, j)
            code.store(value if element is code.kind else code.builder.fptrunc(value, element), target, j)
        code.loop(0, n * width, result)
    code.rolled(0, batch, each)


def _eigen_row(code: RoutineCode, target: Any, w: Any, v: Any, n: int, j: Index, packed: int) -> None:
    """One value and its vector. Of a real matrix, pairs of values share two columns: real and imaginary parts of the
    vector of the first, of which that of the second is the conjugate."""
    if packed:
        value = code.at(w, code.mul(j, 2))
        return _complex_row(code, target, [(value, 2, 1)], [(code.at(v, code.mul(j, 2 * n)), n, 1)])
    im = code.load(w, code.add(j, n))
    code.store(code.load(w, j), target, 0)
    code.store(im, target, 1)
    zero, one = code.number(0.0), code.number(1.0)
    second, real = code.builder.fcmp_ordered("<", im, zero), code.builder.fcmp_ordered("==", im, zero)
    first = code.builder.select(second, code.sub(j, 1), code.integer(j))
    column = code.mul(first, n)
    other = code.builder.select(real, column, code.add(column, n))
    sign = code.builder.select(real, zero, code.builder.select(second, code.number(-1.0), one))

    def element(c: Index) -> None:
        code.store(code.load(v, code.add(column, c)), target, code.add(c, 2))
        part = code.times(code.load(v, code.add(other, c)), sign)
        code.store(part, target, code.add(c, n + 2))
    return code.loop(0, n, element)
