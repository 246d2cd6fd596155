"""Plans of captured values: fetched by generated getters, guarded, matched and explained."""

import dataclasses
import functools
import gc
import math
import pickle
import sys
import types
import weakref

import numpy as np
import pytest

from jitad.cache.captures import Path, Plan
from jitad.cache.guards import Unguardable
from jitad.cache.identity import code_key, unwrap

X = np.arange(3.0)


def module(source, **names):
    """Run source as a module of its own, so that its globals can be changed freely."""
    namespace = {"np": np, **names}
    exec(source, namespace)
    return types.SimpleNamespace(**{"globals": namespace}), namespace


def plan_of(*reads, code=None):
    plan = Plan(code)
    for steps, kind, value in reads:
        plan.add(Path.of(*steps), kind, value)
    return plan


def glob(name, *more):
    return (("global", name), *more)


# --- inputs -----------------------------------------------------------------------------------------------------------


def make(array, scale):
    def f(x):
        return x @ array * scale

    return f


def cell(name, f):
    return (("cell", f.__code__.co_freevars.index(name), name),)


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
    fetch = plan.compile(unwrap(f))
    assert fetch() == (X, 2.0) and fetch()[0] is X
    new = X + 1
    rebind(new, 3.0)
    assert fetch()[0] is new and fetch()[1] == 3.0


def test_a_closure_made_again_gets_its_own_getter_from_the_same_plan():
    first, second = make(X, 1.0), make(X + 1, 2.0)
    plan = plan_of((cell("array", first), "input", X), (cell("scale", first), "input", 1.0))
    fetches = [plan.compile(unwrap(f)) for f in (first, second)]
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
    fetch = plan.compile(unwrap(f))
    assert fetch() == (1.0, X, 3.0, 4.0, 1.5, 2.5)
    names["s"], names["data"]["X"], names["params"] = -1.0, [X + 1], (0, -3.0)
    names["cfg"] = types.SimpleNamespace(w=types.SimpleNamespace(v=-4.0))
    f.__defaults__, f.__kwdefaults__["b"] = (-1.5,), -2.5
    values = fetch()
    assert values[0] == -1.0 and values[1][0] == 1 and values[2:] == (-3.0, -4.0, -1.5, -2.5)


class Model:
    def __init__(self):
        self.w, self.mode = X, "a"

    def method(self, x):
        return x * self.w

    def __call__(self, x):
        return x * self.w

    @property
    def broken(self):
        raise ZeroDivisionError


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
    fetch = plan.compile(target)
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
    fetch = plan.compile(unwrap(model))
    assert fetch() == (X,)
    Local.__call__ = lambda self, x: 2 * x
    assert fetch() is None


# --- guards -----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Frozen:
    n: int


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
    fetch = plan.compile(target)
    assert fetch() == () and plan.matches(target) and plan.changes(target) == []
    names["v"] = new
    assert fetch() is None and not plan.matches(target) and plan.compile(target) is None
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
    fetch = plan_of((glob("v"), "guard", copy())).compile(unwrap(names["f"]))
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
    fetch = plan.compile(unwrap(names["f"]))
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
    fetch = plan.compile(target)
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
    fetch = plan.compile(target)
    assert fetch() == ()
    names["len"] = lambda x: 3
    assert fetch() is None and not plan.matches(target)
    names["len"] = len
    assert plan.compile(target)() == ()


# --- helper functions -------------------------------------------------------------------------------------------------

HELPER = """
def make_helper(scale):
    def helper(x): return x * scale * shift
    return helper
helper = make_helper(2.0)
shift = 1.0
def f(x): return helper(x)
"""


def helper_plan(names):
    helper = names["helper"]
    return plan_of(
        (glob("helper"), "guard", helper),
        (glob("helper", ("cell", 0, "scale")), "input", 2.0),
        (glob("helper", ("global", "shift")), "input", 1.0),
    )


def test_helper_made_again_from_the_same_code_matches_and_recompiles_only_the_getter():
    _, names = module(HELPER)
    plan, target = helper_plan(names), unwrap(names["f"])
    fetch = plan.compile(target)
    assert fetch() == (2.0, 1.0)
    names["helper"] = names["make_helper"](5.0)
    assert fetch() is None, "bound to the cells of the other one"
    assert plan.matches(target) and plan.compile(target)() == (5.0, 1.0)


def test_helper_with_other_code_does_not_match():
    _, names = module(HELPER)
    plan, target = helper_plan(names), unwrap(names["f"])
    fetch = plan.compile(target)
    exec("def helper(x): return x + 1", names)
    assert fetch() is None and plan.compile(target) is None
    (line,) = plan.changes(target)
    assert line.startswith("global `helper`: function helper (code ")


def test_code_replaced_in_place_is_seen():
    _, names = module(HELPER)
    plan, target = helper_plan(names), unwrap(names["f"])
    plan.code = code_key(names["f"])
    fetch = plan.compile(target)
    old = names["helper"].__code__
    exec("def make(scale):\n def helper(x): return x - scale - shift\n return helper", names)
    names["helper"].__code__ = names["make"](1).__code__
    assert fetch() is None and not plan.matches(target)
    names["helper"].__code__ = old
    assert fetch() == (2.0, 1.0)
    names["f"].__code__ = (lambda x: x + 1).__code__
    assert fetch() is None and plan.compile(target) is None
    assert plan.changes(target) == ["the code of the function has changed"]


def test_bound_method_of_a_class_as_helper():
    class Tools:
        @classmethod
        def scale(cls, x):
            return x * X

    _, names = module("def f(x): return scale(x)", scale=Tools.scale)
    plan = plan_of((glob("scale"), "guard", Tools.scale), (glob("scale", ("global", "X")), "input", X))
    fetch = plan.compile(unwrap(names["f"]))
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
    fetch = plan.compile(unwrap(names["f"]))
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
    fetch = plan.compile(unwrap(names["f"]))
    assert fetch() == (X,)
    names["model"] = Model()
    names["model"].w = X + 1
    assert fetch()[0] is names["model"].w
    names["model"] = types.SimpleNamespace(w=X)
    assert fetch() is None


# --- what is missing, refused, kept -----------------------------------------------------------------------------------


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
        fetch = plan.compile(target)
        remove()
        assert fetch() is None and not plan.matches(target) and plan.compile(target) is None
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
    fetch = plan.compile(unwrap(f))
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
    fetch = plan.compile(unwrap(f))
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
    fetch = plan.compile(unwrap(names["f"]))
    assert fetch() == (5.0, 6.0)
    names["n"] = int("3")
    names["v"] = [True]
    assert fetch() is None
    del names["v"]
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
    fetch = plan.compile(unwrap(names["f"]))
    assert fetch() == (1.0, 2.0)
    other["s"] = 3.0
    assert fetch() == (1.0, 3.0)
    other["abs"] = len
    assert fetch() is None


def test_odd_names_and_keys():
    odd = types.SimpleNamespace(**{"a b": 1.0, "class": 2.0})
    _, names = module("def f(x): return x", o=odd, d={(1, "a"): 3.0, None: 4.0, "it's": 5.0})
    paths = [glob("o", ("attr", "a b")), glob("o", ("attr", "class"))]
    paths += [glob("d", ("item", key)) for key in names["d"]]
    plan = plan_of(*[(path, "input", 1.0) for path in paths])
    assert plan.compile(unwrap(names["f"]))() == (1.0, 2.0, 3.0, 4.0, 5.0)


def test_a_fetch_is_cheap():
    """The bytecode stays small: a getter must cost a fraction of a microsecond, whatever the machine does now."""
    f = make(X, 2.0)
    plan = plan_of((cell("array", f), "input", X), (cell("scale", f), "input", 2.0))
    fetch = plan.compile(unwrap(f))
    calls = []
    sys.setprofile(lambda frame, event, arg: calls.append(event))
    fetch()
    sys.setprofile(None)
    assert [e for e in calls if e == "call"] == ["call"], "no Python function is called on the way"
    assert len(fetch.__code__.co_code) < 250
