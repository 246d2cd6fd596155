/* What kernels ask of BLAS and LAPACK, in Fortran's interface, for libraries that have none of their own. Matrices are
   given by a step from row to row and one from column to column, so that each routine is written for a lower triangle
   alone: an upper one is its transpose. Blocks of NB columns leave most of the work to `product`. */
#include <math.h>
#include <stdbool.h>

enum { NB = 48, TALL = 8, WIDE = 4, DEEP = 256 };

#define A(i, j) a[(i) * ar + (j) * ac]
#define B(i, j) b[(i) * br + (j) * bc]
#define C(i, j) c[(i) * cr + (j) * cc]

static long least(long x, long y) { return x < y ? x : y; }

/* c += alpha a b: tiles of TALL x WIDE sums, from parts of a and b that lie one after the other. */
static void product(long m, long n, long k, double alpha, const double *a, long ar, long ac, const double *b, long br,
                    long bc, double *c, long cr, long cc) {
    double left[DEEP * TALL], right[DEEP * WIDE];
    for (long p0 = 0; p0 < k; p0 += DEEP) {
        long deep = least(DEEP, k - p0);
        for (long i0 = 0; i0 < m; i0 += TALL) {
            long tall = least(TALL, m - i0);
            for (long p = 0; p < deep; p++)
                for (long i = 0; i < TALL; i++)
                    left[p * TALL + i] = i < tall ? alpha * A(i0 + i, p0 + p) : 0.0;
            for (long j0 = 0; j0 < n; j0 += WIDE) {
                long wide = least(WIDE, n - j0);
                double sums[WIDE][TALL] = {{0.0}};
                for (long p = 0; p < deep; p++)
                    for (long j = 0; j < WIDE; j++)
                        right[p * WIDE + j] = j < wide ? B(p0 + p, j0 + j) : 0.0;
                for (long p = 0; p < deep; p++)
                    for (long j = 0; j < WIDE; j++)
                        for (long i = 0; i < TALL; i++)
                            sums[j][i] += left[p * TALL + i] * right[p * WIDE + j];
                for (long j = 0; j < wide; j++)
                    for (long i = 0; i < tall; i++)
                        C(i0 + i, j0 + j) += sums[j][i];
            }
        }
    }
}

/* A triangle as it is used: lower, or the other way round from its last row to its first. */
typedef struct { const double *at; long row, column; bool unit; } triangle;

static triangle lower(char uplo, char trans, char diag, long n, const double *a, long lda) {
    bool turned = trans != 'N', below = (uplo == 'L') != turned;
    long row = turned ? lda : 1, column = turned ? 1 : lda;
    if (below)
        return (triangle){a, row, column, diag == 'U'};
    return (triangle){a + (n - 1) * (row + column), -row, -column, diag == 'U'};
}

static bool is_lower(char uplo, char trans) { return (uplo == 'L') == (trans == 'N'); }

/* Replaces b, of n rows and m columns, by the solution with a lower triangle. */
static void solved(long n, long m, triangle t, double *b, long br, long bc) {
    const double *a = t.at;
    long ar = t.row, ac = t.column;
    for (long k0 = 0; k0 < n; k0 += NB) {
        long end = least(k0 + NB, n);
        for (long j = 0; j < m; j++)
            for (long i = k0; i < end; i++) {
                double total = B(i, j);
                for (long p = k0; p < i; p++)
                    total -= A(i, p) * B(p, j);
                B(i, j) = t.unit ? total : total / A(i, i);
            }
        product(n - end, m, end - k0, -1.0, &A(end, k0), ar, ac, &B(k0, 0), br, bc, &B(end, 0), br, bc);
    }
}

/* Replaces b, of n rows and m columns, by the product of a lower triangle with it. */
static void multiplied(long n, long m, triangle t, double *b, long br, long bc) {
    const double *a = t.at;
    long ar = t.row, ac = t.column;
    for (long end = n; end > 0; end -= end % NB ? end % NB : NB) {
        long k0 = end - (end % NB ? end % NB : NB);
        for (long j = 0; j < m; j++)
            for (long i = end - 1; i >= k0; i--) {
                double total = t.unit ? B(i, j) : A(i, i) * B(i, j);
                for (long p = k0; p < i; p++)
                    total += A(i, p) * B(p, j);
                B(i, j) = total;
            }
        product(end - k0, m, k0, 1.0, &A(k0, 0), ar, ac, b, br, bc, &B(k0, 0), br, bc);
    }
}

static void scaled(long m, long n, double alpha, double *c, long ldc) {
    for (long j = 0; j < n; j++)
        for (long i = 0; i < m; i++)
            c[j * ldc + i] = alpha == 0.0 ? 0.0 : alpha * c[j * ldc + i];
}

void jitad_dgemm(const char *ta, const char *tb, const int *m, const int *n, const int *k, const double *alpha,
                 const double *a, const int *lda, const double *b, const int *ldb, const double *beta, double *c,
                 const int *ldc) {
    bool turned = *ta != 'N', other = *tb != 'N';
    if (*beta != 1.0)
        scaled(*m, *n, *beta, c, *ldc);
    product(*m, *n, *k, *alpha, a, turned ? *lda : 1, turned ? 1 : *lda, b, other ? *ldb : 1, other ? 1 : *ldb, c, 1,
            *ldc);
}

/* Both: op(a) from the left, or, as (op(a)^T b^T)^T, from the right. */
static void sided(bool solve, char side, char uplo, char trans, char diag, long m, long n, double alpha,
                  const double *a, long lda, double *b, long ldb) {
    bool left = side == 'L';
    char turned = left ? trans : trans == 'N' ? 'T' : 'N';
    long size = left ? m : n, count = left ? n : m, row = left ? 1 : ldb, column = left ? ldb : 1;
    if (alpha != 1.0)
        scaled(m, n, alpha, b, ldb);
    if (size == 0 || count == 0)
        return;
    triangle t = lower(uplo, turned, diag, size, a, lda);
    bool down = is_lower(uplo, turned);
    (solve ? solved : multiplied)(size, count, t, down ? b : b + (size - 1) * row, down ? row : -row, column);
}

void jitad_dtrsm(const char *side, const char *uplo, const char *trans, const char *diag, const int *m, const int *n,
                 const double *alpha, const double *a, const int *lda, double *b, const int *ldb) {
    sided(true, *side, *uplo, *trans, *diag, *m, *n, *alpha, a, *lda, b, *ldb);
}

void jitad_dtrmm(const char *side, const char *uplo, const char *trans, const char *diag, const int *m, const int *n,
                 const double *alpha, const double *a, const int *lda, double *b, const int *ldb) {
    sided(false, *side, *uplo, *trans, *diag, *m, *n, *alpha, a, *lda, b, *ldb);
}

void jitad_dtrsv(const char *uplo, const char *trans, const char *diag, const int *n, const double *a, const int *lda,
                 double *x, const int *step) {
    bool down = is_lower(*uplo, *trans);
    if (*n > 0)
        solved(*n, 1, lower(*uplo, *trans, *diag, *n, a, *lda), down ? x : x + (*n - 1) * (long)*step,
               down ? *step : -*step, 1);
}

void jitad_dpotrf(const char *uplo, const int *size, double *a, const int *lda, int *info) {
    long n = *size, ar = *uplo == 'L' ? 1 : *lda, ac = *uplo == 'L' ? *lda : 1;
    *info = 0;
    for (long k0 = 0; k0 < n; k0 += NB) {
        long end = least(k0 + NB, n);
        for (long j = k0; j < end; j++)
            for (long i = j; i < end; i++) {
                double total = A(i, j);
                for (long p = 0; p < j; p++)
                    total -= A(i, p) * A(j, p);
                if (i > j) {
                    A(i, j) = total / A(j, j);
                    continue;
                }
                if (!(total > 0.0)) {
                    *info = (int)(j + 1);
                    return;
                }
                A(j, j) = sqrt(total);
            }
        product(n - end, end - k0, k0, -1.0, &A(end, 0), ar, ac, &A(k0, 0), ac, ar, &A(end, k0), ar, ac);
        triangle t = {&A(k0, k0), ar, ac, false};
        solved(end - k0, n - end, t, &A(end, k0), ac, ar);
    }
}

void jitad_dtrtri(const char *uplo, const char *diag, const int *size, double *a, const int *lda, int *info) {
    long n = *size, ar = *uplo == 'L' ? 1 : *lda, ac = *uplo == 'L' ? *lda : 1;
    bool unit = *diag == 'U';
    *info = 0;
    for (long i = 0; i < n && !unit; i++)
        if (A(i, i) == 0.0) {
            *info = (int)(i + 1);
            return;
        }
    for (long j = 0; j < n; j++) {
        double first = unit ? 1.0 : 1.0 / A(j, j);
        for (long i = j + 1; i < n; i++) {
            double total = A(i, j) * first;
            for (long p = j + 1; p < i; p++)
                total += A(i, p) * A(p, j);
            A(i, j) = unit ? -total : -total / A(i, i);
        }
        if (!unit)
            A(j, j) = first;
    }
}

void jitad_dlauum(const char *uplo, const int *size, double *a, const int *lda, int *info) {
    long n = *size, ar = *uplo == 'L' ? 1 : *lda, ac = *uplo == 'L' ? *lda : 1;
    *info = 0;
    for (long i = 0; i < n; i++)
        for (long j = 0; j <= i; j++) {
            double total = 0.0;
            for (long p = i; p < n; p++)
                total += A(p, i) * A(p, j);
            A(i, j) = total;
        }
}

void jitad_dgetrf(const int *rows, const int *columns, double *a, const int *lda, int *pivots, int *info) {
    long m = *rows, n = *columns, ar = 1, ac = *lda, both = least(m, n);
    *info = 0;
    for (long k0 = 0; k0 < both; k0 += NB) {
        long end = least(k0 + NB, both);
        for (long k = k0; k < end; k++) {
            long best = k;
            for (long i = k + 1; i < m; i++)
                if (fabs(A(i, k)) > fabs(A(best, k)))
                    best = i;
            pivots[k] = (int)(best + 1);
            for (long j = 0; j < n && best != k; j++) {
                double held = A(k, j);
                A(k, j) = A(best, j);
                A(best, j) = held;
            }
            if (A(k, k) == 0.0) {
                *info = *info ? *info : (int)(k + 1);
                continue;
            }
            for (long i = k + 1; i < m; i++)
                A(i, k) /= A(k, k);
            for (long j = k + 1; j < end; j++)
                for (long i = k + 1; i < m; i++)
                    A(i, j) -= A(i, k) * A(k, j);
        }
        triangle t = {&A(k0, k0), ar, ac, true};
        solved(end - k0, n - end, t, &A(k0, end), ar, ac);
        product(m - end, n - end, end - k0, -1.0, &A(end, k0), ar, ac, &A(k0, end), ar, ac, &A(end, end), ar, ac);
    }
}
