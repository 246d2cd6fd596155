"""Rows that no recording has: the compiler puts them in the place of others. They are evaluated in kernels only."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jitad.primitives.linalg.matrices import rectangle
from jitad.primitives.reduce import parse
from jitad.tape.types import Aval, Primitive


def _gemm_sides(shapes: Sequence[tuple[int, ...]], params: Any) -> tuple[int, ...]:
    """The sides of a product of matrices, and which of them are transposed in memory."""
    left, right, out = parse(params["spec"])
    sizes = dict(zip(left + right, shapes[0] + shapes[1], strict=True))
    inner = next(c for c in left if c in right and c not in out)
    turned = [(side.index(inner) == place) != by_columns
              for side, place, by_columns in zip((left, right), (0, 1), params["by_columns"], strict=True)]
    flip = out[0] in right
    if flip:                                             # the sum is over the other side of each
        turned = [not t for t in reversed(turned)]
    return sizes[out[0]], sizes[out[1]], sizes[inner], *map(int, turned), int(flip)


def _in_kernels(name: str, infer: Callable[..., Aval], **traits: Any) -> Primitive:
    def evaluate(*operands: Any, **params: Any) -> Any:
        raise NotImplementedError(f"{name} is there in kernels only")
    return Primitive(name, evaluate, infer, cost=100, trusts="made by the compiler", **traits)


gemm = _in_kernels("gemm", lambda a, b, spec, by_columns: Aval(tuple(dict(zip(
    "".join(parse(spec)[:2]), a.shape + b.shape, strict=True))[c] for c in parse(spec)[2]), a.dtype), sides=_gemm_sides)
"""A product of two matrices, each of which lies by rows or `by_columns`."""
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
