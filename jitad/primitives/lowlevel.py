"""Rows that no recording has: the compiler puts them in the place of others. They are evaluated in kernels only."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitad.primitives.linalg.matrices import rectangle
from jitad.primitives.reduce import parse
from jitad.tape.types import Aval, Primitive


def _gemm_sides(shapes: Sequence[tuple[int, ...]], params: Any) -> tuple[int, ...]:
    """The sides of a product of matrices, and which of them are transposed."""
    left, right, out = parse(params["spec"])
    sizes = dict(zip(left + right, shapes[0] + shapes[1], strict=True))
    inner = next(c for c in left if c in right and c not in out)
    flip = out[0] in right
    a, b = (right, left) if flip else (left, right)
    return sizes[out[0]], sizes[out[1]], sizes[inner], int(a.index(inner) == 0), int(b.index(inner) == 1), int(flip)


gemm = Primitive("gemm", evaluate=lambda a, b, spec: np.einsum(spec, a, b, optimize=True),
                 infer=lambda a, b, spec: Aval(tuple(dict(zip(
                     "".join(parse(spec)[:2]), a.shape + b.shape, strict=True))[c] for c in parse(spec)[2]), a.dtype),
                 sides=_gemm_sides)
"""A matrix product that BLAS does."""


def _in_kernels(name: str, infer: Callable[..., Aval], **traits: Any) -> Primitive:
    def evaluate(*operands: Any, **params: Any) -> Any:
        raise NotImplementedError(f"{name} is there in kernels only")
    return Primitive(name, evaluate, infer, cost=100, trusts="made by the compiler", **traits)


factor = _in_kernels("factor", lambda a: Aval((*a.shape[:-2], a.shape[-1] + 2, a.shape[-1]), a.dtype))
"""The factors of a matrix, with two more rows for the pivots and for what they are."""
solve_factored = _in_kernels("solve_factored", lambda f, b, trans: b)
inv_factored = _in_kernels("inv_factored", lambda f, strict: Aval((*f.shape[:-2], *f.shape[-1:] * 2), f.dtype))
det_factored, slogdet_sign_factored, slogdet_log_factored = (
    _in_kernels(f"{name}_factored", lambda f: Aval(f.shape[:-2], f.dtype))
    for name in ("det", "slogdet_sign", "slogdet_log"))

def eigen_numbers(shapes: Sequence[tuple[int, ...]], params: Any) -> tuple[float, ...]:
    """The numbers of the routine, to which pairs of values are nothing: the batch, the side, which triangle."""
    batch, side, _ = rectangle(shapes, {})
    return batch, side, int(params.get("upper", False))


def singular_numbers(shapes: Sequence[tuple[int, ...]], params: Any) -> tuple[float, ...]:
    """The same: the batch and the sides."""
    return rectangle(shapes, {})


eigvalsh = _in_kernels("eigvalsh", lambda a, **params: Aval(a.shape[:-1], a.dtype), sides=eigen_numbers)
svdvals = _in_kernels("svdvals", lambda a, **params: Aval((*a.shape[:-2], min(a.shape[-2:])), a.dtype),
                      sides=singular_numbers)
"""Decompositions of which only the values are read."""
