"""Captures of functions, containers and modules while recording: never stale, never silently wrong.

Each case records a function once, changes what it captures, fetches the captures by the plan and evaluates the
tape; the result must be that of the function run afresh, or else a guard must have tripped.
"""
from __future__ import annotations

import contextlib
import functools
import warnings

import numpy as np
import pytest
import scipy.stats

from jitad import jit
from jitad.cache.keys.identity import unwrap
from jitad.errors import MutationError
from jitad.trace.record import record
from tests.helpers.recorded import Recorded, x3

# --- globals, cells, defaults ----------------------------------------------------------------

SIGMA, DATA, SIZE, MODE = 2.0, np.array([1.0, 2.0, 3.0]), 2, "log"


def helper(x):
    return x * SIGMA


def test_rebound_globals_are_inputs(monkeypatch):
    r = Recorded(lambda x: helper(x) + SIGMA * DATA, x3)
    monkeypatch.setitem(globals(), "SIGMA", -3.0)
    r.same(x3)
    monkeypatch.setitem(globals(), "DATA", np.array([9.0, 8.0, 7.0]))
    r.same(x3)
    DATA[:] = 5.0
    r.same(x3)
    monkeypatch.setitem(globals(), "DATA", np.ones(4))
    r.changed(x3)


def test_ints_strings_and_functions_are_guarded(monkeypatch):
    def f(x):
        return (np.exp(x) if MODE == "exp" else helper(x)) * SIZE

    r = Recorded(f, x3)
    for name, value in (("MODE", "exp"), ("SIZE", 3), ("SIZE", 2.0), ("helper", lambda x: x)):
        with monkeypatch.context() as m:
            m.setitem(globals(), name, value)
            r.changed(x3)
        r.same(x3)
    monkeypatch.setattr(helper, "__code__", (lambda x: x + 1).__code__)
    r.changed(x3)


def test_closures_made_again_match():
    def make(scale, data, n):
        inner = lambda x: x * scale
        return lambda x: inner(x) + data ** n

    r = Recorded(make(2.0, np.ones(3), 2), x3)
    r.same(x3, f=make(3.0, np.full(3, 7.0), 2))
    r.changed(x3, f=make(3.0, np.full(3, 7.0), 3))
    r.changed(x3, f=make(3.0, np.ones(2), 2))
    r.changed(x3, f=make(np.ones(3), np.ones(3), 2))


def test_cell_rebound_by_its_owner():
    scale = 1.0

    def f(x):
        return x * scale

    r = Recorded(f, x3)
    scale = 4.0
    r.same(x3)


def test_defaults_and_keyword_defaults():
    def f(x, w=np.ones(3), *, k=2.0, mode="a"):  # noqa: B008
        return x * w * k

    r = Recorded(f, x3)
    f.__defaults__[0][:] = 6.0
    r.same(x3)
    f.__kwdefaults__["k"] = 5.0
    r.same(x3)
    f.__kwdefaults__["mode"] = "b"
    r.changed(x3)
    r = Recorded(f, x3, np.ones(3), k=1.0)
    assert all("w" not in str(p) and "`k`" not in str(p) for p in r.plan.inputs)


def test_mutable_default_trap():
    def f(x, seen=[]):  # noqa: B006
        seen.append(1)
        return x * len(seen)

    with pytest.raises(MutationError, match="seen"):
        record(unwrap(f), (x3,))
    assert f.__defaults__ == ([],)

    def g(x, sizes=[2, 3]):  # noqa: B006
        return x * sizes[0]

    r = Recorded(g, x3)
    g.__defaults__[0][0] = 5
    r.changed(x3)


def test_star_arguments_and_names():
    def f(x, *args, p, **kw):
        return x * args[1] + p["beta"] * kw["q"]

    r = Recorded(f, x3, 1.0, x3, p={"beta": 3.0}, q=2)
    assert r.tape.names == ("x", "args[0]", "args[1]", "p['beta']", "q")


# --- functions -------------------------------------------------------------------------------

def countdown(x, n):
    return x * SIGMA if n == 0 else countdown(np.sin(x), n - 1)


def test_recursion_by_global_and_by_cell(monkeypatch):
    r = Recorded(lambda x: countdown(x, 5), x3)
    monkeypatch.setitem(globals(), "SIGMA", 0.25)
    r.same(x3)

    scale = 2.0

    def even(x, n):
        return x * scale if n == 0 else odd(x + 1, n - 1)

    def odd(x, n):
        return x if n == 0 else even(x * scale, n - 1)

    r = Recorded(lambda x: even(x, 7) + odd(x, 3), x3)
    scale = 3.0
    r.same(x3)


def self_calling(x, w=2.0):
    return x if x.ndim == 0 else self_calling(x[0]) * w + SIGMA


def test_top_function_that_calls_itself(monkeypatch):
    r = Recorded(self_calling, x3)
    monkeypatch.setitem(globals(), "SIGMA", 0.25)
    r.same(x3)
    self_calling.__defaults__ = (7.0,)
    r.same(x3)


def test_same_code_at_two_places_stays_apart():
    def normal(mu):
        return lambda x: x - mu

    a = b = normal(1.0)
    f = lambda x: a(x) * b(x)
    r = Recorded(f, x3)
    b = normal(5.0)
    r.same(x3)


def test_partials_lambdas_in_dicts_and_callable_objects():
    class Scale:
        def __init__(self, by):
            self.by = by

        def __call__(self, x):
            return x * self.by

    p = functools.partial(lambda k, x, c=0.0: k * x + c, 2.0, c=1.0)
    ops = {"double": lambda x: x * SIGMA, "unused": object.__new__}
    scale = Scale(3.0)
    r = Recorded(lambda x: p(x) + ops["double"](x) + scale(x), x3)
    p.keywords["c"] = 4.0
    scale.by = -1.0
    r.same(x3)
    p = functools.partial(p.func, 9.0, c=2.0)
    r.same(x3)
    ops["double"] = lambda x: x
    r.changed(x3)


def test_partial_and_callable_object_at_the_top():
    p = functools.partial(lambda k, x, *, c: k * x + c, np.ones(3), c=1.0)
    r = Recorded(p, x3)
    p.keywords["c"] = 8.0
    p.args[0][:] = 3.0
    r.same(x3)

    class Model:
        def __call__(self, x):
            return x * self.w

    m = Model()
    m.w = 2.0
    r = Recorded(m, x3)
    m.w = 3.0
    r.same(x3)


def test_decorated_functions():
    factor = 2.0

    def twice(f):
        @functools.wraps(f)
        def wrapper(*args, **kwargs):
            return factor * f(*args, **kwargs)
        return wrapper

    @twice
    def f(x):
        return x * SIGMA

    r = Recorded(f, x3)
    factor = 5.0
    r.same(x3)
    r = Recorded(lambda x: f(x) + 1, x3)
    factor = 7.0
    r.same(x3)


def test_function_attributes():
    def f(x):
        return x * f.scale

    f.scale = 2.0
    r = Recorded(f, x3)
    f.scale = 3.0
    r.same(x3)


def test_lru_cache_keeps_no_tracers():
    w = 2.0

    @functools.lru_cache
    def g(n):
        return w * n

    r = Recorded(lambda x: x * g(3), x3)
    g.cache_clear()
    w = 3.0
    r.same(x3)


def test_comprehensions_generators_and_class_bodies(monkeypatch):
    offsets = [1.0, 2.0]

    def f(x):
        class Local:
            factor = SIZE
            weight = SIGMA

        total = sum(helper(x) * o for o in offsets)
        parts = [x[i] * SIGMA for i in range(SIZE)]
        return total + sum(parts) * Local.factor * Local.weight

    r = Recorded(f, x3)
    monkeypatch.setitem(globals(), "SIGMA", -1.5)
    offsets[1] = 7.0
    r.same(x3)
    monkeypatch.setitem(globals(), "SIZE", 3)
    r.changed(x3)
    monkeypatch.undo()
    offsets.append(1.0)
    r.changed(x3)


def test_exec_defined_function():
    names = {"np": np, "w": 2.0}
    exec("def g(x):\n return np.sin(x) * w\ndef f(x):\n return g(x) + g(x * w)", names)
    r = Recorded(names["f"], x3)
    names["w"] = 3.0
    r.same(x3)


@contextlib.contextmanager
def scaling():
    yield SIGMA


def test_user_code_inside_library_wrappers(monkeypatch):
    def f(x):
        with scaling() as scale:
            return functools.reduce(lambda a, b: a + b * SIGMA, map(helper, [x, x])) * scale

    r = Recorded(f, x3)
    monkeypatch.setitem(globals(), "SIGMA", 0.125)
    r.same(x3)


def test_functions_as_keys():
    names = {helper: 2.0, countdown: 3.0}
    link = helper
    r = Recorded(lambda x: x * names[link] * names.get(countdown), x3)
    np.testing.assert_allclose(r.tape.nodes and r(x3), 6 * x3)


def test_globals_as_a_dict(monkeypatch):
    r = Recorded(lambda x: x * globals()["SIGMA"], x3)
    monkeypatch.setitem(globals(), "SIGMA", 0.125)
    r.same(x3)


def test_numba_helpers_are_followed():
    h = pytest.importorskip("numba").njit(lambda x: x * SIGMA)
    assert [str(p) for p in record(unwrap(lambda x: h(x)), (x3,)).plan.inputs] == ["global `SIGMA`"]


def test_functions_that_a_library_has_decorated_are_told_apart():
    """What SciPy's decorator makes of each has one code."""
    found = []
    for f in (scipy.stats.gmean, scipy.stats.hmean):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(jit(lambda x: f(x))(np.array([1.0, 2.0, 4.0])))      # noqa: B023
    assert np.allclose(found, [2.0, 12.0 / 7.0])
