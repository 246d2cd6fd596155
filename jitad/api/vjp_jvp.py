"""Products with the Jacobian at a point: `vjp` (reverse), `jvp` and `linearize` (forward), as JAX has them."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from jitad.api.linear_operators import copied
from jitad.api.transforms import checked_argnums
from jitad.call.build.nested import differentiated, recorded_on, results_on, seeds_on
from jitad.call.pickling import restored, restores
from jitad.call.request.request import Request
from jitad.call.transformed import Transformed
from jitad.errors import ArgumentTypeError
from jitad.tape.builder import Value
from jitad.trace.pytree import leaves_of
from jitad.trace.recorder import Recorder, current
from jitad.trace.where import user_line

__all__ = ["jvp", "linearize", "vjp"]


def vjp(f: Callable[..., Any], *primals: Any, argnums: int | Sequence[int] | None = None) -> tuple[Any, Pullback]:
    """The value of a function and its pullback at a point: ``(value, pullback)``.

    ``pullback(ct)`` is the vector-Jacobian product for a cotangent `ct` that has the structure, shapes and dtypes of
    the value. It may be called again with other cotangents: each call is one call of a kernel, which computes the
    function again. The kernels are compiled once for all points of the same shapes. `primals` are copied; what `f`
    captures is read at each call.

    Parameters
    ----------
    f
        Plain NumPy code that returns floats: a number, an array, or a tree of them.
    primals
        Its arguments.
    argnums
        With respect to which of them: an int, a tuple, or None for all that are made of floats.

    Other options are those of the function: ``vjp(jit(f, on_mismatch="error", static=("model",)), *primals)``.

    Returns
    -------
    value, pullback
        ``pullback(ct)`` is a tuple with the cotangent of each of `primals` (None for those that are not made of
        floats); with `argnums`, of those only, and bare for an int.

    Raises
    ------
    OutputError
        From the pullback, if `f` returns integers or booleans.
    ArgumentTypeError
        For `primals` that cannot be differentiated; from the pullback, for a `ct` of another structure, shape or dtype.

    Examples
    --------
    >>> import numpy as np
    >>> value, pullback = vjp(lambda x: np.array([x[0] * x[1], x[1]]), np.array([2.0, 3.0]))
    >>> value
    array([6., 3.])
    >>> pullback(np.array([1.0, 0.0]))
    (array([3., 2.]),)
    """
    places, whole = _places(f, primals, argnums)
    value, product = _at(f, Request("vjp", places), primals)
    return value, Pullback(product, whole, primals, places)


def linearize(f: Callable[..., Any], *primals: Any,
              argnums: int | Sequence[int] | None = None) -> tuple[Any, Pushforward]:
    """The value of a function and its pushforward at a point: ``(value, pushforward)``.

    ``pushforward(*tangents)`` is the Jacobian-vector product, one tangent for each of `primals` (None for those that
    are not made of floats), or for each of `argnums`. It may be called again with other tangents. As `vjp` otherwise.

    >>> import numpy as np
    >>> value, pushforward = linearize(lambda x: x**2, np.array([2.0, 3.0]))
    >>> pushforward(np.array([1.0, 0.0]))
    array([4., 0.])
    """
    places, whole = _places(f, primals, argnums)
    places = places if isinstance(places, tuple) else (places,)
    value, product = _at(f, Request("pushforward", places), primals)
    return value, Pushforward(product, whole, primals, places)


def _at(f: Callable[..., Any], request: Request, primals: Sequence[Any]) -> tuple[Any, Callable[..., Any]]:
    """The value of a function at a point, and the product asked for as a function of the seed."""
    recorder = current()
    if recorder is not None:
        at = _OnTape(recorder, _followed(recorder, f), request, primals)
        return at.value, at.product
    point = _floats(primals, request.argnums)
    product, plain = _known(f, request), Transformed.quickly(f, "value", request.argnums)
    return (product.value if plain is None else plain)(*point), functools.partial(product, *point)


def jvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The value of a function and its derivative in one direction: ``(value, tangent)``, from one kernel.

    Parameters
    ----------
    f
        Plain NumPy code that returns floats: a number, an array, or a tree of them.
    primals
        A tuple or list of its arguments.
    tangents
        For each argument a tangent of its structure, shapes and dtypes; None for an argument that does not move.

    Options are those of the function, as for `vjp`.

    Raises
    ------
    OutputError
        If `f` returns integers or booleans.
    ArgumentTypeError
        For a tangent of another structure, shape or dtype; for arguments that cannot be differentiated.

    Examples
    --------
    >>> import numpy as np
    >>> jvp(lambda x, a: a * np.sin(x), (np.array([0.0, np.pi]), 2.0), (np.ones(2), None))
    (array([0.0000000e+00, 2.4492936e-16]), array([ 2., -2.]))
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise ArgumentTypeError(f"primals and tangents must be tuples, one entry for each argument, not "
                                f"{type(primals).__name__} and {type(tangents).__name__} (at {user_line()})")
    if len(primals) != len(tangents):
        raise ArgumentTypeError(f"there are {len(primals)} primals but {len(tangents)} tangents (at {user_line()}); "
                                "give None for an argument that does not move")
    places = tuple(i for i, t in enumerate(tangents) if t is not None)
    if not places:
        raise ArgumentTypeError(f"no tangent is given (at {user_line()})")
    moving, request = tuple(tangents[i] for i in places), Request("jvp", places)
    recorder = current()
    if recorder is not None:
        return differentiated(recorder, request, _followed(recorder, f), (*primals, moving), {}, _name(f))
    return _known(f, request)(*primals, moving)


@restores("pullback")
class Pullback:
    """The pullback of a function at a point, made by `vjp`: cotangents of the results to cotangents of the
    arguments."""

    def __init__(self, product: Callable[..., Any], whole: bool, primals: Sequence[Any], places: Any):
        self._product, self._whole = product, whole
        self._count, self._places = len(primals), places

    def __reduce__(self) -> Any:
        return restored, ("pullback", self._product, self._whole, (None,) * self._count, self._places)

    def __call__(self, ct: Any) -> Any:
        found = self._product(ct)
        if not self._whole or len(found) == self._count:
            return found
        known = dict(zip(self._places, found, strict=True))
        return tuple(known.get(i) for i in range(self._count))


@restores("pushforward")
class Pushforward:
    """The pushforward of a function at a point, made by `linearize`: tangents of the arguments to tangents of the
    results."""

    def __init__(self, product: Callable[..., Any], whole: bool, primals: Sequence[Any], places: tuple[int, ...]):
        self._product = product
        self._expected = tuple(range(len(primals))) if whole else places
        self._places = places

    def __reduce__(self) -> Any:
        whole = self._expected != self._places
        return restored, ("pushforward", self._product, whole, (None,) * len(self._expected), self._places)

    def __call__(self, *tangents: Any) -> Any:
        if len(tangents) != len(self._expected):
            raise ArgumentTypeError(f"the pushforward takes {len(self._expected)} tangents, one for each argument, not "
                                    f"{len(tangents)} (at {user_line()})")
        given = dict(zip(self._expected, tangents, strict=True))
        for place, tangent in given.items():
            if place not in self._places and tangent is not None:
                raise ArgumentTypeError(f"argument {place} is not made of floats and does not move: its tangent must "
                                        f"be None (at {user_line()})")
        return self._product(tuple(given[i] for i in self._places))


# --- which arguments, which function -------------------------------------------------------------------

def _places(f: Any, primals: Sequence[Any], argnums: Any) -> tuple[int | tuple[int, ...], bool]:
    """The arguments to differentiate, and whether that are all that can be."""
    if argnums is not None:
        return checked_argnums(argnums), False
    found = tuple(i for i, value in enumerate(primals) if _made_of_floats(value))
    if not found:
        raise ArgumentTypeError(f"none of the arguments of `{_name(f)}` is made of floats (called at {user_line()}); "
                                "say which to differentiate with argnums=")
    return found, True


def _made_of_floats(value: Any) -> bool:
    leaves, _ = leaves_of(value)
    return bool(leaves) and all(_is_float(x) for x in leaves)


def _is_float(leaf: Any) -> bool:
    if isinstance(leaf, (float, complex, np.inexact)):
        return True
    dtype = leaf.dtype if isinstance(leaf, (np.ndarray, Value)) else getattr(leaf, "dtype", None)
    return isinstance(dtype, np.dtype) and dtype.kind in "fc"


def _floats(primals: Sequence[Any], places: int | tuple[int, ...]) -> tuple[Any, ...]:
    """Copies of the arguments; integers that are differentiated as floats."""
    wanted = {p % max(len(primals), 1) for p in (places if isinstance(places, tuple) else (places,))}
    return tuple(copied(value, i in wanted) for i, value in enumerate(primals))


def _name(f: Any) -> str:
    return getattr(f, "__name__", type(f).__name__)


def _known(f: Any, request: Request) -> Transformed:
    """The function with the request: the same object again for a function that holds no data."""
    if not callable(f):
        raise ArgumentTypeError(f"a function is needed, not a {type(f).__name__} (at {user_line()})")
    if isinstance(f, Transformed):
        return f.asked(request)
    known = Transformed.quickly(f, request.what, request.argnums)
    if known is not None:
        return known                                                                        # type: ignore[no-any-return]
    if isinstance(f, FunctionType) and not (f.__closure__ or f.__defaults__ or f.__kwdefaults__):
        return _remembered(f, request)
    return Transformed(f, request)


@functools.lru_cache(maxsize=128)
def _remembered(f: FunctionType, request: Request) -> Transformed:
    return Transformed(f, request)


# --- in a recording --------------------------------------------------------------------------------------

def _followed(recorder: Recorder, f: Any) -> Any:
    """`f`, if it is one that the recording can follow."""
    if isinstance(f, (FunctionType, MethodType, functools.partial)):
        return recorder.captures.copy_of(f)
    return f


class _OnTape:
    """A function that was run on the tape of a recording, ready for products at that point."""

    def __init__(self, recorder: Recorder, function: Callable[..., Any], request: Request, primals: Sequence[Any]):
        self.recorder = recorder
        self.derivation = recorded_on(recorder, request, function, primals, {}, _name(function))
        self.value = results_on(recorder, replace(self.derivation, request=replace(request, what="value")))

    def product(self, seed: Any) -> Any:
        seeds = seeds_on(self.recorder, seed, self.derivation.request.seed_name, self.derivation.name)
        return results_on(self.recorder, replace(self.derivation, **seeds))
