"""Recompilation is announced: once, at the user's line, with the argument and both values; nothing else warns."""
from __future__ import annotations

import collections
import dataclasses
import inspect
import warnings

import numpy as np
import pytest

from jitad import TapeMismatchError, TapeMismatchWarning, cache, jit, jit_grad, value_and_grad

x3 = np.array([1.0, 2.0, 3.0])
x4 = np.array([1.0, 2.0, 3.0, 4.0])


@pytest.fixture(autouse=True)
def fresh():
    cache.clear()


def warned(call, *args, **kwargs):
    """The texts of the warnings of a call; each is a `TapeMismatchWarning` that points to this function's caller."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(*args, **kwargs)
    for w in caught:
        assert w.category is TapeMismatchWarning and w.filename == __file__
        assert "call(*args" in inspect.getsource(warned).splitlines()[w.lineno - warned.__code__.co_firstlineno]
    return [str(w.message) for w in caught]


def f(theta, X, k=1.0):
    return np.sum(theta) * np.sum(X) * k


def test_first_calls_and_seen_signatures_are_silent():
    g = jit_grad(f)
    assert not warned(g, x3, 2.0)
    assert not warned(g.value, x3, 2.0) and not warned(g.value_and_grad, x3, 2.0)
    assert len(warned(g, x4, 2.0)) == 1
    for x in (x3, x4, x3):
        assert not warned(g, x, 3.0)
    assert not warned(jit_grad(f), x4, 2.0)               # the same function, decorated again


CHANGES = [
    ((x4, 2.0), "argument `theta`: shape (3,) -> (4,)"),
    ((x3.astype("f4"), 2.0), "argument `theta`: dtype float64 -> float32"),
    ((x3[:, None].astype("f4"), 2.0), "argument `theta`: shape (3,) -> (3, 1), dtype float64 -> float32"),
    ((x3, 2), "argument `X`: Python float -> Python int"),
    ((x3, np.float64(2)), "argument `X`: Python float -> NumPy scalar of dtype float64"),
    ((x3, x3), "argument `X`: Python float -> array of shape (3,) and dtype float64"),
    ((x3, 2.0, 3.0), "argument `k`: not given -> Python float"),
    ((2.0, 2.0), "argument `theta`: array of shape (3,) and dtype float64 -> Python float"),
]


def test_the_text_names_the_argument_and_both_values():
    g = jit_grad(f)
    g(x3, 2.0)
    for args, text in CHANGES:
        g(x3, 2.0)                                        # the latest known counts where several are as close
        (message,) = warned(g, *args)
        assert message.removesuffix(" (see: python -m jitad explain TapeMismatchWarning)") == (
            f"`f` is compiled again: {text}")
    (message,) = warned(g, x4, x4[:2])                    # two causes: two lines, each once
    assert message.count("argument") in (1, 2)
    assert "argument" in cache.explain(g)


Pair = collections.namedtuple("Pair", "a b")


@dataclasses.dataclass
class Box:
    a: object
    b: object = None


def test_structures_and_static_values_are_named():
    g = jit_grad(lambda x, p: np.sum(x))
    assert not warned(g, x3, {"a": 1.0})
    for p, text in (({"a": 1.0, "b": x3}, "argument `p`: {'a': *} -> {'a': *, 'b': *}"),
                    (Pair(1.0, 2.0), "Pair(a=*, b=*)"),
                    (Box(1.0, (x3,)), "Box(a=*, b=(*,))"), ([1.0], "-> [*]"), ({"a": x3}, "argument `p"),
                    ({"a": "text"}, "'text'"), (None, "None"), ("text", "'text'")):
        (message,) = warned(g, x3, p)
        assert text in message and "PyTreeSpec" not in message
        assert not warned(g, x3, p)
    (message,) = warned(g, x3, "other")
    assert "argument `p`: " in message and "-> 'other'" in message


def test_layouts_are_silent():
    g = jit_grad(lambda x: np.sum(x * x))
    base = np.arange(12.0).reshape(3, 4)
    readonly = base.copy()
    readonly.flags.writeable = False
    wide = np.arange(24.0).reshape(3, 8)
    assert not any(warned(g, x) for x in (base, np.asfortranarray(base), wide[:, ::2], wide[:, 7:3:-1], readonly))


MODE, COUNT = "single", 2


def helper(x):
    return x * x


def test_captured_values_warn_and_going_back_is_silent(monkeypatch):
    @jit_grad
    def g(x):
        y = helper(x) if MODE == "double" else x
        return COUNT * np.sum(y)

    assert not warned(g, x3)
    for name, value, text in (("MODE", "double", "`MODE`: 'single' -> 'double'"), ("COUNT", 5, "`COUNT`: 2 -> 5"),
                              ("MODE", ("single", "double"), "MODE")):
        with monkeypatch.context() as m:
            m.setitem(globals(), name, value)
            (message,) = warned(g, x3)
            assert text.replace("`", "") in message.replace("`", "")
            assert not warned(g, x3)
            assert g(x3) is not None
        assert not warned(g, x3)
        np.testing.assert_array_equal(g(x3), np.full(3, 2.0))
    with monkeypatch.context() as m:
        m.setitem(globals(), "MODE", "double")
        assert not warned(g, x3)
        np.testing.assert_array_equal(g(x3), 4 * x3)
        m.setitem(globals(), "helper", lambda x: x * x * x)
        (message,) = warned(g, x3)
        assert "helper" in message
        np.testing.assert_array_equal(g(x3), 6 * x3**2)
    assert not warned(g, x3)
    assert "helper" in cache.explain(g)


def test_captured_arrays_warn_only_for_another_shape(monkeypatch):
    data = np.ones(3)
    g = jit_grad(lambda x: np.sum(x * np.sum(data)))
    assert not warned(g, x3)
    data = np.zeros(3)
    assert not warned(g, x3)
    data = np.zeros(5)
    (message,) = warned(g, x3)
    assert "data" in message and "shape (3,) -> (5,)" in message


def test_compiled_tapes_warn_and_keep_both():
    g = value_and_grad(lambda x: np.sum(x**2))
    compiled = g.compile(x3)
    assert not warned(compiled, x3)
    before = str(compiled.tape.format())
    (message,) = warned(compiled, x4)
    assert "argument `x`: shape (3,) -> (4,)" in message
    for x in (x3, x4, x3):
        assert not warned(compiled, x)
        value, gradient = compiled(x)
        assert value == np.sum(x**2)
        np.testing.assert_array_equal(gradient, 2 * x)
    assert cache.info(g).currsize == 2 and str(compiled.tape.format()) == before


def test_methods_and_nested_calls_warn_at_the_users_line():
    class Model:
        def __init__(self, kind):
            self.kind = kind

        @jit
        def f(self, x):
            return np.sum(x) if self.kind == "sum" else np.max(x)

    m = Model("sum")
    assert not warned(m.f, x3)
    m.kind = "max"
    (message,) = warned(m.f, x3)
    assert "kind" in message and "'sum' -> 'max'" in message
    g = jit_grad(jit_grad(lambda t, k: t**3 * k))
    assert not warned(g, 2.0, 1.0)
    assert len(warned(g, 2.0, 1)) == 1


def test_another_branch_warns_once_and_is_right():
    @jit_grad
    def g(x, n):
        total = np.sum(x * x) if x[0] > 0 else np.sum(x)
        for _ in range(n):
            total = total * 2
        return total

    assert not warned(g, x3, 1)
    (message,) = warned(g, -x3, 1)
    assert "test_mismatch.py:" in message
    (message,) = warned(g, x3, 3)
    assert "test_mismatch.py:" in message
    for sign in (1, -1, 1):
        assert not warned(g, sign * x3, 1)
        np.testing.assert_array_equal(g(sign * x3, 1), 4 * x3 if sign > 0 else np.full(3, 2.0))
    np.testing.assert_array_equal(g(2 * x3, 3), 32 * x3)
    assert cache.info(g).compiles == 3


def test_warnings_as_errors_do_not_break_anything():
    g = jit_grad(lambda x: np.sum(x**3))
    g(x3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(TapeMismatchWarning, match="shape"):
                g(x4)
        np.testing.assert_array_equal(g(x3), 3 * x3**2)
    assert len(warned(g, x4)) == 1
    np.testing.assert_array_equal(g(x4), 3 * x4**2)


# --- on_mismatch ---------------------------------------------------------------------------------------------------


@pytest.fixture
def configured():
    """Set the mode for all functions, until the test is over."""
    yield lambda mode: cache.configure(on_mismatch=mode)
    cache.configure(on_mismatch="warn")


@pytest.mark.parametrize("own", [True, False], ids=["per function", "global"])
def test_error_and_silent(configured, own):
    state = {"mode": "a"}
    f = lambda x: np.sum(x**2) if state["mode"] == "a" else np.sum(x)
    silent, strict = (jit_grad(f, on_mismatch=m if own else None) for m in ("silent", "error"))
    configured("warn" if own else "silent")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        silent(x3), silent(x4), silent(1.0)               # the first is no mismatch
        state["mode"] = "b"
        np.testing.assert_array_equal(silent(x3), np.ones(3))
        assert cache.info(silent).compiles == 4
        configured("warn" if own else "error")
        np.testing.assert_array_equal(strict(x3), np.ones(3))       # what is there serves
        for call, text in [(lambda: strict(x3.astype("f4")), "argument `x`: dtype float64 -> float32"),
                           (lambda: strict.compile(np.ones(7)), "argument `x`: shape"),
                           (lambda: strict.tape(np.ones(7)), "argument `x`: shape")]:
            with pytest.raises(TapeMismatchError, match="would be compiled again") as caught:
                call()
            assert text in str(caught.value) and f"{__file__}:" in str(caught.value)
        state["mode"] = "c"
        with pytest.raises(TapeMismatchError, match="'b' -> 'c'"):
            strict(x3)
        state["mode"] = "b"
        np.testing.assert_array_equal(strict(x3), np.ones(3))
    assert cache.info(strict).compiles == 4, "what is refused is not compiled"


def test_the_functions_own_mode_comes_first(configured):
    configured("error")
    g, h = jit_grad(f, on_mismatch="warn"), value_and_grad(f, on_mismatch="silent")
    g(x3, 2.0), h(x3, 2.0)
    assert len(warned(g, x4, 2.0)) == 1 and not warned(h, x4, 2.0)
    assert not warned(h.value, x3, 2.0) and not warned(h.value, x4, 2.0), "and that of its siblings"
    with pytest.raises(TypeError, match="compiled again"):  # an argument error like any other, too
        jit(f)(x3, 2.0), jit(f)(np.ones(6), 2.0)


def test_odd_modes_are_refused():
    with pytest.raises(TypeError, match='on_mismatch must be "warn", "error" or "silent", not True'):
        jit_grad(f, on_mismatch=True)


# --- ways through branches -----------------------------------------------------------------------------------------


def stairs(x):
    return np.sum(x) * int(x[0])


def test_beyond_a_number_of_ways_a_function_runs_uncompiled():
    limit = cache.configuration().ways
    cache.configure(ways=4)
    try:
        g = jit_grad(stairs, on_mismatch="silent")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for n in [*range(8), *range(8)]:
                np.testing.assert_array_equal(g(np.array([n + 0.5, 1.0])), np.full(2, n))
            np.testing.assert_array_equal(jit_grad(stairs)(np.array([9.5, 1.0])), np.full(2, 9))
        (warning,) = caught
        assert warning.category is cache.ShapeChurnWarning and warning.filename == __file__
        line = stairs.__code__.co_firstlineno + 1
        assert f"test_mismatch.py:{line}" in str(warning.message) and "np.where" in str(warning.message)
        assert "4 ways" in str(warning.message) and "configure(ways=" in str(warning.message)
        info = cache.info(g)
        assert (info.compiles, info.currsize, info.misses) == (4, 4, 4 + 4 + 4 + 1)
        assert "another way is taken at" in cache.explain(g)
        assert g.compile(np.array([20.5, 1.0]))(np.array([2.5, 1.0]))[0] == 2.0
        with pytest.raises(TapeMismatchError, match="another way"):
            jit_grad(stairs, on_mismatch="error")(np.array([11.5, 1.0]))
        cache.configure(ways=9)
        g(np.array([7.5, 1.0]))
        assert cache.info(g).compiles == 5
    finally:
        cache.configure(ways=limit)


def test_ways_under_other_captured_values_do_not_count():
    limit = cache.configuration().ways
    cache.configure(ways=2)
    try:
        for n in range(4):
            g = jit_grad(lambda x, n=n: np.sum(x) * n if x[0] > 0 else np.sum(x * x) * n, on_mismatch="silent")
            for x in (x3, -x3):
                g(x), g(x)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert cache.info(g).compiles == 8
    finally:
        cache.configure(ways=limit)


def test_a_compiled_tape_belongs_to_its_function():
    g, h = jit_grad(f), jit_grad(lambda theta, X: np.sum(theta**2) * X)
    compiled = g.compile(x3, 2.0)
    assert not hasattr(compiled, "bind") and compiled.__wrapped__ is f
    with pytest.raises(TypeError):
        compiled(h)                                       # a function is no argument
    np.testing.assert_array_equal(h.compile(x3, 2.0)(x3, 2.0), 4 * x3)
    np.testing.assert_array_equal(compiled(x3, 2.0), np.full(3, 2.0))
