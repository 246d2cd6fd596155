"""Classes run as copies: what their methods read is seen by later calls, what they change outside is refused."""
from __future__ import annotations

import dataclasses
import gc
import weakref

import numpy as np
import pytest

from jitad import jit
from jitad.errors import CaptureError, MutationError
from tests.helpers.recorded import Recorded, x3

OFFSET = np.ones(3)


class Base:
    scale = 2.0
    calls = 0
    memo: dict = {}  # noqa: RUF012
    seen: list = []  # noqa: RUF012

    def __init__(self, x):
        self.x = x

    def value(self):
        out = np.zeros(3)
        out[:] = self.x * self.scale
        return out + OFFSET

    def count(self):
        Base.calls += 1
        return self.x

    def own_count(self):
        type(self).calls = 3
        return self.x

    def remember(self):
        self.memo["k"] = 1.0
        return self.x

    def append(self):
        self.seen.append(1.0)
        return self.x


class Child(Base):
    def value(self):
        return super().value() * 3.0


@dataclasses.dataclass
class Point:
    x: float
    weight: float = 2.0

    def total(self):
        return np.sum([self.x, self.weight])


def test_what_methods_read_is_an_input_or_guarded(monkeypatch):
    r = Recorded(lambda x: Child(x).value(), x3)
    monkeypatch.setattr(Base, "scale", 5.0)
    monkeypatch.setitem(globals(), "OFFSET", np.full(3, 7.0))
    r.same(x3)
    monkeypatch.setattr(Base, "value", lambda self: self.x)
    r.changed(x3)


def test_another_base_is_seen():
    class Other(Base):
        scale = 9.0

    class Kind(Base):
        pass

    r = Recorded(lambda x: Kind(x).value(), x3)
    Kind.__bases__ = (Other,)
    r.changed(x3)


@pytest.mark.parametrize("name", ["count", "own_count", "remember", "append"])
@pytest.mark.parametrize("made_inside", [True, False])
def test_what_methods_change_outside_is_refused(name, made_inside):
    captured = Base(2.0)
    f = (lambda x: np.sum(getattr(Base(x), name)())) if made_inside else (
        lambda x: np.sum(getattr(captured, name)() * x))
    with pytest.raises(MutationError):
        jit(f)(x3)
    assert Base.calls == 0 and Base.memo == {} and Base.seen == []


def test_instances_are_those_of_the_users_class():
    recorded = jit(lambda p: (p, Point(p.x * 2.0), isinstance(p, Point) * p.total()))
    given, made, total = recorded(Point(1.5))
    assert type(given) is Point and type(made) is Point and made == Point(3.0)
    assert total == 3.5


def test_an_instance_that_got_away_says_so():
    kept = []

    def keep(thing):
        kept.append(thing)
        return 1.0

    with pytest.raises((MutationError, CaptureError)):
        jit(lambda x: keep(Base(x)) * np.sum(x))(x3)


def test_nothing_is_kept_of_what_classes_hold():
    class Big:
        data = np.ones(1000)

        def total(self, x):
            return np.sum(self.data[:3] * x)

    f = jit(lambda x: Big().total(x))
    assert f(x3) == np.sum(x3)
    alive = weakref.ref(Big.data)
    Big.data = np.zeros(1000)
    assert f(x3) == 0.0
    del f
    gc.collect()
    assert alive() is None
