"""`sharded`: a log-likelihood that is a sum over shards of data, as one function."""
from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from jitad.api.custom.primitive import Custom, primitive
from jitad.api.transforms import value_and_grad
from jitad.distributed.kinds import KINDS, answer, names_of, plain
from jitad.distributed.shards import Leaves, added, checked, loaded, ordered, summed
from jitad.errors import ArgumentTypeError, NonFiniteError
from jitad.trace.pytree import leaves_of
from jitad.trace.where import user_line

__all__ = ["Sharded", "sharded"]


def sharded(log_likelihood: Callable[..., Any], shards: Sequence[Any], prior: Callable[..., Any] | None = None, *,
            client: Any = None) -> Sharded:
    """The sum of a log-likelihood over shards of data, and of a log prior, as one function of the parameters.

    Parameters
    ----------
    log_likelihood
        ``log_likelihood(theta, *data)``, plain NumPy, one real number for the data of one shard; `theta` is a float64
        array. May be decorated with `jit`, `jit_grad` or `value_and_grad` already.
    shards
        A list with the data of each shard: an array or a number, a tuple of them, a dict by the names of the arguments;
        or where to find such data: the path of an ``.npy`` or ``.npz`` file, of a ``.parquet`` table, of which columns
        are taken by the names of the arguments (columns of lists of one length are matrices), or of a ``.zarr`` array
        or group; or a function without arguments that loads them. Shapes may differ between shards; each costs a
        compilation.
    prior
        ``prior(theta)``, added once.
    client
        A `distributed.Client`: its workers keep the shards, and each evaluation is one round of small messages. Without
        one, shards are gone through here, one after the other; one that is loaded from somewhere is loaded in each
        evaluation and left again, so that the data may be larger than the memory.

    Returns
    -------
    Sharded
        ``f(theta)`` is the value; it has the methods `value_and_grad`, `grad`, `hvp`, `hessian`, `batch` and
        `check_finite`. Functions that are compiled and differentiated may call it: those given to `jit_grad`,
        `jitad.posterior`, or one of the integrations with samplers and optimisers.

    Notes
    -----
    Sums are trees in a fixed order: a result is the same bit for bit, on any number of workers (of one kind of
    processor), in any order of their answers, and after one of them was lost. Then its shards go to others,
    and the round is done again. What travels is the tape, as `CompiledTape.save` writes it, not the function; captured
    values must stay those of the first evaluation. The way in which a branch goes may differ between shards and points.

    A function that loads a shard is sent by cloudpickle. Memory of a worker is freed when the object is gone.

    Raises
    ------
    ArgumentTypeError, SignatureError
        For shards, functions or a client that are none, before anything is sent; with `client`, for captured values
        that have changed.
    NonFiniteError
        In an evaluation at finite numbers that gives NaN, if data of a shard are NaN or infinite: with the number of
        the shard and the row.
    ClusterError
        If workers have other versions of the libraries, if none is left, or if the scheduler is gone.
    TapeFileError
        With `client`, for functions that cannot be saved, as those that call Python.
    ModuleNotFoundError
        Without Dask, pyarrow or zarr, where they are needed: the extras `jitad[dask]` and `jitad[shards]`.

    Examples
    --------
    >>> import numpy as np, jitad
    >>> def log_likelihood(theta, x, y):
    ...     return -0.5 * np.sum((y - theta[0] - theta[1] * x) ** 2)
    >>> x = np.arange(12.0)
    >>> pieces = [(a, 1.0 + 2.0 * a) for a in np.array_split(x, 3)]
    >>> f = jitad.sharded(log_likelihood, pieces, prior=lambda theta: -0.5 * np.sum(theta**2))
    >>> theta = np.array([1.0, 1.5])
    >>> f(theta)
    -64.875
    >>> f.value_and_grad(theta)
    (-64.875, array([ 32. , 251.5]))
    >>> from scipy.optimize import minimize
    >>> from jitad.integrations.scipy import objective
    >>> minimize(x0=np.zeros(2), **objective(f, maximise=True)).x.round(3)
    array([0.832, 2.018])
    """
    return Sharded(log_likelihood, shards, prior, client)


class Engine(Protocol):
    """What evaluates all shards and adds."""

    def evaluate(self, kind: str, inputs: tuple[np.ndarray, ...]) -> Leaves:
        """The sum over all shards of what the kind of function gives: see `KINDS`."""


class Sharded(Custom):
    """Made by `sharded`.

    >>> import numpy as np, jitad
    >>> f = jitad.sharded(lambda theta, y: -0.5 * np.sum((y - theta[0] * theta[1]) ** 2), [np.zeros(2), np.ones(3)])
    >>> theta = np.array([1.0, 0.5])
    >>> f(theta), f.value_and_grad(theta), f.grad(theta)
    (-0.625, (-0.625, array([0.25, 0.5 ])), array([0.25, 0.5 ]))
    >>> f.hessian(theta), f.hvp(theta, np.array([1.0, 0.0]))
    (array([[-1.25, -2. ],
           [-2.  , -5. ]]), array([-1.25, -2.  ]))
    >>> f.batch(np.array([theta, 2 * theta]))[0]
    array([-0.625, -5.5  ])
    >>> f.check_finite(theta)
    """

    def __init__(self, log_likelihood: Callable[..., Any], shards: Sequence[Any],
                 prior: Callable[..., Any] | None, client: Any):
        for what, function in (("log_likelihood", log_likelihood), ("prior", prior)):
            if not callable(function) and not (what == "prior" and function is None):
                raise ArgumentTypeError(f"{what} must be a function, not a {type(function).__name__} (at "
                                        f"{user_line()})")
        self.log_likelihood, self.prior = plain(log_likelihood), None if prior is None else plain(prior)
        self.shards = checked(shards)
        for number, source in enumerate(self.shards):
            if isinstance(source, Mapping):
                ordered(source, number, names_of(self.log_likelihood))
        self.engine: Engine = Streaming(self.log_likelihood, self.shards)
        if client is not None:
            from jitad.distributed.rounds import Rounds

            self.engine = Rounds(self.log_likelihood, self.shards, client)
        self._priors: dict[str, Callable[..., Any]] = {}
        self._lock, self._latest = threading.Lock(), ("", np.empty(0), np.empty(0))
        product = primitive(self.hvp, opaque=True)
        gradient = primitive(self.grad, opaque=True, vjp=lambda ct, y, theta: product(theta, ct),
                             jvp=lambda tangents, y, theta: product(theta, tangents[0]))
        super().__init__(self._value, lambda ct, y, theta: ct * gradient(theta),
                         lambda tangents, y, theta: np.sum(tangents[0] * gradient(theta)), True)
        self.__name__ = self.__qualname__ = getattr(self.log_likelihood, "__name__", "log_likelihood")

    # --- calls ---------------------------------------------------------------------------------------------------
    def __jitad_with__(self, function: Any) -> Any:
        return self if function is self.__wrapped__ else Custom(function, *self.settings)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"{self!r} holds shards, or a cluster that does, and cannot be pickled; make it where it is "
                        "used")

    def _value(self, theta: Any) -> float:
        return self._both(_array(theta, "theta"))[0]

    def value_and_grad(self, theta: Any) -> tuple[float, np.ndarray]:
        """The value and its gradient, of the shape of `theta`, in one round."""
        value, gradient = self._both(_array(theta, "theta"))
        return value, gradient.copy()

    def grad(self, theta: Any) -> np.ndarray:
        """The gradient, of the shape of `theta`."""
        return self.value_and_grad(theta)[1]

    def _both(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient; those of the latest point are known, since compiled code asks for one after the other."""
        key = f"{theta.shape}{theta.tobytes().hex()}"
        with self._lock:
            known, value, gradient = self._latest
        if known != key:
            value, gradient = self._sum("value_and_grad", theta)
            with self._lock:
                self._latest = key, value, gradient
        return float(value), gradient

    def hvp(self, theta: Any, v: Any) -> np.ndarray:
        """The product of the Hessian and a `v` of the shape of `theta`, without the Hessian."""
        theta, v = _array(theta, "theta"), _array(v, "v")
        if theta.shape != v.shape:
            raise ArgumentTypeError(f"v has shape {v.shape}, and theta {theta.shape} (at {user_line()})")
        return self._sum("hvp", theta, v)[0]

    def hessian(self, theta: Any) -> np.ndarray:
        """The Hessian, of shape ``(*theta.shape, *theta.shape)``."""
        return self._sum("hessian", _array(theta, "theta"))[0]

    def batch(self, thetas: Any) -> tuple[np.ndarray, np.ndarray]:
        """Values of shape ``(n,)`` and gradients at `n` points of shape ``(n, *theta.shape)``, in one round."""
        thetas = _array(thetas, "thetas")
        if thetas.ndim < 2 or not len(thetas):
            raise ArgumentTypeError(f"thetas has shape {thetas.shape}; give points along the first axis, of shape "
                                    f"(n, d) (at {user_line()})")
        values, gradients = self._sum("batch", thetas)
        return values, gradients

    def check_finite(self, theta: Any) -> None:
        """Raise `NonFiniteError` if value or gradient of a shard or of the prior has a NaN or an infinity, with the
        number of the shard and your line. The shards are gone through here, without the cluster."""
        theta = _array(theta, "theta")
        compiled = value_and_grad(self.log_likelihood, on_mismatch="silent")
        for number, source in enumerate(self.shards):
            try:
                compiled.check_finite(theta, *loaded(source, number, names_of(self.log_likelihood)))
            except NonFiniteError as error:
                raise NonFiniteError(f"shard {number}: {error}") from None
        if self.prior is not None:
            value_and_grad(self.prior).check_finite(theta)

    def _sum(self, kind: str, *inputs: np.ndarray) -> Any:
        found = self.engine.evaluate(kind, inputs)
        if self.prior is None:
            return found
        if kind not in self._priors:
            self._priors[kind] = KINDS[kind](self.prior, 0)
        return added(found, tuple(leaves_of(self._priors[kind](*inputs))[0]))

    def __repr__(self) -> str:
        return f"<jitad sharded {self.__name__} of {len(self.shards)} shards>"


def _array(given: Any, name: str) -> np.ndarray:
    found = np.asarray(given)
    if found.dtype.kind not in "iuf" or not found.ndim:
        what = f"an array of {found.dtype}" if found.ndim else f"a {type(given).__name__}"
        raise ArgumentTypeError(f"{name} must be an array of float64, not {what} (at {user_line()})")
    return np.ascontiguousarray(found, dtype=np.float64)


class Streaming:
    """Shards on this machine, one after the other."""

    def __init__(self, function: Callable[..., Any], sources: list[Any]):
        self.function, self.sources, self.names = function, sources, names_of(function)
        self.functions: dict[tuple[str, int], Callable[..., Any]] = {}

    def evaluate(self, kind: str, inputs: tuple[np.ndarray, ...]) -> Leaves:
        """As `Engine.evaluate`."""
        def leaf(number: int) -> Leaves:
            data = loaded(self.sources[number], number, self.names)
            key = kind, len(data)
            if key not in self.functions:
                self.functions[key] = KINDS[kind](self.function, len(data))
            return answer(self.functions[key], inputs, data, number, self.names)
        return summed((0, len(self.sources)), leaf)
