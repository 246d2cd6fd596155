"""One class per kind of failure. A message says what happened, where in the
user's code, and what to do about it."""
from __future__ import annotations

import threading

# `errors`: those made in this thread during the recording that is under way. User code that catches one of them must
# not make its fallback the truth.
made = threading.local()


class JitadError(Exception):
    """Base of every error that jitad raises on purpose."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        errors = getattr(made, "errors", None)
        if errors is not None:
            errors.append(self)


class UnsupportedOperationError(JitadError, TypeError):
    """A NumPy or SciPy function, or an option of one, has no rule on the tape."""


class ConcretizationError(JitadError, TypeError):
    """Code asked a traced value for a plain Python or NumPy value (``float(x)``,
    ``math.exp(x)``, ``np.asarray(x)``, ``if x > 0``)."""


class MutationError(JitadError, TypeError):
    """Code assigned into a traced array or changed captured state while recorded."""


class ArgumentTypeError(JitadError, TypeError):
    """An argument has a dtype that cannot be used, or cannot be differentiated."""


class OutputError(JitadError, TypeError):
    """The function returned something that cannot be differentiated
    (not a real scalar, for a gradient)."""


class CaptureError(JitadError, TypeError):
    """The function reads a captured object that can be neither an input of the
    tape nor guarded by value."""


class LeakedTracerError(JitadError, RuntimeError):
    """A traced value outlived the recording that made it (through a global, a list, an attribute)
    or was used in another recording."""


class SignatureError(JitadError, TypeError):
    """Arguments do not fit: those of a compiled tape or its C function; parameters, data, functions, options and points
    of a posterior."""


class ConstraintError(JitadError, ValueError):
    """A constraint is given bounds or sizes that make no sense, or a value outside of its set."""


class StartError(JitadError, ValueError):
    """There is no point to start from: the density or its gradient is not finite where it was tried."""


class SamplerError(JitadError, RuntimeError):
    """A sampler stopped, or the installed version of one cannot take what jitad compiles."""


class ClusterError(JitadError, RuntimeError):
    """Workers of a cluster cannot do what they are asked: other versions of the libraries, none left, no scheduler."""


class SamplingWarning(UserWarning):
    """Draws that should not be trusted as they are; says what to change."""


class EstimateWarning(UserWarning):
    """An estimate has no standard errors, or is none."""


class NonFiniteError(JitadError, FloatingPointError):
    """A value or a gradient is NaN or infinite, where ``g.check_finite`` or `jitad.debug_nonfinite` looked for that."""


class InternalError(JitadError, RuntimeError):
    """An error of jitad's own, where plain NumPy has none: a fault, please report it."""


class TapeError(JitadError, AssertionError):
    """A tape breaks its own rules: an internal fault, please report it."""


class TapeFileError(JitadError, ValueError):
    """A file holds no tape that can be loaded, or a tape holds what cannot be in a file."""


class TapeMismatchError(JitadError, TypeError):
    """What `TapeMismatchWarning` says, where ``on_mismatch="error"`` was asked for."""


class TapeMismatchWarning(UserWarning):
    """A known function met a new signature, captured value or branch and was compiled again."""
