"""A function recorded once and replayed with its captures as they are now, for the tests of captures."""
from __future__ import annotations

import types

import numpy as np
import pytest

import jitad.primitives  # noqa: F401
from jitad.cache.keys.identity import unwrap
from jitad.tape.evaluate import evaluate
from jitad.trace.pytree import leaves_of, unflatten
from jitad.trace.record import record
from tests.helpers.fetching import fetch_of

x3 = np.array([0.5, -1.0, 2.0])


class Mismatch(Exception):
    """The plan does not fit any more: the function would be recorded again."""


class Recorded:
    """A function recorded once; calls evaluate the tape with the captures as they are now."""

    def __init__(self, f, *args, **kwargs):
        self.f = f
        self.recording = record(unwrap(f), args, kwargs)
        self.tape = self.recording.tape()
        self.plan = self.recording.plan
        self.fetch = fetch_of(self.plan, unwrap(f))
        assert self.fetch is not None, self.plan.changes(unwrap(f))
        self.same(*args, **kwargs)

    def __call__(self, *args, f=None, **kwargs):
        f = f or self.f
        captured = self.fetch() if f is self.f else None
        if captured is None or not all(map(self.fits, captured, self.recording.captured)):
            fetch = fetch_of(self.plan, unwrap(f))
            if fetch is None:
                raise Mismatch(self.plan.changes(unwrap(f)))
            captured = fetch()
        leaves = [v for v in leaves_of((args, kwargs))[0] if isinstance(v, (np.ndarray, np.generic, float, int))]
        return unflatten(self.recording.structure, evaluate(self.tape, *leaves, *captured))

    @staticmethod
    def fits(now, then):
        """What the kernel checks of its inputs."""
        return (type(now), np.shape(now), np.result_type(now)) == (type(then), np.shape(then), np.result_type(then))

    def same(self, *args, f=None, **kwargs):
        np.testing.assert_allclose(self(*args, f=f, **kwargs), (f or self.f)(*args, **kwargs), rtol=1e-13)

    def changed(self, *args, f=None):
        with pytest.raises(Mismatch):
            self(*args, f=f)


def user_module(**names):
    """A module of the user's with these attributes and a function that reads one."""
    module = types.ModuleType("some_user_module")
    module.np = np
    module.__dict__.update(names)
    exec("def scaled(x):\n return np.sin(x) * sigma", module.__dict__)
    return module
