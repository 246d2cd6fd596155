"""The transformations, as users call them."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

from jitad.call.request.request import Request, Settings, checked_tier
from jitad.call.transformed import Transformed
from jitad.errors import ArgumentTypeError
from jitad.trace.where import user_line

__all__ = ["grad", "jit", "jit_grad", "value_and_grad"]


def jit_grad(f: Callable[..., Any] | None = None, argnums: int | Sequence[int] = 0, *,
             on_mismatch: str | None = None, static: Sequence[str] = (), tier: str | None = None,
             compile: str = "now", parallel: bool | None = None, has_aux: bool = False) -> Any:
    """The compiled gradient of a scalar function; a decorator with or without arguments.

    Parameters
    ----------
    f
        Plain NumPy code that returns one real scalar.
    argnums
        Which positional arguments to differentiate: an int, or a tuple, for which the
        gradient is a tuple.
    on_mismatch
        What to do when a known function meets another shape, dtype, captured value or branch:
        ``"warn"`` (compile, with a `TapeMismatchWarning`), ``"error"`` (raise `TapeMismatchError`)
        or ``"silent"`` (compile); by default what `jitad.cache.configure` says, which is warn.
    static
        Names of captured objects, as the code writes them (``("model", "self.table")``), that jitad cannot
        watch, and that you declare not to change: they are used as they are. Only another object under the
        name is noticed, not a change within one. Arrays and floats that jitad can watch are watched all the
        same. Code that depends on such objects is not kept on the disk.
    tier
        ``"kernel"`` (compiled code) or ``"machine"``: code that is made in a fraction of a second however long the
        function is, an interpreter of op-codes where these are thousands of different operations on numbers. By
        default, what would take longer than about a second to compile is served by the machine first, while another
        process compiles the kernel. ``g.compile(*args).tier`` says what runs. What runs on the machine is not kept on
        the disk.
    compile
        ``"now"``, in the first call (see `tier` for what takes long), or ``"background"``: a thread compiles, and until
        it is done the reference interpreter serves the calls, slowly, with results that agree to rounding. What the
        compiler raises, the next call raises. ``g.compile(*args)`` waits for the code.
    parallel
        Whether loops that take longer than about 0.1 ms are divided into parts that run on several cores at the same
        time: those whose steps write at different places, or add up. By default what `jitad.cache.configure` says,
        which is no; it also says how many ``threads`` there are. Results agree with those on one core to rounding, and
        are the same bits in each call, for any number of threads. Calls from more threads at a time, as of samplers,
        share the cores. Large products of matrices are left to the threads of BLAS.

    has_aux
        Whether `f` returns a pair ``(value, aux)``: the scalar, and anything else made of arrays and numbers that is
        computed on the way. ``g(*args)`` is then ``(gradient, aux)``.

    Returns
    -------
    g
        ``g(*args)`` is the gradient, with the structure, shapes and dtypes of the
        argument: arrays, Python numbers, or dicts, tuples, lists, named tuples and
        dataclasses of them. ``g.value(*args)``, ``g.value_and_grad(*args)``,
        ``g.compile(*args)``, ``g.tape(*args)`` and ``g.source(*args)`` go with it.
        ``out=`` takes an array into which the gradient is written.

    Raises
    ------
    OutputError
        On the first call, if `f` returns anything but one real scalar, or with `has_aux` a pair that begins with one.
    ArgumentTypeError
        On a call with an argument that cannot be on a tape, or not be differentiated.
    UnsupportedOperationError, ConcretizationError, MutationError, CaptureError
        On the first call, if `f` does what cannot be recorded.

    Examples
    --------
    >>> import numpy as np
    >>> @jit_grad
    ... def logp(theta, y):
    ...     return -0.5 * np.sum((y - theta) ** 2)
    >>> logp(np.zeros(2), np.array([1.0, 2.0]))
    array([1., 2.])
    """
    return transform(f, f"grad{_with_aux(has_aux)}", argnums, on_mismatch, static, tier=tier, compile=compile,
                     parallel=parallel)


grad = jit_grad


def value_and_grad(f: Callable[..., Any] | None = None, argnums: int | Sequence[int] = 0, *,
                   on_mismatch: str | None = None, static: Sequence[str] = (), tier: str | None = None,
                   compile: str = "now", parallel: bool | None = None, has_aux: bool = False) -> Any:
    """The compiled value and gradient from one sweep: ``(float, gradient)``; with ``has_aux=True``, of an `f` that
    returns a pair, ``((float, aux), gradient)``. As `jit_grad` otherwise.

    >>> import numpy as np
    >>> value_and_grad(lambda x: np.sum(x * x))(np.array([1.0, 3.0]))
    (10.0, array([2., 6.]))
    >>> value_and_grad(lambda x: (np.sum(x * x), {"norm": np.sqrt(np.sum(x * x))}), has_aux=True)(np.array([3.0, 4.0]))
    ((25.0, {'norm': 5.0}), array([6., 8.]))
    """
    return transform(f, f"value_and_grad{_with_aux(has_aux)}", argnums, on_mismatch, static, tier=tier, compile=compile,
                     parallel=parallel)


def jit(f: Callable[..., Any] | None = None, *, on_mismatch: str | None = None, static: Sequence[str] = (),
        tier: str | None = None, compile: str = "now", parallel: bool | None = None) -> Any:
    """The compiled function itself, which may return arrays and trees of arrays. Options as for `jit_grad`.

    >>> import numpy as np
    >>> jit(lambda x: np.exp(x) - 1)(np.zeros(2))
    array([0., 0.])
    """
    return transform(f, "value", 0, on_mismatch, static, tier=tier, compile=compile, parallel=parallel)


def transform(f: Callable[..., Any] | None, what: str, argnums: int | Sequence[int], on_mismatch: str | None,
              static: Sequence[str], mode: str = "", tier: str | None = None, compile: str = "now",
              parallel: bool | None = None,
              make: Callable[[Callable[..., Any], Request, Settings], Any] = Transformed) -> Any:
    """The function `f` with a request, or a decorator for it; raises `ArgumentTypeError` for options that make no
    sense."""
    plain = static.__class__ is tuple and not static and on_mismatch is tier is parallel is None and compile == "now"
    if plain and make is Transformed:
        known = Transformed.quickly(f, what, argnums, mode)
        if known is not None:
            return known
    if on_mismatch not in (None, "warn", "error", "silent"):
        raise ArgumentTypeError(
            f'on_mismatch must be "warn", "error" or "silent", not {on_mismatch!r} (at {user_line()})')
    if not isinstance(static, (tuple, list)) or not all(isinstance(name, str) for name in static):
        raise ArgumentTypeError(f'static must be a tuple of names, ("model", "self.table"), not {static!r} '
                                f"(at {user_line()})")
    if compile not in ("now", "background"):
        raise ArgumentTypeError(f'compile must be "now" or "background", not {compile!r} (at {user_line()})')
    if parallel is not None and not isinstance(parallel, bool):
        raise ArgumentTypeError(f"parallel must be True, False, or None for what is configured, not {parallel!r} (at "
                                f"{user_line()}); how many threads is said by jitad.cache.configure(threads=...)")
    request = Request(what, checked_argnums(argnums), mode, tier=checked_tier(tier))
    settings = Settings(on_mismatch, tuple(static), compile == "background", parallel)
    if f is None:
        return lambda function: make(_plain(function), request, settings)
    return make(_plain(f), request, settings)


def _with_aux(has_aux: Any) -> str:
    if not isinstance(has_aux, bool):
        raise ArgumentTypeError(f"has_aux must be True or False, not {has_aux!r} (at {user_line()})")
    return "_with_aux" if has_aux else ""


def _plain(f: Any) -> Callable[..., Any]:
    if not callable(f) and not isinstance(f, (staticmethod, classmethod)):
        raise ArgumentTypeError(f"a function is needed, not a {type(f).__name__} (at {user_line()})")
    return f


def checked_argnums(argnums: Any) -> int | tuple[int, ...]:
    several = isinstance(argnums, (tuple, list))
    given = tuple(argnums) if several else (argnums,)
    places = {int(n) for n in given if isinstance(n, Integral) and not isinstance(n, bool)}
    if not places or len(places) < len(given):
        raise ArgumentTypeError(
            f"argnums must be an int or a tuple of different ints, not {argnums!r} (at {user_line()})")
    return tuple(map(int, given)) if several else int(argnums)
