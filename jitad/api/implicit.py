"""Derivatives of what a solver finds, by the implicit function theorem.

Where ``F(y, p) = 0`` defines y as a function of p, ``dF/dy dy + dF/dp dp = 0``, so that a cotangent `ct` of y becomes
``-(dF/dp)^T (dF/dy)^-T ct`` (Griewank and Walther, Evaluating Derivatives, 2nd ed., chapter 15). How y was found does
not matter, and none of the solver's steps is differentiated.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.api.custom.calls import CustomCall, Recordable, as_it_is, copied, line_of_code, name_of
from jitad.api.custom.opaque import call_opaque
from jitad.api.custom.rules import CustomRules, Outcome, with_rules
from jitad.call.build.derive import unit_cotangents
from jitad.call.pickling import restores
from jitad.errors import ArgumentTypeError, OutputError
from jitad.passes.differentiate.modes import pullback
from jitad.primitives.core import cast
from jitad.primitives.index import reshape
from jitad.primitives.view import transpose
from jitad.tape.builder import Value
from jitad.trace.dispatch import call as call_numpy
from jitad.trace.dispatch import plain
from jitad.trace.pytree import leaves_of
from jitad.trace.values.tracer import Tracer
from jitad.trace.where import user_line

__all__ = ["implicit"]

INNER = -4       # the slot of the aliases by which a residual is differentiated


def implicit(residual: Callable[..., Any]) -> Any:
    """Make a solver differentiable: a decorator for ``solve(*params)``, given the equation that its result solves.

    The solver is called as it is, from compiled code too (see `jitad.primitive`, ``opaque=True``, for what that asks
    of it): `scipy.optimize.root`, `brentq`, `minimize`, a fixed-point iteration. Derivatives come from the residual,
    recorded at the solution, and are those of the exact solution; to any order, in both modes.

    Parameters
    ----------
    residual
        ``residual(y, *params)``, plain NumPy code, zero where `y` is what the solver returns for `params`. Of the size
        of `y`. For a minimum that is the gradient of the objective, ``lambda y, *p: jitad.grad(objective)(y, *p)``;
        for a fixed point of g, ``y - g(y, *p)``.

    Returns
    -------
    decorator
        Makes a function of ``solve(*params) -> y`` with `y` a number or an array of floats. The parameters may be
        arrays, numbers and trees of them.

    Raises
    ------
    ArgumentTypeError
        If `residual`, or what is decorated, is no function.
    OutputError
        If the solver returns no array of floats, or the residual is of another size.
    numpy.linalg.LinAlgError
        Where the residual's Jacobian by an array `y` is singular: there the solution is no function of the parameters.
        Where `y` is one number, the derivative is infinite there, or NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.optimize import brentq
    >>> from jitad import derivative, implicit
    >>> @implicit(lambda y, a: y * y - a)
    ... def root(a):
    ...     return brentq(lambda y: y * y - a, 0.0, 1.0 + a)
    >>> round(derivative(root)(4.0), 12)
    0.25
    """
    if not callable(residual):
        raise ArgumentTypeError(f"jitad.implicit needs the function that is zero at the solution, not a "
                                f"{type(residual).__name__} (at {user_line()})")
    return lambda solve: Implicit(solve, residual)


@restores("implicit")
class Implicit(Recordable):
    """A solver with the equation that it solves; made by `implicit`."""

    def __init__(self, solve: Callable[..., Any], residual: Callable[..., Any]) -> None:
        super().__init__(solve, "implicit")
        self.residual = residual

    @property
    def settings(self) -> tuple[Any, ...]:
        return (self.residual,)

    def on_tape(self, view: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        solve = as_it_is(view, self.__wrapped__, "__wrapped__")
        call = CustomCall.of(view.recorder, solve, args, kwargs, self.__name__)
        if not call.places:
            return solve(*call.inputs())
        if not call.moving:
            return call_opaque(call, solve, stop=False)
        outcome = Outcome(call.recorder, call_opaque(call, solve, stop=True))
        if len(outcome.leaves) != 1 or not isinstance(outcome.leaves[0], Value):
            raise OutputError(f"`{self.__name__}` ({line_of_code(solve)}) must return one number or array of floats "
                              "for jitad.implicit")
        residual, rules = view.copy_of(self.residual, "residual"), CustomRules(call, outcome)
        rules.record_vjp(lambda ct, y: self._cotangents(call, residual, ct, y), f"the derivative of `{self.__name__}`",
                         line_of_code(self.residual))
        return with_rules(rules)

    def _cotangents(self, call: CustomCall, residual: Callable[..., Any], ct: Any, y: Any) -> Any:
        recorder = call.recorder
        ct, y = (Value(recorder, v.number) for v in _leaves(ct, y))
        point = copied(recorder, recorder.value(y.number), slot=INNER)
        params = {i: copied(recorder, call.leaves[i], slot=INNER) for i in call.moving}
        found = plain(residual(point, *call.inputs(params)))
        zero = self._residual(call, found, y)
        with recorder.plain():
            wrt = [Value(recorder, v.number) for v in (point, *params.values())]
            seeds, length = unit_cotangents(zero)
            (jacobian,) = pullback(recorder, [zero], [seeds], wrt[:1], length)
            if length is None:
                weights = -(reshape(ct, ()) / reshape(jacobian, ()))
            else:
                square = transpose(reshape(jacobian, (length, length)), (1, 0))
                solved = call_numpy(np.linalg.solve, _traced(square), _traced(reshape(ct, (length,))))
                weights = -Value(recorder, solved.number)
            cotangents = pullback(recorder, [zero], [reshape(weights, zero.shape)], wrt[1:])
        leaves: list[Any] = [None] * len(call.leaves)
        for i, value in zip(call.moving, cotangents, strict=True):
            leaves[i] = recorder.value(value.number)
        rows = call.structured(leaves)
        return rows[0] if len(rows) == 1 else tuple(rows)

    def _residual(self, call: CustomCall, found: Any, y: Value) -> Value:
        where = line_of_code(self.residual)
        if not isinstance(found, Value):
            raise OutputError(f"the residual of `{self.__name__}` ({where}) does not depend on the solution: it "
                              f"returned a {name_of(type(found))}")
        if found.aval.size != y.aval.size or found.dtype.kind not in "iuf":
            raise OutputError(f"the residual of `{self.__name__}` ({where}) must be as large as the solution, of shape "
                              f"{y.shape}, and is {found.dtype} of shape {found.shape}")
        with call.recorder.plain():
            return cast(call.recorder.lift(Value(call.recorder, found.number)), y.dtype)


def _leaves(*values: Any) -> list[Any]:
    return [plain(leaves_of(v)[0][0]) for v in values]


def _traced(value: Value) -> Any:
    """A value as NumPy's functions take it."""
    recorder: Any = value.builder
    return Tracer(recorder, value.number)
