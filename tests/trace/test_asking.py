"""What recorded code asks of its values: their class in a `match`, their text, and what it prints."""
from __future__ import annotations

import builtins
import functools
import operator
import warnings
from builtins import isinstance as is_a

import numpy as np
import pytest

import jitad
from jitad import UnsupportedOperationError, jit, jit_grad, scan
from tests.helpers.public import compiling, fresh, same, x3  # noqa: F401


def by_class(x):
    match x:
        case int():
            return x * 2
        case float() | np.float32():
            return x * 5
        case np.ndarray():
            return np.sum(x) * 7
        case _:
            return x * 100


@pytest.mark.parametrize("x", [3, 1.5, np.float64(1.5), np.float32(1.5), np.array(1.5), np.array([1.5, 2.0])])
def test_class_patterns(x):
    assert jit(by_class)(x) == by_class(x)


def test_class_patterns_with_values_and_within_others():
    def nested(x, n):
        match (x, {"n": n}):
            case (float(v), {"n": int(k)}) if v > 1:
                return v * k
            case (float(), _):
                return x * 10.0
    for x in (1.5, 0.5):
        assert jit(nested)(x, 3) == nested(x, 3)


def test_value_and_sequence_patterns():
    def by_value(x):
        match x:
            case 1.0:
                return x * 2
            case [a, b]:
                return a * b
            case _:
                return x * 3
    for x in (1.0, 2.0, [3.0, 4.0]):
        assert jit(by_value)(x) == by_value(x)


@pytest.mark.parametrize("text", [str, repr, format, lambda x: f"{x}", lambda x: f"{x!r}", lambda x: f"{x:.3f}",
                                  lambda x: f"{[x]}", "{:.1f}".format])
def test_a_text_is_that_of_the_number(text):
    def by_text(x):
        return x * len(text(x))
    g = jit_grad(by_text)
    for x in (1.5, 1.5, -1.25, 123456.789, np.nan):
        assert g(x) == len(text(x))


def test_the_text_of_arrays_and_numpy_numbers():
    def by_text(x):
        return np.sum(x) * len(str(x)) + x[0] * len(repr(x[0]))
    for x in (np.array([1.5, 2.0]), np.array([-0.0, 0.125]), np.array([0.0, 0.125])):
        np.testing.assert_allclose(jit(by_text)(x), by_text(x))


def test_errors_of_the_function_say_the_number():
    def checked(x):
        if x < 0:
            raise ValueError(f"negative: {x}, {x:.1f}, {x!r}")
        return x * 2
    g = jit_grad(checked)
    assert g(1.0) == 2
    for x in (-1.25, np.float64(-2.5)):
        with pytest.raises(ValueError) as expected:
            checked(x)
        with pytest.raises(ValueError) as caught:
            g(x)
        assert str(caught.value) == str(expected.value)


def test_what_is_printed_does_not_matter_to_the_tape(capsys):
    def printing(x):
        print("x is", x, end="!")
        return x * 2.0
    g = jit_grad(printing)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with compiling(1):
            assert g(1.5) == g(2.5) == 2
    assert capsys.readouterr().out == "x is 1.5!"


def test_in_the_body_of_a_loop_there_is_no_text(capsys):
    def body(carry, x):
        print(carry)
        return carry + len(str(x)), None
    with pytest.raises(jitad.ConcretizationError, match="body of a scan"):
        jit(lambda xs: scan(body, 0.0, xs)[0])(np.ones(3))
    assert "traced" in capsys.readouterr().out


# --- builtins are told by what they are, not by their names ------------------------------------------------------

ALIAS = type
HELD = {"ask": isinstance, "kind": type}
LISTED = [isinstance, type]


class Plain:
    pass


class Options:
    check = staticmethod(isinstance)

    def __init__(self):
        self.kind, self.w = type, np.ones(3)

    def own(self):
        return type(self) is Options


OPTIONS = Options()
MODEL = jit(lambda x: x)


def imported(x):
    from builtins import isinstance as other

    return other(x, np.ndarray)


def made_class(x):
    class Meta(type):
        def __call__(cls, value):
            return super().__call__(value)

    class Holder(metaclass=Meta):
        def __init__(self, value):
            self.value = value

    return Holder(x).value is x and type(Holder) is Meta


def default(x, kind=type):
    return kind(x) is np.ndarray


TRUE = {
    "imported name": lambda x: is_a(x, np.ndarray),
    "module": lambda x: builtins.isinstance(x, np.ndarray) and builtins.type(x) is np.ndarray,
    "inside": imported,
    "alias": lambda x: ALIAS(x) is np.ndarray,
    "default": default,
    "dict": lambda x: HELD["ask"](x, np.ndarray) and HELD["kind"](x) is np.ndarray,
    "list": lambda x: LISTED[0](x, np.ndarray) and LISTED[1](x) is np.ndarray,
    "attribute": lambda x: OPTIONS.check(x, np.ndarray) and OPTIONS.kind(x) is np.ndarray,
    "partial": lambda x: functools.partial(is_a)(x, np.ndarray),
    "map": lambda x: all(map(is_a, [x], [np.ndarray])),
    "class attribute": lambda x: x.__class__ is np.ndarray and x[0].__class__ is np.float64,
    "class by name": lambda x: getattr(x, "__class__") is np.ndarray,  # noqa: B009
    "class by operator": lambda x: operator.attrgetter("__class__")(x) is np.ndarray,
    "name of class": lambda x: x.__class__.__name__ == type(x).__name__ == "ndarray",
    "complex": lambda x: (1j * x).__class__ is np.ndarray,
    "slot": lambda x: object.__getattribute__(x, "__class__") is np.ndarray,
    "instance check": lambda x: type.__instancecheck__(np.ndarray, x),
    "made array": lambda x: type(np.zeros(3)) is np.zeros(3).__class__ is np.ndarray,
    "object": lambda x: type(OPTIONS) is Options is OPTIONS.__class__ and OPTIONS.own(),
    "dict class": lambda x: type(HELD) is dict is HELD.__class__,
    "module class": lambda x: type(np) is type(builtins),
    "types": lambda x: type(type) is type(int) is type(Options) is type and isinstance(type, type),
    "of types": lambda x: isinstance(Options, type) and isinstance(x, (type, np.ndarray)) and issubclass(type, type),
    "methods of type": lambda x: type.mro(Plain)[0] is Plain and repr(type) == "<class 'type'>",
    "metaclass": made_class,
    "transformed": lambda x: type(MODEL) is type(jit(made_class)),
    "has of a number": lambda x: not hasattr(x[0], "__len__") and hasattr(x, "__len__"),
    "gets of a number": lambda x: getattr(x[0], "__iter__", None) is None and getattr(x, "shape", None) == (3,)}


@pytest.mark.parametrize("name", TRUE)
def test_what_is_true_of_a_value_is_so_in_recorded_code(name):
    said = TRUE[name]

    def f(x):
        return np.sum(x * x) if said(x) else np.sum(x)

    assert f(x3) == jit(f)(x3) == np.sum(x3 * x3)
    same(jit_grad(f)(x3), 2 * x3)


def test_arrays_in_files_are_like_others():
    for classes in (np.memmap, (float, np.memmap)):
        with pytest.raises(UnsupportedOperationError, match=r"numpy\.memmap.*at .*test_asking\.py.*outside"):
            jit(lambda x, classes=classes: x if isinstance(x, classes) else 2.0 * x)(x3)


class Asks:
    def __init__(self, value):
        self.value = value

    def scaled(self):
        return self.value * 2.0 if isinstance(self.value, np.ndarray) else self.value

    def again(self):
        return type(self)(self.value)


class Kinds(Asks):
    def scaled(self):
        return self.value * 2.0 if type(self.value) is np.ndarray else self.value


def test_methods_of_what_is_made_inside_ask_too():
    same(jit(lambda x: Asks(x).again().scaled())(x3), 2 * x3)
    same(jit(lambda x: Kinds(x).scaled())(x3), 2 * x3)
    assert jit(lambda x: Kinds(x[0]).scaled())(x3) == x3[0]


# --- what Python compares within containers: first by `is`, then by `==` ------------------------------

NAMED = {"p": np.array([1.0, 2.0]), "q": np.array([1.0, 2.0])}


@pytest.mark.parametrize("f", [lambda a, b: 1.0 if a in [b] else 2.0, lambda a, b: 1.0 if [[a], 3] != [[b], 3] else 2.0,
                               lambda a, b: 1.0 if {"k": a} == {"k": b} else 2.0, lambda a, b: 1.0 * (b, a).index(a),
                               lambda a, b: 1 if NAMED["p"] in NAMED.values() and [NAMED["p"]] == [NAMED["r"]] else 2,
                               lambda a, b: 1.0 if a == a else 2.0, lambda a, b: 1.0 if a == b else 2.0],
                         ids=["in", "nested", "dict", "index", "captured", "itself", "not within"])
def test_one_object_is_equal_to_itself_within_containers(f):
    a, nan = np.array([1.0, 2.0]), float("nan")
    one = np.array([nan])
    g, pairs = jit(f), [(a, a), (a, a.copy()), (nan, nan), (nan, float("nan")), (1.5, 1.5), (one, one), (one, one + 1)]
    NAMED["r"] = NAMED["p"]
    for x, y in pairs + pairs[::-1]:
        assert told(g, x, y) == told(f, x, y)
    NAMED["r"] = NAMED["q"]
    assert told(g, a, a) == told(f, a, a)


def told(f, *args):
    try:
        return f(*args)
    except ValueError as error:
        return str(error)
