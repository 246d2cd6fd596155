"""Functions that SciPy's solvers call, recorded: once, on placeholders, in the recording under way.

What such a function reads of the enclosing code is read by its tape, and may be differentiated by. Where it branches
on its own arguments, each way is recorded, and conditions choose between the results.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitad.errors import ConcretizationError, UnsupportedOperationError
from jitad.primitives.core import alias, cast, select, stop_gradient
from jitad.primitives.custom import forwards, solution
from jitad.primitives.scan import loop
from jitad.primitives.view import broadcast_to
from jitad.tape.builder import Value
from jitad.tape.tape import Tape
from jitad.tape.types import Aval
from jitad.trace.dispatch import as_value, line_of, plain, refused
from jitad.trace.loop_body import Body, fitted
from jitad.trace.numpy_rules.elements.branches import Explorer, Way
from jitad.trace.pytree import unflatten
from jitad.trace.recorder import Recorder
from jitad.trace.scipy_rules.classes import this_recorder

__all__ = ["SolverCallback", "SolverReport", "differentiate_by", "floats", "forwarded", "implicit",
           "repeat"]

ENDLESS = 1 << 62        # steps that no loop makes
INNER = -7               # the slot of the alias by which a function is differentiated for a solver


def floats(value: Any) -> Any:
    """A float64 value of the recording under way."""
    return this_recorder().value(cast(as_value(this_recorder(), value), np.float64).number)


class _Jacobians:
    by: Callable[[Value, Value], Value]


def differentiate_by(jacobian: Callable[[Value, Value], Value]) -> None:
    """Install what gives the derivative of a value by another one, from which it is made."""
    _Jacobians.by = staticmethod(jacobian)


class SolverReport:
    """What a solver reports: `success`, which is traced as what it has found is, and more under the names that SciPy
    has. How many steps it took is not SciPy's number, and is refused."""

    def __init__(self, name: str, success: Any, failure: str, good: tuple[str, int] = ("The solution converged.", 1),
                 bad: int = 0, **known: Any) -> None:
        self._name, self._failure, self._good, self._bad = name, failure, good, bad
        self.success = success
        self.__dict__.update(known)

    @property
    def message(self) -> str:
        return self._good[0] if self.success else self._failure

    @property
    def status(self) -> int:
        return self._good[1] if self.success else self._bad

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise refused(this_recorder(), f"{name!r} of what {self._name} gives",
                      "leave it out: the steps are not those that SciPy makes")

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def get(self, name: str, default: Any = None) -> Any:
        return getattr(self, name) if name in self.__dict__ else default


class SolverCallback:
    """A function of the user's with its further arguments, as a solver calls it; `name` is the solver's."""

    def __init__(self, function: Callable[..., Any], args: Any, name: str) -> None:
        if not callable(function):
            raise TypeError(f"'{type(function).__name__}' object is not callable")
        self.function, self.name = function, name
        self.args = args if isinstance(args, tuple) else (args,)
        self.recorder: Recorder = this_recorder()

    def __call__(self, *points: Any, first: bool = True) -> Any:
        """The result as a float64 value, of values."""
        given = [as_value(self.recorder, p) for p in points]
        for p in given:
            p.weak = p.weak or not p.ndim
        numbers = {p.number for p in given if not self.recorder.knows(p.number)}
        call = (lambda: self.function(*given, *self.args)) if first else lambda: self.function(*self.args, *given)
        try:
            if numbers and self.recorder.explorer is None:
                ways = Explorer(self.recorder, self._function_name, numbers).ways(call)
                if all(w.error is not None for w in ways):
                    raise ways[0].error                                            # type: ignore[misc]
                return self._joined(ways, 0)
            return self._value(call())
        except ConcretizationError as error:
            raise UnsupportedOperationError(
                f"{self.name}, at {line_of(self.recorder)}: the function that it calls needs the number behind its "
                f"argument, which is known only when the compiled function runs: {error}") from error

    @property
    def _function_name(self) -> str:
        return str(getattr(self.function, "__name__", "function"))

    def _value(self, result: Any) -> Any:
        result = plain(result)
        if isinstance(result, (list, tuple)):
            result = as_value(self.recorder, np.array(result) if not any(
                isinstance(r, Value) for r in result) else list(result))
        return floats(result)

    def _joined(self, ways: Sequence[Way], depth: int) -> Any:
        """The result, of ways that are one up to a depth."""
        if len(ways) == 1 and len(ways[0].taken) == depth:
            way = ways[0]
            if way.error is not None:                    # as a solver sees a point where there is no number
                return floats(np.nan)
            return self._value(unflatten(way.tree, way.leaves or []))                  # type: ignore[arg-type]
        condition = ways[0].taken[depth][0]
        yes, no = (self._joined([w for w in ways if w.taken[depth][1] is flag], depth + 1) for flag in (True, False))
        with self.recorder.plain():
            shape = np.broadcast_shapes(yes.shape, no.shape)
            flags = broadcast_to(Value(self.recorder, condition), shape)
            chosen = select(flags, broadcast_to(yes, shape), broadcast_to(no, shape))
        return self.recorder.value(chosen.number)

    def tape(self, like: Value, transform: Callable[[Any, Any], Any] = lambda y, f: f) -> tuple[Tape, list[Value]]:
        """``(y, *reads) -> transform(y, f(y))`` for y of the type of `like`, and what is read."""
        body = Body(self.recorder, 1)
        point = body.carry(Aval(like.shape, like.dtype), "y")
        with self.recorder.inside():
            result = transform(point, self(point))
        with self.recorder.plain():
            return body.close([Value(self.recorder, result.number)])


    def jacobian(self, x: Any) -> Any:
        """The derivative of the result at `x`: a row for each element of the result, or the gradient of a number."""
        tape, reads = self.tape(x)
        with self.recorder.plain():
            point = alias(Value(self.recorder, x.number), slot=INNER)
            (result,) = self.recorder.replay(tape, [point, *reads])
            found = _Jacobians.by(result, point)
        return self.recorder.value(found.number)


def forwarded(make: Callable[..., Any], **inputs: Any) -> Any:
    """``make(*inputs)`` as one node, that is differentiated forwards."""
    recorder, body = this_recorder(), Body(this_recorder(), 1)
    given = [body.carry(Aval(v.shape, v.dtype), name) for name, v in inputs.items()]
    since = len(recorder.nodes)
    with recorder.inside():
        result = make(*given)
    with recorder.plain():
        tape, reads = body.close([Value(recorder, result.number)], since)
        number = recorder.apply(forwards, [v.number for v in (*inputs.values(), *reads)], {"tape": tape})
    return recorder.value(number)


def implicit(callback: SolverCallback, y: Any, apart: int, transform: Callable[[Any, Any], Any] = lambda y, f: f,
             minimum: bool = False) -> Any:
    """`y` with the derivatives of the solution of ``transform(y, f(y)) = 0``, or of the minimum."""
    recorder = callback.recorder
    tape, reads = callback.tape(y, transform)
    with recorder.plain():
        found = stop_gradient(Value(recorder, y.number))
        number = recorder.apply(solution, [found.number, *(r.number for r in reads)],
                                {"tape": tape, "apart": apart, "minimum": minimum})
    return recorder.value(number)


def repeat(go: Any, state: Sequence[Any], step: Callable[..., tuple[Any, Sequence[Any]]],
           stop: bool = True) -> list[Any]:
    """While `go`, ``go, state = step(*state)``; the last state, which is a constant to derivatives if `stop`."""
    recorder = this_recorder()
    body = Body(recorder, ENDLESS)
    avals = [Aval(v.shape, v.dtype) for v in state]
    body.carry(Aval((), np.dtype(bool)), "go")
    with recorder.inside():
        after, new = step(*(body.carry(a, f"state {i}") for i, a in enumerate(avals)))
    with recorder.plain():
        results = [Value(recorder, after.number), *(
            fitted(Value(recorder, as_value(recorder, v).number), a, "state") for v, a in zip(new, avals, strict=True))]
        tape, reads = body.close(results)
        start = [Value(recorder, as_value(recorder, v).number) for v in (go, *state)]
        finals, _ = loop(recorder, tape, start, [], reads, ENDLESS, until=True)
        finals = [stop_gradient(v) if stop and v.dtype.kind == "f" else v for v in finals[1:]]
    return [recorder.value(v.number) for v in finals]
