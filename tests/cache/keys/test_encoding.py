"""Values that go to another process: encoded as JSON, decoded by name, fingerprints; classes told by their content."""

import dataclasses
import datetime
import enum
import functools
import json
import math
import sys
import types
from collections import OrderedDict, defaultdict, deque, namedtuple
from fractions import Fraction
from pathlib import Path as FilePath

import numpy as np
import optree
import pytest
import scipy.special

from jitad.cache.keys.computed import Call, template
from jitad.cache.keys.encoding import Unstorable, decode, dumps, encode, loads, register
from jitad.cache.keys.fingerprint import fingerprint, python_tag
from jitad.cache.keys.guards import freeze
from jitad.cache.keys.identity import Same
from jitad.cache.keys.paths import Path
from jitad.cache.keys.signature import Signature, describe

Point = namedtuple("Point", "mu sd")


class Mode(enum.Enum):
    FAST = 1
    SLOW = "two"


class Level(enum.IntFlag):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass(frozen=True)
class Settings:
    mode: str = "a"
    sizes: tuple = dataclasses.field(default_factory=tuple)


class Model:
    sigma = 2.0

    def method(self, x):
        return x

    @property
    def twice(self):
        return 2 * self.sigma

    @functools.cached_property
    def thrice(self):
        return 3


def through_json(value):
    return decode(json.loads(json.dumps(encode(value))))


# --- there and back -------------------------------------------------------------------------------------------------

ATOMS = [
    0, 1, -(2**80), True, False, None, "", "a", "\ud800", "*", b"", b"\0a", 0.0, -0.0, 1.5, math.inf, -math.inf, 0j,
    complex(-0.0, 1.5), ..., NotImplemented, (), (1, (2.0, "t")), ("t", 1), frozenset({1, "a", (2,)}), np.dtype("f8"),
    np.dtype(">f4"), np.dtype("U3"), np.dtype("M8[ns]"), Fraction(1, 3), datetime.date(2026, 1, 2),
    datetime.timedelta(1, 2, 3), FilePath("a/b"), int, np.ndarray, np.float64, Model, Mode, Mode.SLOW, Level.LOW, np,
    math, math.sin, np.sin, np.add, scipy.special.expit, np.sum, np.linalg.norm, len, str.lower, int.__add__, Point,
    functools.partial, np.linalg, Settings, Path.of(("global", "a"), ("item", (1, "x"))),
    Path.of(("global", "a"), ("made", Call(np.add, template([Path.of(("global", "b")), True, 0.5, {"k": slice(1)}],
                                                            lambda at: at), template({}, str)))),
]  # fmt: skip


@pytest.mark.parametrize("value", ATOMS, ids=lambda v: type(v).__name__)
def test_atoms_go_there_and_back(value):
    back = through_json(value)
    assert type(back) is type(value) and (back == value or back is value)
    assert isinstance(value, frozenset) or repr(back) == repr(value)


def test_different_values_have_different_encodings():
    assert len({dumps(value) for value in ATOMS}) == len(ATOMS)
    assert math.isnan(through_json(math.nan)) and dumps((1, 2)) != dumps(("1", 2)) != dumps(((1, 2),))


SNAPSHOTS = [
    1, True, 1.0, math.nan, "a", b"a", bytearray(b"a"), None, [1, [2.5]], {1, 2}, {"a": (1, None)}, OrderedDict(a=1),
    slice(1, None), range(3), 1j, Mode.FAST, Level.HIGH, Point(1, 2), Settings("b", (1, 2)), np, Model, np.float32(1),
    np.longdouble("0.1"), np.dtype("f4"), len, np.sin, np.sum, functools.partial(len, 1), Fraction(1, 2), [].append,
    dict.fromkeys, Model.method, lambda x: x + 1, Model.__dict__["method"], FilePath("a"),
]  # fmt: skip


@pytest.mark.parametrize("value", SNAPSHOTS, ids=lambda v: type(v).__name__)
def test_snapshots_go_there_and_back(value):
    known = freeze(value)
    assert through_json(known) == known == freeze(value)
    assert type(freeze(value)) is type(through_json(known))


def test_leaves_and_signatures_go_there_and_back():
    tree = ({"b": 1.0, "a": [np.zeros(3), 2]}, Point(np.float32(1), 1j), (), True, 2**70, "mode", Mode.FAST, (1, 2))
    leaves, spec = optree.tree_flatten(tree, none_is_leaf=True)
    signature = Signature.of(leaves, (spec, ("k",)), {"n": 3})
    assert through_json(signature) == signature and hash(through_json(signature)) == hash(signature)
    leaf = describe(np.ma.zeros(3))
    assert through_json(leaf) == leaf


TREES = [
    1, None, (), [], {}, (1, [2, {"b": 3, "a": (4, None)}]), OrderedDict(b=1, a=2), {2: 1, 1: 2}, Point(1, (2, 3)),
    defaultdict(list, {"a": 1}), defaultdict(None, {"a": 1}), deque([1, 2], maxlen=3), deque([1]), {(1, "a"): 1},
]  # fmt: skip


@pytest.mark.parametrize("none_is_leaf", [True, False])
@pytest.mark.parametrize("tree", TREES, ids=lambda v: type(v).__name__)
def test_structures_of_trees_go_there_and_back(tree, none_is_leaf):
    spec = optree.tree_structure(tree, none_is_leaf=none_is_leaf, namespace="jitad")
    back = through_json(spec)
    assert back == spec and type(back) is type(spec) and repr(back) == repr(spec)
    numbers = list(range(spec.num_leaves))
    rebuilt = back.unflatten(numbers)
    assert repr(rebuilt) == repr(spec.unflatten(numbers)), "the order of the keys too"


@pytest.mark.parametrize(
    "value",
    [object(), [1], {1: 2}, np.zeros(3), lambda x: x, Model(), Model().method, np.random.default_rng(0), [].append,
     types.ModuleType("nowhere"), np.dtype([("a", int)]), np.dtype(object), np.float64(1), np.frompyfunc(len, 1, 1),
     Same(object()), (1, object()), type("Local", (), {}), 10**5000],
    ids=lambda v: type(v).__name__,
)  # fmt: skip
def test_what_means_nothing_elsewhere_is_refused(value):
    with pytest.raises(Unstorable):
        dumps(value)


def test_deep_values_are_refused():
    deep = ()
    for _ in range(100_000):
        deep = (deep,)
    with pytest.raises(Unstorable, match="deep"):
        dumps(deep)
    with pytest.raises(ValueError):
        loads(b"[" * 100_000 + b"]" * 100_000)


BROKEN = [
    [], ["?"], ["t", ["?"]], 1.5, {"a": 1}, ["f"], ["f", "x"], ["b", "é"], ["o"], ["o", 1, 2, 3], ["leaf"], ["s", []],
    ["d", "no such"], ["spec", True, "", ["set", 1]], ["spec", 1], ["v", "Fraction", 1, 0], ["v", "system", "ls"],
    ["path", 1], ["sig", 1], ["o", "os", "system", "", ""],
]  # fmt: skip


@pytest.mark.parametrize("data", BROKEN, ids=lambda v: type(v).__name__)
def test_broken_data_is_a_value_error(data):
    with pytest.raises((ValueError, Unstorable)):
        value = decode(data)
        assert isinstance(value, Path) and not all(isinstance(step, tuple) for step in value)
        raise ValueError


def test_nothing_is_imported_or_called_to_decode():
    sys.modules.pop("this", None)
    with pytest.raises(Unstorable, match="this"):
        decode(["o", "this", "s", ""])
    assert "this" not in sys.modules


def test_other_classes_can_be_taught():
    @dataclasses.dataclass(frozen=True)
    class Tree:
        spec: object
        inner: tuple

    register(Tree, "test tree", lambda t: (t.spec, t.inner), Tree)
    tree = Tree(optree.tree_structure((1, 2)), ((0, Point),))
    assert through_json((tree, 1)) == (tree, 1)
    register(Tree, "test tree", lambda t: (t.spec, t.inner), Tree)
    with pytest.raises(ValueError, match="taken"):
        register(Point, "test tree", tuple, Point)


# --- classes by their content ---------------------------------------------------------------------------------------


def define(source):
    """The class `C` of a module that a process may import, made from source."""
    module = types.ModuleType("test_cache_some_module")
    sys.modules[module.__name__] = module
    exec("import dataclasses, enum, functools\nfrom collections import namedtuple\n" + source, module.__dict__)
    return module.C


@pytest.fixture(autouse=True)
def no_module_stays():
    yield
    sys.modules.pop("test_cache_some_module", None)


CLASSES = [
    "class C:\n def f(self): return 1", "class C:\n def f(self): return 2", "class C:\n def g(self): return 1",
    "class C:\n def f(self): return 1\n def g(self): return 1", "class C:\n @property\n def f(self): return 1",
    "class C:\n @staticmethod\n def f(self): return 1", "class C:\n @functools.cached_property\n def f(self): return 1",
    "class B:\n def f(self): return 1\nclass C(B): pass", "class B:\n def f(self): return 2\nclass C(B): pass",
    "class C(enum.Enum):\n A = 1\n B = 2", "class C(enum.Enum):\n A = 1\n B = 3", "class C(enum.Enum):\n A = 1",
    "class C(enum.IntEnum):\n A = 1", "C = namedtuple('C', 'a b')", "C = namedtuple('C', 'b a')",
    "@dataclasses.dataclass\nclass C:\n a: int", "@dataclasses.dataclass\nclass C:\n a: int = 1",
    "@dataclasses.dataclass\nclass C:\n a: int = 2", "@dataclasses.dataclass(frozen=True)\nclass C:\n a: int = 2",
    "@dataclasses.dataclass\nclass C:\n a: int = dataclasses.field(default_factory=list)",
    "@dataclasses.dataclass\nclass C:\n a: int = dataclasses.field(default_factory=lambda: 1)",
    "@dataclasses.dataclass\nclass C:\n a: int = dataclasses.field(default_factory=lambda: 2)",
]  # fmt: skip


def test_an_edited_class_is_another_class():
    assert len({dumps(define(source)) for source in CLASSES}) == len(CLASSES)
    assert all(dumps(define(source)) == dumps(define(source)) for source in CLASSES)
    for old, new in [(CLASSES[0], CLASSES[1]), ("class C(enum.Enum):\n A = 1", "class C(enum.Enum):\n A = 2")]:
        stored = dumps(getattr(define(old), "A", sys.modules["test_cache_some_module"].C))
        define(new)
        with pytest.raises(Unstorable, match="not what it was"):
            loads(stored)


def test_data_of_a_class_that_is_input_or_guarded_apart_does_not_count():
    assert dumps(define("class C:\n s = 1.0")) == dumps(define("class C:\n 's'\n s = 2.0"))


@pytest.mark.parametrize(
    "source",
    ["class C(enum.Enum):\n A = 1\n def scale(self): return K", "class C(enum.Enum):\n A = object()",
     "@dataclasses.dataclass\nclass C:\n a: int = dataclasses.field(default_factory=lambda: K)"],
)  # fmt: skip
def test_classes_whose_content_cannot_be_told_are_refused(source):
    with pytest.raises(Unstorable):
        dumps(define(source))


# --- fingerprints ---------------------------------------------------------------------------------------------------


def test_fingerprints_tell_all_parts_apart():
    signature = Signature.of([np.zeros(3)], optree.tree_structure((1,)))
    base = ["f-0123", ("grad", 0), signature, ("numpy 2.0", "jitad 1"), python_tag(), "cpu", "+avx2"]
    others = [
        ["g-0123", *base[1:]], [base[0], ("grad", (0,)), *base[2:]], [*base[:-1], "+avx512"], base[:-1],
        [*base[:2], Signature.of([np.zeros(4)], optree.tree_structure((1,))), *base[3:]], [*base, ""],
    ]  # fmt: skip
    prints = [fingerprint(parts) for parts in [base, *others]]
    assert len(set(prints)) == len(prints) and fingerprint(list(base)) == prints[0]
    assert all(len(text) == 40 and not text.strip("0123456789abcdef") for text in prints)
    with pytest.raises(Unstorable):
        fingerprint([object()])


def test_compiled_functions_of_other_libraries_mean_nothing_elsewhere(monkeypatch):
    """A new version of the library may do something else under the same name."""
    import math

    from jitad.cache.keys import references

    assert loads(dumps((math.sin, np.sin))) == (math.sin, np.sin)
    monkeypatch.setattr(references, "VERSIONED", frozenset())
    for function in (math.sin, np.sin):
        with pytest.raises(Unstorable, match="unknown version"):
            dumps(function)
