"""Signatures of calls and their difference in words."""

import functools
import gc
import math
import time
import weakref
from fractions import Fraction

import numpy as np
import optree
import pytest

from jitad.cache.keys.signature import Signature, describe, difference, layout, leaf_names
from tests.cache.keys.classes import Level, Mode, Point, Settings


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
