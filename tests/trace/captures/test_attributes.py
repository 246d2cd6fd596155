"""What a result may depend on without being an argument or a plain capture: attributes of functions and their like that
are there or not, the order of keywords, the types of keys, another ``__call__``.

Each case calls a function, changes something, and calls it again: the second result must be that of plain Python.
"""
from __future__ import annotations

import contextlib
import enum
import functools
import sys
import types

import numpy as np
import pytest

import jitad
from jitad import CaptureError, cache, jit, jit_grad, value_and_grad
from jitad.errors import ConcretizationError, MutationError

pytestmark = pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")
x = np.array([1.0, 2.0, 3.0])


class Colour(enum.Enum):
    RED = 1


class Slotted:
    __slots__ = ("other",)


def kinds():
    """One of each kind of thing that a function may ask for an attribute, by name."""
    def plain(x):
        return x

    class Plain:
        def method(self, x):
            return x

    class Holding:
        scale = 2.0

    class Asking:
        def __getattr__(self, name):
            raise AttributeError(name)

    return {"function": plain, "class": Plain, "class with numbers": Holding, "object": Plain(),
            "method": Plain().method, "partial": functools.partial(plain), "module": types.ModuleType("users"),
            "decorated": jit_grad(lambda x: np.sum(x)), "elementwise": jitad.elementwise(lambda r: r * r),
            "compiled": jit_grad(lambda x: np.sum(x)).compile(x), "enum": Colour, "member": Colour.RED,
            "with __getattr__": Asking(), "cached": functools.lru_cache(plain), "vectorized": np.vectorize(plain)}


REFUSED = {"cached", "vectorized"}                        # once they have an attribute


def tried(x, thing):
    try:
        return np.sum(x) * thing.factor
    except AttributeError:
        return np.sum(x)


@pytest.mark.parametrize("ask", [
    lambda x, thing: np.sum(x) * getattr(thing, "factor", 1.0),
    lambda x, thing: np.sum(x) * (thing.factor if hasattr(thing, "factor") else 1.0), tried],
    ids=["getattr", "hasattr", "try"])
@pytest.mark.parametrize("kind", kinds())
def test_an_attribute_that_comes_changes_and_goes(kind, ask):
    thing = kinds()[kind]
    g = jit(lambda x: ask(x, thing))
    holder = thing.__func__ if kind == "method" else thing
    assert g(x) == 6.0
    try:
        for value in (5.0, 6.0):
            holder.factor = value
            with pytest.raises(CaptureError, match=r"factor|with attributes") if kind in REFUSED else (
                    contextlib.nullcontext()):
                assert g(x) == 6.0 * value
    finally:
        del holder.factor
    assert g(x) == 6.0


def test_an_attribute_that_the_class_gets_later():
    class Late:
        pass
    for thing in (Late(), Slotted()):
        g = jit(lambda x, thing=thing: np.sum(x) * getattr(thing, "factor", 1.0))
        assert g(x) == 6.0
        type(thing).factor = 5.0
        assert g(x) == 30.0
        del type(thing).factor


def test_attributes_of_the_function_itself():
    def f(x):
        return np.sum(x) * getattr(f, "factor", 1.0)

    @jit
    def wrapped(x):
        return np.sum(x) * getattr(wrapped, "factor", 1.0)

    for own, g in ((f, jit(f)), (wrapped, wrapped)):
        assert g(x) == 6.0
        own.factor = 5.0
        assert g(x) == 30.0
        own.factor = 6.0
        assert g(x) == 36.0


def attempt(x, h):
    try:
        return np.sum(x) * h.factor
    except AttributeError:
        return np.sum(x)


def suppressing(x, h):
    factor = 1.0
    with contextlib.suppress(AttributeError):
        factor = h.factor
    return np.sum(x) * factor


@pytest.mark.parametrize("ask", [attempt, suppressing, lambda x, h: np.sum(x) * h.__dict__.get("factor", 1.0),
                                 lambda x, h: np.sum(x) * vars(h).get("factor", 1.0)])
@pytest.mark.parametrize("kind", ["function", "class", "partial", "module"])
def test_an_attribute_that_is_found_without_getattr(kind, ask):
    thing = kinds()[kind]
    g = jit(lambda x: ask(x, thing))
    assert g(x) == 6.0
    thing.factor = 5.0
    assert g(x) == 30.0


def test_names_of_functions():
    def made(name):
        def h(x):
            return x
        h.__name__ = name
        return h

    h = made("a")
    g = jit(lambda x: np.sum(h(x)) * (2.0 if h.__name__ == "a" else 1.0))
    assert g(x) == 12.0
    h = made("b")
    assert g(x) == 6.0


def test_a_global_that_is_looked_for_is_refused():
    def f(x):
        return np.sum(x) * (2.0 if "nowhere_defined" in globals() else 1.0)
    with pytest.raises(CaptureError, match="nowhere_defined"):
        jit(f)(x)


@pytest.mark.parametrize("kind", ["function", "class", "class with numbers", "object", "partial", "module",
                                  "decorated", "elementwise", "vectorized"])
def test_attributes_that_are_written_are_refused(kind):
    thing = kinds()[kind]
    thing.there = 1

    def add(x):
        thing.there += 1
        return np.sum(x)

    def new(x):
        thing.last = x
        return np.sum(x)

    def drop(x):
        del thing.there
        return np.sum(x)

    for f in (add, new, drop):
        with pytest.raises(ConcretizationError if kind == "vectorized" and f is add else MutationError,
                           match=r"there|last"):
            jit(f)(x)


def test_attributes_of_the_function_itself_that_are_written_are_refused():
    def f(x):
        f.last = x
        return np.sum(x)

    @jit_grad
    def wrapped(x):
        wrapped.last = x
        return np.sum(x)

    for g in (jit(f), wrapped):
        with pytest.raises(MutationError, match="last"):
            g(x)
    assert not hasattr(f, "last")


def test_asking_objects_leaves_helpers_unguarded():
    def helper(x):
        return x

    def f(x):
        return np.sum(helper(x)) * getattr(sys, "no_such_name", 1.0)

    guards = jit(f).compile(x)._specialization.plan.guards
    assert [str(path) for path in guards if "helper" in path.expression()] == [
        "`helper` captured from the enclosing function"]


def test_code_that_goes_on_after_errors_guards_the_names_of_each_function_once():
    """Not each name that any code mentions: a class of NumPy's with its base had 6,700 guards."""
    guards = jit(lambda q: np.polynomial.Polynomial(q)(0.5)).compile(np.ones(3))._specialization.plan.guards
    assert len(guards) < 150


# --- keywords ------------------------------------------------------------------------------------

def test_the_order_of_loose_keywords():
    def f(x, **kw):
        return np.sum(x) * next(iter(kw.values()))

    g = value_and_grad(f)
    for _ in range(2):
        assert g(x, a=1.0, b=2.0)[0] == 6.0
        assert g(x, b=2.0, a=1.0)[0] == 12.0
        assert g(x, b=2.0)[0] == 12.0


def test_keywords_with_a_parameter_have_no_order():
    cache.clear()
    g = jit(lambda x, *, a, b=0.0, **kw: np.sum(x) * a + b + sum(kw.values()))
    for call in (lambda: g(x, a=1.0, b=2.0, c=3.0, d=4.0), lambda: g(x, c=3.0, b=2.0, d=4.0, a=1.0)):
        for _ in range(2):
            assert call() == 15.0
    assert cache.info(g).compiles == 1


# --- keys ----------------------------------------------------------------------------------------

class Text(str):
    __slots__ = ()


@pytest.mark.parametrize("keys", [(1, True), (1, 1.0), (0.0, -0.0), ((1, "a"), (True, "a")), ("a", Text("a"))])
def test_keys_that_are_equal_but_not_the_same(keys):
    def f(x, d):
        return np.sum(x) * (5.0 if repr(next(iter(d))) == repr(keys[0]) and type(next(iter(d))) is type(keys[0])
                            else 1.0)

    for turn in (keys, keys[::-1]):
        g = jit(f)
        for key in (*turn, *turn):
            assert g(x, {key: 2.0}) == f(x, {key: 2.0})


# --- callable objects ----------------------------------------------------------------------------

def test_another_call_of_a_callable_object():
    class Model:
        def __call__(self, x):
            return np.sum(x**2)

    class Other(Model):
        def __call__(self, x, *, factor=3.0):
            return factor * np.sum(x)

    model = Model()
    g, h = value_and_grad(model), jit(functools.partial(model))
    assert (g(x)[0], h(x)) == (14.0, 14.0)
    Model.__call__ = lambda self, x: np.sum(x)
    for _ in range(2):
        assert (g(x)[0], h(x)) == (6.0, 6.0)
    model.__class__ = Other
    assert (g(x)[0], g(x, factor=2.0)[0], h(x)) == (18.0, 12.0, 18.0)
