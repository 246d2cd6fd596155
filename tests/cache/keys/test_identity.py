"""Identity of functions; snapshots of values."""

import functools
import gc
import math
import types
import weakref
from collections import OrderedDict
from fractions import Fraction

import numpy as np
import pytest

from jitad.cache.keys.guards import Unguardable, freeze, settled, show
from jitad.cache.keys.identity import Same, code_key, unwrap
from tests.cache.keys.classes import Level, Mode, Point, Settings

# --- identity of functions --------------------------------------------------------------------------------------------


def run(source, name="f", filename="<cell>", before=0):
    namespace = {}
    exec(compile("\n" * before + source, filename, "exec"), namespace)
    return namespace[name]


def test_code_made_again_has_the_same_key():
    made = [lambda x, k=k: x + k for k in range(3)]
    assert len({code_key(f) for f in made}) == 1
    source = "def f(x):\n    g = lambda y: y in {1, 'a', 2.5}\n    return g(x) + 1"
    assert code_key(run(source)) == code_key(run(source, filename="other.py", before=7))


def test_code_key_does_not_change_by_running():
    f = run("def f(x):\n    t = 0\n    for i in range(x):\n        t += i\n    return t")
    before = code_key(f)
    for _ in range(100):
        f(20)
    assert code_key(types.FunctionType(f.__code__.replace(co_filename="x"), {})) == before


SOURCES = [
    "def f(x): return x + 1", "def f(x): return x + 1.0", "def f(x): return x + True", "def f(x): return x + 2",
    "def f(x): return x - 1", "def f(x): return x * 0.0", "def f(x): return x * -0.0", "def f(x): return x * 0",
    "def f(x): return x * 0j", "def f(x): return x * -0j", "def f(x): return x.a", "def f(x): return x.b",
    "def f(x, y): return x + 1", "def f(x, *, y): return x + 1", "def f(x, y, /): return x + 1",
    "def f(*x): return x + 1", "def f(**x): return x + 1", "def f(y): return y + 1",
    "def f(x): return 'a', b''", "def f(x): return b'a', ''", "def f(x): return (1, (2, 3))",
    "def f(x): return ((1, 2), 3)", "def f(x): return lambda: 1", "def f(x): return lambda: 2",
    "def f(x): return x in {1, 2}", "def f(x): return x in {1, 3}", "def f(x): return x in (1, 2)",
    "def f(x): return g(x)", "def f(x): return h(x)", "def f(x):\n  try: return x\n  except E: pass",
    "def f(x):\n  try: return x\n  except F: pass", "def f(x): yield x", "async def f(x): return x + 1",
    "def f(x): return ...", "def f(x): return None", "def f(x): return 1e400", "def f(x): return -1e400",
]  # fmt: skip


def test_different_source_has_different_keys():
    assert len({code_key(run(source)) for source in SOURCES}) == len(SOURCES)


def test_defaults_and_closures_are_not_in_the_key():
    a, b = run("def f(x, k=1): return x"), run("def f(x, k=2): return x")
    assert code_key(a) == code_key(b)


def test_code_key_keeps_no_code_alive_and_survives_reused_ids():
    keys = set()
    for i in range(300):
        f = run(f"def f(x): return x + {i}")
        keys.add(code_key(f))
        alive = weakref.ref(f.__code__)
    del f
    gc.collect()
    assert len(keys) == 300 and alive() is None


class Model:
    def method(self, x):
        return x

    @classmethod
    def of_class(cls, x):
        return x

    @staticmethod
    def static(x):
        return x

    def __call__(self, x):
        return x


class StaticCall:
    @staticmethod
    def __call__(x):
        return x


def test_unwrap():
    def f(a, b, c=0):
        return a

    model = Model()
    assert unwrap(f) == unwrap(f) or unwrap(f).function is f
    nested = unwrap(functools.partial(functools.partial(f, 1, c=2), 3, c=4))
    assert nested.function is f and nested.args == (1, 3) and nested.keywords["c"]["c"] == 4
    method = unwrap(functools.partial(model.method, 1))
    assert method.function is Model.method and method.self is model and method.bound == (model, 1)
    assert unwrap(Model.of_class).self is Model and unwrap(Model.static).function is Model.static
    called = unwrap(model)
    assert called.function is Model.__call__ and called.self is model and called.callable_type is Model
    assert unwrap(StaticCall()).bound == ()
    raw = Model.__dict__
    assert unwrap(raw["of_class"]).function is raw["of_class"].__func__ and unwrap(raw["static"]).self is None
    odd = unwrap(types.MethodType(functools.partial(f, 1), model))
    assert odd.bound == (1, model)


def test_unwrap_does_not_look_behind_a_wrapper():
    def inner(x):
        return x

    @functools.wraps(inner)
    def wrapper(x):
        return 2 * inner(x)

    assert unwrap(wrapper).function is wrapper and code_key(wrapper) != code_key(inner)


@pytest.mark.parametrize("f", [math.sin, np.sin, np.sum, len, Model, functools.lru_cache(lambda: 1), 3, [].append])
def test_unwrap_refuses_what_has_no_python_function(f):
    with pytest.raises(TypeError, match="not a Python function"):
        unwrap(f)


# --- snapshots --------------------------------------------------------------------------------------------------------

VALUES = [
    0, 1, True, False, 1.0, 0.0, -0.0, math.inf, math.nan, 0j, complex(0.0, -0.0), "1", b"1", bytearray(b"1"),
    None, ..., NotImplemented, slice(1), slice(1.0), slice(1, None), range(3), range(0, 3, 2), Mode.FAST, Mode.SLOW,
    Level.LOW, (1, 2), (1, 2.0), (1, True), (True, 1), [1, 2], {1, 2}, frozenset({1, 2}), {"a": 1}, {"a": True},
    {"a": 1, "b": 2}, {"b": 2, "a": 1}, OrderedDict(a=1), Point(1, 2), Settings("a"), Settings("b"), int, float,
    Model, math, np, np.dtype("f8"), np.dtype("f4"), np.float64(1), np.float32(1), np.float64(-0.0), np.sin, np.cos,
    np.sum, len, abs, str.lower, [].append, functools.partial(len), functools.partial(len, 1),
    functools.partial(len, a=1), Fraction(1, 2), (), [], {}, ((),), [[]], "", b"", lambda x: x, lambda x: x + 1,
]  # fmt: skip


def test_snapshots_tell_all_apart_and_equal_themselves():
    assert len({freeze(value) for value in VALUES}) == len(VALUES)
    assert all(freeze(value) == freeze(value) for value in VALUES)
    assert freeze(float("nan")) == freeze(-float("nan")) and freeze(np.float64("nan")) == freeze(np.float64("nan"))
    assert freeze(np.longdouble("0.1")) == freeze(np.longdouble("0.1")) != freeze(np.longdouble("0.2"))


def test_changes_in_place_are_seen():
    config = {"sizes": [1, [2]], "tags": {"a"}}
    before = freeze(config)
    for change in (
        lambda: config["sizes"][1].append(3),
        lambda: config["tags"].add("b"),
        lambda: config.update(new=1),
        lambda: config["sizes"].__setitem__(0, True),
    ):
        change()
        after = freeze(config)
        assert after != before
        before = after


def test_cycles_and_shared_parts():
    a, b = [1], [1]
    a.append(a)
    b.append(b)
    assert freeze(a) == freeze(b)
    b[0] = 2
    assert freeze(a) != freeze(b)
    shared = [1]
    for _ in range(60):
        shared = [shared, shared]  # 2**60 paths
    deep = freeze([1])
    assert deep == freeze([1])
    d = {}
    d["self"] = d
    assert "..." in show(freeze(d))


def test_functions_count_by_code_alone():
    one, other = [lambda x, k=k: x + k for k in (1, 2)]
    assert freeze([one]) == freeze([other])
    with pytest.raises(Unguardable):
        freeze([one], functions=False)


@pytest.mark.parametrize(
    "value",
    [np.zeros(3), Model(), [np.zeros(3)], {"a": Model()}, Model().method, np.random.default_rng(0), iter([]),
     types.SimpleNamespace(), Settings("a", np.zeros(2)), functools.lru_cache(len), np.random.normal],
)  # fmt: skip
def test_unguardable(value):
    with pytest.raises(Unguardable, match="by value"):
        freeze(value)


def test_too_deep_is_unguardable():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(Unguardable, match="deeply"):
        freeze(deep)


def test_snapshots_keep_no_class_or_function_alive():
    class Local:
        pass

    def f():
        return 1

    alive = weakref.ref(Local), weakref.ref(f)
    frozen, same = freeze([Local, f]), Same(Local)
    del Local, f
    gc.collect()
    assert [r() for r in alive] == [None, None]
    assert frozen == frozen and same == same and "Local" in show(frozen) and Same(int) != same


@pytest.mark.parametrize(
    "value, text",
    [
        ((1,), "(1,)"), ([1, 2.5, "a", None], "[1, 2.5, 'a', None]"), ({"a": True}, "{'a': True}"), ({1}, "{1}"),
        (frozenset({1}), "frozenset({1})"), (Point(1, 2), "Point(mu=1, sd=2)"), (np, "module numpy"),
        (Settings("a"), "Settings(mode='a', sizes=(1, 2))"), (slice(1, None), "slice(1, None, None)"),
        (range(2), "range(0, 2, 1)"), (1 - 2j, "(1-2j)"), (int, "int"), (np.dtype("f4"), "dtype('float32')"),
        (np.float32(1), "np.float32(1.0)"), (Mode.FAST, "Mode.FAST"), (len, "len"), ("x" * 99, "'" + 56 * "x" + "..."),
    ],
)  # fmt: skip
def test_words_for_snapshots(value, text):
    assert show(freeze(value)) == text


def test_settled_values_cannot_change_in_place():
    f = Model.method
    assert settled(f) == [f] and settled((1, (f, "a"))) == [f] and settled(Point(1, np.float64(2))) == []
    assert settled(functools.partial(f, 1)) == [f]
    for value in ([], {}, ([],), Settings("a", []), functools.partial(f, a=1), np.zeros(2), Model()):
        assert settled(value) is None
