"""What the cache keeps alive, through `jit_grad`: no function, no capture, no argument, and nothing that grows."""
from __future__ import annotations

import gc
import os
import warnings
import weakref

import numpy as np
import pytest

from jitad import TapeMismatchWarning, cache, jit, jit_grad, value_and_grad

x3 = np.array([1.0, 2.0, 3.0])


@pytest.fixture(autouse=True)
def fresh():
    cache.clear()
    yield
    cache.clear()


class Model:
    def __init__(self, values):
        self.values = values

    def logp(self, theta):
        return np.sum(self.values * theta**2)

    decorated = value_and_grad(logp)


def gone(*references):
    gc.collect()
    return [r() for r in references if r() is not None] == []


def closure():
    data = np.ones(3)
    g = jit_grad(lambda x: np.sum(data * x**2))
    return g, g, [data]


def default():
    data = np.ones(3)
    g = jit_grad(lambda x, d=data: np.sum(d * x**2))
    return g, g, [data]


def bound_method():
    model = Model(np.ones(3))
    return jit_grad(model.logp), model, [model, model.values]


def decorated_method():
    model = Model(np.ones(3))
    return model.decorated, model, [model, model.values]


def helper_function():
    data = np.ones(3)

    def helper(x):
        return data * x

    return jit_grad(lambda x: np.sum(helper(x) * x)), helper, [data, helper]


def static_object():
    model = Model(np.ones(3))
    g = jit_grad(lambda x: np.sum(x) * model.values[0], static=("model",))
    return g, g, [model]


MAKERS = [closure, default, bound_method, decorated_method, helper_function, static_object]


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_entries_keep_neither_function_nor_captures_alive(make):
    g, owner, captured = make()
    for _ in range(3):
        g(x3), jit_grad(g)
    compiled = g.compile(x3)
    references = [weakref.ref(c) for c in [*captured, g]]
    assert cache.info().currsize >= 1
    del g, owner, captured, compiled
    assert gone(*references), "the entries alone must not hold anything"
    assert cache.info().currsize >= 1, "code made again from the same source hits"


def test_arguments_and_results_are_not_kept():
    g = value_and_grad(lambda x, X: np.sum(X @ x))
    x, X = np.ones(3), np.ones((4, 3))
    _, gradient = g(x, X)
    references = [weakref.ref(a) for a in (x, X, gradient)]
    del x, X, gradient
    assert gone(*references)


def test_an_error_while_recording_keeps_nothing():
    def make():
        data = np.ones(3)
        g = jit_grad(lambda x: np.sum(data * x) + [][0])
        with pytest.raises(IndexError):
            g(x3)
        return weakref.ref(data)

    assert gone(make())


def test_a_dropped_entry_is_released_with_its_code():
    g = jit(lambda x: x + 1)
    g(x3)
    (entry,) = [e for owner in cache.store.owners() for _, e in cache.store.entries(owner)]
    references = [weakref.ref(entry), *(weakref.ref(k.native) for k in entry.kernels.values())]
    del entry
    cache.clear(g)
    assert gone(*references)
    np.testing.assert_array_equal(g(x3), x3 + 1)


def test_a_static_object_that_is_gone_matches_no_other():
    """999 of 1,000 short-lived objects reuse the `id` of a dead one."""
    def call(value):
        model = Model(np.full(3, value))
        return jit_grad(lambda x: np.sum(x) * model.values[0], static=("model",), on_mismatch="silent")(x3)[0]

    for value in range(8):
        assert call(float(value)) == value


def memory():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux")
def test_ten_thousand_short_lived_closures_over_large_arrays_stay_flat():
    def use(n):
        data = np.empty(131_072)  # 1 MiB
        data[:3] = n
        g = jit_grad(lambda x: np.sum(data[:3] * x))
        return g(x3), weakref.ref(data)

    for n in range(300):
        use(n)
    gc.collect()
    before, objects = memory(), len(gc.get_objects())
    gc.disable()                                          # nothing waits for the collector
    try:
        for n in range(10_000):
            gradient, data = use(n)
            assert gradient[0] == n and data() is None
    finally:
        gc.enable()
    gc.collect()
    assert memory() - before < 16 * 2**20, "in bytes; the arrays were 10 GB"
    assert len(gc.get_objects()) - objects < 500
    info = cache.info()
    assert (info.compiles, info.currsize, info.hits) == (1, 1, 10_299)


def test_functions_of_ever_new_source_stay_within_limits():
    limits = cache.configuration()
    cache.configure(maxsize=20)
    try:
        for n in range(30):
            space = {"np": np}
            exec(f"def f(x): return np.sum(x) * {n}", space)
            jit(space["f"])(x3)
        assert cache.info().currsize == 20 and cache.info().compiles == 30
    finally:
        cache.configure(maxsize=limits.maxsize)


def test_shape_churn_is_told_once_and_spares_others():
    limits = cache.configuration()
    cache.configure(per_function=3, on_mismatch="silent")
    try:
        other, g = jit(lambda x: x * 2), jit(lambda x: x * 3)
        other(x3)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for n in range(1, 8):
                g(np.ones(n))
        (warning,) = caught
        assert warning.category is cache.ShapeChurnWarning and warning.filename == __file__
        assert "more than 3 different signatures" in str(warning.message) and "pad arrays" in str(warning.message)
        assert cache.info(g).currsize == 3 and cache.info(other).currsize == 1
    finally:
        cache.configure(per_function=limits.per_function, on_mismatch=limits.on_mismatch)


# --- made again -------------------------------------------------------------------------------------------------------


def cell(source, number):
    """A function as a notebook defines it: in a file of its own for each run of a cell."""
    space = {"np": np, "__name__": "__main__"}
    exec(compile(source, f"/tmp/ipykernel_1/{number}.py", "exec"), space)
    return space["f"]


def test_made_again_in_a_loop_or_a_notebook_it_hits():
    def inner(k, data):
        def f(x):
            return np.sum(data * x**2) * k
        return jit_grad(f)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in (1.0, 2.0, 3.0):
            np.testing.assert_array_equal(inner(k, x3 * k)(x3), 2 * k**2 * x3**2)
            np.testing.assert_array_equal(jit_grad(lambda x, k=k: np.sum(x) * k)(x3), np.full(3, k))
        assert cache.info().compiles == 2
        cache.clear()
        source = "def helper(x):\n    return x * 2\ndef f(x):\n    return np.sum(helper(x))"
        for number in range(3):
            np.testing.assert_array_equal(jit_grad(cell("\n" * number + source, number))(x3), np.full(3, 2.0))
        assert cache.info().compiles == 1
        other = cell(source.replace("np.sum", "2 * np.sum"), 4)
        np.testing.assert_array_equal(jit_grad(other)(x3), np.full(3, 4.0))
    with pytest.warns(TapeMismatchWarning, match="helper"):
        np.testing.assert_array_equal(jit_grad(cell(source.replace("x * 2", "x * 3"), 5))(x3), np.full(3, 3.0))
    np.testing.assert_array_equal(jit_grad(cell(source, 6))(x3), np.full(3, 2.0))
    assert cache.info().compiles == 3
