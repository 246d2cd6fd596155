"""Element indices: affine in the loop variables where possible, else integer expressions."""
from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from jitad.primitives.view import Map
from jitad.tape.expr import Expr, cast, const, var


class Affine(NamedTuple):
    """``offset + sum(step * variable)``, terms sorted by variable."""

    offset: int
    terms: tuple[tuple[str, int], ...] = ()

    @property
    def variables(self) -> frozenset[str]:
        return frozenset(v for v, _ in self.terms)

    def is_variable(self, name: str) -> bool:
        return self.offset == 0 and self.terms == ((name, 1),)


Index = Affine | Expr
Indices = tuple[Index, ...]


@cache
def variable(name: str) -> Affine:
    return Affine(0, ((name, 1),))


def weighted(offset: int, terms: Sequence[tuple[int, Index]]) -> Index:
    """``offset + sum(step * index)``."""
    if not terms:
        return Affine(offset)
    if len(terms) == 1 and offset == 0 and terms[0][0] == 1 and isinstance(terms[0][1], Affine):
        return terms[0][1]
    if all([isinstance(i, Affine) for _, i in terms]):
        steps: dict[str, int] = {}
        for step, index in terms:
            offset += step * index.offset                           # type: ignore[union-attr]
            for name, by in index.terms:                            # type: ignore[union-attr]
                steps[name] = steps.get(name, 0) + step * by
        return Affine(offset, tuple(sorted((v, s) for v, s in steps.items() if s)))
    total: Expr | None = const(offset, "i8") if offset else None
    for step, index in terms:
        term = as_expr(index) if step == 1 else as_expr(index) * step
        total = term if total is None else total + term
    return total if total is not None else const(0, "i8")


def through(index: Map, at: Indices) -> Indices:
    """The source's indices for the result's indices `at` of a view."""
    return tuple([weighted(offset, [(step, at[d]) for d, step in terms]) for offset, terms in index])


def as_expr(index: Index) -> Expr:
    """The index as an expression; equal affine indices are one expression, so that it is named once."""
    return cast(index, "i8") if isinstance(index, Expr) else _affine_expr(index)


@lru_cache(maxsize=1 << 14)
def _affine_expr(index: Affine) -> Expr:
    offset = index.offset
    total: Expr | None = None
    if offset > 0 and index.terms and all(step < 0 for _, step in index.terms):
        total, offset = const(offset, "i8"), 0
    for name, step in sorted(index.terms, key=lambda term: term[1] < 0):
        term = _term(name, abs(step) if total is not None else step)
        if total is None:
            total = term
        else:
            total = total + term if step > 0 else total - term
    if total is None:
        return const(offset, "i8")
    return total + offset if offset > 0 else total - (-offset) if offset < 0 else total


@lru_cache(maxsize=1 << 14)
def _term(name: str, step: int) -> Expr:
    return var(name, "i8") if step == 1 else var(name, "i8") * step


def flattened(at: Indices, shape: tuple[int, ...]) -> Index:
    """The flat element index in C order."""
    terms, stride = [], 1
    for index, n in zip(reversed(at), reversed(shape), strict=True):
        terms.append((stride, index))
        stride *= n
    return weighted(0, terms[::-1])


def unflattened(flat: Index, shape: tuple[int, ...]) -> Indices:
    """The inverse of `flattened`; divisions by constants unless the terms already tell."""
    result: list[Index] = []
    rest = flat
    for d in range(len(shape)):
        stride = 1
        for n in shape[d + 1:]:
            stride *= max(n, 1)              # an empty array has no element to ask for
        if d == len(shape) - 1:
            result.append(rest)
            break
        split = _split(rest, stride)
        if split is None:
            e = as_expr(rest)
            result.append(Expr("floordiv", (e, const(stride, "i8")), "i8"))
            rest = Expr("mod", (e, const(stride, "i8")), "i8")
        else:
            result.append(split[0])
            rest = split[1]
    return tuple(result)


def _split(flat: Index, stride: int) -> tuple[Affine, Affine] | None:
    """Quotient and remainder by `stride` where each term is a multiple of it or constant and small.
    Only sound for a remainder without variables, whose range is known."""
    if not isinstance(flat, Affine) or any(s % stride for _, s in flat.terms):
        return None
    quotient, remainder = divmod(flat.offset, stride)
    return Affine(quotient, tuple((v, s // stride) for v, s in flat.terms)), Affine(remainder)
