"""What mici's systems ask for, from a log density in plain NumPy, in mici's own order of returned values.

>>> import mici
>>> import numpy as np
>>> from jitad.integrations.mici import density
>>> def logp(q, y):
...     return -0.5 * np.sum((y - q[0]) ** 2) - 0.5 * q[0] ** 2
>>> system = mici.systems.EuclideanMetricSystem(**density(logp, data=(np.array([1.0, 2.0]),)))
>>> system.grad_neg_log_dens(mici.states.ChainState(pos=np.array([0.5])))
array([-1.5])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitad.api.derivatives import hessian, jacobian, value_and_jacobian, value_gradient_and_hessian
from jitad.api.transforms import jit, jit_grad, value_and_grad

__all__ = ["constraint", "density"]

Function = Callable[..., Any]


def density(logp: Function, data: Sequence[Any] = (), *, second: bool = False) -> dict[str, Function]:
    """The arguments of mici's systems that describe the density ``exp(logp(q, *data))``.

    Parameters
    ----------
    logp
        ``logp(q, *data) -> scalar``, plain NumPy, up to a constant; `q` is a float64 vector of shape ``(d,)``.
    data
        What `logp` takes after `q`.
    second
        Whether to give second and third derivatives too, for ``SoftAbsRiemannianMetricSystem``.

    Returns
    -------
    arguments
        ``neg_log_dens`` and ``grad_neg_log_dens``, which gives ``(gradient, value)`` in one sweep; with `second` also
        ``hess_neg_log_dens``, which gives ``(Hessian, gradient, value)``, and ``mtp_neg_log_dens``, the product of a
        matrix with the third derivatives. What is wrong with `logp` is raised at the first evaluation, by jitad.

    Examples
    --------
    >>> arguments = density(lambda q: -q[0] * q[1] - q[0] ** 2 - q[1] ** 2, second=True)
    >>> arguments["hess_neg_log_dens"](np.ones(2))
    (array([[2., 1.],
           [1., 2.]]), array([3., 3.]), 3.0)
    """
    extra = tuple(data)
    value, both = jit(logp), value_and_grad(logp)
    arguments: dict[str, Function] = {
        "neg_log_dens": lambda q: -value(q, *extra),
        "grad_neg_log_dens": lambda q: _negative_last_first(both(q, *extra)),
    }
    if second:
        three, along = value_gradient_and_hessian(logp), _weighted(hessian(logp))
        arguments["hess_neg_log_dens"] = lambda q: _negative_last_first(three(q, *extra))
        arguments["mtp_neg_log_dens"] = lambda q: lambda m: -along(q, m, *extra)
    return arguments


def constraint(constr: Function, data: Sequence[Any] = ()) -> dict[str, Function]:
    """The arguments of mici's constrained systems that describe the manifold ``constr(q, *data) == 0``.

    Parameters
    ----------
    constr
        ``constr(q, *data) -> array`` of shape ``(c,)``, plain NumPy, of a float64 vector `q` of shape ``(d,)``.
    data
        What `constr` takes after `q`.

    Returns
    -------
    arguments
        ``constr``; ``jacob_constr``, which gives the Jacobian of shape ``(c, d)`` with the value; ``mhp_constr``, the
        product of a matrix with the second derivatives. What is wrong with `constr` is raised at the first evaluation.

    Examples
    --------
    >>> circle = constraint(lambda q: q[:1] ** 2 + q[1:] ** 2 - 1.0)
    >>> circle["jacob_constr"](np.array([0.6, 0.8]))
    (array([[1.2, 1.6]]), array([0.]))
    >>> circle["mhp_constr"](np.array([0.6, 0.8]))(np.array([[1.0, 2.0]]))
    array([2., 4.])
    """
    extra = tuple(data)
    value, both, along = jit(constr), value_and_jacobian(constr), _weighted(jacobian(constr))
    return {
        "constr": lambda q: value(q, *extra),
        "jacob_constr": lambda q: both(q, *extra)[::-1],
        "mhp_constr": lambda q: lambda m: along(q, m, *extra),
    }


def _negative_last_first(found: Sequence[Any]) -> tuple[Any, ...]:
    """Of a log density, highest derivative last, what mici takes: of the energy, highest derivative first."""
    return tuple(-part for part in reversed(found))


def _weighted(matrix: Function) -> Function:
    """The gradient in `q` of ``sum(m * matrix(q, *data))``, as ``f(q, m, *data)``."""
    return jit_grad(lambda q, m, *data: np.sum(m * matrix(q, *data)), on_mismatch="silent")  # of several densities
