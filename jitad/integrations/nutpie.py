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

import dataclasses
import functools
import inspect
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitad.api.transforms import jit
from jitad.call.bound import c_values
from jitad.compile.entry.expansion import PythonExpansion, copying
from jitad.constraints.joint import stacked_values, without_data
from jitad.constraints.scalars import real
from jitad.errors import JitadError, SamplerError, SignatureError, StartError
from jitad.inference.check import unused
from jitad.inference.density import NO_DENSITY, Density, raised_at, require_number
from jitad.inference.draws import checked_labels, require_names
from jitad.inference.given import FreeVector, plain_function
from jitad.inference.nuts import VERSIONS, not_installed
from jitad.inference.starts import starts

__all__ = ["from_logp"]

Shape = tuple[int, ...]
Transform = Callable[..., Mapping[str, Any]]


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
        ``transform(theta)`` or ``transform(theta, *data)`` gives ``{name: array}``: what the trace stores instead of
        the blocks of ``theta``, all as floats. Compiled; what cannot be recorded runs as ordinary Python once per draw.
        `jitad.posterior` has `generated` for this, which keeps integers and booleans.
    start
        Point of shape ``(d,)`` around which the chains start, zeros by default; or a function of a
        `numpy.random.Generator` that makes one for each chain.
    jitter
        Each chain starts at a point of ``start + uniform(-jitter, jitter)`` at which ``logp`` is finite.
    dims, coords
        Names of the dimensions of the stored variables and their labels, as in ArviZ.

    Returns
    -------
    model
        A model that ``nutpie.sample`` accepts; it keeps alive what is compiled.

    Raises
    ------
    SignatureError
        For arguments that do not fit together: a vector that is too short for ``logp``, wrong labels.
    StartError
        Where ``logp`` is finite at no point near ``start``, with the line that makes a NaN; for blocks, or numbers of
        them, on which ``logp`` does not depend.
    SamplerError
        For a version of nutpie that cannot take what jitad compiles.

    `jitad.posterior` does more: constraints, ArviZ's groups, chains that start where they are told to.

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
    require_names(list(blocks), "a block")
    free = FreeVector({name: real(shape) for name, shape in blocks.items()})
    theta0 = np.zeros(free.dim) if start is None else start if callable(start) else free.vector(start, "start")
    density = Density(plain_function(logp), free.blocks, _checked(data))
    point = _tried(density, free, theta0, jitter)
    compiled = density.compile(point)
    if transform is not None:
        transform = _with_data(transform, density.data)
    stored = blocks if transform is None else _stored_shapes(transform, point, density.data)
    require_names(list(stored), "what transform gives")
    expand = _expansion(transform, density, point, stored)
    named, labels = checked_labels(dims, coords, stored)
    values = {
        "dims": named,
        "compiled_logp_func": compiled,
        "compiled_expand_func": expand,
        "initial_point_func": functools.partial(_initial_point, density, free, theta0, jitter),
        "shared_data": {},
        "shared_var_keys": {},
        "user_data": _UserData(compiled.data),
        "n_expanded": sum(math.prod(shape) for shape in stored.values()),
        "shape_info": (list(stored), _slices(stored), list(stored.values())),
        "logp_func": density,
        "expand_func": transform,
        "_n_dim": free.dim,
        "_shapes": stored,
        "_coords": _indexed(labels, free.names),
    }
    return _fill(model_class, values)


# --- what nutpie wants ---------------------------------------------------------------------


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
            raise not_installed("jitad.integrations.nutpie") from None
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
        raise SamplerError(
            f"this version of nutpie asks for {', '.join(unknown)} in {model_class.__name__}, which jitad does not "
            f"know how to fill. Install {VERSIONS}, or a newer jitad."
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
            blocks[name] = tuple(operator.index(size) for size in sizes)
        except TypeError:
            raise SignatureError(
                f"parameters[{name!r}] must be a shape such as (), 8 or (8, 2); got {shape!r}"
            ) from None
        if any(size < 0 for size in blocks[name]):
            raise SignatureError(f"parameters[{name!r}] has a negative size: {shape!r}")
    if not any(math.prod(shape) for shape in blocks.values()):
        raise SignatureError("parameters is empty: there is nothing to sample")
    return blocks


def _checked(data: Any) -> tuple[Any, ...]:
    if isinstance(data, (str, bytes, Mapping)) or not isinstance(data, Sequence):
        raise SignatureError(f"data must be a tuple, such as (X, y) or (y,); got {type(data).__name__}")
    return tuple(data)


def _tried(density: Density, free: FreeVector, start: Any, jitter: float) -> np.ndarray:
    """A point at which the density is finite, after one ordinary call that says what does not fit."""
    at = np.asarray(start(np.random.default_rng(0)) if callable(start) else start, dtype=np.float64)
    try:
        with np.errstate(all="ignore"):
            require_number(density.function(at.copy(), *density.data))
    except NO_DENSITY:
        pass                                             # at this point; others follow
    except (IndexError, KeyError, TypeError) as error:
        if isinstance(error, JitadError):
            raise
        raise SignatureError(_misfit(density, free, at, error)) from error
    point = starts(density, free, start, jitter, 1, 0)[0]
    found = unused(density.function, density, point, free.names)
    if found:
        raise StartError(f"logp does not depend on {', '.join(map(repr, found))}: there is no distribution to draw "
                         "from. Use all of the vector in logp (a prior is enough), or make the blocks smaller")
    return point


def _misfit(density: Density, free: FreeVector, at: np.ndarray, error: Exception) -> str:
    listing = ", ".join(f"{name} {shape}" for name, shape in free.shapes.items())
    begun = (f"logp fails on a vector of {free.dim} numbers, which the blocks ({listing}) make: "
             f"{type(error).__name__}: {error}{raised_at(error)}")
    values = {b.name: at[b.begin:b.end].reshape(b.constraint.shape) for b in free.blocks}
    try:
        density.function(values, *density.data)
    except Exception:
        return f"{begun}. Do the sizes fit?"
    return (f"{begun}. It takes a dict of values by name: give it to jitad.posterior(logp, {{'name': real(8), ...}}, "
            "data), which also samples")


def _with_data(transform: Transform, data: tuple[Any, ...]) -> Callable[..., Any]:
    """`transform` as a function of the vector and the data, which it need not take."""
    try:
        inspect.signature(transform).bind(None, *data)
    except TypeError:
        return without_data(transform)
    return transform


def _stored_shapes(transform: Callable[..., Any], theta: np.ndarray, data: tuple[Any, ...]) -> dict[str, Shape]:
    """Shapes of what ``transform`` returns, by calling it once."""
    values = transform(theta.copy(), *data)
    if not isinstance(values, Mapping) or not values:
        raise SignatureError(
            f"transform must return a dict of named arrays, such as {{'tau': np.exp(theta[1])}}; got {values!r}"
        )
    return {name: np.shape(value) for name, value in values.items()}


def _indexed(labels: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    """Labels as nutpie wants them, with those of the flat vector, which its own statistics use."""
    import pandas  # nutpie needs it anyway

    return {name: pandas.Index(of) for name, of in {**labels, "unconstrained_parameter": names}.items()}


def _slices(stored: Mapping[str, Shape]) -> list[slice]:
    """Where each stored variable lies in the expanded vector."""
    ends = np.cumsum([math.prod(shape) for shape in stored.values()]).tolist()
    return [slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False)]


def _initial_point(density: Density, free: FreeVector, start: Any, jitter: float, seed: int | None) -> np.ndarray:
    """A start for one chain, of shape ``(d,)``."""
    return starts(density, free, start, jitter, 1, seed)[0]


# --- from the unconstrained vector to the trace ---------------------------------------------


def _expansion(transform: Callable[..., Any] | None, density: Density, point: np.ndarray,
               stored: Mapping[str, Shape]) -> Any:
    """The C function of what is stored of a draw: compiled, or through Python for what cannot be recorded."""
    if transform is None:
        return copying()
    kept = sum(math.prod(shape) for shape in stored.values())
    flat = stacked_values(transform, tuple(stored))
    try:
        return c_values(jit(flat, on_mismatch="silent").bind(*density.data), point, kept)
    except JitadError:
        return PythonExpansion(point.size, kept, lambda theta: flat(theta, *density.data))
