"""A compiled NumPy function as an operation of PyTensor, so in PyMC models: `pm.Potential`, `pm.CustomDist`.

>>> import numpy as np
>>> import pytensor.tensor as pt
>>> from jitad.integrations.pytensor import as_op
>>> def logp(mu, y):
...     return -0.5 * np.sum((y - mu) ** 2)
>>> density = as_op(logp)
>>> mu = pt.dscalar("mu")
>>> value = density(mu, np.array([1.0, 2.0, 3.0]))
>>> value.eval({mu: 1.0}), pt.grad(value, mu).eval({mu: 1.0})
(array(-2.5), array(3.))
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitad.api.transforms import jit, value_and_grad
from jitad.errors import ArgumentTypeError
from jitad.inference.given import plain_function
from jitad.integrations.pullback import pullback

try:
    import pytensor.tensor as pt
    from pytensor.compile.sharedvalue import SharedVariable
    from pytensor.gradient import DisconnectedType, disconnected_type
    from pytensor.graph.basic import Apply, Constant
    from pytensor.graph.op import Op
except ModuleNotFoundError as error:
    if (error.name or "").split(".")[0] != "pytensor":
        raise
    raise ModuleNotFoundError(
        "jitad.integrations.pytensor needs PyTensor, which is not installed: pip install pytensor (or pymc)",
        name="pytensor",
    ) from None

__all__ = ["as_op"]

Places = tuple[int, ...]


def as_op(f: Callable[..., Any], ndim: int = 0) -> Callable[..., Any]:
    """The function `f`, written in plain NumPy, as an operation on PyTensor's variables.

    The value and the derivatives come from jitad's kernels. The derivatives are exact and of any order.

    Parameters
    ----------
    f
        ``f(*arrays)``, a function as for `jitad.jit`, that gives one float64 array.
    ndim
        The number of dimensions of its result: 0 for a log density, 1 for the vector of log densities of observations
        that ``pm.CustomDist(logp=...)`` takes.

    Returns
    -------
    op
        ``op(*inputs)`` gives a variable of type float64. `inputs` are variables, arrays or numbers. Of constants and of
        shared variables (``pm.Data``) there are no derivatives: PyTensor raises ``DisconnectedInputError``.

    Raises
    ------
    ModuleNotFoundError
        When PyTensor is not installed (on import of this module).
    ArgumentTypeError
        For a negative `ndim`; from `op`, when none of its inputs can be differentiated by.

    Errors of `f` and of jitad are raised when the graph is evaluated. Under PyTensor's numba linker (and nutpie's
    models of PyMC) the kernel is called through numba's object mode.

    Examples
    --------
    >>> square = as_op(lambda x: x**2, ndim=1)
    >>> x = pt.dvector("x")
    >>> pt.grad(square(x).sum(), x).eval({x: np.array([1.0, 2.0])})
    array([2., 4.])
    """
    if ndim < 0:
        raise ArgumentTypeError(f"ndim is the number of dimensions of the result, 0 or more, not {ndim}")
    function = plain_function(f)

    def op(*inputs: Any) -> Any:
        variables = [pt.as_tensor_variable(value) for value in inputs]
        places = tuple(place for place, variable in enumerate(variables) if _is_differentiable(variable))
        if not places:
            raise ArgumentTypeError("none of the inputs is a variable made of floats, so that there is nothing to "
                                    "differentiate by; constants need no operation")
        made: Op = _Operation(function, places, ndim) if ndim else _Both(function, places)
        return made(*variables, return_list=True)[0]

    return op


class _Operation(Op):
    """A compiled function, differentiable by the inputs at `places`. Its output is an array of `ndim` dimensions."""

    __props__: tuple[str, ...] = ("function", "places", "ndim")

    def __init__(self, function: Callable[..., Any], places: Places, ndim: int = 0) -> None:
        self.function = function
        self.places = places
        self.ndim = ndim
        self.kernel = self.compiled()

    def compiled(self) -> Callable[..., Any]:
        return jit(self.function, on_mismatch="silent")  # PyTensor's shapes may vary

    def outputs(self, variables: Sequence[Any]) -> list[Any]:
        return [pt.tensor(dtype="float64", shape=(None,) * self.ndim)]

    def make_node(self, *inputs: Any) -> Apply:
        variables = [pt.as_tensor_variable(value) for value in inputs]
        return Apply(self, variables, self.outputs(variables))

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[Any]) -> None:
        found = self.kernel(*inputs)
        values = found if isinstance(found, tuple) else (found,)
        for store, value, output in zip(output_storage, values, node.outputs, strict=True):
            store[0] = np.asarray(value, dtype=output.type.dtype)

    def L_op(self, inputs: Sequence[Any], outputs: Sequence[Any], output_grads: Sequence[Any]) -> list[Any]:
        cotangents = [pt.zeros_like(output) if isinstance(ct.type, DisconnectedType) else ct
                      for output, ct in zip(outputs, output_grads, strict=True)]
        count = len(outputs)
        like = tuple(count + place for place in self.places)
        pull = _Pullback(_pulled(self.kernel, count, self.places), (*range(count), *like), like)
        return self.by_place(inputs, pull(*cotangents, *inputs, return_list=True))

    def by_place(self, inputs: Sequence[Any], gradients: Sequence[Any]) -> list[Any]:
        known = dict(zip(self.places, gradients, strict=True))
        return [known[place] if place in known else disconnected_type() for place in range(len(inputs))]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[place in self.places] * len(node.outputs) for place in range(len(node.inputs))]


class _Both(_Operation):
    """A scalar function with its gradient as further outputs, so that both come from one sweep."""

    def compiled(self) -> Callable[..., Any]:
        return _value_and_gradients(self.function, self.places)

    def outputs(self, variables: Sequence[Any]) -> list[Any]:
        return [pt.dscalar(), *(variables[place].type() for place in self.places)]

    def L_op(self, inputs: Sequence[Any], outputs: Sequence[Any], output_grads: Sequence[Any]) -> list[Any]:
        first, *others = output_grads
        if all(isinstance(ct.type, DisconnectedType) for ct in others):
            return self.by_place(inputs, [first * gradient for gradient in outputs[1:]])
        return super().L_op(inputs, outputs, output_grads)


class _Pullback(_Operation):
    """A function whose outputs are cotangents, each like one of its inputs."""

    __props__ = ("function", "places", "like")

    def __init__(self, function: Callable[..., Any], places: Places, like: Places) -> None:
        super().__init__(function, places)
        self.like = like

    def outputs(self, variables: Sequence[Any]) -> list[Any]:
        return [variables[place].type() for place in self.like]


def _is_differentiable(variable: Any) -> bool:
    return variable.type.dtype.startswith("float") and not isinstance(variable, (Constant, SharedVariable))


_pulled = functools.cache(pullback)


@functools.cache
def _value_and_gradients(function: Callable[..., Any], places: Places) -> Callable[..., Any]:
    both = value_and_grad(function, argnums=places)

    def flat(*args: Any) -> Any:
        value, gradients = both(*args)
        return (value, *gradients)

    return jit(flat, on_mismatch="silent")
