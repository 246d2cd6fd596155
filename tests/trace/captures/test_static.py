"""``static=``: captured objects that cannot be watched, used as they are; and what a recording refuses."""
from __future__ import annotations

import os
import pathlib
import random
import types
import uuid
import warnings

import numpy as np
import pytest

from jitad import CaptureError, TapeMismatchWarning, cache, jit, jit_grad, value_and_grad
from jitad.errors import ArgumentTypeError

x3 = np.array([1.0, 2.0, 3.0])


@pytest.fixture(autouse=True)
def fresh():
    cache.clear()


class Opaque:
    """Nothing that is read through it can be noticed."""

    def __init__(self, factor):
        self.factor = factor

    def __getattribute__(self, name):
        return object.__getattribute__(self, name)

    def scale(self, x):
        return self.factor * x


table = Opaque(2.0)


class Holder:
    def __init__(self, table):
        self.table, self.offset = table, 1.0

    def logp(self, x):
        return np.sum(self.table.scale(x)) + self.offset * np.sum(x)

    decorated = jit_grad(logp, static=("self.table",))


def by_global(x):
    return np.sum(table.scale(x))


def by_helper(x):
    return by_global(x) * 1.0


def test_the_error_names_the_object_and_the_way_out():
    for function in (by_global, by_helper):
        with pytest.raises(CaptureError, match=r"global `table`.*Opaque.*test_static\.py:\d+.*static=\('table',\)"):
            jit_grad(function)(x3)
    with pytest.raises(CaptureError, match=r"static=\('self\.table',\)"):
        jit_grad(Holder(table).logp)(x3)


def test_globals_helpers_closures_and_attributes():
    local = Opaque(3.0)
    data = {"t": local}
    cases = [
        (by_global, "table", 2.0), (by_helper, "table", 2.0), (lambda x: np.sum(local.scale(x)), "local", 3.0),
        (lambda x: np.sum(data["t"].scale(x)), "data['t']", 3.0), (lambda x: np.sum(data["t"].scale(x)), "data", 3.0),
        (lambda x, t=local: np.sum(t.scale(x)), "t", 3.0), (Holder(local).logp, "self.table", 4.0),
    ]
    for function, name, slope in cases:
        for make in (jit_grad, lambda f, static: value_and_grad(f, static=static).value_and_grad):
            got = make(function, static=(name,))(x3)
            np.testing.assert_array_equal(got[1] if isinstance(got, tuple) else got, np.full(3, slope))


def test_the_same_object_hits_and_another_one_misses(monkeypatch):
    g = jit_grad(by_global, static=("table",))
    g(x3), g(x3)
    assert cache.info(g).compiles == 1
    table.factor = 9.0                                    # assumed not to happen: not seen
    np.testing.assert_array_equal(g(x3), np.full(3, 2.0))
    table.factor = 2.0
    monkeypatch.setitem(globals(), "table", Opaque(5.0))
    with pytest.warns(TapeMismatchWarning, match="global `table`: replaced by another <Opaque object>"):
        np.testing.assert_array_equal(g(x3), np.full(3, 5.0))
    np.testing.assert_array_equal(g(x3), np.full(3, 5.0))
    monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(g(x3), np.full(3, 2.0))
    assert cache.info(g)[:3] == (4, 2, 2)
    monkeypatch.setitem(globals(), "table", None)
    with pytest.raises(AttributeError):                   # the function's own error; nothing is compiled, nobody warned
        g(x3)


def test_siblings_and_bound_methods_know_it():
    g = jit_grad(by_global, static=["table"])
    assert g.value(x3) == 12.0 and g.value_and_grad(x3)[0] == 12.0
    holder = Holder(Opaque(2.0))
    np.testing.assert_array_equal(holder.decorated(x3), np.full(3, 3.0))
    holder.offset = 2.0                                   # watched all the same
    np.testing.assert_array_equal(holder.decorated(x3), np.full(3, 4.0))
    assert cache.info(Holder.decorated).compiles == 1


def test_what_can_be_watched_is_watched():
    scale, flag = 2.0, 3
    weights = np.ones(3)
    g = jit_grad(lambda x: np.sum(x * weights) * scale * flag, static=("scale", "weights", "flag"))
    np.testing.assert_array_equal(g(x3), np.full(3, 6.0))
    weights[:], scale = 2.0, 3.0
    np.testing.assert_array_equal(g(x3), np.full(3, 18.0))
    flag = 1
    with pytest.warns(TapeMismatchWarning, match="`flag`"):
        np.testing.assert_array_equal(g(x3), np.full(3, 6.0))


def test_functions_modules_lists_and_odd_arrays():
    module = types.ModuleType("settings")
    module.factor, module.words = np.float64(2.0), np.array(["a", "b"])
    words, things = np.array(["a", "b"]), [Opaque(1.0), Opaque(2.0)]

    def counted(x):
        calls.append(1)
        return x * 2.0

    calls: list[int] = []
    cases = [
        (lambda x: np.sum(x) * module.factor, "module", 2.0),
        (lambda x: np.sum(x) * np.sum(words == "a"), "words", 1.0),
        (lambda x: np.sum(things[1].scale(x)), "things", 2.0),
        (lambda x: np.sum(counted(x)), "counted", 2.0),
    ]
    for function, name, slope in cases:
        g = jit_grad(function, static=(name,))
        np.testing.assert_array_equal(g(x3), np.full(3, slope))
        np.testing.assert_array_equal(g(x3), np.full(3, slope))
        assert cache.info(g).compiles == 1
    assert calls == [1]
    method = Opaque(4.0).scale
    np.testing.assert_array_equal(jit(lambda x: method(x), static=("method",))(x3), 4 * x3)


def test_with_and_without_it_a_function_has_entries_of_its_own():
    shared = types.SimpleNamespace(mode="a")
    f = lambda x: np.sum(x) * (2.0 if shared.mode == "a" else 3.0)
    loose, strict = jit_grad(f, static=("shared",)), jit_grad(f)
    assert loose(x3)[0] == strict(x3)[0] == 2.0
    shared.mode = "b"
    with pytest.warns(TapeMismatchWarning, match="shared.mode"):
        assert strict(x3)[0] == 3.0
    assert loose(x3)[0] == 2.0 and strict(x3)[0] == 3.0


@pytest.mark.parametrize("static", ["table", ("table", 1), {"table"}, None])
def test_odd_names_are_refused(static):
    with pytest.raises(ArgumentTypeError, match="static must be a tuple of names"):
        jit_grad(by_global, static=static)


# --- impurity ------------------------------------------------------------------------------------------------------

HERE = pathlib.Path(__file__)

IMPURE = {
    "uuid": lambda x: np.sum(x) * uuid.uuid4().int, "getpid": lambda x: np.sum(x) * os.getpid(),
    "RandomState": lambda x: np.sum(x) * np.random.RandomState(0).rand(),
    "Random": lambda x: np.sum(x) * random.Random(0).random(), "read_text": lambda x: np.sum(x) * len(HERE.read_text()),
    "iterdir": lambda x: np.sum(x) * len(list((HERE.parent / "..").iterdir())),
    "stat": lambda x: np.sum(x) * os.stat(".").st_size, "exists": lambda x: np.sum(x) * os.path.exists("/"),
    "open": lambda x: np.sum(x) * len(pathlib.Path(__file__).open().read()),  # noqa: SIM115
}


@pytest.mark.parametrize("name", IMPURE)
def test_what_changes_from_run_to_run_is_refused(name):
    with pytest.raises(CaptureError, match=rf"{name}.*test_static\.py:\d+.*pass the value in as an argument"):
        jit_grad(IMPURE[name])(x3)


def test_paths_are_values():
    kind = pathlib.Path("data") / "model.txt"
    g = jit_grad(lambda x: np.sum(x) * len(kind.name) * (pathlib.Path("a") == pathlib.Path("a")))
    np.testing.assert_array_equal(g(x3), np.full(3, 9.0))
