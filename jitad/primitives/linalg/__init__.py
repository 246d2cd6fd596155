"""Linear algebra over the last two dimensions; leading dimensions are a batch.

Every derivative is written with primitives, so that it can be differentiated again. The
formulas are those of M. B. Giles, "Collected matrix derivative results for forward and
reverse mode algorithmic differentiation" (2008). Matrices that NumPy refuses raise
`numpy.linalg.LinAlgError` here too.
"""
from jitad.primitives.linalg.banded import solve_banded, solveh_banded
from jitad.primitives.linalg.cholesky import cholesky, cholesky_cotangent, cholesky_inverse
from jitad.primitives.linalg.complex_factors import clu, cqr, cqr_parts, solve_triangle
from jitad.primitives.linalg.complexes import Pair, csvd, csvd_parts, eig, eig_parts, heigh, vectors
from jitad.primitives.linalg.determinants import cofactor, cofactor_tangent, det, slogdet, slogdet_log, slogdet_sign
from jitad.primitives.linalg.functions import expm, orthogonal_factor, sqrtm, sylvester
from jitad.primitives.linalg.matrices import matmul, mT
from jitad.primitives.linalg.qr import lu, lu_order, lu_pivots, order_of_pivots, permuted, pinv, qr, qr_parts
from jitad.primitives.linalg.spectral import column, columns, eigh, svd, svd_parts
from jitad.primitives.linalg.systems import inv, solve
from jitad.primitives.linalg.triangular import solve_triangular

__all__ = [
    "Pair", "cholesky", "cholesky_cotangent", "cholesky_inverse", "clu", "cofactor", "cofactor_tangent", "column",
    "columns", "cqr", "cqr_parts", "csvd", "csvd_parts", "det", "eig", "eig_parts", "eigh", "expm", "heigh", "inv",
    "lu", "lu_order", "lu_pivots", "matmul", "mT", "order_of_pivots", "orthogonal_factor", "permuted", "pinv", "qr",
    "qr_parts", "slogdet", "slogdet_log", "slogdet_sign", "solve", "solve_banded", "solve_triangle",
    "solve_triangular", "solveh_banded", "sqrtm", "svd", "svd_parts", "sylvester", "vectors"]
