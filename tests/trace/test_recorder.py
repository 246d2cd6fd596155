"""Recordings: what is refused and why, leaks, threads, nesting, results."""
from __future__ import annotations

import dataclasses
import gc
import random
import sys
import threading
import time
import weakref
from collections import namedtuple

import numpy as np
import pytest
from scipy import stats

import jitad
from jitad.cache.keys.identity import unwrap
from jitad.compile.llvm.fork_guard import Gate
from jitad.errors import (
    ArgumentTypeError,
    CaptureError,
    ConcretizationError,
    LeakedTracerError,
    MutationError,
    OutputError,
    UnsupportedOperationError,
)
from jitad.passes.differentiate.modes import one, pullback
from jitad.tape.evaluate import evaluate
from jitad.trace.pytree import flatten, leaves_of, unflatten
from jitad.trace.record import record
from jitad.trace.recorder import Recorder, current, outside, recording
from tests.helpers.fetching import fetch_of
from tests.helpers.recorded import Recorded, user_module, x3

SIGMA, SIZE, DATA = 2.0, 2, np.ones(3)


def helper(x):
    return x * SIGMA


class Model:
    count = 0

    def __init__(self, w):
        self.w = w


# --- refused ---------------------------------------------------------------------------------

rng = np.random.default_rng(0)


@pytest.mark.parametrize("f", [
    lambda x: x + np.random.normal(), lambda x: x + rng.normal(), lambda x: x + random.random(),
    lambda x: x + time.time(), lambda x: x + time.perf_counter(), lambda x: x + np.random.default_rng(1).normal(),
    lambda x: x + stats.norm.rvs(), lambda x: x * len(open(__file__).read()),  # noqa: SIM115
    lambda x: x * eval("SIGMA"),
])
def test_impurity(f):
    with pytest.raises(CaptureError, match=r"test_recorder\.py:\d+.*pass the value in") as caught:
        record(unwrap(f), (x3,))
    assert "frozen" in str(caught.value)


def test_the_clock_and_randomness_through_names():
    from datetime import datetime
    from random import gauss
    from time import monotonic

    for f in (lambda x: x * datetime.now().second, lambda x: x + gauss(0, 1), lambda x: x + monotonic()):
        with pytest.raises(CaptureError, match=r"test_recorder\.py:\d+"):
            record(unwrap(f), (x3,))

    def g(x):
        from random import random as draw
        return x + draw()

    with pytest.raises(CaptureError, match="random"):
        record(unwrap(g), (x3,))


def test_unguardable_captures():
    class Fake(dict):
        pass

    thing, odd = Fake(a=1.0), np.array([1j], "G")
    append, steps = [].append, iter([1.0])
    for f, name in ((lambda x: x * thing["a"], "thing"),
                    (lambda x: x * odd, "odd"), (lambda x: np.exp(odd) * x, "odd"),
                    (lambda x: x + odd, "odd"), (lambda x: append(x), "append"),
                    (lambda x: x * next(steps), "steps"), (lambda x: x * len(globals()), "")):
        with pytest.raises(CaptureError, match=rf"(?s){name}.*test_recorder\.py:\d+"):
            record(unwrap(f), (x3,))
    Recorded(lambda x: x if SIZE == 2 else thing, x3)  # not used: not refused


def test_missing_global_that_is_caught():
    def f(x):
        try:
            return x * NOT_THERE
        except NameError:
            return x

    with pytest.raises(CaptureError, match="NOT_THERE"):
        record(unwrap(f), (x3,))
    with pytest.raises(NameError, match="NOT_THERE"):
        record(unwrap(lambda x: x * NOT_THERE), (x3,))  # noqa: F821


COUNT = 0


def test_mutation_is_refused():
    m, d, items, n, config = Model(1.0), {"a": 1.0}, [1.0], 0, user_module(sigma=1.0)

    def by_global(x):
        global COUNT
        COUNT += 1
        return x * COUNT

    def by_nonlocal(x):
        nonlocal n
        n += 1
        return x

    def by_attribute(x):
        m.w = 2.0
        return x

    def by_item(x):
        d["b"] = x
        return x

    def by_append(x):
        items.append(x)
        return x

    def by_module(x):
        config.sigma = 2.0
        return x

    def by_setattr(x):
        setattr(m, "last", x)  # noqa: B010
        return x

    def by_class(x):
        Model.count += 1
        return x

    for f in (by_global, by_nonlocal, by_attribute, by_item, by_append, by_module, by_setattr, by_class):
        with pytest.raises(MutationError):
            record(unwrap(f), (x3,))
    assert (COUNT, n, m.w, d, items, config.sigma) == (0, 0, 1.0, {"a": 1.0}, [1.0], 1.0)
    with pytest.raises(MutationError, match=r"d.*test_recorder\.py:\d+"):
        record(unwrap(by_item), (x3,))


def test_arguments_refused():
    f = lambda theta: theta
    for value, words in ((x3 * np.clongdouble(1j), "complex"), (np.array([None]), "object"), (np.array(["a"]), "dtype"),
                         (np.float16(1), "float16"), (np.longdouble(1), "dtype"), (2**70, "64 bits"),
                         (x3.astype(">f8"), "byte order"), (np.zeros(2, "i4,f8"), "dtype"),
                         (np.ma.array([1.0]), "MaskedArray")):
        with pytest.raises(ArgumentTypeError, match=rf"(?s)`theta`.*{words}.*test_recorder\.py:\d+"):
            record(unwrap(f), (value,))
    with pytest.raises(ArgumentTypeError, match=r"p\['b'\]\[0\]"):
        record(unwrap(lambda p: p), ({"b": [np.clongdouble(1j)]},))
    with pytest.raises(ArgumentTypeError, match="`g`"):
        record(unwrap(lambda x, g: g(x)), (x3, lambda x: x))
    with pytest.raises(OutputError, match="None"):
        record(unwrap(lambda x: None), (x3,))


# --- recordings ------------------------------------------------------------------------------

def test_leaked_tracers():
    def f(x):
        try:
            return 1 / 0
        except ZeroDivisionError as e:
            e.stolen = x
            raise

    with pytest.raises(ZeroDivisionError) as caught:
        record(unwrap(f), (x3,))
    stolen = caught.value.stolen
    for use in (lambda v: v + 1.0, lambda v: np.exp(v), lambda v: v.sum()):
        with pytest.raises(LeakedTracerError, match=r"`.*f`.*test_recorder\.py:\d+"):
            use(stolen)
    with pytest.raises(LeakedTracerError):
        record(unwrap(lambda x: x * stolen), (x3,))
    with pytest.raises(LeakedTracerError):
        record(unwrap(lambda x: x), (stolen,))
    assert repr(stolen) and current() is None


def test_nothing_keeps_the_captures():
    def make():
        data, w = np.ones(1000), np.ones(3)
        helper_ = lambda x: x * data.sum()
        f = lambda x: helper_(x) * w if x.ndim else f(x)
        plan = record(unwrap(f), (x3,)).plan
        return plan, weakref.ref(data), weakref.ref(w)

    gc.collect()
    gc.disable()
    try:
        plan, *refs = make()
    finally:
        gc.enable()
    gc.collect()  # the function itself is a cycle
    assert plan.inputs and [ref() for ref in refs] == [None, None]


def test_results_and_concrete_values():
    def f(x):
        assert current() is not None
        assert list(current().concrete((x * 2.0).number)) == [1, -2, 4]
        return {"a": x, "b": (1.0, np.ones(2))}

    r = record(unwrap(f), (x3,))
    assert set(r.result) == {"a", "b"} and len(r.outputs) == 3
    assert [v.shape for v in r.outputs] == [(3,), (), (2,)]
    assert r.arguments[0] is x3 and current() is None


def test_threads_do_not_mix():
    barrier, results = threading.Barrier(4, timeout=5), {}

    def work(k):
        def f(x):
            for _ in range(100):
                x = x * k + DATA
            return x

        barrier.wait()
        results[k] = Recorded(f, x3)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    sys.setswitchinterval(interval)
    assert len(results) == 4


class Doubled:
    """A transformation as jitad's api has them, seen from the recording."""

    def __init__(self, f):
        self.__wrapped__, self.__jitad_transform__ = f, ("doubled", 2)

    def __call__(self, x):
        return 2.0 * self.__wrapped__(x)

    def __jitad_nested__(self, view, args, kwargs):
        return 2.0 * view.copy_of(self.__wrapped__)(*args, **kwargs)


@Doubled
def transformed(x):
    return x * SIGMA


def test_transformed_functions_are_nested(monkeypatch):
    r = Recorded(lambda x: transformed(x) + Doubled(Doubled(helper))(x), x3)
    monkeypatch.setitem(globals(), "SIGMA", 3.0)
    r.same(x3)
    monkeypatch.setattr(transformed, "__jitad_transform__", ("doubled", 3))
    r.changed(x3)


class Grad:
    """Differentiation on the tape of the recording that calls it."""

    __jitad_transform__ = ("grad", 0)

    def __init__(self, f):
        self.__wrapped__ = f

    def __call__(self, x):
        if current() is None:
            e = 1e-6 * np.eye(len(x))
            return np.array([(self.__wrapped__(x + h) - self.__wrapped__(x - h)) / 2e-6 for h in e])
        return self.__jitad_nested__(current().captures, (x,), {})

    def __jitad_nested__(self, view, args, kwargs):
        x = args[0] * 1.0  # a node of its own: a captured x is not the argument
        y = view.copy_of(self.__wrapped__)(x, **kwargs)
        recorder = current()
        with recorder.plain():
            (g,) = pullback(recorder, [y], [one(y)], [x])
        return recorder.value(g.number)


@Grad
def energy_gradient(x):
    return np.sum(x * x * SIGMA)


def test_differentiation_inside_a_recording(monkeypatch):
    def f(x):
        @Grad
        def inner(z):
            return np.sum(np.sin(z) * x * SIGMA)

        return energy_gradient(x) + inner(x) * 2.0

    r = record(unwrap(f), (x3,))
    for sigma in (2.0, 0.5):
        monkeypatch.setitem(globals(), "SIGMA", sigma)
        assert fetch_of(r.plan, unwrap(f))() == (sigma,)
        expected = 2 * x3 * sigma + np.cos(x3) * x3 * sigma * 2
        np.testing.assert_allclose(evaluate(r.tape(), x3, sigma)[0], expected, rtol=1e-12)


def test_pytrees():
    @dataclasses.dataclass
    class P:
        mu: float
        w: dict

    Q = namedtuple("Q", "a b")
    tree = {"z": P(1.0, {"k": [2.0, None]}), "a": Q(3.0, "s")}
    leaves, paths, structure = flatten(tree, "p")
    assert paths == ["p['z'].mu", "p['z'].w['k'][0]", "p['z'].w['k'][1]", "p['a'].a", "p['a'].b"]
    assert leaves == [1.0, 2.0, None, 3.0, "s"] and unflatten(structure, leaves) == tree
    assert hash(structure) == hash(leaves_of(tree)[1])
    Recorded(lambda p: p["z"].mu * p["a"].a + p["z"].w["k"][0], tree)


def test_a_handler_between_any_two_instructions_leaves_a_recording_as_it_was():
    """As of signals: another recording, whole or cut off, at each place where one begins and ends."""
    gate, outer, cut_off, came = Gate(), Recorder(), [], 0
    codes = {f.__code__ for c in (recording, outside, Gate) for f in (c.__enter__, c.__exit__)}

    def between(frame, event, arg):
        nonlocal came
        frame.f_trace_opcodes = frame.f_code in codes
        if event == "opcode":
            came += 1
            with gate, recording(Recorder()), outside():
                assert current() is None
        return between

    before, found = sys.gettrace(), []
    sys._getframe().f_trace_opcodes = True                   # Python 3.12 asks for it when tracing begins
    sys.settrace(between)
    try:
        with gate, recording(outer):
            with outside():
                found.append(current())
            found.append(current())
            cut_off.append(outside())
            cut_off[0].__enter__()
        found.append(current())
    finally:
        sys.settrace(before)
    cut_off.clear()
    assert [*found, current()] == [None, outer, None, None] and came > 100


def test_what_an_array_says_of_itself():
    for f, x in ((lambda x: x.__array_priority__ + 0.0 * x.sum(), x3), (lambda x: 0.0 * x, 2.0),
                 (lambda x: x[0].__array_priority__ + 0.0 * x[0], x3),
                 (lambda x: hasattr(x, "__array_priority__") + x, 2.0),
                 (lambda x: (x[0] in np.array([1.0, 2.0])) + 2.0 * (x[1] in np.ones(3)), x3)):
        assert jitad.jit(f)(x) == f(x)
    with pytest.raises(ConcretizationError, match=r"x\.nbytes"):
        jitad.jit(lambda x: x.__sizeof__() + x.sum())(x3)
    with pytest.raises(UnsupportedOperationError, match=r"n << k is n \* 2\*\*k"):
        jitad.jit(lambda n: n << 2)(3)


def test_a_traceback_through_recorded_code_can_be_written_elsewhere():
    """As libraries do that pickle errors: they look at the globals of each frame."""
    with pytest.raises(ValueError) as caught:
        jitad.jit(raising)(x3)
    step, names = caught.value.__traceback__, []
    while step is not None:
        names += [dict(step.tb_frame.f_globals.items()).get("__name__")]
        step = step.tb_next
    assert __name__ in names


def raising(x):
    raise ValueError(np.size(x))
