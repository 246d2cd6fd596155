"""Ordinary differential equations: `solve_ivp` by explicit Runge-Kutta methods, `odeint`.

The steps are SciPy's: the same formulas, the same first step, the same control of the error (Hairer, Norsett and
Wanner, Solving Ordinary Differential Equations I, sections II.4 to II.6), in a loop of the compiled code around the
recorded right-hand side. The derivative is that of the steps taken, their sizes held constant: forward sensitivities,
which run along (`jitad.passes.differentiate.forwards`). The solution costs one run, a gradient one more with as many
tangents as there are initial values and parameters. Where the right-hand side jumps, the time must not move with what
is differentiated: solve up to there, and go on. `odeint` is solved by DOP853 to the tolerances of LSODA, whose other
settings have no part in it: Dfun, orders, and `mxstep`, after which LSODA would give up.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.tape.builder import Value
from jitad.trace.dispatch import as_value, refused, stopped
from jitad.trace.scipy_rules.classes import lifted, require, this_recorder
from jitad.trace.scipy_rules.solvers.callbacks import SolverCallback, floats, forwarded, repeat
from jitad.trace.substitutes import substitute

__all__ = ["Trajectory"]

SAFETY, SHRINK, GROW = 0.9, 0.2, 10.0        # SciPy's control of the step
DONE = "The solver successfully reached the end of the integration interval."
SMALLEST = 100 * np.finfo(float).eps         # that a relative tolerance is
FAILED = "Required step size is less than spacing between numbers."


class _Problem:
    """What is solved: the right-hand side, a method's class of SciPy's, tolerances."""

    def __init__(self, function: SolverCallback, method: Any, rtol: Any, atol: Any, max_step: Any,
                 first_step: Any, first: bool = True) -> None:
        self.function, self.method, self.first = function, method, first
        self.rtol, self.atol = np.maximum(floats(rtol), SMALLEST), floats(atol)
        self.max_step = floats(max_step)
        self.first_step = None if first_step is None else floats(first_step)

    def slope(self, t: Any, y: Any) -> Any:
        found = self.function(*((t, y) if self.first else (y, t)))
        if found.shape != y.shape:
            raise ValueError(f"`fun` gives a result of shape {found.shape} for a state of shape {y.shape}")
        return found

    def check(self, start: Any, end: Any, y: Any) -> None:
        """The options, as SciPy does."""
        if self.atol.ndim and self.atol.shape != y.shape:
            raise ValueError("`atol` has wrong shape.")
        require(~(self.atol < 0), ValueError("`atol` must be positive."))
        require(~(self.max_step <= 0), ValueError("`max_step` must be positive."))
        if self.first_step is not None:
            require(~(self.first_step <= 0), ValueError("`first_step` must be positive."))
            require(~(self.first_step > np.abs(end - start)), ValueError("`first_step` exceeds bounds."))

    # --- the first step ---------------------------------------------------------------------------
    def first_size(self, t: Any, y: Any, f: Any, end: Any, sign: Any) -> Any:
        if self.first_step is not None:
            return self.first_step
        length = np.abs(end - t)
        scale = self.atol + np.abs(y) * self.rtol
        d0, d1 = _norm(y / scale), _norm(f / scale)
        tiny = (d0 < 1e-5) | (d1 < 1e-5)
        h0 = np.minimum(np.where(tiny, 1e-6, 0.01 * d0 / np.where(tiny, 1.0, d1)), length)
        d2 = _norm((self.slope(t + h0 * sign, y + h0 * sign * f) - f) / scale) / np.where(h0 == 0, 1.0, h0)
        still = (d1 <= 1e-15) & (d2 <= 1e-15)
        most = np.where(still, 1.0, np.maximum(d1, d2))
        h1 = np.where(still, np.maximum(1e-6, h0 * 1e-3),
                      (0.01 / most) ** (1 / (self.method.error_estimator_order + 1)))
        return np.minimum(np.minimum(100 * h0, h1), np.minimum(length, self.max_step))

    # --- a step ------------------------------------------------------------------------------------
    def stages(self, t: Any, y: Any, f: Any, h: Any) -> tuple[Any, Any, list[Any]]:
        """The state and its slope after the step, and the slopes on the way."""
        m, slopes = self.method, [f]
        for s in range(1, m.n_stages):
            slopes.append(self.slope(t + float(m.C[s]) * h, y + h * _sum(m.A[s, :s], slopes)))
        new = y + h * _sum(m.B, slopes)
        end = self.slope(t + h, new)
        return new, end, [*slopes, end]

    def error(self, slopes: list[Any], h: Any, scale: Any) -> Any:
        m = self.method
        if not hasattr(m, "E3"):
            return _norm(h * _sum(m.E, slopes) / scale)
        five, three = _sum(m.E5, slopes) / scale, _sum(m.E3, slopes) / scale
        a, b = np.sum(five * five), np.sum(three * three)
        total = a + 0.01 * b
        size = np.abs(h) * a / np.sqrt(np.where(total == 0, 1.0, total) * five.shape[0])
        return np.where(total == 0, 0.0, size)

    def between(self, x: Any, t: Any, y: Any, h: Any, new: Any, slopes: list[Any]) -> Any:
        """The states within the step, at the shares `x` of it, a row for each."""
        m, x = self.method, x[:, None]
        if not hasattr(m, "E3"):
            weights = [sum(float(p) * x ** (q + 1) for q, p in enumerate(row)) for row in m.P]
            return y + h * sum(w * k for w, k in zip(weights, slopes, strict=True))
        slopes = list(slopes)
        for a, c in zip(m.A_EXTRA, m.C_EXTRA, strict=True):
            slopes.append(self.slope(t + float(c) * h, y + h * _sum(a[:len(slopes)], slopes)))
        change, old, end = new - y, slopes[0], slopes[m.n_stages]
        parts = [change, h * old - change, 2 * change - h * (end + old), *(h * _sum(d, slopes) for d in m.D)]
        value: Any = 0.0
        for i, part in enumerate(reversed(parts)):
            value = (value + part) * (x if i % 2 == 0 else 1 - x)
        return y + value

    # --- all steps -----------------------------------------------------------------------------------
    def solve(self, start: Any, end: Any, y: Any, times: Any) -> Any:
        """The states at `times`, the last state, the time that was reached, one after the other."""
        sign = np.where(end >= start, 1.0, -1.0)
        f = self.slope(start, y)
        size = stopped(self.first_size(start, y, f, end, sign))
        rows = np.broadcast_to(y, (times.shape[0], y.shape[0]))

        def step(t: Any, y: Any, f: Any, size: Any, again: Any, failed: Any, rows: Any) -> tuple[Any, list[Any]]:
            least = 10 * np.finfo(float).eps * np.maximum(np.abs(t), np.finfo(float).tiny)
            size = np.where(again, size, np.clip(size, least, self.max_step))
            failed = again & ~(size >= least)               # NaN, too
            after = t + size * sign
            after = np.where(sign * (after - end) > 0, end, after)
            h = after - t
            new, slope, slopes = self.stages(t, y, f, h)
            scale = self.atol + np.maximum(np.abs(y), np.abs(new)) * self.rtol
            norm = stopped(self.error(slopes, h, scale))
            good = (norm < 1) & ~failed
            power = SAFETY * np.where(norm > 0, norm, 1.0) ** (-1 / (self.method.error_estimator_order + 1))
            grow = np.where(norm == 0, GROW, np.minimum(GROW, power))
            grow = np.where(again, np.minimum(1.0, grow), grow)
            shrink = np.where(norm >= 1, np.maximum(SHRINK, power), SHRINK)
            size = stopped(np.abs(h) * np.where(good, grow, shrink))
            if times.shape[0]:
                here = good & (sign * (times - t) > 0) & (sign * (times - after) <= 0)
                share = (times - t) / np.where(h == 0, 1.0, h)
                rows = np.where(here[:, None], self.between(share, t, y, h, new, slopes), rows)
            t, y, f = np.where(good, after, t), np.where(good, new, y), np.where(good, slope, f)
            return (sign * (t - end) < 0) & ~failed, [t, y, f, size, ~good, failed, rows]

        false = start != start
        t, y, *_, rows = repeat(start != end, [start, y, f, size, false, false, rows], step, stop=False)
        return np.concatenate([rows.reshape(-1), y, t.reshape(1)])


def _sum(weights: Any, slopes: list[Any]) -> Any:
    terms = [float(w) * k for w, k in zip(weights, slopes, strict=False) if w != 0]
    return sum(terms[1:], terms[0])


def _norm(x: Any) -> Any:
    return np.sqrt(np.sum(x * x) / x.shape[0])


def _trajectory(problem: _Problem, start: Any, end: Any, y: Any, times: Any) -> Any:
    return forwarded(problem.solve, start=start, end=end, y0=y, times=times)


class Trajectory:
    """What `solve_ivp` gives."""

    nfev = njev = nlu = None
    t_events = y_events = None

    def __init__(self, t: Any, y: Any, success: bool, sol: Any) -> None:
        self.t, self.y, self.sol = t, y, sol
        self.success, self.status, self.message = success, 0 if success else -1, DONE if success else FAILED

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
    if method not in ("RK23", "RK45", "DOP853"):
        raise refused(this_recorder(), f"{name} with method={method!r}", "use method='RK45', 'RK23' or 'DOP853'")
    if events is not None or options:
        raise refused(this_recorder(), f"{name} with events=" if events is not None else f"{name} with {min(options)}=",
                      "find the time of an event by scipy.optimize.brentq on the solution's last state")
    y = floats(y0)
    if y.ndim != 1:
        raise ValueError("`y0` must be 1-dimensional.")
    start, end = (floats(t) for t in t_span)
    problem = _Problem(SolverCallback(fun, _unpacked(args), name), getattr(integrate, method), rtol, atol, max_step,
                       first_step)
    problem.check(start, end, y)
    if not isinstance(rtol, Value) and np.any(np.asarray(rtol) < SMALLEST):
        warnings.warn(f"At least one element of `rtol` is too small. Setting `rtol = np.maximum(rtol, {SMALLEST})`.",
                      stacklevel=2)
    times = _times(t_eval, start, end)
    low, high = np.minimum(start, end), np.maximum(start, end)
    states, last, reached = _parts(_trajectory(problem, start, end, y, times), y, times)
    whole = reached == end
    success = not this_recorder().knows(whole.number) or bool(whole)

    def sol(t: Any) -> Any:
        at = floats(t)
        flat = at.reshape(-1)
        require((flat >= low) & (flat <= high), ValueError("the solution is known within `t_span` only"))
        found = _parts(_trajectory(problem, start, end, y, flat), y, flat)[0]
        return found.T.reshape((y.shape[0], *at.shape))
    dense = sol if dense_output else None
    if t_eval is None:
        return Trajectory(_Ends(reached, "the times"), _Ends(last, "the states"), success, dense)
    if not success:
        count = int(np.sum(np.abs(times - start) <= np.abs(reached - start)))
        times, states = times[:count], states[:count]
    return Trajectory(times, states.T, success, dense)


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


def _parts(found: Any, y: Any, times: Any) -> tuple[Any, Any, Any]:
    n, count = y.shape[0], times.shape[0]
    return found[:n * count].reshape((count, n)), found[n * count:-1], found[-1]


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
    problem = _Problem(SolverCallback(func, args, name), DOP853, default if rtol is None else rtol,
                       default if atol is None else atol, hmax or np.inf,
                       np.minimum(np.abs(h0), length) if h0 else None, first=tfirst)
    if times.shape[0] > 1:
        problem.check(times[0], times[-1], y)
    found = _trajectory(problem, times[0], times[-1], y, times)
    states, _, reached = _parts(found, y, times)
    require(reached == times[-1], RuntimeError(f"{name}: {FAILED} Its method is for equations that are not stiff."))
    return as_value(this_recorder(), states)
