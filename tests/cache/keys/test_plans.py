"""Plans of captured values: what is missing, refused or kept; their words; the code that is generated."""

import gc
import pickle
import sys
import types
import weakref

import numpy as np
import pytest

from jitad.cache.keys.captures import Path, Plan
from jitad.cache.keys.guards import Unguardable
from jitad.cache.keys.identity import unwrap
from tests.cache.keys.plans import HELPER, Model, X, cell, glob, helper_plan, make, module, plan_of
from tests.helpers.fetching import fetch_of


def test_missing_values_are_a_mismatch_and_never_an_exception():
    _, names = module("def f(x): return x", s=1.0, d={"a": 1.0}, m=Model())
    target = unwrap(names["f"])
    cases = [
        (glob("s"), 1.0, lambda: names.pop("s")),
        (glob("d", ("item", "a")), 1.0, lambda: names["d"].clear()),
        (glob("m", ("attr", "w")), X, lambda: delattr(names["m"], "w")),
    ]
    for path, value, remove in cases:
        plan = plan_of((path, "input", value))
        fetch = fetch_of(plan, target)
        remove()
        assert fetch() is None and not plan.matches(target) and fetch_of(plan, target) is None
        assert plan.changes(target) == [f"{Path.of(*path)}: is not there any more"]
    broken = plan_of((glob("m", ("attr", "broken")), "input", 1.0))
    assert not broken.matches(target)
    names["d"] = np.zeros(3)
    assert not plan_of((glob("d", ("item", "a")), "input", 1.0)).matches(target)


def test_empty_cell():
    def enclosing():
        def f(x):
            return value

        def fill():
            nonlocal value
            value = 2.0

        def empty():
            nonlocal value
            del value

        value = 1.0
        return f, fill, empty

    f, fill, empty = enclosing()
    plan = plan_of(((("cell", 0, "value"),), "input", 1.0))
    fetch = fetch_of(plan, unwrap(f))
    empty()
    assert fetch() is None and not plan.matches(unwrap(f))
    fill()
    assert fetch() == (2.0,)


def test_inputs_of_another_kind_or_shape_do_not_match():
    _, names = module("def f(x): return x * s", s=X)
    plan, target = plan_of((glob("s"), "input", X)), unwrap(names["f"])
    for new, text in [
        (np.zeros(4), "shape (3,) -> (4,)"),
        (X.astype("f4"), "dtype float64 -> float32"),
        (1.0, "array of shape (3,) and dtype float64 -> Python float"),
    ]:
        names["s"] = new
        assert not plan.matches(target) and plan.changes(target) == [f"global `s`: {text}"]
    names["s"] = X + 1
    assert plan.matches(target)


def test_one_cause_gives_one_line():
    _, names = module(HELPER)
    plan, target = helper_plan(names), unwrap(names["f"])
    del names["helper"]
    assert plan.changes(target) == ["global `helper`: is not there any more"]


def test_reads_are_noted_once_and_in_order():
    plan = Plan()
    a, b = Path.of(("global", "a")), Path.of(("global", "b"))
    assert [plan.add(p, "input", 1.0) for p in (a, b, a)] == [0, 1, 0]
    assert plan.add(a, "guard", "x") == -1
    assert plan.inputs == (a, b) and plan.guards == (a,)


def test_bad_reads_are_refused():
    plan = Plan()
    with pytest.raises(Unguardable):
        plan.add(Path.of(("global", "a")), "guard", X)
    with pytest.raises(ValueError, match="global `helper`"):
        plan.add(Path.of(("global", "helper"), ("cell", 0)), "input", 1.0)
    with pytest.raises(ValueError, match="input or a guard"):
        plan.add(Path.of(("global", "a")), "else", 1)
    for steps in [(("attr", "a"),), (("else", 1),), (("global", "a"), ("else", 1))]:
        with pytest.raises(ValueError, match="step"):
            Path.of(*steps)
    assert plan.inputs == plan.guards == ()


@pytest.mark.parametrize(
    "steps, text",
    [
        ((("cell", 0, "X"),), "`X` captured from the enclosing function"),
        (glob("sigma"), "global `sigma`"),
        (glob("data", ("item", "X"), ("item", 0)), "global `data['X'][0]`"),
        ((("self",), ("attr", "sigma")), "attribute `self.sigma`"),
        ((("self",),), "`self`"),
        ((("default", 0, "a"),), "default `a`"),
        ((("kwdefault", "b"),), "default `b`"),
        ((("partial", 1),), "bound `partial 1`"),
        ((("partial", 1, "X"),), "bound `X`"),
        ((("keyword", "k"),), "bound keyword `k`"),
        (glob("h", ("cell", 0, "s"), ("attr", "t")), "`s.t` captured from the enclosing function, read by `h`"),
        (glob("m", ("type",), ("attr", "f")), "global `type(m).f`"),
        ((), "the function itself"),
    ],
)
def test_words_for_paths(steps, text):
    path = Path.of(*steps)
    assert str(path) == text and path == Path.of(*steps) and hash(path) == hash(Path.of(*steps))
    assert pickle.loads(pickle.dumps(path)) == path


def test_plan_keeps_neither_function_nor_values_alive():
    def enclosing(array):
        def helper(x):
            return x * array

        def f(x):
            return helper(x)

        return f, helper

    array = X + 1
    f, helper = enclosing(array)
    plan = plan_of((cell("helper", f), "guard", helper), ((*cell("helper", f), *cell("array", helper)), "input", array))
    fetch = fetch_of(plan, unwrap(f))
    assert fetch()[0] is array
    alive = [weakref.ref(v) for v in (f, helper, array)]
    del f, helper, array, fetch
    gc.collect()
    assert [r() for r in alive] == [None] * 3 and plan.guards


def test_generated_statements_can_be_built_into_another_function():
    _, names = module("def f(x): return s", s=2.0, mode="a")
    target = unwrap(names["f"])
    source = plan_of((glob("mode"), "guard", "a"), (glob("s"), "input", 2.0)).generate(target, fail="return 'miss'")
    body = "\n ".join([*source.lines, f"return 10 * {source.inputs[0]}"])
    space = {}
    exec(f"def call({', '.join(source.bound)}):\n {body}", space)
    call = types.FunctionType(space["call"].__code__, source.namespace, "call", tuple(source.bound.values()))
    assert call() == 20.0
    names["mode"] = "b"
    assert call() == "miss"


def test_user_globals_cannot_disturb_the_getter():
    hostile = {name: None for name in ("len", "type", "tuple", "freeze", "Exception", "int", "getattr", "list")}
    _, names = module("def f(x): return x", n=3, v=[1], d={"a": 1.0}, _jitad_b0=5.0, _jitad_v0=6.0, **hostile)
    plan = plan_of(
        (glob("n"), "guard", 3),
        (glob("v"), "guard", [1]),
        (glob("v", ("len",)), "guard", 1),
        (glob("d", ("keys",)), "guard", ("a",)),
        (glob("_jitad_b0"), "input", 5.0),
        (glob("_jitad_v0"), "input", 6.0),
    )
    fetch = fetch_of(plan, unwrap(names["f"]))
    assert fetch() == (5.0, 6.0)
    names["n"] = int("3")
    names["v"] = [True]
    assert fetch() is None
    del names["v"]
    assert fetch() is None


def test_odd_names_and_keys():
    odd = types.SimpleNamespace(**{"a b": 1.0, "class": 2.0})
    _, names = module("def f(x): return x", o=odd, d={(1, "a"): 3.0, None: 4.0, "it's": 5.0})
    paths = [glob("o", ("attr", "a b")), glob("o", ("attr", "class"))]
    paths += [glob("d", ("item", key)) for key in names["d"]]
    plan = plan_of(*[(path, "input", 1.0) for path in paths])
    assert fetch_of(plan, unwrap(names["f"]))() == (1.0, 2.0, 3.0, 4.0, 5.0)


def test_a_fetch_is_cheap():
    """The bytecode stays small: a getter must cost a fraction of a microsecond, whatever the machine does now."""
    f = make(X, 2.0)
    plan = plan_of((cell("array", f), "input", X), (cell("scale", f), "input", 2.0))
    fetch = fetch_of(plan, unwrap(f))
    calls = []
    sys.setprofile(lambda frame, event, arg: calls.append(event))
    fetch()
    sys.setprofile(None)
    assert [e for e in calls if e == "call"] == ["call"], "no Python function is called on the way"
    assert len(fetch.__code__.co_code) < 250
