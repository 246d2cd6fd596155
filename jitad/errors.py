"""One class per kind of failure. A message says what happened, where in the
user's code, and what to do about it."""
from __future__ import annotations

import threading

# `errors`: those made in this thread during the recording that is under way. User code that catches one of them must
# not make its fallback the truth.
made = threading.local()


class JitadError(Exception):
    """Base of every error that jitad raises on purpose.

    Catch it to catch them all. Each has a page like this, which ``python -m jitad explain NAME`` prints; what the name
    of a subclass says besides, ``TypeError`` or ``ValueError``, is what Python's own code would have raised.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.add_note(f"see: python -m jitad explain {type(self).__name__}")
        errors = getattr(made, "errors", None)
        if errors is not None:
            errors.append(self)


class UnsupportedOperationError(JitadError, TypeError):
    """A NumPy or SciPy function, or an option of one, has no rule on the tape.

    Cause: the function was called with a value that depends on an argument. Way out: the message names one, if there is
    one; COVERAGE.md lists what is differentiated. Else compute it outside, pass ``jitad.stop_gradient(x)`` where no
    derivative is wanted, or give a rule of your own by `jitad.primitive`.

    >>> import numpy as np, jitad
    >>> jitad.grad(lambda x: np.sum(np.spacing(x)))(np.ones(3))
    Traceback (most recent call last):
    jitad.errors.UnsupportedOperationError: ...
    """


class ConcretizationError(JitadError, TypeError):
    """Code asked a traced value for a plain Python or NumPy value, and nothing could watch what it does with it.

    Cause: `np.asarray`, `ndarray.tolist` or a library in C was given a value that depends on an argument. A number from
    it would be frozen into the tape. Way out: NumPy's or `scipy.special`'s functions instead, or the code as
    ``jitad.primitive(opaque=True)`` with a rule. ``if x > 0``, ``int(n)`` and ``range(n)`` are fine: they are watched.
    """


class MutationError(JitadError, TypeError):
    """Code assigned into a traced array or changed captured state while recorded.

    Cause: an argument or a captured array is written to, by ``x[i] = v``, ``x += v`` or ``out=``. Compiled code never
    writes to what belongs to others. Way out: ``x = x.copy()`` first; arrays that the function makes may be written.

    >>> import numpy as np, jitad
    >>> def f(x):
    ...     x[0] = 0.0
    ...     return np.sum(x)
    >>> jitad.grad(f)(np.ones(3))
    Traceback (most recent call last):
    jitad.errors.MutationError: ...
    """


class ArgumentTypeError(JitadError, TypeError):
    """An argument has a dtype or type that cannot be used, or cannot be differentiated.

    Cause: strings, booleans or objects at the place of a differentiated argument; arrays of objects, float16, masked
    arrays; functions and data frames as arguments. Way out: numbers and arrays of float64 or float32 (integers become
    float64); ``.to_numpy()`` of a data frame; functions in a closure or by `functools.partial`.

    >>> import numpy as np, jitad
    >>> jitad.grad(lambda x: x)("1.0")
    Traceback (most recent call last):
    jitad.errors.ArgumentTypeError: ...
    """


class OutputError(JitadError, TypeError):
    """The function returned something that cannot be differentiated (not a real scalar, for a gradient).

    Cause: an array, None or a pair is returned where one number is wanted. Way out: sum it; `jitad.jacobian` for all
    derivatives of an array; ``has_aux=True`` if the function returns ``(value, anything else)``.

    >>> import numpy as np, jitad
    >>> jitad.grad(lambda x: 2.0 * x)(np.ones(3))
    Traceback (most recent call last):
    jitad.errors.OutputError: ...
    """


class CaptureError(JitadError, TypeError):
    """The function reads something from outside that can be neither an input of the tape nor guarded by value.

    Cause: an object that changes under the function, a generator, an open file, a method that is reached by a detour.
    Way out: pass what is read as an argument, or read it before into an array, a number or a string; name it
    in ``static=`` if it stands for itself and never changes.
    """


class LeakedTracerError(JitadError, RuntimeError):
    """A traced value outlived the recording that made it, by a global, a list or an attribute, or is used in another.

    Cause: the function stores a value somewhere outside, and it is used after the call. Way out: return it, with
    ``has_aux=True`` beside the value that is differentiated.
    """


class SignatureError(JitadError, TypeError):
    """Arguments do not fit: those of a compiled tape or its C function; parameters, data, functions, options and points
    of a posterior.

    Cause: another shape, dtype or number of arguments than what was compiled, bound or declared. Way out: the message
    says what was expected; call the function itself rather than `CompiledTape.step` or a bound form, or compile again.
    """


class ConstraintError(JitadError, ValueError):
    """A constraint is given bounds or sizes that make no sense, or a value outside of its set.

    Cause: ``interval(2, 1)``, ``simplex(0)``, a point with a negative scale. Way out: correct the bounds, or the value;
    ``post.unconstrain`` takes values inside of the sets only.

    >>> from jitad.constraints import interval
    >>> interval(2.0, 1.0)
    Traceback (most recent call last):
    jitad.errors.ConstraintError: ...
    """


class StartError(JitadError, ValueError):
    """There is no point to start from: the density or its gradient is not finite where it was tried.

    Cause: the density is NaN or minus infinity in most places, or at the ``start=`` that was given. Way out: the error
    names the line; ``start=`` takes a dict of constrained values, ``jitter=`` says how far from it the chains begin.
    ``post.check()`` shows more.
    """


class SamplerError(JitadError, RuntimeError):
    """A sampler stopped, or the installed version of one cannot take what jitad compiles.

    Cause: the density raised while it was sampled, or nutpie, emcee or mici has changed. Way out: run
    ``post.value_and_grad(u)`` at the point of the message; install a version that ``pip install 'jitad[demo]'`` allows.
    """


class ClusterError(JitadError, RuntimeError):
    """Workers of a cluster cannot do what they are asked: other versions of the libraries, none left, no scheduler.

    Way out: the same versions of jitad, NumPy and SciPy on all of them (``client.get_versions(check=True)``); more
    workers or memory where they died; a client that is connected.
    """


class SamplingWarning(UserWarning):
    """Draws that should not be trusted as they are; says what to change.

    Cause: divergences, chains that disagree, few effective draws, Pareto's k above 0.7. Way out: another
    parametrisation (``mu + tau * eta`` rather than ``theta`` itself), more tuning, a higher ``target_accept``.
    """


class EstimateWarning(UserWarning):
    """An estimate has no standard errors, or is none.

    Cause: the Hessian at the mode is not positive definite: a flat direction, a parameter at the edge, no convergence.
    Way out: ``post.check()`` names flat directions; fix or drop what the data say nothing of, or start elsewhere.
    """


class NonFiniteError(JitadError, FloatingPointError):
    """A value or a gradient is NaN or infinite, where ``g.check_finite`` or `jitad.debug_nonfinite` looked for that.

    Cause: the message names the first operation, with your line, that made one of finite numbers, forward or reverse:
    the logarithm of zero, ``0 / 0``, an overflow. Way out: what is stable (`np.logaddexp`, `scipy.special.xlogy`,
    `np.linalg.slogdet`), or ``np.where`` around it: the branch not taken has gradient 0.

    >>> import numpy as np, jitad
    >>> jitad.grad(lambda x: np.sum(np.log(x))).check_finite(np.zeros(2))
    Traceback (most recent call last):
    jitad.errors.NonFiniteError: ...
    """


class InternalError(JitadError, RuntimeError):
    """An error of jitad's own, where plain NumPy has none: a fault, please report it.

    Way out until it is mended: ``python -m jitad doctor`` prints what a report should have; other shapes, an older
    version, or the line of the message written in another way.
    """


class TapeError(JitadError, AssertionError):
    """A tape breaks its own rules: an internal fault, please report it.

    With it belong the function and what ``python -m jitad doctor`` prints. A primitive of your own whose rule gives
    another shape than its inputs have can be the cause: `jitad.testing.check_rule` tells.
    """


class TapeFileError(JitadError, ValueError):
    """A file holds no tape that can be loaded, or a tape holds what cannot be in a file.

    Cause: a file of another kind or a later version; Python code that the tape calls, containers of your own classes.
    Way out: write it again by ``compiled.save(path)``; dicts, lists, tuples and dataclasses as arguments.

    >>> import jitad
    >>> jitad.load(__file__)
    Traceback (most recent call last):
    jitad.errors.TapeFileError: ...
    """


class TapeMismatchError(JitadError, TypeError):
    """What `TapeMismatchWarning` says, where ``on_mismatch="error"`` was asked for.

    Cause and way out are the same: a shape, dtype, captured value or branch that is new.

    >>> import numpy as np, jitad
    >>> f = jitad.grad(lambda x: np.sum(x * x), on_mismatch="error")
    >>> f(np.ones(2)), f(np.ones(3))
    Traceback (most recent call last):
    jitad.errors.TapeMismatchError: ...
    """


class TapeMismatchWarning(UserWarning):
    """A known function met a new signature, captured value or branch and was compiled again.

    Cause: the message names the argument and both values. Nothing is wrong, but it took time. Way out: arrays of one
    shape and dtype, numbers as arguments instead of captured strings and flags; ``on_mismatch="silent"`` where new
    shapes are expected (``"error"`` where none are), of one function or by ``jitad.cache.configure``. What stands for
    itself may be named in ``static=``. `jitad.cache.explain` says why the last calls compiled.
    """
