"""Captures that are objects and classes of the user's: never stale, never silently wrong.

Each case records a function once, changes what it captures, fetches the captures by the plan and evaluates the
tape; the result must be that of the function run afresh, or else a guard must have tripped.
"""
from __future__ import annotations

import abc
import dataclasses
import enum
import functools
import types
from collections import namedtuple

import numpy as np

import jitad
from jitad.cache.keys.identity import unwrap
from jitad.tape.evaluate import evaluate
from jitad.trace.record import record
from tests.helpers.fetching import fetch_of
from tests.helpers.recorded import Recorded, x3

SIGMA = 2.0


# --- objects ---------------------------------------------------------------------------------

class Base:
    offset = 1.0

    def __init__(self, w):
        self.w = w
        self.kind = "a"

    def energy(self, x):
        return x * self.w + self.offset

    @property
    def double(self):
        return self.w * 2.0

    @staticmethod
    def shift(x):
        return x + SIGMA

    @classmethod
    def moved(cls, x):
        return x + cls.offset


class Model(Base):
    def energy(self, x):
        base = super().energy(x)
        return base * self.double + self.shift(x) + self.moved(x) + (1 if self.kind == "a" else 2)

    def check(self, x):
        assert isinstance(self, Model) and isinstance(self, Base)
        return x * self.prior.sigma


def test_bound_method(monkeypatch):
    m = Model(2.5)
    r = Recorded(m.energy, x3)
    m.w = 3.0
    r.same(x3)
    monkeypatch.setattr(Base, "offset", 4.0)
    monkeypatch.setitem(globals(), "SIGMA", 0.5)
    r.same(x3)
    m.kind = "b"
    r.changed(x3)
    r.same(x3, f=Model(5.0).energy)
    monkeypatch.setattr(Model, "energy", lambda self, x: x)
    r.changed(x3, f=m.energy)


def test_methods_changed_below(monkeypatch):
    m = Model(2.0)
    r = Recorded(lambda x: m.energy(x), x3)
    with monkeypatch.context() as patch:
        patch.setattr(Base, "energy", lambda self, x: x)
        r.changed(x3)
    r.same(x3)
    with monkeypatch.context() as patch:
        patch.setattr(Base, "double", property(lambda self: 0.0))
        r.changed(x3)
    m.energy = lambda x: x
    r.changed(x3)
    m = Base(1.0)
    r.changed(x3)


def test_nested_objects_and_missing_attributes():
    m = Model(2.0)
    m.prior = types.SimpleNamespace(sigma=2.0)
    r = Recorded(m.check, x3)
    m.prior.sigma = 3.0
    r.same(x3)
    m.prior = types.SimpleNamespace(sigma=4.0)
    r.same(x3)

    r = Recorded(lambda x: x * (2.0 if hasattr(m, "flag") else 1.0), x3)
    m.flag = True
    r.changed(x3)


def test_slots_and_dataclasses():
    class Slotted:
        __slots__ = ("w",)

        def energy(self, x):
            return x * self.w

    @dataclasses.dataclass
    class Prior:
        sigma: float
        mu: np.ndarray
        name: str = "p"

        def z(self, x):
            return (x - self.mu) / self.sigma

    s, p = Slotted(), Prior(2.0, np.ones(3))
    s.w = np.ones(3)
    r = Recorded(lambda x: s.energy(x) + p.z(x) + p.sigma, x3)
    s.w = np.full(3, 2.0)
    p.sigma = 5.0
    p.mu[:] = 3.0
    r.same(x3)
    p = dataclasses.replace(p, sigma=1.0)
    r.same(x3)


def test_cached_property_and_special_methods():
    class Grid:
        def __init__(self, h):
            self.h = h

        @functools.cached_property
        def square(self):
            return self.h * self.h

        def __getitem__(self, i):
            return self.h * i

        def __len__(self):
            return 3

        def __mul__(self, other):
            return self.h * other

    g = Grid(2.0)
    r = Recorded(lambda x: x * g[2] + len(g) + g * x, x3)
    g.h = 5.0
    r.same(x3)
    f = lambda x: x * g.square
    recording = record(unwrap(f), (x3,))
    np.testing.assert_allclose(recording.result.builder.nodes and evaluate(recording.tape(), x3, 5.0)[0], x3 * 25)
    f(x3)  # caches; re-running Python gives the cached value from now on
    assert fetch_of(recording.plan, unwrap(f)) is None
    r = Recorded(f, x3)
    g.h = 7.0
    r.same(x3)


class Config:
    sigma = 2.0
    mode = "a"

    @classmethod
    def scaled(cls, x):
        return x * cls.sigma


class Point:
    def __init__(self, x):
        self.x = x * SIGMA


def test_classes_as_namespaces_and_constructors(monkeypatch):
    r = Recorded(lambda x: Config.scaled(x) * Config.sigma * (2 if Config.mode == "a" else 3), x3)
    monkeypatch.setattr(Config, "sigma", 5.0)
    r.same(x3)
    monkeypatch.setattr(Config, "mode", "b")
    r.changed(x3)
    r = Recorded(lambda x: Point(x).x, x3)
    monkeypatch.setitem(globals(), "SIGMA", 3.0)
    r.same(x3)
    assert isinstance(record(unwrap(lambda x: x if isinstance(3, Config) else x + 1), (x3,)).outputs, tuple)


def test_named_tuples_and_enums():
    Pair = namedtuple("Pair", "a b")

    class Kind(enum.Enum):
        A = 1
        B = 2

    pair, kind = Pair(2.0, np.ones(3)), Kind.A

    def f(x):
        a, b = pair
        return x * a + b * pair.a + (1 if kind is Kind.A else 2)

    r = Recorded(f, x3)
    pair = Pair(3.0, np.zeros(3))
    r.same(x3)
    kind = Kind.B
    r.changed(x3)


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...

    @property
    def doubled(self):
        return self.r * 2.0


class Circle(Shape):
    def __init__(self, r):
        self.r = r

    def area(self):
        return self.r * SIGMA

    @property
    def doubled(self):
        return super().doubled + 1.0

    @functools.lru_cache  # noqa: B019
    def cached(self):
        return self.r * SIGMA


def test_inherited_properties_and_cached_methods():
    c = Circle(2.0)
    unbound = Circle.area
    r = Recorded(lambda x: x * c.area() + c.doubled + c.cached() + unbound(c), x3)
    c.r = 5.0
    Circle.cached.cache_clear()
    r.same(x3)


@dataclasses.dataclass
class Normal:
    mu: float = 0.0
    sigma: float = 1.0

    def z(self, x):
        return (x - self.mu) / self.sigma * SIGMA


class Meta(type):
    @property
    def level(cls):
        return SIGMA


class WithMeta(metaclass=Meta):
    pass


class Grid:
    points = np.ones(3)


def test_code_of_instances_made_inside_reads_captures(monkeypatch):
    for f in (lambda x: Normal(x, 2.0).z(x), lambda x: Circle(x).area()):
        r = Recorded(f, x3)
        with monkeypatch.context() as patch:
            patch.setitem(globals(), "SIGMA", 3.0)
            r.same(x3)
            patch.setattr(Normal, "z", lambda self, x: x)
            patch.setattr(Circle, "area", lambda self: self.r)
            r.changed(x3)
        r.same(x3)


def test_code_of_metaclasses_is_guarded(monkeypatch):
    r = Recorded(lambda x: WithMeta.level * x, x3)
    with monkeypatch.context() as patch:
        patch.setitem(globals(), "SIGMA", 3.0)
        r.changed(x3)
    r.same(x3)


def test_class_arrays_are_inputs():
    r = Recorded(lambda x: x * Grid.points, x3)
    Grid.points[:] = 5.0
    r.same(x3)


def test_dataclass_functions_on_captured_instances():
    p = Normal(1.5, 2.0)                    # not the number that a default is: it may be the same object
    r = Recorded(lambda x: dataclasses.asdict(p)["mu"] * x + dataclasses.replace(p, sigma=x).sigma, x3)
    p.mu = 4.0
    r.same(x3)
    result = record(unwrap(lambda x: p), (x3,)).result
    assert type(result) is Normal
    made = record(unwrap(lambda x: type(p)(x, 2.0)), (x3,)).result
    assert type(made) is Normal and made.mu.shape == (3,)


def test_getattr_methods():
    class Proxy:
        def __init__(self):
            self.inner = types.SimpleNamespace(k=2.0)

        def __getattr__(self, name):
            return getattr(self.inner, name)

    p = Proxy()
    r = Recorded(lambda x: x * p.k, x3)
    p.inner.k = 4.0
    r.same(x3)
    p.k = 3.0
    r.changed(x3)


def test_one_object_found_in_two_ways():
    c = Circle(2.0)
    o = types.SimpleNamespace(a=c, b=c)
    r = Recorded(lambda x: x * o.a.r * o.b.r, x3)
    o.b = Circle(5.0)
    r.same(x3)
    o.b = c
    r = Recorded(lambda x: x * o.a.r * o.b.r if o.a is o.b else x, x3)
    r.same(x3)
    o.b = Circle(2.0)
    r.changed(x3)
    o.b = c
    r = Recorded(lambda x: x if o.a == o.b else x + 1, x3)
    r.same(x3)
    o.b = Circle(2.0)
    r.changed(x3)
    r = Recorded(lambda x: x if o.a == o.b else x + 1, x3)
    o.b = c
    r.changed(x3)


class Energy:
    def __init__(self, w):
        self.w = w

    @jitad.jit_grad
    def slope(self, x):
        return np.sum(x * x * self.w)

    def total(self, x):
        return np.sum(self.slope(x) * x) + self.slope.value(x)


def test_differentiated_methods_inside_a_recording():
    e = Energy(3.0)
    slope = e.slope
    f = lambda x: e.total(x) + np.sum(slope(x))
    recording = record(unwrap(f), (x3,))
    for w in (3.0, 0.5):
        e.w = w
        captured = fetch_of(recording.plan, unwrap(f))()
        assert set(captured) == {w}
        np.testing.assert_allclose(evaluate(recording.tape(), x3, *captured)[0], np.sum(3 * w * x3**2 + 2 * w * x3))
