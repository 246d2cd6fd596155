"""Warm calls of functions whose captures are all guards: the kernel itself is what Python calls, and looks at them."""
from __future__ import annotations

import gc
import types
import warnings
import weakref

import numpy as np
import pytest

from jitad import TapeMismatchWarning, cache, jit, jit_grad
from jitad.cache.keys.captures import Plan
from jitad.cache.keys.identity import Target
from jitad.compile.entry import kernel as runtime
from jitad.compile.entry.layout import UnknownLayout

x3 = np.array([1.0, 2.0, 3.0])
SOURCE = """
import numpy as np
mode = "double"
def helper(x): return np.sum(x)
def f(x): return helper(x) * (2.0 if mode == "double" else 3.0) * len("ab")
"""


def module():
    made = types.ModuleType("made")
    exec(SOURCE, made.__dict__)
    return made


def direct(g):
    return type(g._call) is types.BuiltinFunctionType


def test_the_kernel_itself_is_called_and_counts_its_hits():
    g = jit(module().f)
    assert not direct(g) and g(x3) == 24.0 and direct(g)
    before = cache.info(g).hits
    assert g(x3) == g(x=x3) == g(x3 + 0.0) == 24.0 and direct(g)
    assert g(x3, out=np.empty(())) == 24.0
    assert cache.info(g).hits == before + 4


@pytest.mark.parametrize(("change", "expected"), [
    (lambda m: setattr(m, "mode", "triple"), 36.0),
    (lambda m: setattr(m, "helper", lambda x: np.sum(x) + 1), 28.0),
    (lambda m: setattr(m.helper, "__code__", (lambda x: np.max(x)).__code__), 12.0),
    (lambda m: setattr(m, "len", lambda text: 5), 60.0),
    (lambda m: setattr(m, "np", types.SimpleNamespace(sum=lambda x: x[2])), 12.0),
])
def test_what_changes_is_seen(change, expected):
    m = module()
    m.f.__globals__["np"] = np
    g = jit(m.f)
    assert g(x3) == g(x3) == 24.0 and direct(g)
    change(m)
    with pytest.warns(TapeMismatchWarning):
        assert g(x3) == expected
    assert g(x3) == expected


def test_other_code_is_another_function():
    m = module()
    g = jit(m.f)
    assert g(x3) == 24.0 and direct(g)
    m.f.__code__ = m.helper.__code__
    assert g(x3) == g(x3) == 6.0


def test_a_global_that_is_gone_is_a_name_error_until_it_is_back():
    m = module()
    g = jit(m.f)
    assert g(x3) == 24.0 and direct(g)
    mode = m.__dict__.pop("mode")
    with pytest.raises(NameError, match="mode"):
        g(x3)
    m.mode = mode
    assert g(x3) == 24.0 and direct(g)


def test_a_key_that_cannot_be_compared_is_the_error_of_python():
    """A global that must not be there is looked up like any other: nothing found is not yet an answer."""
    class Broken:
        broken = False

        def __hash__(self):
            return hash("len")

        def __eq__(self, other):
            if self.broken:
                raise RuntimeError("not to be compared")
            return self is other

    m, key = module(), Broken()
    m.__dict__[key] = 1
    g = jit(m.f)
    assert g(x3) == 24.0 and direct(g)
    key.broken = True
    for call in (m.f, g):
        with pytest.raises(RuntimeError, match="not to be compared"):
            call(x3)
    key.broken = False
    assert g(x3) == 24.0 and direct(g)


def test_an_equal_object_is_no_change():
    m = module()
    g = jit(m.f)
    assert g(x3) == 24.0 and direct(g)
    before = cache.info(g)
    m.mode = "".join(["dou", "ble"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert g(x3) == g(x=x3) == 24.0
    assert cache.info(g)._replace(hits=before.hits) == before and cache.info(g).hits == before.hits + 2


def test_cells_are_looked_at():
    def made(what):
        def change(other):
            nonlocal what
            what = other
        return jit_grad(lambda x: np.sum(what(x))), change

    g, change = made(np.sin)
    np.testing.assert_allclose(g(x3), np.cos(x3))
    assert direct(g)
    change(np.exp)
    with pytest.warns(TapeMismatchWarning):
        np.testing.assert_allclose(g(x3), np.exp(x3))
    change(np.sin)
    np.testing.assert_allclose(g(x3), np.cos(x3))
    assert direct(g)


def test_attributes_of_modules_are_looked_at():
    m, inner = module(), module()
    m.inner = inner
    exec("def f(x): return inner.helper(x)", m.__dict__)
    g = jit(m.f)
    assert g(x3) == 6.0 and direct(g)
    inner.helper = lambda x: x[0]
    with pytest.warns(TapeMismatchWarning):
        assert g(x3) == 1.0


def test_only_identity_is_told_by_a_place():
    held = {"a": 1}
    for function, expected in [(lambda x: x * x3[0], False), (lambda x: np.sum(x) * held["a"], False),
                               (lambda x: np.sum(x), True)]:
        plan = Plan()
        names = function.__code__.co_names
        for name in names:
            if name in function.__globals__:
                value = function.__globals__[name]
                plan.add(_path("global", name), "input" if isinstance(value, np.ndarray) else "guard", value)
        for number, name in enumerate(function.__code__.co_freevars):
            plan.add(_path("cell", number, name), "guard", function.__closure__[number].cell_contents)
        assert (plan.places(Target(function)) is not None) == expected, names
    assert Plan().places(Target(function, self=x3)) is None


def _path(*step):
    from jitad.cache.keys.paths import Path

    return Path.of(step)


def test_a_call_that_outlives_its_function_serves_what_it_can():
    g = jit(module().f)
    g(x3)
    call, gone = g.__call__, weakref.ref(g)
    del g
    gc.collect()
    assert gone() is None and call(x3) == 24.0
    with pytest.raises(ReferenceError, match="keep it"):
        call(x3[:2])


def test_views_are_looked_up_once_and_are_no_cycles():
    g = jit_grad(lambda x: np.sum(x * x))
    view = g.value_and_grad
    assert g.value_and_grad is view and view.value_and_grad is view and g.value.value is g.value
    gone = [weakref.ref(g), weakref.ref(view), weakref.ref(g.value)]
    gc.collect()
    gc.disable()
    try:
        del g, view
        assert [ref() for ref in gone] == [None] * 3
    finally:
        gc.enable()


def test_where_the_layout_is_not_known_calls_go_through_python(monkeypatch):
    monkeypatch.setattr(runtime, "layout", lambda: (_ for _ in ()).throw(UnknownLayout("test")))
    g = jit(module().f)
    cache.clear(g)
    before = cache.info(g).hits
    assert g(x3) == g(x3) == g(x=x3) == 24.0 and not direct(g)
    assert cache.info(g).hits == before + 2
