"""Sums of products: einsum, and dot, matmul and their family as special cases of it."""
from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.primitives.reduce import contract, reduce_sum
from jitad.primitives.view import transpose, view
from jitad.trace.arrays.indexing import boxed
from jitad.trace.dispatch import SOMETIMES, call, implements, lift_all, stand_in
from jitad.trace.numpy_rules.shapes.shape import ravel
from jitad.trace.ufuncs import composed

LETTERS = string.ascii_letters


@implements(np.einsum)
def einsum(*operands: Any, out: Any = None, optimize: Any = False, dtype: Any = None, order: str = "K",
           casting: Any = "safe") -> Any:
    terms, result, arrays = _parse(operands)
    if dtype is None:
        dtype = np.result_type(*(a.dtype for a in arrays))
    view_of_one = len(arrays) == 1 and set(result) == set(terms[0])         # NumPy looks at no dtype then
    for array in arrays:
        if not view_of_one and not np.can_cast(array.dtype, dtype, casting):
            raise TypeError(f"Iterator operand could not be cast from {array.dtype!r} to {np.dtype(dtype)!r} according "
                            f"to the rule {casting!r}")
    arrays = arrays if view_of_one else [cast(a, dtype) for a in arrays]
    _check(terms, result, arrays)
    size: dict[str, int] = {}
    for term, array in zip(terms, arrays, strict=True):
        for letter, n in zip(term, array.shape, strict=True):
            size[letter] = n if size.get(letter, 1) == 1 else size[letter]
    pairs = [_distinct(a, t, size) for a, t in zip(arrays, terms, strict=True)]
    total = _contract_all(pairs, result, size, optimize)
    if view_of_one and hasattr(total, "detached"):
        total = total.detached()                                    # a view, which NumPy lets be written
        if total.ndim:
            arrays[0].home.may_share_with(total.home)
    return total


SOMETIMES[np.einsum] = lambda *operands, **options: len(operands) == 2 or not isinstance(operands[0], str)


def _parse(operands: tuple[Any, ...]) -> tuple[list[str], str, list[Any]]:
    """The letters of each operand and of the result, without ellipses, and the operands."""
    if isinstance(operands[0], str):
        spec, arrays = operands[0].replace(" ", ""), lift_all(*operands[1:])
    else:
        pairs, rest = operands[:len(operands) // 2 * 2], operands[len(operands) // 2 * 2:]
        arrays = lift_all(*pairs[::2])
        labels = sorted({s for sub in (*pairs[1::2], *rest) for s in sub if s is not Ellipsis})
        name = dict(zip(labels, LETTERS, strict=False))
        text = lambda sub: "".join("..." if s is Ellipsis else name[s] for s in sub)
        spec = ",".join(map(text, pairs[1::2])) + ("->" + text(rest[0]) if rest else "")
    left, arrow, result = spec.partition("->")
    terms = left.split(",")
    if len(terms) != len(arrays):
        raise ValueError("more operands provided to einstein sum function than specified in the subscripts string"
                         if len(arrays) > len(terms) else
                         "fewer operands provided to einstein sum function than specified in the subscripts string")
    spare = [c for c in LETTERS if c not in spec]
    extra = [a.ndim - len(t.replace("...", "")) if "..." in t else 0 for t, a in zip(terms, arrays, strict=True)]
    dots = "".join(spare[:max((*extra, 0))])
    terms = [t.replace("...", dots[len(dots) - n:] if n > 0 else "") for t, n in zip(terms, extra, strict=True)]
    if arrow:
        return terms, result.replace("...", dots), arrays
    letters = left.replace("...", "").replace(",", "")
    return terms, dots + "".join(sorted(c for c in set(letters) if letters.count(c) == 1)), arrays


def _check(terms: list[str], result: str, arrays: list[Any]) -> None:
    """NumPy's own error, on operands of the same shapes, when the subscripts do not fit."""
    size: dict[str, int] = {}
    fits = len(set(result)) == len(result) and set(result) <= set("".join(terms)) and result.isalpha() | (not result)
    for term, array in zip(terms, arrays, strict=True):
        fits = fits and len(term) == array.ndim and (term.isalpha() or not term)
        for letter, n in zip(term, array.shape, strict=False):
            fits = fits and (n == size.get(letter, n) or 1 in (n, size[letter]))
            size[letter] = max(n, size.get(letter, 1))
    if not fits:
        np.einsum(",".join(terms) + "->" + result, *(stand_in(a.shape) for a in arrays))
        raise ValueError(f"einsum subscripts {','.join(terms)}->{result} do not fit the operands")


def _distinct(x: Any, term: str, size: dict[str, int]) -> tuple[Any, str]:
    """`x` with each letter once (a repeated one takes the diagonal) and without letters along which
    it has length one but others are longer."""
    letters = "".join(dict.fromkeys(c for c, n in zip(term, x.shape, strict=True) if n == size[c]))
    if letters == term:
        return x, term
    dimension = {c: d for d, c in enumerate(letters)}
    index = tuple((0, ((dimension[c], 1),) if n == size[c] else ()) for c, n in zip(term, x.shape, strict=True))
    return view(x, tuple(size[c] for c in letters), index), letters


def _contract_all(pairs: list[tuple[Any, str]], result: str, size: dict[str, int], optimize: Any) -> Any:
    for joined in _path(pairs, result, size, optimize):
        taken = [pairs.pop(i) for i in sorted(joined, reverse=True)][::-1]
        total = taken[0]
        for i, other in enumerate(taken[1:], 2):
            later = set(result).union(*(letters for _, letters in (*pairs, *taken[i:])))
            last = not pairs and i == len(taken)
            total = _contract_pair(total, other, result if last else None, later)
        pairs.append(total)
    x, letters = pairs[0]
    x = reduce_sum(x, tuple(d for d, c in enumerate(letters) if c not in result))
    letters = "".join(c for c in letters if c in result)
    order = tuple(letters.index(c) for c in result)
    return x if order == tuple(range(x.ndim)) else transpose(x, order)


def _contract_pair(first: tuple[Any, str], second: tuple[Any, str], out: str | None,
                   later: set[str]) -> tuple[Any, str]:
    (a, left), (b, right) = first, second
    if out is None:
        out = "".join(c for c in dict.fromkeys(left + right) if c in later)
    return contract(a, b, f"{left},{right}->{out}"), out


FEW = 6           # operands of which all orders are tried


def _path(pairs: list[tuple[Any, str]], result: str, size: dict[str, int], optimize: Any) -> list[tuple[int, ...]]:
    """Which operands to contract, step by step: the user's path, or NumPy's with the fewest operations."""
    if len(pairs) < 3:
        return [tuple(range(len(pairs)))]
    if isinstance(optimize, (list, tuple)) and optimize and optimize[0] == "einsum_path":
        return [tuple(step) for step in optimize[1:]]
    spec = ",".join(letters for _, letters in pairs) + "->" + result
    dummies = [stand_in(tuple(size[c] for c in letters), np.float64) for _, letters in pairs]
    way = ("optimal" if len(pairs) <= FEW else "greedy", 2 ** 62)
    return [tuple(step) for step in np.einsum_path(spec, *dummies, optimize=way)[0][1:]]


# --- the family --------------------------------------------------------------------------------

def _same_dtype(*operands: Any) -> list[Any]:
    values = lift_all(*operands)
    dtype = np.result_type(*(v.dtype for v in values))
    return [cast(v, dtype) for v in values]


def _sum_product(a: Any, left: str, b: Any, right: str, out: str) -> Any:
    """`contract` of operands that may have length one where the other is longer (batch dimensions)."""
    size = {c: n for c, n in (*zip(left, a.shape, strict=True), *zip(right, b.shape, strict=True)) if n == 1}
    for letters, x in ((left, a), (right, b)):
        size.update((c, n) for c, n in zip(letters, x.shape, strict=True) if n != 1)
    (a, left), (b, right) = _distinct(a, left, size), _distinct(b, right, size)
    return contract(a, b, f"{left},{right}->{out}")


@composed(np.matmul)
def matmul(a: Any, b: Any) -> Any:
    """``a @ b``, with NumPy's rule for one and for more than two dimensions."""
    a, b = _same_dtype(a, b)
    batch = LETTERS[:max(a.ndim, b.ndim, 2) - 2]
    left = batch[len(batch) - max(a.ndim - 2, 0):] + ("XK" if a.ndim > 1 else "K")
    right = batch[len(batch) - max(b.ndim - 2, 0):] + ("KY" if b.ndim > 1 else "K")
    if not a.ndim or not b.ndim or a.shape[-1] != b.shape[max(b.ndim - 2, 0)] or not _broadcastable(
            a.shape[:-2], b.shape[:-2]):
        np.matmul(stand_in(a.shape), stand_in(b.shape))            # raises NumPy's own message
    out = batch + ("X" if a.ndim > 1 else "") + ("Y" if b.ndim > 1 else "")
    return _sum_product(a, left, b, right, out)


def _broadcastable(a: Sequence[int], b: Sequence[int]) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(a), reversed(b), strict=False))


@implements(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    a, b = _same_dtype(a, b)
    if not a.ndim or not b.ndim:
        return a * b
    last = max(b.ndim - 2, 0)
    if a.shape[-1] != b.shape[last]:
        np.dot(np.empty(a.shape, np.int8), np.empty(b.shape, np.int8))      # raises NumPy's own message
    left, right = LETTERS[:a.ndim], LETTERS[a.ndim:a.ndim + b.ndim]
    right = right[:last] + left[-1] + right[last + 1:]
    return contract(a, b, f"{left},{right}->{left[:-1]}{right.replace(left[-1], '')}")


@implements(np.inner)
def inner(a: Any, b: Any, /) -> Any:
    a, b = _same_dtype(a, b)
    if not a.ndim or not b.ndim:
        return a * b
    if a.shape[-1] != b.shape[-1]:
        np.inner(np.empty(a.shape, np.int8), np.empty(b.shape, np.int8))    # raises NumPy's own message
    left, right = LETTERS[:a.ndim], LETTERS[a.ndim:a.ndim + b.ndim]
    return contract(a, b, f"{left},{right[:-1]}{left[-1]}->{left[:-1]}{right[:-1]}")


@implements(np.vdot)
def vdot(a: Any, b: Any, /) -> Any:
    a, b = lift_all(a, b)
    return dot(ravel(a), ravel(b))


@implements(np.outer, np.linalg.outer)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    a, b = lift_all(a, b)
    return ravel(a).reshape((-1, 1)) * ravel(b)


@implements(np.tensordot, np.linalg.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    a, b = _same_dtype(a, b)
    if np.ndim(axes) == 0:
        count = int(axes)
        axes_a, axes_b = list(range(a.ndim - count, a.ndim)), list(range(count))
    else:
        axes_a, axes_b = ([int(s) for s in np.atleast_1d(side)] for side in axes)
    if len(axes_a) != len(axes_b) or any(a.shape[i] != b.shape[j] for i, j in zip(axes_a, axes_b, strict=True)):
        raise ValueError("shape-mismatch for sum")
    left, right = list(LETTERS[:a.ndim]), list(LETTERS[a.ndim:a.ndim + b.ndim])
    for i, j in zip(axes_a, axes_b, strict=True):
        right[j] = left[i]
    out = "".join(c for c in left if c not in right) + "".join(c for c in right if c not in left)
    return boxed(contract(a, b, f"{''.join(left)},{''.join(right)}->{out}"))


@implements(np.kron)
def kron(a: Any, b: Any) -> Any:
    a, b = lift_all(a, b)
    ndim = max(a.ndim, b.ndim)
    rows, columns = (1,) * (ndim - a.ndim) + a.shape, (1,) * (ndim - b.ndim) + b.shape
    product = a.reshape([n for m in rows for n in (m, 1)]) * b.reshape([n for m in columns for n in (1, m)])
    return product.reshape([m * n for m, n in zip(rows, columns, strict=True)])


@implements(np.linalg.matmul)
def linalg_matmul(x1: Any, x2: Any, /) -> Any:
    return matmul(x1, x2)


@implements(np.linalg.vecdot)
def linalg_vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    x1, x2 = lift_all(x1, x2)
    x1, x2 = (call(np.moveaxis, x, axis, -1) for x in (x1, x2))
    return einsum("...n,...n->...", x1, x2)


@implements(np.linalg.multi_dot)
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    arrays = lift_all(*arrays)
    if len(arrays) < 2:
        raise ValueError("Expecting at least two arrays.")
    terms = [LETTERS[i:i + 2] for i in range(len(arrays))]
    if arrays[0].ndim == 1:
        terms[0] = terms[0][1]
    if arrays[-1].ndim == 1:
        terms[-1] = terms[-1][0]
    ends = (terms[0][0] if arrays[0].ndim > 1 else "") + (terms[-1][-1] if arrays[-1].ndim > 1 else "")
    return einsum(",".join(terms) + "->" + ends, *arrays)
