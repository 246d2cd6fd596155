"""Minima of functions: `minimize` and its kin.

What is found is a minimum to the precision of numbers, by Newton's damped steps (`descent`), whichever method is asked:
SciPy's methods come as near to it as their tolerances say. Of several minima it may be another one. Under constraints
it is found by multipliers (`constrained`). The derivative is that of the minimum, by the implicit function theorem
(`jitad.passes.differentiate.solutions`); a variable at a bound moves with the bound.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.trace.dispatch import refused
from jitad.trace.scipy_rules.classes import this_recorder
from jitad.trace.scipy_rules.solvers.callbacks import SolverCallback, SolverReport, floats
from jitad.trace.scipy_rules.solvers.constrained import Constrained, constraints_of
from jitad.trace.scipy_rules.solvers.descent import Descent, bounds_of, solution_within, unknown_options
from jitad.trace.scipy_rules.solvers.stiff import Equations
from jitad.trace.substitutes import substitute

__all__: list[str] = []

UNBOUNDED = "cg bfgs newton-cg dogleg trust-ncg trust-exact trust-krylov".split()
BOUNDED = "nelder-mead powell l-bfgs-b tnc slsqp trust-constr cobyla cobyqa".split()
CONSTRAINED = "slsqp trust-constr cobyla cobyqa".split()
WITH_HESSIAN = UNBOUNDED[3:]
OPTIONS = """disp maxiter maxfev maxfun gtol ftol xtol tol fatol xatol eps finite_diff_rel_step return_all norm c1 c2
    workers maxcor maxls iprint adaptive initial_simplex direc initial_trust_radius max_trust_radius eta inexact
    subproblem_maxiter xrtol hess_inv0 scale offset maxCGit eta stepmx accuracy minfev rescale"""
DONE, FAILED = "Optimization terminated successfully.", "Desired error not necessarily achieved due to precision loss."


class _Objective(SolverCallback):
    """A function that gives a number, of a vector; where `first`, it gives that with its gradient."""

    first = False

    def _value(self, result: Any) -> Any:
        value = super()._value(result[0] if self.first else result)
        if value.size != 1:
            raise ValueError("The user-provided objective function must return a scalar value.")
        return value.reshape(())


class _Minimum:
    """A minimum that was looked for: where, whether it was found."""

    def __init__(self, fun: Callable[..., Any], x0: Any, args: Any, name: str, pair: bool = False) -> None:
        self.start = floats(x0)
        self.start = self.start.reshape(1) if not self.start.ndim else self.start
        if self.start.ndim != 1:
            raise ValueError("'x0' must only have one dimension.")
        self.function = _Objective(fun, args, name)
        self.function.first = pair
        self.slopes = Equations(self.gradient, name)

    def gradient(self, x: Any) -> Any:
        return self.function.jacobian(x)

    def look(self, bounds: Any, gtol: float, most: int, parts: list[Any] | None = None) -> None:
        box = bounds_of(bounds, self.start.shape[0], self.function.name)
        if parts:
            constraints = Constrained(parts, self.start, self.function.name)
            self.x, self.success = constraints.solved(self.function, self.start, box, most)
            return
        found, self.success = Descent(self.function, self.gradient, self.slopes.jacobian, box)(self.start, gtol, most)
        self.x = solution_within(self.function, self.gradient, found, box, self.success)

    @property
    def report(self) -> dict[str, Any]:
        return {"x": self.x, "fun": self.function(self.x), "jac": self.gradient(self.x)}


@substitute("scipy.optimize", "minimize", calls=True)
def minimize(fun: Callable[..., Any], x0: Any, args: Any = (), method: Any = None, jac: Any = None, hess: Any = None,
             hessp: Any = None, bounds: Any = None, constraints: Any = (), tol: Any = None, callback: Any = None,
             options: Any = None) -> Any:
    name = "scipy.optimize.minimize"
    if method is None:
        method = "slsqp" if hasattr(constraints, "lb") or constraints else "bfgs" if bounds is None else "l-bfgs-b"
    if not isinstance(method, str):
        raise refused(this_recorder(), f"{name} with a method of your own", "name one of SciPy's")
    method = method.lower()
    if method not in (*UNBOUNDED, *BOUNDED):
        raise ValueError(f"Unknown solver {method}")
    parts = constraints_of(constraints, name)
    if parts and method not in CONSTRAINED:
        warnings.warn(f"Method {method} cannot handle constraints.", RuntimeWarning, stacklevel=2)
        parts = []
    if callback is not None:
        raise refused(this_recorder(), f"{name} with callback=", "leave it out")
    if bounds is not None and method in UNBOUNDED:
        warnings.warn(f"Method {method} cannot handle constraints nor bounds.", RuntimeWarning, stacklevel=2)
    options = unknown_options(name, options, OPTIONS)
    sought = _Minimum(fun, x0, args, name, jac is True)
    sought.look(bounds if method in BOUNDED else None, float(options.get("gtol", tol or 1e-5)),
                options.get("maxiter") or 200 * (sought.start.shape[0] + 1), parts)
    report = sought.report
    if method in WITH_HESSIAN:
        report["hess"] = sought.slopes.jacobian(sought.x)
    return SolverReport(name, sought.success, FAILED, good=(DONE, 0), bad=2, **report)


def _lone(name: str, func: Callable[..., Any], x0: Any, args: Any, options: dict[str, Any]) -> Any:
    """The minimum that a function of the older kind gives, alone."""
    name = f"scipy.optimize.{name}"
    taken = unknown_options(name, options, "ftol xtol gtol maxiter maxfun disp norm epsilon xrtol c1 c2 hess_inv0")
    sought = _Minimum(func, x0, args, name)
    sought.look(None, float(taken.get("gtol", 1e-5)), taken.get("maxiter") or 200 * (sought.start.shape[0] + 1))
    return sought.x


@substitute("scipy.optimize", "fmin", calls=True)
def fmin(func: Callable[..., Any], x0: Any, args: Any = (), **options: Any) -> Any:
    return _lone("fmin", func, x0, args, options)


@substitute("scipy.optimize", "fmin_bfgs", calls=True)
def fmin_bfgs(f: Callable[..., Any], x0: Any, fprime: Any = None, args: Any = (), **options: Any) -> Any:
    return _lone("fmin_bfgs", f, x0, args, options)


@substitute("scipy.optimize", "fmin_cg", calls=True)
def fmin_cg(f: Callable[..., Any], x0: Any, fprime: Any = None, args: Any = (), **options: Any) -> Any:
    return _lone("fmin_cg", f, x0, args, options)


@substitute("scipy.optimize", "fmin_powell", calls=True)
def fmin_powell(func: Callable[..., Any], x0: Any, args: Any = (), **options: Any) -> Any:
    return _lone("fmin_powell", func, x0, args, options)


@substitute("scipy.optimize", "fmin_l_bfgs_b", calls=True)
def fmin_l_bfgs_b(func: Callable[..., Any], x0: Any, fprime: Any = None, args: Any = (), approx_grad: Any = 0,
                  bounds: Any = None, **options: Any) -> Any:
    name = "scipy.optimize.fmin_l_bfgs_b"
    taken = unknown_options(name, options, "m factr pgtol epsilon iprint maxfun maxiter disp maxls")
    sought = _Minimum(func, x0, args, name, fprime is None and not approx_grad)
    sought.look(bounds, taken.get("pgtol", 1e-5), taken.get("maxiter") or 15000)
    details = SolverReport(name, sought.success, FAILED, grad=sought.gradient(sought.x),
                           warnflag=np.where(sought.success, 0, 2))
    return sought.x, sought.function(sought.x), details
