"""Reductions over axes, cumulative sums, and `contract`, the sum of products of two arrays."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.core import cast, select
from jitad.primitives.linear import linear
from jitad.primitives.view import Map, broadcast_to, diagonal, expand_dims, spread, squeeze, view
from jitad.tape.builder import Value
from jitad.tape.types import TABLE, Aval, Primitive

Axes = tuple[int, ...]


def kept(shape: tuple[int, ...], axes: Axes) -> tuple[int, ...]:
    return tuple(n for d, n in enumerate(shape) if d not in axes)


def restore(x: Value, shape: tuple[int, ...], axes: Axes) -> Value:
    """Broadcast a reduction's result back over the axes that it lost."""
    return broadcast_to(expand_dims(x, axes), shape)


def _same(x: Aval, axes: Axes) -> Aval:
    return Aval(kept(x.shape, axes), x.dtype)


def _samples(rng: np.random.Generator) -> list[Any]:
    return [((rng.normal(size=(3, 4, 2)),), {"axes": (0, 2)}), ((rng.normal(size=5),), {"axes": (0,)}),
            ((rng.normal(size=(2, 3)),), {"axes": ()})]


_reduce_sum = linear(
    "reduce_sum", kind="reduce",
    evaluate=lambda x, axes: np.sum(x, axis=axes, dtype=x.dtype),
    infer=_same, vjp=lambda ct, y, x, axes: (restore(ct, x.shape, axes),), samples=_samples,
    accumulate="add", identity=0, can_fail=False, adds=True, tame=True, overflows=True, separable=True)


def reduce_sum(x: Value, axes: Axes) -> Value:
    """Sum over `axes`, in the dtype of `x`."""
    return _reduce_sum(x, axes=axes) if axes else x


def _extremum(accumulate: str, ufunc: np.ufunc, identity: float) -> Primitive:
    """max or min over axes; elements that tie share the derivative equally."""
    def share(y: Value, x: Value, axes: Axes) -> tuple[Value, Value]:
        mask = _equal(x, restore(y, x.shape, axes))
        count = reduce_sum(cast(mask, x.dtype), axes)
        return mask, count

    def vjp(ct: Value, y: Value, x: Value, axes: Axes) -> tuple[Value]:
        mask, count = share(y, x, axes)
        return (select(mask, restore(ct / count, x.shape, axes), 0.0),)

    def jvp(tangents: Any, y: Value, x: Value, axes: Axes) -> Value:
        mask, count = share(y, x, axes)
        return reduce_sum(select(mask, tangents[0], 0.0), axes) / count

    return Primitive(f"reduce_{accumulate}", evaluate=lambda x, axes: ufunc.reduce(x, axis=axes) if axes else x,
                     infer=_same, kind="reduce", vjp=vjp, jvp=jvp, samples=_samples, accumulate=accumulate,
                     identity=identity, can_fail=False, adds=True, tame=True, separable=True)


def _equal(a: Value, b: Value) -> Value:
    return TABLE["eq"](a, b)


reduce_max = _extremum("max", np.maximum, -np.inf)
reduce_min = _extremum("min", np.minimum, np.inf)

reduce_any = Primitive("reduce_any", kind="reduce", evaluate=lambda x, axes: np.any(x, axis=axes), infer=_same,
                       accumulate="or", identity=False, can_fail=False, separable=True,
                       samples=lambda rng: [((rng.uniform(size=(3, 2)) < 0.5,), {"axes": (1,)})])
reduce_all = Primitive("reduce_all", kind="reduce", evaluate=lambda x, axes: np.all(x, axis=axes), infer=_same,
                       accumulate="and", identity=True, can_fail=False, separable=True,
                       samples=lambda rng: [((rng.uniform(size=(3, 2)) < 0.7,), {"axes": (1,)})])


def _cumsum(x: Any, axis: int, reverse: bool) -> Any:
    return np.flip(np.cumsum(np.flip(x, axis), axis, dtype=x.dtype), axis) if reverse else np.cumsum(
        x, axis, dtype=x.dtype)


cumsum: Primitive = linear(
    "cumsum", kind="cumulative", can_fail=False, adds=True, tame=True, separable=True,
    evaluate=_cumsum, infer=lambda x, axis, reverse: Aval(x.shape, x.dtype),
    vjp=lambda ct, y, x, axis, reverse: (cumsum(ct, axis=axis, reverse=not reverse),),
    samples=lambda rng: [((rng.normal(size=(3, 4)),), {"axis": 1, "reverse": False}),
                         ((rng.normal(size=5),), {"axis": 0, "reverse": True})])


# --- contraction -----------------------------------------------------------------------------

def _contract_infer(a: Aval, b: Aval, spec: str) -> Aval:
    left, right, out = parse(spec)
    size = dict(zip(left + right, a.shape + b.shape, strict=True))
    if tuple(size[c] for c in left) != a.shape or a.dtype != b.dtype:
        raise ValueError(f"contract {spec!r} of {a} and {b}: sizes or dtypes do not match")
    return Aval(tuple(size[c] for c in out), a.dtype)


def parse(spec: str) -> tuple[str, str, str]:
    """The letters of the operands and the result of ``"ij,jk->ik"``."""
    operands, out = spec.split("->")
    left, right = operands.split(",")
    return left, right, out


def _contract_vjp(ct: Value, y: Value, a: Value, b: Value, spec: str) -> tuple[Value, Value]:
    """What a slice leaves out of the result is structurally zero and must not meet an infinite factor: of a slice, the
    products are those of the slice."""
    left, right, out = parse(spec)
    sliced = _slice(ct)
    if sliced is None:
        return contract(ct, b, f"{out},{right}->{left}"), contract(a, ct, f"{left},{out}->{right}")
    ct, steps = sliced[0], dict(zip(out, sliced[1], strict=True))
    (a_part, at_a), (b_part, at_b) = _part(a, left, steps), _part(b, right, steps)
    return (spread(contract(ct, b_part, f"{out},{right}->{left}"), a.shape, at_a),
            spread(contract(a_part, ct, f"{left},{out}->{right}"), b.shape, at_b))


def _slice(x: Value) -> tuple[Value, list[tuple[int, int, int]]] | None:
    """What an array of zeros has in a slice, with all dimensions, and of each where it begins, its step and its length;
    None if it is no such array."""
    if not (x.node.prim.mapped and x.node.prim.scatters):
        return None
    held, index = x.builder.value(x.node.inputs[0]), x.node.params["index"]
    if any(len(terms) > 1 for _, terms in index) or sorted(d for _, terms in index for d, _ in terms) != list(
            range(held.ndim)):                           # a diagonal, or a sum along a dimension
        return None
    walks = [(offset, terms[0][1], held.shape[terms[0][0]]) if terms else (offset, 1, 1) for offset, terms in index]
    place = {terms[0][0]: d for d, (_, terms) in enumerate(index) if terms}
    whole = view(held, tuple(length for *_, length in walks), tuple((0, ((place[d], 1),)) for d in range(held.ndim)))
    return whole, walks


def _part(x: Value, letters: str, walks: dict[str, tuple[int, int, int]]) -> tuple[Value, Map]:
    """The part of an operand that a slice of the result is made of, and its map."""
    found = [walks.get(c, (0, 1, n)) for c, n in zip(letters, x.shape, strict=True)]
    index = tuple((offset, ((d, step),)) for d, (offset, step, _) in enumerate(found))
    return view(x, tuple(length for *_, length in found), index), index


contraction = linear(
    "contract", kind="contract", slots=(0, 1), accumulate="add", can_fail=False, adds=True, tame=True, overflows=True,
    separable=True,
    evaluate=lambda a, b, spec: np.einsum(spec, a, b, optimize=True),
    infer=_contract_infer, vjp=_contract_vjp,
    samples=lambda rng: [((rng.normal(size=(3, 4)), rng.normal(size=(4, 2))), {"spec": "ij,jk->ik"}),
                         ((rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 4))), {"spec": "bij,bj->bi"})])


def contract(a: Any, b: Any, spec: str) -> Any:
    """``einsum(spec, a, b)``; a letter of one operand alone is summed first, and a letter of
    the result that neither has is not allowed."""
    left, right, out = parse(spec)
    a, b = _one_dtype(a, b)
    a, left = _diagonals(a, left)
    b, right = _diagonals(b, right)
    sizes = [dict(zip(letters, x.shape, strict=True)) for x, letters in ((a, left), (b, right))]
    a, left = _drop_units(a, left, sizes[1])
    b, right = _drop_units(b, right, sizes[0])
    a, left = _sum_lonely(a, left, right + out)
    b, right = _sum_lonely(b, right, left + out)
    if not set(left) & set(right) - set(out):
        return _product(a, left, b, right, out)
    return contraction(a, b, spec=f"{left},{right}->{out}")


def _one_dtype(a: Any, b: Any) -> tuple[Any, Any]:
    """The operands in the dtype of their product."""
    if a.dtype == b.dtype:
        return a, b
    dtype = np.result_type(a.dtype, b.dtype)
    return tuple(cast(x, dtype) if isinstance(x, Value) else x.astype(dtype) for x in (a, b))  # type: ignore[return-value]


def _diagonals(x: Any, letters: str) -> tuple[Any, str]:
    """A letter that comes twice in one operand means its diagonal."""
    for c in letters:
        while letters.count(c) > 1:
            first = letters.index(c)
            second = letters.index(c, first + 1)
            x = diagonal(x, 0, first, second)
            letters = letters[:first] + letters[first + 1:second] + letters[second + 1:] + c
    return x, letters


def _drop_units(x: Any, letters: str, other: dict[str, int]) -> tuple[Any, str]:
    """Without the dimensions of length one that the other operand has longer: einsum broadcasts them."""
    axes = tuple(d for d, c in enumerate(letters) if x.shape[d] == 1 and other.get(c, 1) != 1)
    return (squeeze(x, axes) if axes else x), "".join(c for d, c in enumerate(letters) if d not in axes)


def _sum_lonely(x: Any, letters: str, elsewhere: str) -> tuple[Any, str]:
    axes = tuple(d for d, c in enumerate(letters) if c not in elsewhere)
    return reduce_sum(x, axes), "".join(c for c in letters if c in elsewhere)


def _product(a: Value, left: str, b: Value, right: str, out: str) -> Value:
    """No letter is summed: a product of views."""
    size = dict(zip(left + right, a.shape + b.shape, strict=True))
    shape = tuple(size[c] for c in out)
    place = {c: d for d, c in enumerate(out)}

    def arranged(x: Value, letters: str) -> Value:
        return view(x, shape, tuple((0, ((place[c], 1),)) for c in letters))
    return arranged(a, left) * arranged(b, right)
