"""Sample a log density written in plain NumPy with nutpie's NUTS.

>>> import numpy as np
>>> import nutpie
>>> from jitad.integrations.nutpie import from_logp
>>> def logp(theta, y):                         # theta = [mu, log_sigma]
...     mu, log_sigma = theta[0], theta[1]
...     z = (y - mu) * np.exp(-log_sigma)
...     return -0.5 * np.sum(z * z) - y.size * log_sigma - 0.5 * mu**2 - 0.5 * log_sigma**2
>>> model = from_logp(logp, {"mu": (), "log_sigma": ()}, data=(np.array([1.2, 0.7, 2.1]),))
>>> trace = nutpie.sample(model, draws=200, chains=2, seed=1, progress_bar=False)
>>> trace.posterior["mu"].shape
(2, 200)

The compiled gradient goes to the sampler as a raw C pointer: no Python runs, and
no lock is taken, between two leapfrog steps.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import math
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitad.api.transforms import jit_grad
from jitad.errors import JitadError, SignatureError

__all__ = ["NutpieError", "from_logp"]

Shape = tuple[int, ...]
Transform = Callable[[np.ndarray], Mapping[str, Any]]

# int64 expand(uint64 dim, uint64 expanded, double* x, double* out, void* data)
_EXPAND = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
)


class NutpieError(JitadError, RuntimeError):
    """The installed nutpie cannot take a compiled function from jitad."""


def from_logp(
    logp: Callable[..., Any],
    parameters: Mapping[str, int | Sequence[int]],
    data: Sequence[Any] = (),
    *,
    transform: Transform | None = None,
    start: Any = None,
    jitter: float = 1.0,
    dims: Mapping[str, Sequence[str]] | None = None,
    coords: Mapping[str, Sequence[Any]] | None = None,
) -> Any:
    """Compile the gradient of a log density and return a model for ``nutpie.sample``.

    Parameters
    ----------
    logp
        ``logp(theta, *data) -> scalar``, plain NumPy, up to a constant. ``theta`` is
        one flat float64 vector of shape ``(d,)``; every point of R^d must be allowed
        (give a positive quantity by its logarithm and add the log of the Jacobian).
        May be decorated with ``jit_grad`` already.
    parameters
        Name -> shape, in the order in which the blocks lie in ``theta``:
        ``{"mu": (), "eta": (8,)}`` means ``mu = theta[0]``, ``eta = theta[1:9]``, so d = 9.
        An integer ``n`` means ``(n,)``. Blocks are in C order.
    data
        What ``logp`` takes after ``theta``, as a tuple. Copied once; what depends on it alone is computed once.
    transform
        ``transform(theta) -> {name: array}``: what the trace stores instead of the
        blocks of ``theta``. Runs as ordinary Python once per draw.
    start
        Point of shape ``(d,)`` around which the chains start and at which ``logp`` is
        recorded; zeros by default.
    jitter
        Each chain starts at ``start + uniform(-jitter, jitter)``.
    dims, coords
        Names of the dimensions of the stored variables and their labels, as in ArviZ.

    Returns
    -------
    model
        A model that ``nutpie.sample`` accepts. It keeps the compiled tape alive, which
        is at ``model.logp_func``.

    Examples
    --------
    Store a positive scale and the effects instead of the unconstrained vector:

    >>> def logp(theta):
    ...     return -0.5 * np.sum(theta * theta)
    >>> model = from_logp(
    ...     logp,
    ...     {"mu": (), "log_tau": (), "eta": (8,)},
    ...     transform=lambda t: {"tau": np.exp(t[1]), "effect": t[0] + np.exp(t[1]) * t[2:]},
    ...     dims={"effect": ["school"]},
    ...     coords={"school": list("ABCDEFGH")},
    ... )
    >>> model.shapes
    {'tau': (), 'effect': (8,)}
    """
    model_class = _model_class()
    blocks = _normalise(parameters)
    dim = sum(math.prod(shape) for shape in blocks.values())
    theta0 = _start(start, blocks, dim)
    compiled = _compile(logp, theta0, data)
    stored = blocks if transform is None else _stored_shapes(transform, theta0)
    expand = _copy_expand() if transform is None else _transform_expand(transform, stored)
    named = _dims(dims, stored)
    values = {
        "dims": named,
        "compiled_logp_func": _Pointer(compiled.cfunc.address, compiled),
        "compiled_expand_func": expand,
        "initial_point_func": functools.partial(_initial_point, theta0, jitter),
        "shared_data": {},
        "user_data": _UserData(compiled.cfunc.data),
        "n_expanded": sum(math.prod(shape) for shape in stored.values()),
        "shape_info": (list(stored), _slices(stored), list(stored.values())),
        "logp_func": compiled,
        "expand_func": transform,
        "_n_dim": dim,
        "_shapes": stored,
        "_coords": _coords(coords, named, stored, blocks),
    }
    return _fill(model_class, values)


# --- what nutpie wants ---------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Pointer:
    """Address of a C function, with whatever must live as long as it may be called."""

    address: int | None
    keep: Any


class _UserData:
    """Stands where nutpie expects an array of shared data and reads ``.ctypes.data``."""

    def __init__(self, address: int | None) -> None:
        self.data = address or 0

    @property
    def ctypes(self) -> _UserData:
        return self

    def copy(self) -> _UserData:
        return self


def _model_class() -> Any:
    """nutpie's class for models given by C pointers; it imports without PyMC."""
    try:
        from nutpie.compile_pymc import CompiledPyMCModel
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] == "nutpie":
            message = "jitad.integrations.nutpie needs nutpie, which is not installed: pip install 'nutpie>=0.16.6'"
            raise ModuleNotFoundError(message, name="nutpie") from None
        raise
    return CompiledPyMCModel


def _fill(model_class: Any, values: Mapping[str, Any]) -> Any:
    """Build nutpie's dataclass from those of its fields that this version has."""
    fields = [field for field in dataclasses.fields(model_class) if field.init]
    unknown = [
        field.name
        for field in fields
        if field.name not in values
        and field.default is dataclasses.MISSING
        and field.default_factory is dataclasses.MISSING
    ]
    if unknown:
        raise NutpieError(
            f"this version of nutpie asks for {', '.join(unknown)} in {model_class.__name__}, which jitad does not "
            "know how to fill. Install nutpie 0.16.6 to 0.16.8, or a newer jitad."
        )
    return model_class(**{field.name: values[field.name] for field in fields if field.name in values})


# --- the arguments ---------------------------------------------------------------------------


def _normalise(parameters: Mapping[str, int | Sequence[int]]) -> dict[str, Shape]:
    """``{"a": 3, "b": ()}`` -> ``{"a": (3,), "b": ()}``, or an error that names the culprit."""
    if not isinstance(parameters, Mapping):
        raise SignatureError(
            f"parameters must map names to shapes, such as {{'mu': (), 'eta': (8,)}}; got {type(parameters).__name__}"
        )
    blocks = {}
    for name, shape in parameters.items():
        try:
            sizes = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
            blocks[name] = tuple(int(size) for size in sizes)
        except TypeError:
            raise SignatureError(
                f"parameters[{name!r}] must be a shape such as (), 8 or (8, 2); got {shape!r}"
            ) from None
        if any(size < 0 for size in blocks[name]):
            raise SignatureError(f"parameters[{name!r}] has a negative size: {shape!r}")
    if not any(math.prod(shape) for shape in blocks.values()):
        raise SignatureError("parameters is empty: there is nothing to sample")
    return blocks


def _start(start: Any, blocks: Mapping[str, Shape], dim: int) -> np.ndarray:
    """The point of shape ``(dim,)`` at which to record, zeros by default."""
    if start is None:
        return np.zeros(dim)
    theta0 = np.array(start, dtype=np.float64)
    if theta0.shape != (dim,):
        listing = ", ".join(f"{name} {shape}" for name, shape in blocks.items())
        raise SignatureError(f"start has shape {theta0.shape}, but the parameters ({listing}) make a vector of {dim}")
    return theta0


def _compile(logp: Callable[..., Any], theta0: np.ndarray, data: Sequence[Any]) -> Any:
    """The compiled value and gradient of ``logp`` in its first argument, with the data bound."""
    if isinstance(data, (str, bytes, Mapping)) or not isinstance(data, Sequence):
        raise SignatureError(f"data must be a tuple, such as (X, y) or (y,); got {type(data).__name__}")
    decorated = hasattr(logp, "compile") and hasattr(logp, "value_and_grad")
    gradient: Any = logp if decorated else jit_grad(logp)
    return gradient.compile(theta0, *data)


def _stored_shapes(transform: Transform, theta0: np.ndarray) -> dict[str, Shape]:
    """Shapes of what ``transform`` returns, by calling it once."""
    values = transform(theta0.copy())
    if not isinstance(values, Mapping) or not values:
        raise SignatureError(
            f"transform must return a dict of named arrays, such as {{'tau': np.exp(theta[1])}}; got {values!r}"
        )
    return {name: np.shape(value) for name, value in values.items()}


def _dims(dims: Mapping[str, Sequence[str]] | None, stored: Mapping[str, Shape]) -> dict[str, tuple[str, ...]]:
    """Names of dimensions by variable, checked against the stored shapes."""
    named = {name: (of,) if isinstance(of, str) else tuple(of) for name, of in (dims or {}).items()}
    for name, of in named.items():
        if name not in stored:
            raise SignatureError(f"dims names {name!r}, which is not stored; stored are {', '.join(stored)}")
        if len(of) != len(stored[name]):
            raise SignatureError(f"dims[{name!r}] = {of} has {len(of)} names, but the shape is {stored[name]}")
    return named


def _coords(
    coords: Mapping[str, Sequence[Any]] | None,
    named: Mapping[str, tuple[str, ...]],
    stored: Mapping[str, Shape],
    blocks: Mapping[str, Shape],
) -> dict[str, Any]:
    """Labels of every named dimension (counted from 0 where none are given), and those of
    the flat vector, which nutpie's own statistics use."""
    import pandas  # nutpie needs it anyway

    flat = [
        f"{name}[{', '.join(map(str, index))}]" if index else name
        for name, shape in blocks.items()
        for index in np.ndindex(shape)
    ]
    labels = {name: list(of) for name, of in (coords or {}).items()}
    labels["unconstrained_parameter"] = flat
    for name, of in named.items():
        for dimension, size in zip(of, stored[name], strict=True):
            have = len(labels.setdefault(dimension, list(range(size))))
            if have != size:
                raise SignatureError(f"dimension {dimension!r} has {have} labels, but {name!r} has {size} of them")
    return {name: pandas.Index(of) for name, of in labels.items()}


def _slices(stored: Mapping[str, Shape]) -> list[slice]:
    """Where each stored variable lies in the expanded vector."""
    ends = np.cumsum([math.prod(shape) for shape in stored.values()]).tolist()
    return [slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False)]


def _initial_point(theta0: np.ndarray, jitter: float, seed: int | None) -> np.ndarray:
    """A start for one chain, of shape ``(d,)``."""
    return theta0 + np.random.default_rng(seed).uniform(-jitter, jitter, theta0.shape)


# --- from the unconstrained vector to the trace ---------------------------------------------


@functools.cache
def _copy_expand() -> _Pointer:
    """C function that stores the vector as it is; compiled once for all models."""
    from numba import cfunc, types

    doubles = types.CPointer(types.float64)

    @cfunc(types.int64(types.uint64, types.uint64, doubles, doubles, types.voidptr))
    def copy(dim, expanded, x, out, data):  # type: ignore[no-untyped-def]
        if dim != expanded:
            return -1
        for i in range(dim):
            out[i] = x[i]
        return 0

    return _Pointer(copy.address, copy)


def _transform_expand(transform: Transform, stored: Mapping[str, Shape]) -> _Pointer:
    """C function that calls ``transform`` and writes its arrays, in C order, one after the other."""
    doubles = ctypes.POINTER(ctypes.c_double)

    def expand(dim: int, expanded: int, x: int, out: int, data: int | None) -> int:
        try:
            theta = np.ctypeslib.as_array(ctypes.cast(x, doubles), (dim,)).copy()
            target = np.ctypeslib.as_array(ctypes.cast(out, doubles), (expanded,))
            values = transform(theta)
            target[:] = np.concatenate([np.broadcast_to(values[name], shape).ravel() for name, shape in stored.items()])
        except Exception as error:
            # C code cannot pass an exception on: print it, and let nutpie stop with its own, vaguer error
            error.add_note(f"while transform computed the variables to store: {', '.join(stored)}")
            traceback.print_exception(error)
            return -2
        return 0

    callback = _EXPAND(expand)
    return _Pointer(ctypes.cast(callback, ctypes.c_void_p).value, callback)
