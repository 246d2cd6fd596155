"""`g.bind`: a function of the differentiated arguments alone."""
from __future__ import annotations

import ctypes
import gc
import pickle
import threading
import warnings
import weakref

import numpy as np
import pytest

import jitad
from jitad.errors import SignatureError, TapeMismatchWarning
from tests.helpers.public import compiling, fresh, same  # noqa: F401

rng = np.random.default_rng(2)
X, y, theta = rng.normal(size=(50, 3)), rng.uniform(1, 2, size=50), rng.normal(size=3)
LEVEL = np.array([1.0, 2.0, 3.0])


def logp(theta, X, y, scale=1.0):
    return np.sum(np.tanh(X @ theta) * np.log(y)) * scale


g = jitad.jit_grad(logp)


def test_a_bound_function_gives_what_the_function_gives():
    bound = g.bind(X, y)
    for point in (theta, theta + 1, np.zeros(3)):
        same(bound(point), g(point, X, y))
        value, gradient = bound.value_and_grad(point)
        same(value, g.value(point, X, y))
        same(gradient, g(point, X, y))
        same(bound.value(point), g.value(point, X, y))
    assert bound.value is bound.value and bound.value.value is bound.value
    assert repr(bound) == "<jitad grad of logp with its data bound>" and bound.__name__ == "logp"


def test_data_bound_by_keyword_and_arguments_given_by_keyword():
    bound = g.bind(y=y, X=X, scale=2.0)
    same(bound(theta), g(theta, X, y, 2.0))
    same(bound(theta=theta), g(theta, X, y, 2.0))
    out = np.empty(3)
    assert bound(theta, out=out) is out
    same(out, g(theta, X, y, 2.0))


@pytest.mark.parametrize("argnums", [2, -1, (0, 2), (2, 0)])
def test_the_free_arguments_are_those_of_argnums(argnums):
    h = jitad.jit_grad(lambda a, b, c: np.sum(a * b * np.exp(c)), argnums=argnums)
    a, b, c = np.ones(2), np.array([2.0, 3.0]), np.array([0.5, -0.5])
    free, data = ((a, c), (b,)) if isinstance(argnums, tuple) else ((c,), (a, b))
    found, expected = h.bind(*data)(*free), h(a, b, c)
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-13)


def test_jit_binds_all_but_the_first():
    f = jitad.jit(lambda x, y, k: x * y + k)
    same(f.bind(LEVEL, 2.0)(LEVEL), f(LEVEL, LEVEL, 2.0))


def test_a_seed_stays_free():
    h = jitad.hvp(lambda x, a: np.sum(a * x ** 3))
    same(h.bind(LEVEL)(LEVEL, np.ones(3)), h(LEVEL, LEVEL, np.ones(3)))


def test_nested_arguments_numbers_and_static_values():
    def f(p, data, how):
        fit = p["a"] * data[0] + p["b"]
        return np.sum((data[1] - fit) ** 2) if how == "square" else np.sum(np.abs(data[1] - fit))

    h = jitad.jit_grad(f)
    p = {"a": 0.5, "b": LEVEL}
    for how in ("square", "abs"):
        bound = h.bind((LEVEL, LEVEL + 1), how)
        for _ in range(2):
            found, expected = bound(p), h(p, (LEVEL, LEVEL + 1), how)
            same(found["a"], expected["a"])
            same(found["b"], expected["b"])
        with pytest.warns(TapeMismatchWarning), warnings.catch_warnings():
            warnings.simplefilter("always")
            assert {*bound({"a": LEVEL, "b": LEVEL})} == {"a", "b"}


def test_integers_are_differentiated_as_floats():
    bound = jitad.jit_grad(lambda x, a: a * x ** 2).bind(3.0)
    assert bound(2) == 12.0 and bound(2.0) == 12.0


def test_float32_stays():
    bound = jitad.value_and_grad(lambda x, a: np.sum(a * x)).bind(LEVEL.astype(np.float32))
    value, gradient = bound(LEVEL.astype(np.float32))
    assert type(value) is np.float32 and gradient.dtype == np.float32


def test_data_and_captured_values_are_taken_once():
    level = LEVEL.copy()
    h = jitad.value_and_grad(lambda x, a: np.sum(level * np.log(a) * x))
    data = LEVEL.copy()
    bound = h.bind(data)
    data[:] = 7.0
    expected = np.sum(LEVEL * np.log(LEVEL) * LEVEL)
    assert bound(LEVEL)[0] == pytest.approx(expected, rel=1e-14)
    level[:] = 9.0
    assert bound(LEVEL)[0] == pytest.approx(expected, rel=1e-14)
    with pytest.raises(SignatureError, match="captures has changed since it was bound, and this call"):
        bound(np.ones((2, 3)))
    with pytest.raises(SignatureError, match="bind the data again"):
        bound.value_and_grad.value(LEVEL)
    assert h.bind(LEVEL)(LEVEL)[0] == pytest.approx(np.sum(9.0 * np.log(LEVEL) * LEVEL))


def test_another_signature_warns_and_is_compiled():
    bound = jitad.jit_grad(lambda x, a: np.sum(a * x ** 2)).bind(2.0)
    same(bound(LEVEL), 4 * LEVEL)
    with compiling(1), pytest.warns(TapeMismatchWarning, match=r"argument `x`: shape \(3,\) -> \(2,\)"):
        warnings.simplefilter("always", TapeMismatchWarning)
        same(bound(LEVEL[:2]), 4 * LEVEL[:2])
    with compiling(0):
        same(bound(LEVEL), 4 * LEVEL)
        same(bound(LEVEL[:2]), 4 * LEVEL[:2])
        same(bound(LEVEL[::2]), 4 * LEVEL[::2])


def test_ways_through_branches():
    def f(x, a):
        return np.sum(a * x) if x[0] > 0 else np.sum(np.log(a) * x)

    bound, h = jitad.jit_grad(f).bind(LEVEL), jitad.jit_grad(f)
    for _ in range(2):
        same(bound(np.ones(3)), LEVEL)
        same(bound(-np.ones(3)), np.log(LEVEL))
    same(h(np.ones(3), LEVEL), LEVEL)
    with compiling(0):
        bound(-np.ones(3))


def test_failures_are_those_of_the_function():
    bound = jitad.jit_grad(lambda x, a: np.sum(np.linalg.cholesky(a + x[0] * np.eye(2)))).bind(np.eye(2))
    assert np.isfinite(bound(np.ones(1))).all()
    with pytest.raises(np.linalg.LinAlgError):
        bound(np.array([-3.0]))
    assert np.isfinite(bound(np.ones(1))).all()


def test_a_prologue_that_fails_is_left_to_the_calls():
    bound = jitad.jit_grad(lambda x, a: np.sum(np.linalg.cholesky(a)) * x).bind(-np.eye(2))
    with pytest.raises(np.linalg.LinAlgError):
        bound(1.0)


def test_what_is_computed_once_is_shown():
    bound = g.bind(X, y)
    assert "log" in bound.prologue(theta) and "log" not in bound.tape(theta)
    assert bound.compile(theta) is bound


def test_calls_that_do_not_fit():
    bound = g.bind(X, y)
    for args, kwargs in (((), {}), ((theta, X), {}), ((theta,), {"X": X})):
        with pytest.raises(TypeError, match=r"logp\(\) with its data bound takes `theta`"):
            bound(*args, **kwargs)
    with pytest.raises(TypeError, match="missing 1 required"):
        g.bind(X)(theta)


def test_what_has_no_kernel_of_its_own_is_called_as_ever():
    h = jitad.jit_grad(lambda x, z: np.sum(np.abs(z * x) ** 2))
    z = np.array([1 + 1j, 2.0])
    same(h.bind(z)(LEVEL[:2]), h(LEVEL[:2], z))
    with pytest.raises(SignatureError, match="runs on the tape machine or has complex ones"):
        h.bind(z).tape(LEVEL[:2])
    on_machine = jitad.jit_grad(lambda x, a: np.sum(a * x), tier="machine").bind(LEVEL)
    same(on_machine(LEVEL), LEVEL)


def test_a_bound_function_in_recorded_code():
    inner = jitad.jit(lambda x, a: np.sum(a * x ** 2)).bind(LEVEL)
    h = jitad.jit_grad(lambda x: inner(x) + np.sum(x))
    same(h(LEVEL), 2 * LEVEL * LEVEL + 1)
    inner = jitad.jit(lambda x, a: np.sum(a * x ** 2)).bind(LEVEL + 1)
    same(h(LEVEL), 2 * (LEVEL + 1) * LEVEL + 1)


def test_batches():
    h = jitad.batch(jitad.jit_grad(lambda x, a: np.sum(a * x ** 2)), in_axes=(0, None))
    xs = rng.normal(size=(4, 3))
    same(h.bind(LEVEL)(xs), h(xs, LEVEL))


def _module_level(x, a):
    return np.sum(a * x)


module_level = jitad.jit_grad(_module_level)


def test_pickles():
    bound = module_level.bind(LEVEL)
    same(pickle.loads(pickle.dumps(bound))(LEVEL), bound(LEVEL))


def test_nothing_keeps_a_bound_function_alive():
    data = LEVEL.copy()
    bound = g.bind(X, y)
    bound(theta)
    gone, call = weakref.ref(bound), bound.__call__
    gc.disable()
    try:
        del bound
        assert gone() is None
    finally:
        gc.enable()
    same(call(theta), g(theta, X, y))
    with pytest.raises(ReferenceError, match="keep it, not its"):
        call(data[:2])


def test_threads():
    bound, expected, wrong = g.bind(X, y), g(theta, X, y), []

    def run():
        for _ in range(200):
            if not np.allclose(bound(theta), expected, rtol=1e-12):
                wrong.append(1)
    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_one_kernel_for_all_data_of_a_kind():
    first, second = g.bind(X, y), g.bind(X + 1, y + 1)
    first(theta)
    second(theta)
    (entry,), (same_entry,) = first._tapes, second._tapes
    assert entry is same_entry and len(entry.bound) == 1
    same(second(theta), g(theta, X + 1, y + 1))


def test_the_c_function_has_data_of_its_own():
    data, targets = X.copy(), y.copy()
    compiled = g.compile(theta, data, targets)
    function, value, gradient = compiled.cfunc, np.empty(1), np.empty(3)
    expected = g.value_and_grad(theta, X, y)
    data[:], targets[:] = 0.0, 1.0
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, *[ctypes.c_void_p] * 4)
    for made in (function, g.bind(X, y).cfunc(theta)):
        status = kind(made.address)(3, theta.ctypes.data, gradient.ctypes.data, value.ctypes.data, made.data)
        assert status == 0
        np.testing.assert_allclose(value[0], expected[0], rtol=1e-12)
        np.testing.assert_allclose(gradient, expected[1], rtol=1e-12)


def test_an_interpreter_with_another_layout(monkeypatch):
    from jitad.compile.entry import bound as entry_bound
    from jitad.compile.entry.layout import UnknownLayout

    def unknown():
        raise UnknownLayout("as if")
    monkeypatch.setattr(entry_bound, "layout", unknown)
    bound = jitad.jit_grad(lambda x, a: np.sum(a * x)).bind(LEVEL)
    same(bound(LEVEL), LEVEL)
    same(bound(LEVEL[::-1].copy()), LEVEL)
    with pytest.raises(TypeError):
        bound()


def test_too_many_data_are_refused():
    g = jitad.jit_grad(lambda x, y, k: np.sum(x * y) * k)
    x = np.ones(3)
    with pytest.raises(TypeError, match=r"has 2 arguments besides .*, and 3 were bound .*test_bind.py"):
        g.bind(x, x, 2.0)
    assert np.array_equal(g.bind(x, 2.0)(x), 2 * x)


@pytest.mark.parametrize("shape", [(0, 3), (1,), (7,), (5, 24), (40, 3), (2, 3, 4)])
def test_bound_data_begin_on_a_cache_line(shape):
    X = np.arange(float(np.prod(shape))).reshape(shape)
    bound = jitad.jit_grad(lambda t, X: np.sum(np.exp(0.01 * t * X)), on_mismatch="silent").bind(X)
    assert bound(0.5) == pytest.approx(np.sum(np.exp(0.005 * X) * 0.01 * X))
    (copied,) = bound.data
    assert copied is not X and (X.size == 0 or copied.ctypes.data % 64 == 0)       # where nothing lies, nothing begins
    np.testing.assert_array_equal(copied, X)


def test_surplus_is_refused_at_once():
    g = jitad.jit_grad(lambda x, y: np.sum(x) * y)
    for args, kwargs in (((1.0, 2.0), {}), ((), {"z": 1.0}), ((1.0,), {"y": 2.0})):
        with pytest.raises(TypeError, match=r"bind|besides"):
            g.bind(*args, **kwargs)
