"""`batch`: a function of one example becomes a function of many."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from jitad.api.linear_operators import Lazy
from jitad.api.transforms import transform
from jitad.call.batch import BatchedFunction
from jitad.call.compiled import CompiledTape
from jitad.call.request.axes import Axes
from jitad.call.request.request import Request, Settings
from jitad.call.transformed import Transformed
from jitad.errors import ArgumentTypeError
from jitad.trace.where import user_line

__all__ = ["batch"]


def batch(f: Callable[..., Any] | None = None, in_axes: Any = 0, out_axes: Any = 0, *, on_mismatch: str | None = None,
          static: Sequence[str] = (), parallel: bool | None = None) -> Any:
    """The function of many examples at once, in one compiled kernel; a decorator with or without arguments.

    What a loop over the examples would give, stacked: for chains of a sampler, draws of a posterior, rows of a data
    set. Small models run side by side in vector lanes, products with a matrix that all share become one product of
    matrices, and loops advance all examples together.

    Parameters
    ----------
    f
        A function as for `jit`, or what `jit_grad`, `value_and_grad`, `jit`, `jacobian`, `hessian` and their like
        gave, or `batch` itself.
    in_axes
        Along which axis of the arguments the examples lie: an int for all positional arguments, or a tuple with an
        entry for each. None stands for what all examples share. The entry of a tree of arrays may be a tree, which
        ends where one axis is meant for all below. Keyword-only arguments are shared if `in_axes` is a tuple.
    out_axes
        Along which axis of the results: an int, or a tree of them as for `in_axes`. None for what does not depend on
        the example.
    on_mismatch, static, parallel
        As for `jit_grad`. Another number of examples is another shape, for which is compiled again.

    Returns
    -------
    g
        ``g(*args)`` has the structure of what `f` gives, of arrays with one more dimension. It has the methods of
        other transformed functions, and may be called in functions that are compiled and differentiated themselves.

    Notes
    -----
    Where the code branches on numbers (``if x > 0``) and all examples take one way, that way is compiled. Examples that
    take different ways are computed one after the other, with one warning: right, but slower; `numpy.where` is no
    branch. In functions that are recorded they raise `ConcretizationError`.

    Raises
    ------
    ArgumentTypeError
        For an `f` that gives sparse matrices or linear operators; on a call with arguments that have no such axes, or
        different numbers of examples.
    OutputError
        On the first call, if a result has no such axis.

    Examples
    --------
    >>> import numpy as np
    >>> from jitad import batch, jit_grad
    >>> def logp(theta, y):
    ...     return -0.5 * np.sum((y - theta) ** 2)
    >>> chains = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
    >>> batch(jit_grad(logp), in_axes=(0, None))(chains, np.array([1.0, 2.0]))
    array([[ 1.,  2.],
           [ 0.,  1.],
           [-1.,  0.]])
    """
    axes = Axes.of(in_axes, out_axes)

    def make(function: Callable[..., Any], request: Request, settings: Settings) -> BatchedFunction:
        inner = function.function if isinstance(function, CompiledTape) else function
        if isinstance(inner, Lazy):
            raise ArgumentTypeError(f"`{inner.__name__}` gives a linear operator, of which there is no batch (at "
                                    f"{user_line()}); leave out lazy=True, or call it for each example")
        if not isinstance(inner, Transformed):
            return BatchedFunction(function, replace(request, batch=(axes,)), settings)
        given, asked = inner.subject.given, inner.subject.request
        if asked.sparse:
            raise ArgumentTypeError(f"`{inner.__name__}` gives a sparse matrix, which has no further dimension for a "
                                    f"batch (at {user_line()}); leave out sparse=True, or call it for each example")
        known = inner.subject.settings
        joined = Settings(settings.on_mismatch or known.on_mismatch, (*known.static, *settings.static),
                          known.background or settings.background,
                          known.parallel if settings.parallel is None else settings.parallel)
        return BatchedFunction(given, replace(asked, batch=(axes, *asked.batch)), joined)
    return transform(f, "value", 0, on_mismatch, static, parallel=parallel, make=make)
