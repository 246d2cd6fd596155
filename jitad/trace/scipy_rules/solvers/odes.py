"""Ordinary differential equations: `solve_ivp` and `odeint`.

All is one loop of the compiled code around the recorded right-hand side. The derivative is that of the steps taken,
their sizes held constant: forward sensitivities, which run along (`jitad.passes.differentiate.forwards`). The solution
costs one run, a gradient one more with as many tangents as there are initial values and parameters. Where the
right-hand side jumps, the time must not move with what is differentiated: solve up to there, and go on; the time of an
event moves as it should. Radau, BDF and LSODA are all solved by Radau's method (`stiff`). `odeint` is solved by DOP853
to the tolerances of LSODA, whose other settings have no part in it: Dfun, orders, and `mxstep`, after which LSODA would
give up.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.tape.builder import Value
from jitad.trace.dispatch import as_value, refused
from jitad.trace.scipy_rules.classes import lifted, require, this_recorder
from jitad.trace.scipy_rules.solvers.callbacks import SolverCallback, floats, forwarded
from jitad.trace.scipy_rules.solvers.events import Events
from jitad.trace.scipy_rules.solvers.steps import SMALLEST, Steps
from jitad.trace.scipy_rules.solvers.stiff import Radau
from jitad.trace.substitutes import substitute

__all__ = ["Trajectory"]

DONE = "The solver successfully reached the end of the integration interval."
METHODS = ("RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA")
STIFF = METHODS[3:]
JACOBIANS = {"jac", "jac_sparsity", "lband", "uband", "min_step"}        # which our own one does without
FAILED = "Required step size is less than spacing between numbers."


class Trajectory:
    """What `solve_ivp` gives."""

    nfev = njev = nlu = None

    def __init__(self, t: Any, y: Any, success: bool, sol: Any, ended: bool = False, t_events: Any = None,
                 y_events: Any = None) -> None:
        self.t, self.y, self.sol, self.t_events, self.y_events = t, y, sol, t_events, y_events
        self.success, self.status = success, 1 if ended else 0 if success else -1
        self.message = "A termination event occurred." if ended else DONE if success else FAILED

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)


class _Ends:
    """The times or states of all steps, whose number is known only when the compiled function runs."""

    def __init__(self, last: Any, what: str) -> None:
        self._last, self._what = last, what

    def __getitem__(self, index: Any) -> Any:
        whole = index if isinstance(index, tuple) else (index,)
        if len(whole) == self._last.ndim + 1 and type(whole[-1]) is int and whole[-1] == -1:
            return self._last[whole[:-1]] if self._last.ndim else self._last
        if len(whole) == 2 and whole[0] is Ellipsis and type(whole[1]) is int and whole[1] == -1:
            return self._last
        return self._refuse()

    def __getattr__(self, name: str) -> Any:
        return self._refuse()

    def _refuse(self) -> Any:
        raise refused(this_recorder(), f"{self._what} of scipy.integrate.solve_ivp at each step, except the last one "
                      "([..., -1])", "say at which times by t_eval=: the number of steps depends on the numbers")

    __array__ = __iter__ = __len__ = __add__ = __mul__ = __sub__ = _refuse                     # type: ignore[assignment]


@substitute("scipy.integrate", "solve_ivp", calls=True)
def solve_ivp(fun: Callable[..., Any], t_span: Any, y0: Any, method: Any = "RK45", t_eval: Any = None,
              dense_output: bool = False, events: Any = None, vectorized: bool = False, args: Any = None,
              rtol: Any = 1e-3, atol: Any = 1e-6, max_step: Any = np.inf, first_step: Any = None,
              **options: Any) -> Any:
    from scipy import integrate

    name = "scipy.integrate.solve_ivp"
    method = method if isinstance(method, str) else getattr(method, "__name__", method)
    if method not in METHODS:
        raise ValueError(f"`method` must be one of {METHODS} or OdeSolver class.")
    kind = Radau if method in STIFF else Steps
    unknown = set(options) - (JACOBIANS if kind is Radau else set())
    if unknown:
        raise refused(this_recorder(), f"{name} with {min(unknown)}=", "leave it out")
    y, args = floats(y0), _unpacked(args)
    if y.ndim != 1:
        raise ValueError("`y0` must be 1-dimensional.")
    start, end = (floats(t) for t in t_span)
    problem = kind(SolverCallback(fun, args, name), getattr(integrate, method), rtol, atol, max_step, first_step,
                   columns=bool(vectorized))
    problem.check(start, end, y)
    if not isinstance(rtol, Value) and np.any(np.asarray(rtol) < SMALLEST):
        warnings.warn(f"At least one element of `rtol` is too small. Setting `rtol = np.maximum(rtol, {SMALLEST})`.",
                      stacklevel=2)
    return _result(problem, start, end, y, _times(t_eval, start, end), t_eval is not None, dense_output,
                   Events(events, args, name) if events is not None else None)


def _result(problem: Steps, start: Any, end: Any, y: Any, times: Any, asked: bool, dense: bool,
            events: Events | None) -> Trajectory:
    found = _trajectory(problem, start, end, y, times, events)
    states, last, reached, rest = _parts(found, y, times)
    ended, t_events, y_events = events.taken(rest, y.shape[0]) if events else (floats(0.0) != 0.0, None, None)
    whole = (reached == end) | ended
    known = this_recorder().knows(whole.number)
    if not known and events is not None and asked:
        raise refused(this_recorder(), "scipy.integrate.solve_ivp with events= and t_eval= in the step of a loop",
                      "leave t_eval out: how many of its times are reached is known only when the function runs")
    success, stop = not known or bool(whole), known and events is not None and bool(ended)
    low, high = np.minimum(start, reached), np.maximum(start, reached)

    def sol(t: Any) -> Any:
        at = floats(t)
        flat = at.reshape(-1)
        require((flat >= low) & (flat <= high), ValueError("the solution is known within `t_span`, up to where it was "
                                                           "reached, only"))
        states = _parts(_trajectory(problem, start, end, y, flat, events), y, flat)[0]
        return states.T.reshape((y.shape[0], *at.shape))
    more = sol if dense else None, stop, t_events, y_events
    if not asked:
        return Trajectory(_Ends(reached, "the times"), _Ends(last, "the states"), success, *more)
    if stop or not success:
        count = int(np.sum(np.abs(times - start) <= np.abs(reached - start)))
        times, states = times[:count], states[:count]
    return Trajectory(times, states.T, success, *more)


def _unpacked(args: Any) -> tuple[Any, ...]:
    try:
        return tuple(args) if args is not None else ()
    except TypeError as error:
        raise TypeError("Supplied 'args' cannot be unpacked. Please supply `args` as a tuple (e.g. `args=(p,)`)"
                        ) from error


def _times(t_eval: Any, start: Any, end: Any) -> Any:
    """The times at which states are asked, checked as SciPy does."""
    times = floats(np.zeros(0) if t_eval is None else t_eval)
    if times.ndim != 1:
        raise ValueError("`t_eval` must be 1-dimensional.")
    require((times >= np.minimum(start, end)) & (times <= np.maximum(start, end)),
            ValueError("Values in `t_eval` are not within `t_span`."))
    if times.shape[0] > 1:
        require(np.where(end > start, 1.0, -1.0) * np.diff(times) > 0,
                ValueError("Values in `t_eval` are not properly sorted."))
    return times


def _trajectory(problem: Steps, start: Any, end: Any, y: Any, times: Any, events: Events | None = None) -> Any:
    """`problem.solve` as one node, that is differentiated forwards."""
    return forwarded(lambda start, end, y, times: problem.solve(start, end, y, times, events),
                     start=start, end=end, y0=y, times=times)


def _parts(found: Any, y: Any, times: Any) -> tuple[Any, Any, Any, Any]:
    """The states at the times, the last one, the time that was reached, and what is said of events."""
    n, count = y.shape[0], times.shape[0]
    end = n * (count + 1)
    return found[:n * count].reshape((count, n)), found[n * count:end], found[end], found[end + 1:]


@substitute("scipy.integrate", "odeint", calls=True)
def odeint(func: Callable[..., Any], y0: Any, t: Any, args: Any = (), Dfun: Any = None, col_deriv: Any = 0,
           full_output: Any = 0, ml: Any = None, mu: Any = None, rtol: Any = None, atol: Any = None, tcrit: Any = None,
           h0: Any = 0.0, hmax: Any = 0.0, hmin: Any = 0.0, ixpr: Any = 0, mxstep: Any = 0, mxhnil: Any = 0,
           mxordn: Any = 12, mxords: Any = 5, printmessg: Any = 0, tfirst: bool = False) -> Any:
    from scipy.integrate import DOP853

    name = "scipy.integrate.odeint"
    for given, what in ((full_output, "full_output"), (tcrit is not None, "tcrit="), (hmin, "hmin=")):
        if given:
            raise refused(this_recorder(), f"{name} with {what}", "leave it out; solve up to a critical time, and on")
    y, times = floats(y0), floats(t)
    number = y.ndim == 0
    y = y.reshape(1) if number else y
    if y.ndim != 1 or times.ndim != 1:
        raise ValueError("Initial condition y0 and times t must be one-dimensional.")
    steps: Any = np.diff(times)
    require(lifted(np.all(steps >= 0) | np.all(steps <= 0)), ValueError(
        "The values in t must be monotonically increasing or monotonically decreasing; repeated values are allowed."))
    default, length = 1.49012e-8, np.abs(times[-1] - times[0])
    problem = Steps(SolverCallback(func, args, name), DOP853, default if rtol is None else rtol,
                       default if atol is None else atol, hmax or np.inf,
                       np.minimum(np.abs(h0), length) if h0 else None, first=tfirst)
    problem.most = 10**5
    if times.shape[0] > 1:
        problem.check(times[0], times[-1], y)
    found = _trajectory(problem, times[0], times[-1], y, times)
    states, _, reached, _ = _parts(found, y, times)
    require(reached == times[-1], RuntimeError(f"{name}: {FAILED} Its method is for equations that are not stiff; use "
                                               "scipy.integrate.solve_ivp with method='LSODA' for others."))
    return as_value(this_recorder(), states)
