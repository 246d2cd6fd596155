"""Triangular systems."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.linalg.forms import scaled, single
from jitad.primitives.linalg.matrices import (
    Samples,
    in_columns,
    matmul,
    mT,
    over_batch,
    regular,
    system,
    system_infer,
    triangle,
)
from jitad.primitives.linear import Cotangents
from jitad.tape.builder import Value
from jitad.tape.types import Primitive


def _solve_triangular(a: Any, b: Any, lower: bool, trans: bool, unit: bool) -> Any:
    from scipy.linalg import solve_triangular

    if b.size == 0:
        return np.zeros(b.shape, b.dtype)
    try:
        return over_batch(lambda m, r: solve_triangular(
            m, r, trans=int(trans), lower=lower, unit_diagonal=unit, check_finite=False), a, b)
    except np.linalg.LinAlgError as error:                    # NumPy's words too: its `solve` comes here as well
        raise np.linalg.LinAlgError(f"Singular matrix ({error})") from None


def _triangular_vjp(ct: Value, y: Value, a: Value, b: Value, lower: bool, trans: bool,
                    unit: bool) -> tuple[Value, Value]:
    """``b_bar = op(a)^-T ct`` and ``op(a)_bar = -b_bar y^T``, in the triangle that is read."""
    factor, right = single(ct, 2)
    b_bar = scaled(solve_triangular(a, right, lower=lower, trans=not trans, unit=unit), factor)
    outer = matmul(y, mT(b_bar)) if trans else matmul(b_bar, mT(y))
    return -triangle(outer, lower, strict=unit), b_bar


def _triangular_jvp(tangents: Cotangents, y: Value, a: Value, b: Value, lower: bool, trans: bool,
                    unit: bool) -> Value | None:
    """``dy = op(a)^-1 (db - op(da) y)``."""
    da, db = tangents
    right = db
    if da is not None:
        da = triangle(da, lower, strict=unit)
        moved = matmul(mT(da) if trans else da, y)
        right = -moved if right is None else right - moved
    return None if right is None else solve_triangular(a, right, lower=lower, trans=trans, unit=unit)


def _triangular_samples(rng: np.random.Generator) -> Samples:
    return [((regular(rng), rng.normal(size=(3, 2))), {"lower": True, "trans": False, "unit": False}),
            ((regular(rng), rng.normal(size=(3, 1))), {"lower": True, "trans": True, "unit": False}),
            ((regular(rng), rng.normal(size=(3, 2))), {"lower": False, "trans": False, "unit": True}),
            ((regular(rng, 2), rng.normal(size=(2, 3, 2))), {"lower": False, "trans": True, "unit": False})]


_solve_triangular_prim = Primitive(
    "solve_triangular", evaluate=_solve_triangular, infer=system_infer, vjp=_triangular_vjp, jvp=_triangular_jvp,
    samples=_triangular_samples, cost=100, batch=in_columns)


def solve_triangular(a: Any, b: Any, *, lower: bool = True, trans: bool = False, unit: bool = False) -> Any:
    """The x of ``op(a) @ x = b`` where op(a) is the lower or upper triangle of `a`, transposed if `trans`,
    with ones for the diagonal if `unit`. `b` has shape ``(..., n, k)``; leading dimensions broadcast.
    A zero on the diagonal raises LinAlgError."""
    a, b = system(a, b)
    if isinstance(a, Value):
        a, lower, trans = _plainest(a, lower, trans)
    return _solve_triangular_prim(a, b, lower=bool(lower), trans=bool(trans), unit=bool(unit))


def _plainest(a: Value, lower: bool, trans: bool) -> tuple[Value, bool, bool]:
    """The same system without transposes, and without triangles that only take away what is not read."""
    while True:
        node = a.node
        if node.prim.name == ("tril" if lower else "triu") and node.params["k"] == 0:
            a = a.builder.value(node.inputs[0])
        elif node.prim.kind == "view" and mT(a).node.prim.kind != "view":
            a, lower, trans = mT(a), not lower, not trans
        else:
            return a, lower, trans
