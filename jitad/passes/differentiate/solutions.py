"""Derivatives of solutions of equations, and of minima, by the implicit function theorem.

Where ``F(y, p) = 0`` defines y as a function of p, ``dF/dy dy + dF/dp dp = 0``, so that a tangent is
``-(dF/dy)^-1 dF/dp dp`` and a cotangent `ct` of y becomes ``-(dF/dp)^T (dF/dy)^-T ct`` (Griewank and Walther,
Evaluating Derivatives, 2nd ed., chapter 15). At a minimum F is the gradient. It costs the Jacobian dF/dy, a solution
with it, and one sweep through F. The rules are rows again, so that derivatives of any order follow.
"""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from jitad.passes.differentiate.activity import JVPS, VJPS
from jitad.passes.differentiate.modes import pullback, pushforward
from jitad.primitives.core import FLOATS, alias
from jitad.primitives.index import reshape
from jitad.primitives.linalg import mT, solve
from jitad.primitives.view import broadcast_to, transpose
from jitad.tape.builder import Value
from jitad.tape.tape import Tape

INNER = -5       # the slot of the aliases by which an equation is differentiated


class _Equation:
    """F at a solution, of aliases of the solution and of what it reads."""

    def __init__(self, y: Value, reads: Sequence[Value], tape: Tape, apart: int, minimum: bool) -> None:
        self.builder, self.apart = y.builder, apart
        self.point, self.reads = alias(y, slot=INNER), [self._alias(r) for r in reads]
        (zero,) = self.builder.replay(tape, [self.point, *self.reads])
        if minimum:
            (zero,) = pullback(self.builder, [zero], [self._ones(zero)], [self.point])
        self.zero = zero
        self.size = prod(y.shape[apart:])

    @staticmethod
    def _alias(read: Value) -> Value:
        return alias(read, slot=INNER) if read.dtype.char in FLOATS else read

    def _ones(self, like: Value) -> Value:
        return self.builder.lift(np.ones(like.shape, like.dtype))

    def divided(self, right: Value, transposed: bool) -> Value:
        """The solution with the Jacobian dF/dy, or its transpose, and this right-hand side."""
        shape, n = self.point.shape, self.size
        if n == 1:
            (slope,) = pullback(self.builder, [self.zero], [self._ones(self.zero)], [self.point])
            return right / slope
        units = np.eye(n).reshape(n, *(1,) * self.apart, *shape[self.apart:])
        seeds = broadcast_to(self.builder.lift(units.astype(self.point.dtype)), (n, *shape))
        (rows,) = pullback(self.builder, [self.zero], [seeds], [self.point], n)
        rows = reshape(rows, (n, *shape[:self.apart], n))
        matrix = transpose(rows, (*range(1, self.apart + 1), 0, self.apart + 1))
        column = reshape(right, (*shape[:self.apart], n, 1))
        return reshape(solve(mT(matrix) if transposed else matrix, column), shape)


def jacobian(result: Value, point: Value) -> Value:
    """The derivative of a vector by a vector, a row for each element of the result; of a number, its gradient. Appended
    to their builder."""
    builder, n = result.builder, result.aval.size
    if not result.ndim:
        (gradient,) = pullback(builder, [result], [builder.lift(np.ones((), result.dtype))], [point])
        return gradient
    (rows,) = pullback(builder, [result], [builder.lift(np.eye(n, dtype=result.dtype))], [point], n)
    return rows


@VJPS("solution")
def _vjp(ct: Value, y: Value, found: Value, *reads: Value, tape: Tape, apart: int,
         minimum: bool) -> list[Value | None]:
    equation = _Equation(y, reads, tape, apart, minimum)
    weights = -equation.divided(ct, transposed=True)
    places = [i for i, r in enumerate(reads) if r.dtype.char in FLOATS]
    result: list[Value | None] = [None] * (1 + len(reads))
    if places:
        cotangents = pullback(y.builder, [equation.zero], [weights], [equation.reads[i] for i in places])
        for i, value in zip(places, cotangents, strict=True):
            result[1 + i] = value
    return result


@JVPS("solution")
def _jvp(tangents: Sequence[Value | None], y: Value, found: Value, *reads: Value, tape: Tape, apart: int,
         minimum: bool) -> Value | None:
    moving = [i for i, t in enumerate(tangents[1:]) if t is not None]
    if not moving:
        return None
    equation = _Equation(y, reads, tape, apart, minimum)
    (moved,) = pushforward(y.builder, [equation.zero], [equation.reads[i] for i in moving],
                           [tangents[1 + i] for i in moving])
    return None if moved is None else -equation.divided(moved, transposed=False)
