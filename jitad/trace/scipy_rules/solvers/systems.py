"""Roots of systems of equations, and least squares: `root`, `fsolve`, `least_squares`, `curve_fit`.

All are found by the steps of Levenberg and Marquardt, each the solution of a linear least-squares problem by QR, with
Nielsen's choice of the damping (Madsen, Nielsen and Tingleff, Methods for non-linear least squares problems, 2nd ed.,
2004, section 3.2), in a loop of the compiled code. The Jacobian is that of the recorded function, not of differences:
near a root of a regular system these are Newton's steps. What is found agrees with what SciPy finds within tolerances
where there is one solution near the start; of several it may be another one. The derivative is that of the solution, by
the implicit function theorem (`jitad.passes.differentiate.solutions`), of least squares with the whole second
derivative of the sum.
"""
from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from jitad.trace.attempts import require_finite
from jitad.trace.dispatch import builder_in, refused, stopped
from jitad.trace.scipy_rules.classes import lifted, require, this_recorder
from jitad.trace.scipy_rules.solvers.callbacks import SolverCallback, SolverReport, floats, implicit, repeat
from jitad.trace.substitutes import substitute

__all__: list[str] = []

CLOSE = 1e-10            # the relative length of the last step, at most: its square is the error that remains
METHODS = ("hybr", "lm")


class _Residuals(SolverCallback):
    """A function that gives a vector, of a vector."""

    def _value(self, result: Any) -> Any:
        return super()._value(result).reshape(-1)


def _descent(callback: SolverCallback, start: Any, xtol: float, most: int) -> tuple[Any, Any]:
    """Where the sum of squares is least, near `start`, and whether steps became short."""
    first = callback(start)

    def step(n: Any, x: Any, f: Any, damping: Any, growth: Any, short: Any) -> tuple[Any, list[Any]]:
        jacobian = callback.jacobian(x)
        weight = np.sum(jacobian * jacobian, axis=0)
        weight = np.where(weight > 0, weight, 1.0)
        above = np.concatenate([jacobian, np.diag(np.sqrt(damping * weight))])
        q, r = map(floats, np.linalg.qr(above))
        move = -floats(np.linalg.solve(r, q[:f.shape[0]].T @ f))
        new = x + move
        there = callback(new)
        gain = np.sum(f * f) - np.sum(there * there)
        gradient = jacobian.T @ f
        ratio = gain / np.sum(move * (damping * weight * move - gradient))
        good = gain > 0
        short = (np.sqrt(np.sum(move * move)) <= xtol * (np.sqrt(np.sum(x * x)) + xtol)) | np.all(gradient == 0)
        x, f = np.where(good, new, x), np.where(good, there, f)
        shrink = np.where(ratio > 0.75, 0.1, np.maximum(1.0 / 3.0, 1.0 - (2.0 * ratio - 1.0) ** 3))
        damping = np.clip(damping * np.where(good, shrink, growth), 1e-20, 1e20)
        growth = np.where(good, 2.0, 2.0 * growth)
        return ~short & (n + 1 < most), [n + 1, x, f, damping, growth, short]

    _, x, _, _, _, short = repeat(floats(0.0) == 0.0, [lifted(0), start, first, floats(1e-3), floats(2.0),
                                                       floats(0.0) != 0.0], step)
    return x, short


# --- roots ----------------------------------------------------------------------------------------------

def _solved(name: str, fun: Callable[..., Any], x0: Any, args: Any, xtol: float, most: int) -> tuple[Any, Any, Any]:
    """The root, whether it is one, and the function there."""
    callback, start = _Residuals(fun, args, name), floats(x0).reshape(-1)
    n = start.shape[0]
    given = callback(start).shape
    if given != (n,):
        raise TypeError(f"{name}: there is a mismatch between the input and output shape of the function. Shape should "
                        f"be {(n,)} but it is {given}.")
    x, short = _descent(callback, start, min(xtol, CLOSE), most or 200 * (n + 1))
    size = lambda v: np.sqrt(np.sum(v * v))
    left, scale = callback(x), size(callback.jacobian(x)) * size(x)
    found = settled_truth(short & ((size(left) <= 1e-7 * scale) | (size(left) <= 1e-10 * size(callback(start)))
                                    | (size(left) == 0)))
    root = implicit(callback, x, 0)
    return root, found, callback(root)


def settled_truth(flag: Any) -> Any:
    """A condition of what is found, which has no derivative."""
    return stopped(np.where(flag, 1.0, 0.0)) > 0


NO_PROGRESS = "The iteration is not making good progress: the sum of squares has a minimum here that is no root."


@substitute("scipy.optimize", "root", calls=True)
def root(fun: Callable[..., Any], x0: Any, args: Any = (), method: str = "hybr", jac: Any = None, tol: Any = None,
         callback: Any = None, options: Any = None) -> Any:
    name = "scipy.optimize.root"
    if method.lower() not in METHODS:
        raise refused(this_recorder(), f"{name} with method={method!r}", "use method='hybr'")
    if callback is not None:
        raise refused(this_recorder(), f"{name} with callback=", "leave it out")
    options = dict(options or {})
    xtol = options.pop("xtol", tol) or 1.49012e-8
    most = options.pop("maxfev", options.pop("maxiter", 0))
    unknown = set(options) - {"col_deriv", "eps", "factor", "band", "diag", "ftol", "gtol"}
    if unknown:
        raise refused(this_recorder(), f"{name} with the option {min(unknown)!r}", "leave it out")
    function = (lambda *given: fun(*given)[0]) if jac is True else fun
    x, found, left = _solved(name, function, x0, args, xtol, most)
    return SolverReport(name, found, NO_PROGRESS, x=x, fun=left, method=method)


@substitute("scipy.optimize", "fsolve", calls=True)
def fsolve(func: Callable[..., Any], x0: Any, args: Any = (), fprime: Any = None, full_output: Any = 0,
           col_deriv: Any = 0, xtol: float = 1.49012e-8, maxfev: int = 0, band: Any = None, epsfcn: Any = None,
           factor: Any = 100, diag: Any = None) -> Any:
    name = "scipy.optimize.fsolve"
    x, found, left = _solved(name, func, x0, args, xtol, maxfev)
    if not this_recorder().knows(found.number):
        require(found, RuntimeError(f"{name}: {NO_PROGRESS}"))
        success = True
    else:
        success = bool(found)
    if full_output:
        report = SolverReport(name, found, NO_PROGRESS, x=x, fvec=left)
        return x, report, 1 if success else 4, report.message
    if not success:
        warnings.warn(NO_PROGRESS, RuntimeWarning, stacklevel=2)
    return x


# --- least squares ------------------------------------------------------------------------------------

def _unbounded(name: str, bounds: Any) -> None:
    """A refusal of bounds, unless they are infinite."""
    ends: Any = (getattr(bounds, "lb", None), getattr(bounds, "ub", None)) if hasattr(bounds, "lb") else bounds
    if builder_in(ends) is not None or not (np.all(np.isneginf(ends[0])) and np.all(np.isposinf(ends[1]))):
        raise refused(this_recorder(), f"{name} with bounds=", "map the parameters, positive ones by np.exp, so "
                      "that they may be any numbers")


def _fitted(callback: _Residuals, start: Any, xtol: float, most: int) -> tuple[Any, Any]:
    """Where the sum of squares is least, with its derivatives, and whether it was found."""
    x, short = _descent(callback, start, min(xtol, CLOSE), most)
    least = implicit(callback, x, 0, lambda y, f: 0.5 * np.sum(f * f), minimum=True)
    return least, settled_truth(short & np.all(np.isfinite(callback(x))))


@substitute("scipy.optimize", "least_squares", calls=True)
def least_squares(fun: Callable[..., Any], x0: Any, jac: Any = "2-point", bounds: Any = (-np.inf, np.inf),
                  method: str = "trf", ftol: Any = 1e-8, xtol: Any = 1e-8, gtol: Any = 1e-8, x_scale: Any = None,
                  loss: Any = "linear", f_scale: Any = 1.0, diff_step: Any = None, tr_solver: Any = None,
                  tr_options: Any = None, jac_sparsity: Any = None, max_nfev: Any = None, verbose: int = 0,
                  args: Any = (), kwargs: Any = None, callback: Any = None, workers: Any = None) -> Any:
    name = "scipy.optimize.least_squares"
    if method not in ("trf", "dogbox", "lm"):
        raise ValueError("`method` must be 'trf', 'dogbox' or 'lm'.")
    if loss != "linear":
        raise refused(this_recorder(), f"{name} with loss={loss!r}", "minimize the sum by scipy.optimize.minimize")
    if callback is not None:
        raise refused(this_recorder(), f"{name} with callback=", "leave it out")
    _unbounded(name, bounds)
    residuals = _Residuals(partial(fun, **kwargs) if kwargs else fun, args, name)
    start = floats(x0)
    start = start.reshape(1) if not start.ndim else start
    if start.ndim > 1:
        raise ValueError("`x0` must have at most 1 dimension.")
    x, found = _fitted(residuals, start, xtol or 1e-8, max_nfev or 100 * start.shape[0])
    left, jacobian = residuals(x), residuals.jacobian(x)
    gradient = jacobian.T @ left
    return SolverReport(name, found, "The maximum number of function evaluations is exceeded.", x=x, fun=left,
                        jac=jacobian, cost=0.5 * np.sum(left * left), grad=gradient,
                        optimality=np.max(np.abs(gradient)), active_mask=np.zeros(start.shape[0], int))


@substitute("scipy.optimize", "curve_fit", calls=True)
def curve_fit(f: Callable[..., Any], xdata: Any, ydata: Any, p0: Any = None, sigma: Any = None,
              absolute_sigma: bool = False, check_finite: Any = None, bounds: Any = (-np.inf, np.inf),
              method: Any = None, jac: Any = None, *, full_output: bool = False, nan_policy: Any = None,
              **kwargs: Any) -> Any:
    name = "scipy.optimize.curve_fit"
    _unbounded(name, bounds)
    if full_output or nan_policy is not None:
        raise refused(this_recorder(), f"{name} with {'full_output' if full_output else 'nan_policy='}", "leave it out")
    xdata, y = xdata if builder_in(xdata) is not None else np.asarray(xdata), floats(ydata).reshape(-1)
    require_finite(check_finite is not False, xdata, y)
    start = floats(np.ones(_parameters(f)) if p0 is None else p0)
    start, weighted = start.reshape(-1), _weighted(y, sigma)
    residuals = _Residuals(lambda p: weighted(floats(f(xdata, *(p[i] for i in range(p.shape[0])))).reshape(-1) - y), (),
                           name)
    m, n = y.shape[0], start.shape[0]
    if n > m:
        raise TypeError(f"The number of func parameters={n} must not exceed the number of data points={m}")
    p, found = _fitted(residuals, start, CLOSE, kwargs.get("maxfev", kwargs.get("max_nfev")) or 200 * (n + 1))
    require(found, RuntimeError("Optimal parameters not found: Number of calls to function has reached maxfev = "
                                f"{200 * (n + 1)}."))
    left, jacobian = residuals(p), residuals.jacobian(p)
    covariance = np.linalg.inv(jacobian.T @ jacobian)
    if absolute_sigma:
        return p, covariance
    if m == n:
        from scipy.optimize import OptimizeWarning

        warnings.warn("Covariance of the parameters could not be estimated", OptimizeWarning, stacklevel=2)
        return p, covariance * np.inf
    return p, covariance * (np.sum(left * left) / (m - n))


def _parameters(f: Callable[..., Any]) -> int:
    """How many parameters a model has beside its variable."""
    given = list(inspect.signature(f).parameters.values())
    if len(given) < 2 or any(p.kind is p.VAR_POSITIONAL for p in given):
        raise ValueError("Unable to determine number of fit parameters.")
    return len(given) - 1


def _weighted(y: Any, sigma: Any) -> Callable[[Any], Any]:
    """Residuals in units of their errors: standard deviations, or a covariance matrix."""
    if sigma is None:
        return lambda left: left
    s = floats(sigma)
    if s.shape in ((), y.shape):
        return lambda left: left / s
    if s.shape != (y.shape[0],) * 2:
        raise ValueError("`sigma` has incorrect shape.")
    factor = floats(np.linalg.cholesky(s))
    return lambda left: floats(np.linalg.solve(factor, left))
