"""Call a compiled NumPy function from JAX: under `jax.jit`, `jax.grad` and `jax.vmap`, so in blackjax and NumPyro.

>>> import jax, jax.numpy as jnp
>>> import numpy as np
>>> from jitad.integrations.jax import to_jax
>>> jax.config.update("jax_enable_x64", True)
>>> def logp(theta, y):
...     return -0.5 * np.sum((y - theta[0]) ** 2 * np.exp(-theta[1])) - 0.5 * y.size * theta[1]
>>> density = to_jax(logp)
>>> y = jnp.array([1.0, 2.0, 4.0])
>>> jax.jit(jax.value_and_grad(density))(jnp.array([1.0, 0.0]), y)
(Array(-5., dtype=float64), Array([4. , 3.5], dtype=float64))
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitad.api.batch import batch
from jitad.api.transforms import jit, value_and_grad
from jitad.api.vjp_jvp import vjp
from jitad.errors import ArgumentTypeError
from jitad.inference.given import plain_function

try:
    import jax
except ModuleNotFoundError as error:
    if (error.name or "").split(".")[0] != "jax":
        raise
    raise ModuleNotFoundError(
        "jitad.integrations.jax needs JAX, which is not installed: pip install jax", name="jax"
    ) from None

__all__ = ["to_jax"]

Places = tuple[int, ...]
Results = Callable[..., Any]  # from the arguments, which may be tracers of JAX, to a tree of ShapeDtypeStruct


def to_jax(f: Callable[..., Any], shape: Sequence[int] = ()) -> Callable[..., Any]:
    """The function `f`, written in plain NumPy, as a function of JAX arrays.

    The value and the derivatives come from jitad's kernels, which JAX calls back; a kernel with some work to do
    releases the GIL. Derivatives are exact and of any order, by reverse mode (`jax.grad`, `jax.vjp`, `jax.jacrev`);
    `jax.vmap` becomes `jitad.batch`, one kernel for all examples.

    Parameters
    ----------
    f
        A function as for `jitad.jit`: of arrays, or of dicts, tuples and lists of them. An argument is made of floats,
        by which it can be differentiated, or of integers and booleans.
    shape
        The shape of its result, one array of floats: ``()`` for a log density.

    Returns
    -------
    g
        ``g(*args)`` gives a JAX array of `shape`, of the widest float dtype among `args`: with JAX's default settings
        float32, with ``jax.config.update("jax_enable_x64", True)`` float64, which samplers want.

    Raises
    ------
    ModuleNotFoundError
        When JAX is not installed (on import of this module).
    ArgumentTypeError
        From `g`, for arguments without any float, or one that holds both floats and integers.

    Errors of `f` and of jitad reach the caller in JAX's own exception, with their text. Forward mode (`jax.jvp`,
    `jax.hessian`, which is forward over reverse) is refused by JAX; ``jax.jacrev(jax.grad(g))`` is the Hessian.

    Examples
    --------
    Many chains at once:

    >>> square = to_jax(lambda x: np.sum(x**2))
    >>> jax.vmap(jax.grad(square))(jax.numpy.arange(4.0).reshape(2, 2))
    Array([[0., 2.],
           [4., 6.]], dtype=float64)
    """
    size = tuple(int(n) for n in shape)
    function = plain_function(f)

    def result(*args: Any) -> Any:
        return jax.ShapeDtypeStruct(size, _float_dtype(args))

    bridged = _bridge(function, result, scalar=size == ())
    return functools.wraps(function)(lambda *args: bridged(*args))


def _bridge(f: Callable[..., Any], result: Results, scalar: bool) -> Callable[..., Any]:
    """`f` as a JAX function. Its derivative is a function of the same kind, made when it is asked for."""
    compute = _Callback(jit(f), result)

    @jax.custom_vjp
    def call(*args: Any) -> Any:
        return compute(*args)

    @functools.cache
    def both(places: Places) -> Callable[..., Any]:
        def like(*args: Any) -> Any:
            return result(*args), tuple(_like(args[place]) for place in places)

        return _bridge(value_and_grad(f, argnums=places), like, scalar=False)

    @functools.cache
    def pulled(places: Places) -> Callable[..., Any]:
        def pull(cotangent: Any, *args: Any) -> Any:
            return vjp(f, *args, argnums=places)[1](cotangent)

        return _bridge(pull, lambda _, *args: tuple(_like(args[place]) for place in places), scalar=False)

    def forward(*args: Any) -> Any:
        places = _places(args)
        if not scalar:
            return call(*args), (args, None)
        value, gradients = both(places)(*args)
        return value, (args, gradients)

    def backward(saved: Any, cotangent: Any) -> Any:
        args, gradients = saved
        places = _places(args)
        if gradients is None:
            gradients = pulled(places)(cotangent, *args)
        else:
            gradients = jax.tree.map(lambda gradient: cotangent * gradient, gradients)
        known = dict(zip(places, gradients, strict=True))
        return tuple(known.get(place, _no_derivative(arg)) for place, arg in enumerate(args))

    call.defvjp(forward, backward)
    return call


class _Callback:
    """A compiled function, called back by JAX, with one kernel for whatever `jax.vmap` makes of it."""

    def __init__(self, f: Callable[..., Any], result: Results) -> None:
        self.f = f
        self.result = result
        self.batched = functools.cache(lambda axes: batch(f, in_axes=axes))

    def __call__(self, *args: Any) -> Any:
        expected = self.result(*args)
        ranks = [jax.tree.map(np.ndim, arg) for arg in args]

        def called_back(*values: Any) -> Any:
            arrays = jax.tree.map(np.asarray, values)
            shape, axes, arrays = _examples(arrays, ranks)
            found = self.batched(axes)(*arrays) if any(axis == 0 for axis in axes) else self.f(*arrays)
            leading = shape if any(axis == 0 for axis in axes) else (1,) * len(shape)
            return jax.tree.map(lambda out, made: _shaped(made, leading, shape, out), expected, found)

        return jax.pure_callback(called_back, expected, *args, vmap_method="expand_dims")


def _examples(args: Sequence[Any], ranks: Sequence[Any]) -> tuple[tuple[int, ...], tuple[int | None, ...], list[Any]]:
    """The sizes of the mapped dimensions, along which axis each argument has its examples, and the arguments with these
    dimensions made one. A dimension of size 1 that JAX put before an argument says that all examples share it."""
    extra = [jax.tree.leaves(jax.tree.map(lambda leaf, rank: np.empty(leaf.shape[: leaf.ndim - rank]), arg, of))
             for arg, of in zip(args, ranks, strict=True)]
    shape = np.broadcast_shapes(*(leading.shape for of in extra for leading in of))
    axes: list[int | None] = []
    flat = []
    for arg, of, leading in zip(args, ranks, extra, strict=True):
        shared = all(part.size == 1 for part in leading)
        axes.append(None if shared else 0)
        lead = (1,) * len(shape) if shared else shape

        def one(leaf: Any, rank: int, lead: tuple[int, ...] = lead, shared: bool = shared) -> Any:
            own = leaf.shape[leaf.ndim - rank:]
            return np.broadcast_to(leaf, lead + own).reshape(own if shared else (-1, *own))

        flat.append(jax.tree.map(one, arg, of))
    return shape, tuple(axes), flat


def _shaped(made: Any, leading: tuple[int, ...], shape: tuple[int, ...], out: Any) -> Any:
    """What a kernel gave, with the mapped dimensions taken apart again."""
    array = np.asarray(made, dtype=out.dtype).reshape(leading + out.shape)
    return np.broadcast_to(array, shape + out.shape)


def _float_dtype(args: Any) -> Any:
    floats = [leaf.dtype for leaf in map(_aval, jax.tree.leaves(args)) if np.issubdtype(leaf.dtype, np.floating)]
    if not floats:
        raise ArgumentTypeError("none of the arguments is made of floats, so that there is nothing to differentiate "
                                "by; pass at least one array of floats")
    return np.result_type(*floats)


def _places(args: Sequence[Any]) -> Places:
    """The positions of the arguments that are made of floats."""
    places = []
    for place, arg in enumerate(args):
        kinds = {bool(np.issubdtype(_aval(leaf).dtype, np.floating)) for leaf in jax.tree.leaves(arg)}
        if len(kinds) == 2:
            raise ArgumentTypeError(f"argument {place} holds both floats and integers; pass them as two arguments")
        if kinds == {True}:
            places.append(place)
    return tuple(places)


def _aval(leaf: Any) -> Any:
    return jax.typeof(leaf)


def _like(arg: Any) -> Any:
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf), _aval(leaf).dtype), arg)


def _no_derivative(arg: Any) -> Any:
    """JAX's zero cotangent of integers and booleans."""
    return jax.tree.map(lambda leaf: np.zeros(np.shape(leaf), jax.dtypes.float0), arg)
