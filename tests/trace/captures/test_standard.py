"""What Python's own library reads besides its arguments is refused; what can be watched is seen by the next call."""
from __future__ import annotations

import abc
import argparse
import contextlib
import contextvars
import decimal
import functools
import gc
import importlib
import inspect
import io
import itertools
import logging
import os
import os.path
import pathlib
import platform
import sched
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from decimal import Decimal

import numpy as np
import pytest

from jitad import CaptureError, jit, value_and_grad
from tests.helpers.public import x3
from tests.helpers.solvers import differences

LOG = logging.getLogger("tests.trace.captures")
TEXT = io.StringIO("abc")


now = datetime.now
REFUSED = r"(reads |is read at|draws random|asks for warnings|`hash`).*test_standard\.py"


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
    abc.get_cache_token, lambda: len(inspect.stack()), lambda: hash(THING) % 7, now, lambda: socket.socket().fileno(),
    lambda: threading.Event().is_set(), lambda: logging.Handler().level, lambda: subprocess.Popen(["true"]).wait(),
    lambda: len(tempfile.TemporaryDirectory().name), lambda: sched.scheduler().timefunc(), lambda: pathlib.Path.cwd(),
    lambda: pathlib.Path("a").absolute(), lambda: argparse.ArgumentParser().prog, lambda: contextvars.ContextVar("v"),
    lambda: statistics.NormalDist().samples(1)[0], lambda: len(traceback.extract_stack()),
    lambda: np.random.SeedSequence().entropy, lambda: warnings.catch_warnings(record=True).__enter__(),
    lambda: logging.Logger.manager.disable, lambda: datetime.now().year, lambda: weakref.WeakValueDictionary()])
def test_reads_of_the_process_are_refused(read):
    with pytest.raises(CaptureError, match=REFUSED):
        jit(lambda x: read() * x[0])(x3)


def sum_in_threads(x):
    with ThreadPoolExecutor(2) as pool:
        return sum(pool.map(lambda i: x[i] * 2.0, range(3)))


def caught(x):
    with contextlib.suppress(ZeroDivisionError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return x[0]
    return x[1]


@pytest.mark.parametrize("function", [
    lambda x: functools.reduce(lambda a, b: a * b, [x[0], x[1]]), caught,
    lambda x: x[0] * len(os.path.join("a", "b")), lambda x: x[0] * statistics.mean([1.0, 2.0]),
    lambda x: x[0] * inspect.isfunction(caught), lambda x: sum(itertools.chain([x[0]], [x[1]])),
    lambda x: x[0] * isinstance(THING, socket.socket), lambda x: x[0] * sys.version_info[0],
    lambda x: x[0] * hash((1, 2.5)), lambda x: x[0] * len(pathlib.Path("a/b").name), sum_in_threads,
    lambda x: x[0] * (Decimal("1.5") + 1 > 2), lambda x: x[0] * datetime(2020, 2, 1).month,
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


ORDER = {8, 0}
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


def other_order():
    global ORDER
    ORDER = {0, 8}


@pytest.fixture(autouse=True)
def process_as_it_was():
    before, level, zone = decimal.getcontext().copy(), logging.raiseExceptions, time.tzname
    yield
    decimal.setcontext(before)
    logging.raiseExceptions, time.tzname = level, zone


@pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")
@pytest.mark.parametrize(("function", "change"), [
    (lambda x: x[0] * (3.0 if type(THING).__name__ == "Thing" else 1.0), lambda: setattr(Thing, "__name__", "Other")),
    (lambda x: helper(x[0]) * len(helper.__annotations__), lambda: helper.__annotations__.clear()),
    (lambda x: PART(x), lambda: PART.__setstate__((other, (3.0,), {}, {}))),
    (lambda x: x[0] * OfMeta.factor, changed_factor),
    (lambda x: x[0] * (next(iter(ORDER)) + 1.0), other_order),
    (lambda x: x[0] * float(Decimal(1) / 3), lambda: setattr(decimal.getcontext(), "prec", 5)),
    (lambda x: x[0] * logging.raiseExceptions, lambda: setattr(logging, "raiseExceptions", False)),
    (lambda x: x[0] * len(time.tzname[0]), lambda: setattr(time, "tzname", ("longer", "names"))),
    (lambda x: x[0] * len(warnings.filters), lambda: warnings.simplefilter("always", FutureWarning, append=True)),
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


def test_the_order_of_texts_in_a_set_is_that_of_the_process(tmp_path):
    file = tmp_path / "first.py"
    file.write_text("""if True:
        import numpy as np
        from jitad import jit

        def first(x):
            names = [name for name in {"a", "b", "c", "d", "e"}]
            return x[0] * "abcde".index(names[0]) + hash("a") % 1000

        x = np.ones(2)
        assert jit(first)(x) == first(x)
    """)
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "JITAD_CACHE_DIR": str(tmp_path)}
        subprocess.run([sys.executable, str(file)], check=True, env=environment, timeout=120)


def test_statistics_of_plain_data_about_what_is_traced():
    data = [1.0, 3.0, 4.5]

    def total(x):
        return (statistics.variance(data, x[0]) + statistics.pvariance(data, x[1]) + statistics.fmean(data, list(x))
                + statistics.harmonic_mean(data, weights=list(x)))
    x = np.array([1.0, 2.0, 0.3])
    value, gradient = value_and_grad(total)(x)
    np.testing.assert_allclose(value, total(x), rtol=1e-14)
    np.testing.assert_allclose(gradient, differences(total, (x,))[0], rtol=1e-6)
    for weights in ([1.0, 2.0], [0.0, 0.0, 0.0]):
        with pytest.raises(statistics.StatisticsError, match=r"same length|non-zero"):
            jit(lambda x, w=weights: statistics.fmean(list(x), w))(x)
