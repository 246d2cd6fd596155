"""Least squares: `least_squares`, `curve_fit`, `lsq_linear`, `nnls`.

The steps are those of Levenberg and Marquardt (`systems`), whichever method is asked; within bounds, those of the
variables that are not held at one; of a robust loss, those of squares that are weighted anew in each step. The
derivative is that of the solution, by the implicit function theorem, with the whole second derivative of the sum; a
variable at a bound moves with the bound.
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
from jitad.trace.scipy_rules.classes import require, this_recorder
from jitad.trace.scipy_rules.solvers.callbacks import SolverReport, floats
from jitad.trace.scipy_rules.solvers.descent import CLOSE, Box, Descent, settled, solution_within
from jitad.trace.scipy_rules.solvers.stiff import Equations
from jitad.trace.scipy_rules.solvers.systems import Loss, Manner, Residuals, descended
from jitad.trace.substitutes import substitute

__all__: list[str] = []


def _box(name: str, bounds: Any, n: int) -> Box | None:
    """Bounds, a pair or a `Bounds` object; None if they are infinite numbers."""
    low, high = (bounds.lb, bounds.ub) if hasattr(bounds, "lb") else bounds
    if builder_in(low, high) is None and np.all(np.isneginf(low)) and np.all(np.isposinf(high)):
        return None
    return Box(low, high, n, name)


def _fitted(callback: Residuals, start: Any, xtol: float, most: int, manner: Manner) -> tuple[Any, Any, Any]:
    """Where the sum is least, with its derivatives; whether it was found; which variables are at bounds."""
    box, total = manner.box, manner.total
    if box is not None:
        require((start >= box.low) & (start <= box.high), ValueError("Initial guess is outside of provided bounds"))
    x, short = descended(callback, start, min(xtol, CLOSE), most, manner)
    found = settled(short & np.all(np.isfinite(callback(x))))
    half = Equations(lambda y: 0.5 * total(callback(y)), callback.name)
    least = solution_within(half, half.jacobian, x, box, found)
    active = np.zeros(x.shape[0], int) if box is None else stopped(np.where(x >= box.high, 1.0, np.where(
        x <= box.low, -1.0, 0.0))).astype(int)
    return least, found, active


@substitute("scipy.optimize", "least_squares", calls=True)
def least_squares(fun: Callable[..., Any], x0: Any, jac: Any = "2-point", bounds: Any = (-np.inf, np.inf),
                  method: str = "trf", ftol: Any = 1e-8, xtol: Any = 1e-8, gtol: Any = 1e-8, x_scale: Any = None,
                  loss: Any = "linear", f_scale: Any = 1.0, diff_step: Any = None, tr_solver: Any = None,
                  tr_options: Any = None, jac_sparsity: Any = None, max_nfev: Any = None, verbose: int = 0,
                  args: Any = (), kwargs: Any = None, callback: Any = None, workers: Any = None) -> Any:
    name = "scipy.optimize.least_squares"
    if method not in ("trf", "dogbox", "lm"):
        raise ValueError("`method` must be 'trf', 'dogbox' or 'lm'.")
    if not isinstance(loss, str):
        raise refused(this_recorder(), f"{name} with a loss of your own", "name one of SciPy's, or minimize the sum by "
                      "scipy.optimize.minimize")
    if loss not in Loss.NAMES:
        raise ValueError(f"`loss` must be one of {Loss.NAMES} or a callable.")
    if method == "lm" and loss != "linear":
        raise ValueError("method='lm' supports only 'linear' loss function.")
    if callback is not None:
        raise refused(this_recorder(), f"{name} with callback=", "leave it out")
    residuals = Residuals(partial(fun, **kwargs) if kwargs else fun, args, name)
    start = floats(x0)
    start = start.reshape(1) if not start.ndim else start
    if start.ndim > 1:
        raise ValueError("`x0` must have at most 1 dimension.")
    box, robust = _box(name, bounds, start.shape[0]), None if loss == "linear" else Loss(loss, f_scale)
    if method == "lm" and box is not None:
        raise ValueError("Method 'lm' doesn't support bounds.")
    manner = Manner(100.0) if method == "lm" else Manner(1.0, isinstance(x_scale, str), box, robust)
    x, found, active = _fitted(residuals, start, xtol or 1e-8, max_nfev or 100 * start.shape[0], manner)
    left, jacobian = residuals(x), residuals.jacobian(x)
    cost = 0.5 * (np.sum(left * left) if robust is None else robust.total(left))
    scaled, weighted = (jacobian, left) if robust is None else robust.scaled(jacobian, left)
    gradient = scaled.T @ weighted
    return SolverReport(name, found, "The maximum number of function evaluations is exceeded.", x=x, fun=left,
                        jac=scaled, cost=cost, grad=gradient, optimality=np.max(np.abs(gradient if box is None else (
                            _towards_bounds(x, gradient, box)))), active_mask=active)


def _towards_bounds(x: Any, gradient: Any, box: Box) -> Any:
    """The gradient times the distance to the bound downhill of it, where there is one, as SciPy has it."""
    down, up = (gradient > 0) & np.isfinite(box.low), (gradient < 0) & np.isfinite(box.high)
    to_low, to_high = x - np.where(down, box.low, 0.0), np.where(up, box.high, 0.0) - x
    return gradient * np.where(down, to_low, np.where(up, to_high, 1.0))


@substitute("scipy.optimize", "leastsq", calls=True)
def leastsq(func: Callable[..., Any], x0: Any, args: Any = (), Dfun: Any = None, full_output: Any = False,
            col_deriv: Any = False, ftol: float = 1.49012e-8, xtol: float = 1.49012e-8, gtol: float = 0.0,
            maxfev: int = 0, epsfcn: Any = None, factor: float = 100, diag: Any = None) -> Any:
    name = "scipy.optimize.leastsq"
    if full_output:
        raise refused(this_recorder(), f"{name} with full_output", "use scipy.optimize.least_squares or curve_fit")
    residuals, start = Residuals(func, args, name), floats(x0).reshape(-1)
    m, n = residuals(start).shape[0], start.shape[0]
    if n > m:
        raise TypeError(f"Improper input: func input vector length N={n} must not exceed func output vector length "
                        f"M={m}")
    x, found, _ = _fitted(residuals, start, CLOSE, maxfev or 200 * (n + 1), Manner(float(factor)))
    return x, np.where(found, 1, 5)


@substitute("scipy.optimize", "curve_fit", calls=True)
def curve_fit(f: Callable[..., Any], xdata: Any, ydata: Any, p0: Any = None, sigma: Any = None,
              absolute_sigma: bool = False, check_finite: Any = None, bounds: Any = (-np.inf, np.inf),
              method: Any = None, jac: Any = None, *, full_output: bool = False, nan_policy: Any = None,
              **kwargs: Any) -> Any:
    name = "scipy.optimize.curve_fit"
    if full_output or nan_policy is not None:
        raise refused(this_recorder(), f"{name} with {'full_output' if full_output else 'nan_policy='}", "leave it out")
    xdata, y = xdata if builder_in(xdata) is not None else np.asarray(xdata), floats(ydata).reshape(-1)
    require_finite(check_finite is not False, xdata, y)
    start = floats(np.ones(_parameters(f)) if p0 is None else p0).reshape(-1)
    weighted, box = _weighted(y, sigma), _box(name, bounds, start.shape[0])
    start = start if box is None or p0 is not None else _between(box)
    residuals = Residuals(lambda p: weighted(floats(f(xdata, *(p[i] for i in range(p.shape[0])))).reshape(-1) - y), (),
                           name)
    m, n = y.shape[0], start.shape[0]
    if n > m:
        raise TypeError(f"The number of func parameters={n} must not exceed the number of data points={m}")
    most = kwargs.get("maxfev", kwargs.get("max_nfev")) or 200 * (n + 1)
    loss = Loss(kwargs["loss"], kwargs.get("f_scale", 1.0)) if kwargs.get("loss", "linear") != "linear" else None
    manner = Manner() if box is None and method in (None, "lm") else Manner(1.0, False, box, loss)
    p, found, _ = _fitted(residuals, start, CLOSE, most, manner)
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


def _between(box: Box) -> Any:
    """The start that SciPy takes within bounds: the middle, or 1 away from the only finite one."""
    low, high = np.isfinite(box.low), np.isfinite(box.high)
    a, b = np.where(low, box.low, 0.0), np.where(high, box.high, 0.0)
    return np.where(low & high, 0.5 * (a + b), np.where(low, a + 1.0, np.where(high, b - 1.0, 1.0)))


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


# --- linear problems ----------------------------------------------------------------------------------

def _linear(name: str, a: Any, b: Any, low: Any, high: Any, most: int) -> tuple[Any, Any, Any]:
    """Where ``|a x - b|`` is least within bounds, the residuals, and the bounds."""
    a, b = floats(a), floats(b)
    if a.ndim != 2 or b.ndim != 1 or a.shape[0] != b.shape[0]:
        raise ValueError(f"{name}: expected a matrix and a vector with as many elements as that has rows, but the "
                         f"shapes are {a.shape} and {b.shape}")
    n = a.shape[1]
    box, square, right = Box(low, high, n, name), a.T @ a, a.T @ b
    half = Equations(lambda x: 0.5 * np.sum((a @ x - b) ** 2), name)
    slope = lambda x: a.T @ (a @ x - b)
    descent = Descent(half, slope, lambda x: square + 0.0 * x[:, None], box)
    x, found = descent(box.inside(floats(np.zeros(n))), 1e-10 * (1.0 + np.max(np.abs(right))), most or 100 * (n + 1))
    return solution_within(half, slope, x, box, found), found, box


@substitute("scipy.optimize", "nnls")
def nnls(A: Any, b: Any, *, maxiter: Any = None, atol: Any = None) -> Any:
    name = "scipy.optimize.nnls"
    x, found, _ = _linear(name, A, b, 0.0, np.inf, maxiter)
    require(found, RuntimeError("Maximum number of iterations reached."))
    left = floats(A) @ x - floats(b)
    return x, np.linalg.norm(left)


@substitute("scipy.optimize", "lsq_linear")
def lsq_linear(A: Any, b: Any, bounds: Any = (-np.inf, np.inf), method: str = "trf", tol: float = 1e-10,
               lsq_solver: Any = None, lsmr_tol: Any = None, max_iter: Any = None, verbose: int = 0, *,
               lsmr_maxiter: Any = None) -> Any:
    name = "scipy.optimize.lsq_linear"
    if method not in ("trf", "bvls"):
        raise ValueError("`method` must be 'trf' or 'bvls'")
    low, high = (bounds.lb, bounds.ub) if hasattr(bounds, "lb") else bounds
    x, found, box = _linear(name, A, b, low, high, max_iter)
    left = floats(A) @ x - floats(b)
    active = stopped(np.where(x >= box.high, 1.0, np.where(x <= box.low, -1.0, 0.0))).astype(int)
    return SolverReport(name, found, "The maximum number of iterations is exceeded.", x=x, fun=left,
                        cost=0.5 * np.sum(left * left), active_mask=active)
