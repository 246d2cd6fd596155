"""Systems of equations and inverses."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.linalg.forms import triangles
from jitad.primitives.linalg.matrices import (
    in_columns,
    leading,
    matmul,
    mT,
    regular,
    same_shape,
    system,
    system_infer,
)
from jitad.primitives.linalg.triangular import solve_triangular
from jitad.primitives.linear import Cotangents
from jitad.primitives.lowlevel import inv_factored, solve_factored
from jitad.tape.builder import Value
from jitad.tape.types import Primitive

# --- general systems ---------------------------------------------------------------------------

def _solve_vjp(ct: Value, y: Value, a: Value, b: Value) -> tuple[Value, Value]:
    b_bar = solve(mT(a), ct)
    return -matmul(b_bar, mT(y)), b_bar


def _solve_jvp(tangents: Cotangents, y: Value, a: Value, b: Value) -> Value | None:
    da, db = tangents
    right = db
    if da is not None:
        moved = matmul(da, y)
        right = -moved if right is None else right - moved
    return None if right is None else solve(a, right)


_solve_prim = Primitive(
    "solve", evaluate=lambda a, b: np.linalg.solve(a, b), infer=system_infer, vjp=_solve_vjp, jvp=_solve_jvp, cost=100,
    batch=in_columns, factored=lambda params, transposed: (solve_factored, {"trans": transposed}),
    samples=lambda rng: [((regular(rng), rng.normal(size=(3, 2))), {}),
                         ((regular(rng, 2), rng.normal(size=(2, 3, 1))), {})])


def solve(a: Any, b: Any) -> Any:
    """The x of ``a @ x = b``. `b` has shape ``(..., n, k)``; leading dimensions broadcast. Where `a` is known to be
    triangular, it is a triangular system."""
    lower, upper = triangles(a) if isinstance(a, Value) else (False, False)
    if lower or upper:
        return solve_triangular(a, b, lower=lower)
    return _solve_prim(*system(a, b))


def _inv(a: Any, strict: bool = True) -> Any:
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError:
        if strict:
            raise
        if a.ndim == 2:
            return np.full(a.shape, np.nan, a.dtype)
        return np.stack([_inv(m, strict) for m in a])


_inv_prim = Primitive(
    "inv", evaluate=_inv, infer=same_shape, cost=100, batch=leading,
    factored=lambda params, transposed: None if transposed else (inv_factored, {"strict": params.get("strict", True)}),
    vjp=lambda ct, y, a, strict=True: (-matmul(mT(y), matmul(ct, mT(y))),),
    jvp=lambda tangents, y, a, strict=True: None if tangents[0] is None else -matmul(y, matmul(tangents[0], y)),
    samples=lambda rng: [((regular(rng),), {}), ((regular(rng, 2),), {"strict": False})])


def inv(a: Any, *, strict: bool = True) -> Any:
    """The inverse; a singular matrix raises LinAlgError, or gives NaN if not `strict`."""
    return _inv_prim(a) if strict else _inv_prim(a, strict=False)
