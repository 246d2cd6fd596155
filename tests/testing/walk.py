"""Calls of every public function with simple traced arguments, for the tests of the table of coverage."""
from __future__ import annotations

import contextlib
import io
import warnings
from dataclasses import dataclass

import numpy as np
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.spatial.distance
import scipy.special
import scipy.stats

from jitad.cache.keys.identity import unwrap
from jitad.trace.record import record

vector = np.array([0.5, 1.5, 0.7, 2.5])
matrix = np.array([[2.0, 0.5, 0.3], [0.5, 3.0, 0.2], [0.3, 0.2, 4.0]])
number = 0.625
PATTERNS = [(vector,), (matrix,), (number,), (vector, vector[::-1].copy()), (matrix, matrix @ matrix), (number, 1.25),
            (matrix, vector[:3]), (vector, vector + 1, vector[::-1] + 2), (number, 0.25, 1.5)]
SLOW = {"test", "show_config", "show_runtime", "info", "set_printoptions", "seterr", "seterrcall", "setbufsize"}


@dataclass
class Outcome:
    """What a call in a recording did: `error`, or the dtypes of those results that depend on the arguments."""

    error: Exception | None = None
    dependent: tuple[np.dtype, ...] = ()
    elements: int = 0
    guarded: bool = False


def function_of(expression, count):
    """A user's function of `count` arguments."""
    names = "xyzw"[:count]
    space = {"np": np, "scipy": scipy, "__name__": "users_module"}
    code = f"def f({', '.join(names)}):\n    return {expression}\n"
    exec(compile(code, "/home/user/model.py", "exec"), space)
    return space["f"]


def call_of(module, name, count):
    home = module.replace("numpy", "np", 1)
    return f"{home}.{name}({', '.join('xyzw'[:count])})"


@contextlib.contextmanager
def quiet():
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def outcome_of(expression, args):
    """What recording `expression` on these arguments does."""
    with quiet():
        try:
            recording = record(unwrap(function_of(expression, len(args))), args)
        except Exception as error:
            return Outcome(error)
    nodes, inputs, seen = recording.builder.nodes, set(recording.builder.inputs), {}

    def depends(number):
        pending = [number]
        visited = set()
        while pending:
            n = pending.pop()
            if n in inputs:
                return True
            if n not in visited:
                visited.add(n)
                pending += nodes[n].inputs
        return False
    dependent = tuple(o.dtype for o in recording.outputs if seen.setdefault(o.number, depends(o.number)))
    elements = sum(o.aval.size for o in recording.outputs)
    return Outcome(None, dependent, elements, bool(recording.builder.guards))


def plain_error(expression, args):
    """What the same call raises on plain arguments, or None."""
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    with quiet():
        try:
            function_of(expression, len(args))(*copies)
        except Exception as error:
            return error
    return None
