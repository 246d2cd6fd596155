"""Roots of systems of equations: `root`, `fsolve`; and the steps that least squares share with them.

All are found by the steps of Levenberg and Marquardt, each the solution of a linear least-squares problem by QR, with
Nielsen's choice of the damping (Madsen, Nielsen and Tingleff, Methods for non-linear least squares problems, 2nd ed.,
2004, section 3.2), in a loop of the compiled code. The Jacobian is that of the recorded function, not of differences:
near a root of a regular system these are Newton's steps. What is found agrees with what SciPy finds within tolerances
where there is one solution near the start; of several it may be another one. The derivative is that of the solution, by
the implicit function theorem (`jitad.passes.differentiate.solutions`).
"""
from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitad.trace.dispatch import refused
from jitad.trace.scipy_rules.classes import lifted, require, this_recorder
from jitad.trace.scipy_rules.solvers.callbacks import SolverCallback, SolverReport, floats, implicit, repeat
from jitad.trace.scipy_rules.solvers.descent import CLOSE, Box, settled
from jitad.trace.substitutes import substitute

__all__ = ["Loss", "Manner", "Residuals", "descended"]

METHODS = ("hybr", "lm")


class Residuals(SolverCallback):
    """A function that gives a vector, of a vector."""

    def _value(self, result: Any) -> Any:
        return super()._value(result).reshape(-1)


@dataclass(frozen=True)
class Manner:
    """How far the first step may go, in lengths of the start, and whether steps are damped in the scale of each
    variable, as MINPACK does, or of all, as the method trf; bounds and a loss."""

    reach: float = 100.0
    scaled: bool = True
    box: Box | None = None
    loss: Loss | None = None

    def total(self, f: Any) -> Any:
        return np.sum(f * f) if self.loss is None else self.loss.total(f)

    def weight(self, jacobian: Any, f: Any) -> Any:
        """What damping is multiplied with, of each variable."""
        square = jacobian * jacobian
        weight = np.sum(square if self.loss is None else self.loss.weights(f)[:, None] * square, axis=0)
        if not self.scaled:
            weight = np.max(weight) + 0.0 * weight
        return np.where(weight > 0, weight, 1.0)

    def first_damping(self, x: Any, f: Any, jacobian: Any) -> Any:
        weight, length = self.weight(jacobian, f), lambda v: np.sqrt(np.sum(v))
        gradient = jacobian.T @ (f if self.loss is None else self.loss.weights(f) * f)
        away = length(weight * x * x)
        damping = length(gradient * gradient / weight) / (self.reach * np.where(away > 0, away, 1.0))
        return np.where(np.isfinite(damping), np.maximum(damping, 1e-3), 1.0)


def descended(callback: Residuals, start: Any, xtol: float, most: int, manner: Manner) -> tuple[Any, Any]:
    """Where the sum of squares, or of a loss of them, is least, near `start`, within bounds; and whether steps became
    short."""
    box, loss, total = manner.box, manner.loss, manner.total
    start = start if box is None else box.inside(start)
    first = callback(start)

    def step(n: Any, x: Any, f: Any, damping: Any, growth: Any, short: Any) -> tuple[Any, list[Any]]:
        slopes = callback.jacobian(x)
        jacobian, left = (slopes, f) if loss is None else loss.scaled(slopes, f)
        gradient, weight = jacobian.T @ left, manner.weight(slopes, f)
        if box is not None:
            held = box.held(x, gradient)
            jacobian, gradient = np.where(held[None, :], 0.0, jacobian), np.where(held, 0.0, gradient)
        above = np.concatenate([jacobian, np.diag(np.sqrt(damping * weight))])
        q, r = map(floats, np.linalg.qr(above))
        move = -floats(np.linalg.solve(r, q[:f.shape[0]].T @ left))
        new = x + move if box is None else box.inside(x + move)
        move = new - x
        there = callback(new)
        gain = total(f) - total(there)
        ratio = gain / np.sum(move * (damping * weight * move - gradient))
        good = gain > 0
        short = (np.sqrt(np.sum(move * move)) <= xtol * (np.sqrt(np.sum(x * x)) + xtol)) | np.all(gradient == 0)
        x, f = np.where(good, new, x), np.where(good, there, f)
        shrink = np.where(ratio > 0.75, 0.1, np.maximum(1.0 / 3.0, 1.0 - (2.0 * ratio - 1.0) ** 3))
        damping = np.clip(damping * np.where(good, shrink, growth), 1e-20, 1e20)
        growth = np.where(good, 2.0, 2.0 * growth)
        return ~short & (n + 1 < most), [n + 1, x, f, damping, growth, short]

    damping = manner.first_damping(start, first, callback.jacobian(start))
    _, x, _, _, _, short = repeat(floats(0.0) == 0.0, [lifted(0), start, first, damping, floats(2.0),
                                                       floats(0.0) != 0.0], step)
    return x, short


class Loss:
    """What is summed in place of squares: ``scale**2 * rho((f / scale)**2)``, by SciPy's names of rho."""

    NAMES = ("linear", "soft_l1", "huber", "cauchy", "arctan")

    def __init__(self, name: str, scale: Any) -> None:
        self.name, self.scale = name, floats(scale)

    def rho(self, z: Any) -> tuple[Any, Any, Any]:
        """rho and its first two derivatives."""
        one = 1.0 + z
        if self.name == "soft_l1":
            root = np.sqrt(one)
            return 2.0 * (root - 1.0), 1.0 / root, -0.5 / (one * root)
        if self.name == "huber":
            near = z <= 1
            root = np.sqrt(np.where(near, 1.0, z))
            return np.where(near, z, 2.0 * root - 1.0), 1.0 / root, np.where(near, 0.0, -0.5 / root**3)
        if self.name == "cauchy":
            return np.log1p(z), 1.0 / one, -1.0 / one**2
        square = 1.0 + z * z
        return np.arctan(z), 1.0 / square, -2.0 * z / square**2

    def total(self, f: Any) -> Any:
        return np.sum(self.scale**2 * self.rho((f / self.scale) ** 2)[0])

    def weights(self, f: Any) -> Any:
        """Of the squares that have the loss's gradient."""
        return self.rho((f / self.scale) ** 2)[1]

    def scaled(self, jacobian: Any, f: Any) -> tuple[Any, Any]:
        """Jacobian and residuals of which the linear problem has the loss's gradient, and its Hessian as far as that
        is positive (Triggs et al., Bundle adjustment, 2000, section 4.3)."""
        z = (f / self.scale) ** 2
        _, first, second = self.rho(z)
        bend = np.sqrt(np.maximum(first + 2.0 * second * z, np.finfo(float).eps))
        return bend[:, None] * jacobian, f * (first / bend)


# --- roots ----------------------------------------------------------------------------------------------

def _solved(name: str, fun: Callable[..., Any], x0: Any, args: Any, xtol: float, most: int) -> tuple[Any, Any, Any]:
    """The root, whether it is one, and the function there."""
    callback, start = Residuals(fun, args, name), floats(x0).reshape(-1)
    n = start.shape[0]
    given = callback(start).shape
    if given != (n,):
        raise TypeError(f"{name}: there is a mismatch between the input and output shape of the function. Shape should "
                        f"be {(n,)} but it is {given}.")
    x, short = descended(callback, start, min(xtol, CLOSE), most or 200 * (n + 1), Manner())
    size = lambda v: np.sqrt(np.sum(v * v))
    left, scale = callback(x), size(callback.jacobian(x)) * size(x)
    found = settled(short & ((size(left) <= 1e-7 * scale) | (size(left) <= 1e-10 * size(callback(start)))
                                    | (size(left) == 0)))
    root = implicit(callback, x, 0)
    return root, found, callback(root)


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
