"""An objective in plain NumPy for `scipy.optimize.minimize`: value, gradient and second derivatives.

>>> import numpy as np
>>> from scipy.optimize import minimize
>>> from jitad.integrations.scipy import objective
>>> def rosenbrock(x):
...     return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)
>>> fit = minimize(x0=np.zeros(3), method="trust-exact", **objective(rosenbrock, second="hess"))
>>> np.round(fit.x, 2)
array([1., 1., 1.])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from jitad.api.derivatives import hessian, hvp
from jitad.api.transforms import value_and_grad
from jitad.errors import ArgumentTypeError

__all__ = ["objective"]


def objective(f: Callable[..., Any], data: Sequence[Any] = (), *, second: Literal["hess", "hessp"] | None = None,
              maximise: bool = False) -> dict[str, Any]:
    """The arguments of `scipy.optimize.minimize` that describe the function ``f(x, *data)``.

    Parameters
    ----------
    f
        ``f(x, *data) -> scalar``, plain NumPy, of a float64 vector of shape ``(d,)``.
    data
        What `f` takes after `x`.
    second
        ``"hess"`` for the methods that take a Hessian (Newton-CG, dogleg, trust-exact, trust-constr), ``"hessp"`` for
        those that take its products with a vector (Newton-CG, trust-ncg, trust-krylov). None for the others, which
        would warn.
    maximise
        Whether `f` is to be made large, as a log density is; what SciPy minimises is then ``-f``.

    Returns
    -------
    arguments
        ``fun`` and ``jac=True``, value and gradient in one sweep, and ``hess`` or ``hessp`` as asked. What is wrong
        with `f` is raised at the first evaluation.

    Raises
    ------
    ArgumentTypeError
        For another `second`.

    Examples
    --------
    >>> arguments = objective(lambda x, a: a * x @ x, data=(3.0,), second="hessp")
    >>> arguments["fun"]([1.0, 2.0]), arguments["hessp"]([1.0, 2.0], [1.0, 0.0])
    ((15.0, array([ 6., 12.])), array([6., 0.]))
    """
    if second not in (None, "hess", "hessp"):
        raise ArgumentTypeError(f"second must be 'hess', 'hessp' or None, not {second!r}")
    extra = tuple(data)
    sign = -1.0 if maximise else 1.0
    both = value_and_grad(f)

    def fun(x: Any) -> tuple[float, np.ndarray]:
        value, gradient = both(_vector(x), *extra)
        return sign * value, sign * gradient

    arguments: dict[str, Any] = {"fun": fun, "jac": True}
    if second == "hess":
        matrix = hessian(f)
        arguments["hess"] = lambda x: sign * matrix(_vector(x), *extra)
    elif second == "hessp":
        product = hvp(f)
        arguments["hessp"] = lambda x, v: sign * product(_vector(x), *extra, _vector(v))
    return arguments


def _vector(x: Any) -> Any:
    """SciPy hands over float64 vectors; a user at the prompt hands over lists."""
    return np.asarray(x, dtype=np.float64)
