"""Plans of captured values: what helper functions, methods and partials capture, found through them."""

import functools
import gc
import types
import weakref

import pytest

from jitad.cache.keys.identity import code_key, unwrap
from tests.cache.keys.plans import HELPER, Model, X, glob, helper_plan, module, plan_of
from tests.helpers.fetching import fetch_of


def test_helper_made_again_from_the_same_code_matches_and_recompiles_only_the_getter():
    _, names = module(HELPER)
    plan, target = helper_plan(names), unwrap(names["f"])
    fetch = fetch_of(plan, target)
    assert fetch() == (2.0, 1.0)
    names["helper"] = names["make_helper"](5.0)
    assert fetch() is None, "bound to the cells of the other one"
    assert plan.matches(target) and fetch_of(plan, target)() == (5.0, 1.0)


def test_helper_with_other_code_does_not_match():
    _, names = module(HELPER)
    plan, target = helper_plan(names), unwrap(names["f"])
    fetch = fetch_of(plan, target)
    exec("def helper(x): return x + 1", names)
    assert fetch() is None and fetch_of(plan, target) is None
    (line,) = plan.changes(target)
    assert line.startswith("global `helper`: function helper (code ")


def test_code_replaced_in_place_is_seen():
    _, names = module(HELPER)
    plan, target = helper_plan(names), unwrap(names["f"])
    plan.code = code_key(names["f"])
    fetch = fetch_of(plan, target)
    old = names["helper"].__code__
    exec("def make(scale):\n def helper(x): return x - scale - shift\n return helper", names)
    names["helper"].__code__ = names["make"](1).__code__
    assert fetch() is None and not plan.matches(target)
    names["helper"].__code__ = old
    assert fetch() == (2.0, 1.0)
    names["f"].__code__ = (lambda x: x + 1).__code__
    assert fetch() is None and fetch_of(plan, target) is None
    assert plan.changes(target) == ["the code of the function has changed"]


def test_bound_method_of_a_class_as_helper():
    class Tools:
        @classmethod
        def scale(cls, x):
            return x * X

    _, names = module("def f(x): return scale(x)", scale=Tools.scale)
    plan = plan_of((glob("scale"), "guard", Tools.scale), (glob("scale", ("global", "X")), "input", X))
    fetch = fetch_of(plan, unwrap(names["f"]))
    assert fetch()[0] is X
    names["scale"] = Tools.scale  # another method object, but the same method
    assert fetch()[0] is X
    names["scale"] = Model.method
    assert fetch() is None


def test_partial_as_helper():
    def base(a, x):
        return a * x * X

    _, names = module("def f(x): return part(x)", part=functools.partial(base, 2.0))
    plan = plan_of(
        (glob("part"), "guard", names["part"]),
        (glob("part", ("partial", 0)), "input", 2.0),
        (glob("part", ("global", "X")), "input", X),
    )
    fetch = fetch_of(plan, unwrap(names["f"]))
    assert fetch() == (2.0, X)
    names["part"] = functools.partial(base, 3.0)
    assert fetch() is None


def test_method_of_a_global_object_is_reached_through_its_class():
    _, names = module("def f(x): return model.method(x)", model=Model())
    model = glob("model")
    plan = plan_of(
        ((*model, ("type",)), "guard", Model),
        ((*model, ("type",), ("attr", "method")), "guard", Model.method),
        ((*model, ("attr", "w")), "input", X),
    )
    fetch = fetch_of(plan, unwrap(names["f"]))
    assert fetch() == (X,)
    names["model"] = Model()
    names["model"].w = X + 1
    assert fetch()[0] is names["model"].w
    names["model"] = types.SimpleNamespace(w=X)
    assert fetch() is None


def test_helper_from_another_module_reads_its_own_globals():
    _, other = module("def helper(x): return x * s * abs(x)", s=2.0)
    _, names = module("def f(x): return helper(x) * s", s=1.0, helper=other["helper"])
    plan = plan_of(
        (glob("s"), "input", 1.0),
        (glob("helper"), "guard", other["helper"]),
        (glob("helper", ("global", "s")), "input", 2.0),
        (glob("helper", ("global", "abs")), "guard", abs),
    )
    fetch = fetch_of(plan, unwrap(names["f"]))
    assert fetch() == (1.0, 2.0)
    other["s"] = 3.0
    assert fetch() == (1.0, 3.0)
    other["abs"] = len
    assert fetch() is None


# --- functions as keys ------------------------------------------------------------------------------------------------


def keyed():
    _, names = module("def a(x): return x\ndef b(x): return -x\ndef f(x): return x", d={})
    a, b = names["a"], names["b"]
    names["d"] = {a: 1.0, "k": 2.0, b: 3.0}
    plan = plan_of(
        (glob("d", ("keys",)), "guard", (a, "k", b)),
        (glob("d", ("item", a)), "input", 1.0),
        (glob("d", ("item", b)), "input", 3.0),
    )
    return names, plan, unwrap(names["f"])


def test_a_dict_with_functions_as_keys_is_fetched():
    names, plan, target = keyed()
    a, b = names["a"], names["b"]
    fetch = fetch_of(plan, target)
    assert fetch() == (1.0, 3.0) == fetch()
    names["d"] = {a: 4.0, "k": 5.0, b: 6.0}
    assert fetch() == (4.0, 6.0)
    same = {a: 4.0, "k": 5.0, b: 6.0}
    for other in ({b: 4.0, "k": 5.0, a: 6.0}, {a: 4.0, b: 6.0}, {**same, "l": 0.0}, {a: 1.0, "q": 2.0, b: 3.0}):
        names["d"] = other
        assert fetch() is None and not plan.matches(target)


def test_code_of_a_key_replaced_in_place_is_seen():
    names, plan, target = keyed()
    fetch = fetch_of(plan, target)
    names["a"].__code__ = names["b"].__code__
    assert fetch() is None and not plan.matches(target)


def test_functions_made_again_are_other_keys():
    names, plan, target = keyed()
    fetch = fetch_of(plan, target)
    exec("def a(x): return x", names)
    names["d"] = {names["a"]: 1.0, "k": 2.0, names["b"]: 3.0}
    assert fetch() is None and not plan.matches(target)


def test_a_plan_keeps_no_key_alive():
    names, plan, target = keyed()
    alive = [weakref.ref(names["a"]), weakref.ref(names["b"])]
    assert "function" not in str(plan.inputs[0]) and str(plan.inputs[0]) == "global `d[a]`"
    names["d"].clear()
    del names["a"], names["b"]
    gc.collect()
    assert [ref() for ref in alive] == [None, None] and not plan.matches(target)


@pytest.mark.parametrize("n", [0, 2, 40])
def test_keys_are_compared_by_identity_first(n):
    _, names = module("def f(x): return x", d={f"k{i}": i for i in range(n)})
    plan = plan_of((glob("d", ("keys",)), "guard", tuple(names["d"])))
    fetch = fetch_of(plan, unwrap(names["f"]))
    assert fetch() == ()
    names["d"] = {"".join(["k", str(i)]): i for i in range(n)}
    assert fetch() == (), "equal is enough"
    names["d"]["more"] = 1
    assert fetch() is None


def test_a_builtin_of_a_class_is_the_same_at_each_look_up():
    _, names = module("def f(x): return x", d=dict)
    plan = plan_of((glob("d", ("attr", "fromkeys")), "guard", dict.fromkeys))
    fetch = fetch_of(plan, unwrap(names["f"]))
    assert fetch() == ()
    names["d"] = type("D", (dict,), {})
    assert fetch() is None
