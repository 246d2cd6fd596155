"""What Python's own library reads besides its arguments is refused; what can be watched is seen by the next call."""
from __future__ import annotations

import abc
import contextlib
import decimal
import functools
import gc
import importlib
import inspect
import io
import itertools
import logging
import os.path
import platform
import statistics
import sys
import threading
import warnings

import numpy as np
import pytest

from jitad import CaptureError, jit
from tests.helpers.public import x3

LOG = logging.getLogger("tests.trace.captures")
TEXT = io.StringIO("abc")


class Thing:
    pass


class Abstract(abc.ABC):  # noqa: B024
    pass


THING = Thing()


@pytest.mark.parametrize("read", [
    lambda: importlib.import_module("math").pi, lambda: decimal.getcontext().prec, lambda: LOG.isEnabledFor(10),
    lambda: LOG.level, lambda: logging.getLogger("tests").hasHandlers(), lambda: len(np.geterr()),
    lambda: len(np.get_printoptions()), sys.getrecursionlimit, lambda: len(threading.current_thread().name),
    threading.active_count, gc.isenabled, lambda: id(THING) % 7, lambda: len(TEXT.getvalue()),
    lambda: sys.stdout.isatty(), lambda: len(os.path.abspath("a")), lambda: len(platform.system()),
    abc.get_cache_token, lambda: len(inspect.stack())])
def test_reads_of_the_process_are_refused(read):
    with pytest.raises(CaptureError, match=r"(reads the state of the process|is read at).*test_standard\.py"):
        jit(lambda x: read() * x[0])(x3)


def caught(x):
    with contextlib.suppress(ZeroDivisionError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return x[0]
    return x[1]


@pytest.mark.parametrize("function", [
    lambda x: functools.reduce(lambda a, b: a * b, [x[0], x[1]]), caught,
    lambda x: x[0] * len(os.path.join("a", "b")), lambda x: x[0] * statistics.mean([1.0, 2.0]),
    lambda x: x[0] * inspect.isfunction(caught), lambda x: sum(itertools.chain([x[0]], [x[1]])),
    lambda x: (LOG.debug("seen"), logging.getLogger("tests").debug("seen"), x[0])[-1],
    lambda x: (print("seen", file=sys.stdout), sys.stdout.flush(), x[0])[-1]])
def test_what_reads_its_arguments_alone_works(function):
    assert jit(function)(x3) == function(x3)


def helper(v: float) -> float:
    return v


def base(a, x):
    return a * x[0]


def other(a, x):
    return a * x[1]


PART = functools.partial(base, 2.0)
FACTOR = 2.0


class Meta(type):
    @property
    def factor(cls):
        return FACTOR


class OfMeta(metaclass=Meta):
    pass


def changed_factor():
    global FACTOR
    FACTOR = 5.0


@pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")
@pytest.mark.parametrize(("function", "change"), [
    (lambda x: x[0] * (3.0 if type(THING).__name__ == "Thing" else 1.0), lambda: setattr(Thing, "__name__", "Other")),
    (lambda x: helper(x[0]) * len(helper.__annotations__), lambda: helper.__annotations__.clear()),
    (lambda x: PART(x), lambda: PART.__setstate__((other, (3.0,), {}, {}))),
    (lambda x: x[0] * OfMeta.factor, changed_factor),
    (lambda x: x[0] * (3.0 if isinstance(THING, Abstract) else 1.0), lambda: Abstract.register(Thing))])
def test_what_can_be_watched_is_seen(function, change):
    f = jit(function)
    assert f(x3) == function(x3)
    change()
    assert f(x3) == function(x3)


def test_a_partial_with_other_parts_is_no_longer_what_was_transformed():
    part = functools.partial(base, 2.0)
    f = jit(part)
    assert f(x3) == 2.0
    part.__setstate__((other, (3.0,), {}, {}))
    with pytest.raises(CaptureError, match=r"functools\.partial under `base` has other"):
        f(x3)
