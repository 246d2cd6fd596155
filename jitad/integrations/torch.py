"""Call a compiled NumPy function from PyTorch, differentiable by autograd.

>>> import numpy as np, torch
>>> from jitad.integrations.torch import to_torch
>>> def logp(theta, y):
...     return -0.5 * np.sum((y - theta[0]) ** 2 * np.exp(-theta[1])) - 0.5 * y.size * theta[1]
>>> density = to_torch(logp)
>>> theta = torch.tensor([1.0, 0.0], dtype=torch.float64, requires_grad=True)
>>> value = density(theta, np.array([1.0, 2.0, 4.0]))
>>> value.backward()
>>> value.item(), theta.grad
(-5.0, tensor([4.0000, 3.5000], dtype=torch.float64))
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.api.transforms import jit, value_and_grad
from jitad.errors import ArgumentTypeError
from jitad.inference.given import plain_function
from jitad.integrations.pullback import pullback

try:
    import torch
except ModuleNotFoundError as error:
    if (error.name or "").split(".")[0] != "torch":
        raise
    raise ModuleNotFoundError(
        "jitad.integrations.torch needs PyTorch, which is not installed: pip install torch", name="torch"
    ) from None

__all__ = ["to_torch"]

Places = tuple[int, ...]
FLOATS = (torch.float64, torch.float32)
OTHERS = (torch.bool, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def to_torch(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function `f`, written in plain NumPy, as a function of tensors.

    The value and the derivatives come from jitad's kernels; of a scalar function both from one sweep. Derivatives are
    exact and of any order, by reverse mode (``backward``, `torch.autograd.grad` with ``create_graph=True``).

    Parameters
    ----------
    f
        A function as for `jitad.jit`, of arrays and numbers, whose result is one array of floats or one number.

    Returns
    -------
    g
        ``g(*args)``, of tensors on the CPU, NumPy arrays and numbers, gives a tensor of the dtype that `f` gives:
        float64, or float32 for arguments of float32.

    Raises
    ------
    ModuleNotFoundError
        When PyTorch is not installed (on import of this module).
    ArgumentTypeError
        From `g`, for tensors that are not on the CPU, or whose dtype NumPy's kernels do not have.

    Errors of `f` and of jitad reach the caller as they are.

    Examples
    --------
    >>> cube = to_torch(lambda x: np.sum(x**3))
    >>> x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    >>> slope, = torch.autograd.grad(cube(x), x, create_graph=True)
    >>> torch.autograd.grad(slope.sum(), x)
    (tensor([ 6., 12.], dtype=torch.float64),)
    """
    function = plain_function(f)
    bridge = _Bridge(function, scalar=True)
    return functools.wraps(function)(lambda *args: bridge(*map(_tensor, args)))


class _Bridge:
    """A compiled function of tensors. Its derivative is a bridge as well, made when it is asked for."""

    def __init__(self, function: Callable[..., Any], scalar: bool):
        self.scalar = scalar                                            # whether its value may be one number
        self.number: bool | None = None                                 # whether it is: not yet known
        self.kernel = jit(function, on_mismatch="silent")               # shapes may vary
        self.both = functools.cache(lambda places: value_and_grad(function, argnums=places, on_mismatch="silent"))
        self.pulled = functools.cache(lambda count, places: _Bridge(pullback(self.kernel, count, places), False))

    def __call__(self, *args: Any) -> Any:
        found = _Call.apply(self, *args)
        return found[0] if self.scalar and isinstance(found, tuple) else found


class _Call(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, bridge: _Bridge, *args: Any) -> Any:
        ctx.bridge, ctx.gradients = bridge, None
        ctx.save_for_backward(*args)
        arrays = [arg.detach().numpy() for arg in args]
        found = bridge.kernel(*arrays) if not bridge.scalar else _with_gradients(ctx, bridge, arrays)
        if isinstance(found, tuple):
            return tuple(map(_owned, found))
        return _owned(found)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        args, bridge = ctx.saved_tensors, ctx.bridge
        places = _places(ctx)
        if ctx.gradients is not None and not torch.is_grad_enabled():
            found: Any = [cotangents[0] * gradient for gradient in ctx.gradients]
        else:
            found = bridge.pulled(len(cotangents), places)(*cotangents, *args)
            found = found if isinstance(found, tuple) else (found,)
        known = dict(zip(places, found, strict=True))
        return (None, *(known[place].to(arg.dtype) if place in known else None for place, arg in enumerate(args)))


def _with_gradients(ctx: Any, bridge: _Bridge, arrays: list[np.ndarray]) -> Any:
    """The value; if it is a number and derivatives are wanted, with the gradients by the way."""
    places = _places(ctx)
    if not places:
        return bridge.kernel(*arrays)
    if bridge.number is None:
        bridge.number = np.ndim(bridge.kernel(*arrays)) == 0
    if not bridge.number:
        return bridge.kernel(*arrays)
    value, gradients = bridge.both(places)(*arrays)
    ctx.gradients = tuple(map(_owned, gradients))
    return value


def _places(ctx: Any) -> Places:
    """The positions of the arguments by which derivatives are wanted."""
    return tuple(place for place, needed in enumerate(ctx.needs_input_grad[1:]) if needed)


def _tensor(arg: Any) -> Any:
    tensor = arg if isinstance(arg, torch.Tensor) else torch.as_tensor(arg, dtype=torch.float64 if isinstance(
        arg, float) else None)
    if tensor.device.type != "cpu":
        raise ArgumentTypeError(f"jitad computes on the CPU, and an argument is on {tensor.device}; pass `.cpu()` of "
                                 "it")
    if tensor.dtype not in FLOATS and tensor.dtype not in OTHERS:
        raise ArgumentTypeError(f"an argument has the dtype {tensor.dtype}, which jitad has no kernels for; pass "
                                "`.double()` of it")
    return tensor


def _owned(found: Any) -> Any:
    return torch.from_numpy(np.array(found))
