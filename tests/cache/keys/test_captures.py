"""Plans of captured values: inputs fetched by generated getters, guards that see each change."""

import functools
import math
import types

import numpy as np
import pytest

from jitad.cache.keys.identity import unwrap
from tests.cache.keys.plans import Frozen, Model, X, cell, glob, make, module, plan_of
from tests.helpers.fetching import fetch_of

# --- inputs -----------------------------------------------------------------------------------------------------------


def test_closure_inputs_follow_rebinding():
    def enclosing():
        array, scale = X, 2.0

        def f(x):
            return x @ array * scale

        def rebind(a, s):
            nonlocal array, scale
            array, scale = a, s

        return f, rebind

    f, rebind = enclosing()
    plan = plan_of((cell("array", f), "input", X), (cell("scale", f), "input", 2.0))
    fetch = fetch_of(plan, unwrap(f))
    assert fetch() == (X, 2.0) and fetch()[0] is X
    new = X + 1
    rebind(new, 3.0)
    assert fetch()[0] is new and fetch()[1] == 3.0


def test_a_closure_made_again_gets_its_own_getter_from_the_same_plan():
    first, second = make(X, 1.0), make(X + 1, 2.0)
    plan = plan_of((cell("array", first), "input", X), (cell("scale", first), "input", 1.0))
    fetches = [fetch_of(plan, unwrap(f)) for f in (first, second)]
    assert [fetch()[1] for fetch in fetches] == [1.0, 2.0] and fetches[0]()[0] is X
    assert fetches[0].__code__ is fetches[1].__code__, "the source is compiled once"


def test_globals_defaults_and_containers():
    _, names = module(
        "def f(x, a=1.5, *, b=2.5): return x * s * data['X'][0] * params[1] * cfg.w.v * a * b",
        s=1.0, data={"X": [X]}, params=[0.0, 3.0], cfg=types.SimpleNamespace(w=types.SimpleNamespace(v=4.0)),
    )  # fmt: skip
    f = names["f"]
    plan = plan_of(
        (glob("s"), "input", 1.0),
        (glob("data", ("item", "X"), ("item", 0)), "input", X),
        (glob("params", ("item", 1)), "input", 3.0),
        (glob("cfg", ("attr", "w"), ("attr", "v")), "input", 4.0),
        ((("default", 0, "a"),), "input", 1.5),
        ((("kwdefault", "b"),), "input", 2.5),
    )
    fetch = fetch_of(plan, unwrap(f))
    assert fetch() == (1.0, X, 3.0, 4.0, 1.5, 2.5)
    names["s"], names["data"]["X"], names["params"] = -1.0, [X + 1], (0, -3.0)
    names["cfg"] = types.SimpleNamespace(w=types.SimpleNamespace(v=-4.0))
    f.__defaults__, f.__kwdefaults__["b"] = (-1.5,), -2.5
    values = fetch()
    assert values[0] == -1.0 and values[1][0] == 1 and values[2:] == (-3.0, -4.0, -1.5, -2.5)


def test_self_and_partial_arguments():
    model = Model()
    keywords = {"scale": 2.0}
    target = unwrap(functools.partial(functools.partial(model.method, X), **keywords))
    plan = plan_of(
        ((("self",), ("attr", "w")), "input", X),
        ((("self",), ("attr", "mode")), "guard", "a"),
        ((("partial", 0),), "input", X),
        ((("keyword", "scale"),), "input", 2.0),
    )
    fetch = fetch_of(plan, target)
    assert fetch() == (X, X, 2.0)
    model.w = X + 1
    assert fetch()[0] is model.w
    target.keywords["scale"]["scale"] = 3.0
    assert fetch()[2] == 3.0
    model.mode = "b"
    assert fetch() is None
    assert plan.changes(target) == ["attribute `self.mode`: 'a' -> 'b'"]


def test_replaced_call_of_a_callable_object():
    class Local(Model):
        def __call__(self, x):
            return x

    model = Local()
    plan = plan_of(((("self",), ("attr", "w")), "input", X))
    fetch = fetch_of(plan, unwrap(model))
    assert fetch() == (X,)
    Local.__call__ = lambda self, x: 2 * x
    assert fetch() is None


# --- guards -----------------------------------------------------------------------------------------------------------


GUARDED = [
    ("a", "b"), (1, 2), (1, True), (1, 1.0), (1.0, 1), (0.0, -0.0), (math.nan, 0.0), (None, 0), (True, False),
    (b"a", "a"), ((1, 2), (1, 2.0)), ((1, [2]), (1, [3])), ([1, "a"], [1, "b"]), ([1], [True]), ([1], [1, 2]),
    ([1], (1,)), (list(range(40)), list(range(41))), ([[1]], [[2]]), ({"a": 1}, {"a": 2}), ({"a": 1}, {"b": 1}),
    ({"a": 1}, {"a": 1, "b": 2}), ({"a": 1, "b": 2}, {"b": 2, "a": 1}), ({1: "a"}, {True: "a"}), ({1}, {2}),
    (slice(1), slice(2)), (range(3), range(4)), (int, float), (np, math), (np.sin, np.cos), (len, abs),
    (Frozen(1), Frozen(2)), (np.float64(1), np.float64(2)), (np.dtype("f8"), np.dtype("f4")), (..., None),
    (lambda x: x, lambda x: x + 1), (functools.partial(len), functools.partial(abs)), (1, X), ([1], [X]),
    (complex(0, 1), complex(0, 2)), ("a", Model()),
]  # fmt: skip


@pytest.mark.parametrize("old, new", GUARDED)
def test_guards_see_a_change(old, new):
    _, names = module("def f(x): return x * v")
    names["v"] = old
    plan = plan_of((glob("v"), "guard", old))
    target = unwrap(names["f"])
    fetch = fetch_of(plan, target)
    assert fetch() == () and plan.matches(target) and plan.changes(target) == []
    names["v"] = new
    assert fetch() is None and not plan.matches(target) and fetch_of(plan, target) is None
    (line,) = plan.changes(target)
    assert line.startswith("global `v`: ")


COPIES = [
    lambda: "".join(["a", "b"]), lambda: int("70000"), lambda: float("1.5"), lambda: float("nan"),
    lambda: (1, "".join(["a", "b"])), lambda: [int("70000"), None], lambda: {"k": float("2.5")}, lambda: {3, "a"},
    lambda: [[1], [2.0]], lambda: slice(0, 2), lambda: range(2), lambda: Frozen(int("70000")), lambda: np.float64(2),
    lambda: bytes([1, 2]), lambda: complex("1j"), lambda: functools.partial(len, k=1),
]  # fmt: skip


@pytest.mark.parametrize("copy", COPIES)
def test_guards_let_an_equal_value_pass(copy):
    _, names = module("def f(x): return x * v", v=copy())
    fetch = fetch_of(plan_of((glob("v"), "guard", copy())), unwrap(names["f"]))
    names["v"] = copy()
    assert fetch() == ()


@pytest.mark.parametrize(
    "value, change",
    [
        ([1, 2], lambda v: v.append(3)), ([1, 2], lambda v: v.__setitem__(0, True)), ([1, 2], list.reverse),
        ({"a": 1}, lambda v: v.update(a=2)),
        ({"a": 1}, lambda v: v.pop("a")), ({1}, lambda v: v.add(2)), ((1, [2]), lambda v: v[1].append(3)),
        ([[1]], lambda v: v[0].append(1)), ({"a": [1]}, lambda v: v["a"].append(1)), (bytearray(b"a"), bytearray.clear),
        (functools.partial(len, k=1), lambda v: v.keywords.update(k=2)),
    ],
)  # fmt: skip
def test_guards_see_a_change_in_place(value, change):
    _, names = module("def f(x): return x * v", v=value)
    plan = plan_of((glob("v"), "guard", value))
    fetch = fetch_of(plan, unwrap(names["f"]))
    assert fetch() == ()
    change(value)
    assert fetch() is None and not plan.matches(unwrap(names["f"]))


def test_structure_of_containers_can_be_guarded_apart_from_their_contents():
    _, names = module("def f(x): return sum(params)", params=[1.0, 2.0], data={"a": X})
    params, data = glob("params"), glob("data")
    plan = plan_of(
        ((*params, ("type",)), "guard", list),
        ((*params, ("len",)), "guard", 2),
        ((*params, ("item", 0)), "input", 1.0),
        ((*data, ("keys",)), "guard", ("a",)),
    )
    target = unwrap(names["f"])
    fetch = fetch_of(plan, target)
    names["params"] = [3.0, 4.0]
    assert fetch() == (3.0,)
    names["params"].append(5.0)
    assert fetch() is None and plan.changes(target) == ["global `len(params)`: 2 -> 3"]
    names["params"] = (3.0, 4.0)
    assert fetch() is None
    names["params"], names["data"]["b"] = [3.0, 4.0], X
    assert fetch() is None and plan.changes(target) == ["global `list(data)`: ('a',) -> ('a', 'b')"]


def test_builtins_and_names_that_hide_them():
    _, names = module("def f(x): return len(x)")
    target = unwrap(names["f"])
    plan = plan_of((glob("len"), "guard", len))
    fetch = fetch_of(plan, target)
    assert fetch() == ()
    names["len"] = lambda x: 3
    assert fetch() is None and not plan.matches(target)
    names["len"] = len
    assert fetch_of(plan, target)() == ()
