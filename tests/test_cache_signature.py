"""Signatures and their difference in words; identity of functions; snapshots of values."""

import dataclasses
import enum
import functools
import gc
import math
import time
import types
import weakref
from collections import OrderedDict, namedtuple
from fractions import Fraction

import numpy as np
import optree
import pytest

from jitad.cache.guards import Unguardable, freeze, settled, show
from jitad.cache.identity import Same, code_key, unwrap
from jitad.cache.signature import Signature, describe, difference, layout, leaf_names

Point = namedtuple("Point", "mu sd")


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2


class Level(enum.IntEnum):
    LOW = 1


@dataclasses.dataclass(frozen=True)
class Settings:
    mode: str
    sizes: object = (1, 2)


def sign(*arguments, **static):
    leaves, spec = optree.tree_flatten(arguments)
    return Signature.of(leaves, spec, static)


# --- leaves and signatures --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "one, other",
    [
        (np.zeros(3), np.ones(3)),
        (np.zeros((2, 3)), np.zeros((3, 2)).T),
        (1.0, -7.5),
        (1, 2),
        (True, False),
        (1j, 2j),
        (np.float32(1), np.float32(2)),
        ("a", "".join(["a"])),
        (Mode.FAST, Mode.FAST),
        (slice(0, 2), slice(0, 2)),
        (2**70, 2**80),
    ],
)
def test_equal_signatures(one, other):
    assert sign(one) == sign(other) and hash(sign(one)) == hash(sign(other))


DIFFERENT = [
    np.zeros(3), np.zeros(4), np.zeros((3, 1)), np.zeros(()), np.zeros(3, np.float32), np.zeros(3, ">f8"),
    np.zeros(3, int), np.zeros(3, bool), np.zeros(3, object), np.zeros(3, complex), np.zeros(3, np.float16),
    np.ma.zeros(3), np.float64(1), np.float32(1), np.longdouble(1), 1.0, 1, True, 1j, 2**70, "1", b"1", None,
    Mode.FAST, Mode.SLOW, Level.LOW, ..., int, Settings("a"), Settings("b"), [1, 2], (1, 2), {"a": 1}, object(),
    slice(0, 2), math.sin, Fraction(1, 2),
]  # fmt: skip


def test_different_signatures():
    assert len({sign(value) for value in DIFFERENT}) == len(DIFFERENT)


def test_static_values_count_by_type_and_value():
    values = [1, True, 1.0, 1j, "1", None, -0.0, 0.0, math.nan, math.inf]
    assert len({sign(n=value) for value in values}) == len(values)
    assert sign(n=float("nan")) == sign(n=float("nan"))


def test_objects_count_by_identity_unless_they_define_equality():
    class Plain:
        pass

    class Equal:
        def __eq__(self, other):
            return True

        def __hash__(self):
            return 1

    class Unhashable(Plain):
        __hash__ = None

    for cls in (Plain, Unhashable):
        one = cls()
        assert sign(one) == sign(one) != sign(cls())
    assert sign(Equal()) == sign(Equal())
    one, other = [lambda x: x for _ in range(2)]
    assert sign(one) == sign(one) != sign(other), "what a function captures is not in the signature"
    assert describe(one).kind == "object" and describe(functools.partial(one)).kind == "object"


def test_signature_keeps_no_argument_alive():
    class Plain:
        pass

    values = [Plain(), lambda: 1, np.zeros(3)]
    alive = [weakref.ref(v) for v in values]
    signature = sign(*values)
    del values
    gc.collect()
    assert [r() for r in alive] == [None] * 3
    assert signature != sign(Plain(), lambda: 1, np.zeros(3))


def test_layout():
    a = np.zeros((4, 6))
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    unaligned = np.frombuffer(bytearray(17), np.uint8)[1:].view(float)
    arrays = [a, a.T, a[::2], a[:, ::2], a[0], a[:, 0], a[::-1], frozen, unaligned, np.zeros(()), np.zeros((0, 3))]
    assert [layout(x) for x in arrays] == ["C", "F", "A", "A", "C", "A", "A", "Cr", "Cu", "C", "C"]
    assert sign(a) == sign(np.asfortranarray(a))


def test_leaf_names():
    spec = optree.tree_structure((1, {"beta": 2, "a": [3, 4]}, Point(5, 6), (7, 8)))
    assert leaf_names(spec, ["theta", "p", "q", "args"]) == [
        "theta", "p['a'][0]", "p['a'][1]", "p['beta']", "q.mu", "q.sd", "args[0]", "args[1]"
    ]  # fmt: skip
    assert leaf_names(3, ["x", "y"]) == ["x", "y"]


def words(old, new, names=("theta", "p")):
    return difference(new, [old], names)


def test_difference_names_the_argument_and_both_values():
    x = np.zeros(3)
    assert words(sign(x, 1.0), sign(np.zeros(4), 1.0)) == ["argument `theta`: shape (3,) -> (4,)"]
    assert words(sign(1.0, {"beta": x}), sign(1.0, {"beta": x.astype("f4")})) == [
        "argument `p['beta']`: dtype float64 -> float32"
    ]
    assert words(sign(x, "a"), sign(np.zeros((4, 1), int), "b")) == [
        "argument `theta`: shape (3,) -> (4, 1), dtype float64 -> int64",
        "argument `p`: 'a' -> 'b'",
    ]
    assert words(sign(1.0, x), sign(1, np.float32(2))) == [
        "argument `theta`: Python float -> Python int",
        "argument `p`: array of shape (3,) and dtype float64 -> NumPy scalar of dtype float32",
    ]
    assert words(sign(1.0, {"a": x}), sign(np.zeros(2), {"a": x, "b": x})) == [
        "argument `theta`: Python float -> array of shape (2,) and dtype float64",
        "structure of argument `p`: {'a': *} -> {'a': *, 'b': *}",
    ]
    assert words(sign(1.0, 2.0, mode="a", n=1), sign(1.0, 2.0, mode="b", n=True)) == [
        "`mode`: 'a' -> 'b'",
        "`n`: 1 -> True",
    ]
    assert words(Signature.of([x], "one"), Signature.of([x], "two"), ["x"]) == [
        "structure of the arguments: one -> two"
    ]


def test_difference_is_to_the_closest_known():
    x, y = np.zeros(3), np.zeros(5)
    known = [sign(y, y), sign(x, y), sign("a", "b")]
    assert difference(sign(x, x), known, ["a", "b"]) == ["argument `b`: shape (5,) -> (3,)"]
    assert difference(sign(x, y), known, ["a", "b"]) == [] == difference(sign(x, y), [], ["a", "b"])


def test_building_a_signature_is_fast():
    leaves, spec = optree.tree_flatten((np.zeros(3), np.zeros((5, 3)), np.zeros(5)))
    best = math.inf
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(100):
            Signature.of(leaves, spec)
        best = min(best, (time.perf_counter() - start) / 100)
    assert best < 50e-6  # measured: 2.5 us


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
