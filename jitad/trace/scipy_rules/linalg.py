"""Functions of scipy.linalg."""
from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from jitad.primitives import linalg as rows
from jitad.trace.attempts import require_finite
from jitad.trace.dispatch import builder_in, lift_all, refused
from jitad.trace.numpy_rules import functions as numpy_functions  # noqa: F401  (fills the table)
from jitad.trace.numpy_rules.algebra.linalg import check_square, det, inv, with_columns
from jitad.trace.substitutes import substitute

CHECKS_RIGHT = np.lib.NumpyVersion(scipy.__version__) >= "1.17.0"       # whether `solve` does for NaN on the right


@substitute("scipy.linalg", "solve_triangular")
def solve_triangular(a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False,
                     overwrite_b: bool = False, check_finite: bool = True) -> Any:
    a, b = lift_all(a, b)
    require_finite(check_finite, a, b)
    trans = {"N": 0, "T": 1, "C": 1, 2: 1}.get(trans, trans)
    vector = b.ndim == 1
    return with_columns(lambda p, q: rows.solve_triangular(p, q, lower=bool(lower), trans=bool(trans),
                                                             unit=bool(unit_diagonal)), check_square(a), b, vector)


@substitute("scipy.linalg", "cholesky")
def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    a = check_square(lift_all(a)[0])
    require_finite(check_finite, a)
    return rows.cholesky(a) if lower else rows.mT(rows.cholesky(a, upper=True))


@substitute("scipy.linalg", "cho_factor")
def cho_factor(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The other triangle of the factor, which SciPy leaves undefined, is zero."""
    return cholesky(a, lower, check_finite=check_finite), bool(lower)


@substitute("scipy.linalg", "cho_solve")
def cho_solve(c_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    c, lower = c_and_lower
    require_finite(check_finite, *lift_all(c, b))
    first = solve_triangular(c, b, trans=0 if lower else 1, lower=lower, check_finite=False)
    return solve_triangular(c, first, trans=1 if lower else 0, lower=lower, check_finite=False)


@substitute("scipy.linalg", "solve")
def solve(a: Any, b: Any, lower: bool = False, overwrite_a: bool = False, overwrite_b: bool = False,
          check_finite: bool = True, assume_a: Any = None, transposed: bool = False) -> Any:
    a, b = lift_all(a, b)
    a = check_square(a)
    require_finite(check_finite, a, *((b,) if CHECKS_RIGHT else ()))
    kind = {None: "general", "gen": "general", "symmetric": "sym", "hermitian": "sym", "her": "sym",
            "positive definite": "pos"}.get(assume_a, assume_a)
    if kind in ("sym", "pos"):                                      # only one triangle is read
        half = np.tril(a) if lower else np.triu(a)
        a = half + np.swapaxes(np.tril(a, -1) if lower else np.triu(a, 1), -1, -2)
    elif kind != "general":
        raise refused(a, f"scipy.linalg.solve with assume_a={assume_a!r}", "leave assume_a out")
    if kind == "pos":                                               # LinAlgError where it is not
        return cho_solve((rows.cholesky(a), True), b, check_finite=False)
    a = np.swapaxes(a, -1, -2) if transposed else a
    return with_columns(rows.solve, a, b, b.ndim == 1)


@substitute("scipy.linalg", "inv")
def inv_(a: Any, overwrite_a: bool = False, check_finite: bool = True, **options: Any) -> Any:
    no_options(a, "scipy.linalg.inv", options)
    require_finite(check_finite, *lift_all(a))
    return inv(a)


@substitute("scipy.linalg", "det")
def det_(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    require_finite(check_finite, *lift_all(a))
    return det(a)


def no_options(a: Any, name: str, options: dict[str, Any]) -> None:
    if any(v not in (None, False) for v in options.values()):
        raise refused(builder_in(a), f"{name} with {', '.join(options)}=", "leave the option out")
