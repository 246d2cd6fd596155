"""Objects that the function makes: dataclasses, named tuples, abstract bases, descriptors, containers of its own."""
from __future__ import annotations

import abc
import collections
import dataclasses
import functools
import math
import typing
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import gammaln

from tests.programs.table import P3, Table

rows = Table()
t = np.linspace(0.0, 1.0, 4)
y = np.array([0.1, 0.7, -0.2, 0.4])
@dataclass
class Params:
    loc: float
    scale: float = 1.0
    tags: list = field(default_factory=list)
    kind: ClassVar[str] = "normal"

    def __post_init__(self):
        self.var = self.scale ** 2

    def logpdf(self, v):
        out = np.empty(len(v))
        out[:] = -0.5 * (v - self.loc) ** 2 / self.var - np.log(self.scale)
        return out

    @classmethod
    def of(cls, x):
        return cls(x[0], scale=x[2])


@dataclass(frozen=True)
class Point:
    x: float
    y: float = 0.5

    def norm(self):
        return math.hypot(self.x, self.y)

    def moved(self, dx):
        return dataclasses.replace(self, x=self.x + dx)


@dataclass(frozen=True, slots=True, order=True)
class Slotted:
    a: float
    b: float

    def area(self):
        return np.sum([self.a, self.b]) * self.a


@dataclass
class Point3:
    x: float
    z: float = 1.0


rows("dataclass with post init", lambda x: Params(x[0], x[2]).logpdf(y))
rows("dataclass with a default", lambda x: Params(x[0]).logpdf(y))
rows("dataclass by class method", lambda x: Params.of(x).logpdf(y).sum())
rows("dataclass with default factory", lambda x: _tagged(x))
rows("frozen dataclass", lambda x: Point(x[0], x[1]).norm())
rows("frozen dataclass replaced", lambda x: Point(x[0]).moved(x[1]).norm())
rows("slotted dataclass", lambda x: Slotted(x[0], x[1]).area())
rows("dataclass returned", lambda x: Point3(x[0] * 2, x[1]))
rows("dataclasses in a list returned", lambda x: [Point3(v, v * v) for v in x])
rows("asdict of a dataclass", lambda x: sum(dataclasses.asdict(Point(x[0], x[1])).values()))
rows("astuple of a dataclass", lambda x: np.array(dataclasses.astuple(Point(x[0], x[1]))))
rows("fields of a dataclass", lambda x: sum(getattr(Point(x[0], x[1]), f.name) for f in dataclasses.fields(Point)))
rows("class variable of a dataclass", lambda x: x * len(Params.kind))
rows("dataclass as argument", lambda p: p.norm() + p.moved(1.0).norm(), Point(0.3, 0.4))
rows("dataclass argument with a method that fills", lambda p: Params(p.x, p.z).logpdf(y), Point3(0.3, 1.4))


def _tagged(x):
    p = Params(x[0])
    p.tags.append(x[1])
    p.tags.append(2.0)
    return np.sum(p.tags) * p.var


class Pair(NamedTuple):
    a: float
    b: float = 2.0

    def product(self):
        return np.prod([self.a, self.b])

    @property
    def ratio(self):
        return self.a / self.b


Triple = collections.namedtuple("Triple", "a b c")
rows("named tuple with a method", lambda x: Pair(x[0], x[1]).product())
rows("named tuple with a property", lambda x: Pair(x[0]).ratio)
rows("named tuple unpacked", lambda x: (lambda a, b: a * b)(*Pair(x[0], x[2])))
rows("named tuple returned", lambda x: Triple(x[0], x * 2, 1.0))
rows("named tuple replaced", lambda x: Pair(x[0])._replace(b=x[1]).product())
rows("named tuple as argument", lambda p: p.product() + p.ratio, Pair(0.5, 1.5))


class Distribution(abc.ABC):
    @abc.abstractmethod
    def logpdf(self, v): ...

    def total(self, vs):
        return sum(self.logpdf(v) for v in vs)


class Normal(Distribution):
    def __init__(self, mu, sigma):
        self.mu, self.sigma = mu, sigma

    def logpdf(self, v):
        return -0.5 * ((v - self.mu) / self.sigma) ** 2 - math.log(self.sigma)


class Gamma(Distribution):
    def __init__(self, a):
        self.a = a

    def logpdf(self, v):
        return (self.a - 1) * np.log(np.abs(v)) - np.abs(v) - gammaln(self.a)


rows("abstract base class", lambda p: Normal(p[0], p[1]).total(y), P3)
rows("a dict of classes by name", lambda p: _by_name(p), P3)
rows("a list of instances", lambda p: sum(d.total(y) for d in [Normal(p[0], p[1]), Gamma(p[2])]), P3)

REGISTRY = {"normal": Normal, "gamma": Gamma}


def _by_name(p):
    total = 0.0
    for name, args in {"normal": (p[0], p[1]), "gamma": (p[2],)}.items():
        total = total + REGISTRY[name](*args).total(y)
    return total


class Cached:
    def __init__(self, x):
        self.x = x

    @functools.cached_property
    def gram(self):
        out = np.zeros((3, 3))
        for i in range(3):
            for j in range(3):
                out[i, j] = self.x[i] * self.x[j]
        return out

    @functools.lru_cache(maxsize=None)
    def power(self, k):
        return self.x ** k


rows("cached property", lambda x: Cached(x).gram @ Cached(x).gram.sum(0))
rows("lru_cache of a method", lambda x: (lambda c: c.power(2) + c.power(2))(Cached(x)))


class Descending:
    """Setters and deleters."""

    def __init__(self):
        self._v = 0.0

    @property
    def v(self):
        return self._v

    @v.setter
    def v(self, value):
        self._v = np.maximum(value, 0.1)


@rows.of()
def property_with_a_setter(x):
    d = Descending()
    d.v = x[0]
    d.v += x[2]
    return d.v ** 2


class Mixin:
    def describe(self):
        return self.value * 2


class Base:
    registry: ClassVar[list] = []

    def __init_subclass__(cls, factor=1.0, **kw):
        super().__init_subclass__(**kw)
        cls.factor = factor

    def __init__(self, value):
        self.value = value


class Child(Mixin, Base, factor=3.0):
    def describe(self):
        return super().describe() * self.factor


rows("mixins and init_subclass", lambda x: Child(x[0]).describe())


class Context:
    def __init__(self, v):
        self.v = v

    def __enter__(self):
        return self.v * 2

    def __exit__(self, *error):
        return False


@rows.of()
def context_manager(x):
    with Context(x[0]) as v:
        return v + x[1]


class Stack(list):
    def push(self, v):
        self.append(v)
        return self


class Named(dict):
    def __getattr__(self, name):
        return self[name]


rows("subclass of list", lambda x: np.sum(Stack().push(x[0]).push(x[1] * x[0])))
rows("subclass of dict", lambda x: Named(a=x[0], b=x[1]).a * 2)


class Ode:
    """A right-hand side with parameters, stepped by a method."""

    G = 9.81

    def __init__(self, length, damping):
        self.length, self.damping = length, damping

    def rhs(self, t, s):
        theta, omega = s
        return np.array([omega, -self.G / self.length * np.sin(theta) - self.damping * omega])

    def solve(self, s, h=0.01, steps=20):
        path = np.empty((steps + 1, 2))
        path[0] = s
        for k in range(steps):
            k1 = self.rhs(0, path[k])
            k2 = self.rhs(0, path[k] + h / 2 * k1)
            path[k + 1] = path[k] + h * k2
        return path


rows("a pendulum as a class", lambda p: Ode(p[0], p[1]).solve([0.1, p[2]])[-1], P3)


@rows.of()
def class_made_in_the_function(x):
    class Local(Base):
        def value2(self):
            out = np.zeros(2)
            out[0] = self.value
            return out.sum() * x[1]
    return Local(x[0]).value2()


class Node:
    """A linked list."""

    def __init__(self, value, after=None):
        self.value, self.after = value, after

    def total(self):
        return self.value + (self.after.total() if self.after is not None else 0.0)


rows("linked list, recursively", lambda x: Node(x[0], Node(x[1], Node(x[2] ** 2))).total())


class Generic(typing.Generic[typing.TypeVar("T")]):
    def __init__(self, v):
        self.v = v

    def doubled(self):
        return np.add([self.v], self.v)


rows("generic class", lambda x: Generic(x[0]).doubled())


class Bag:
    def __init__(self, **kw):
        self.__dict__.update(kw)

    def __contains__(self, name):
        return name in self.__dict__

    def __bool__(self):
        return bool(self.__dict__)


rows("attributes by keyword", lambda x: (lambda b: b.a * b.b if b and "a" in b else b.a)(Bag(a=x[0], b=x[1])))
rows("vars of an instance", lambda x: sum(vars(Bag(a=x[0], b=x[1])).values()))
rows("map of a method", lambda x: sum(map(Normal(x[0], 2.0).logpdf, y)))
rows("sorted by a key of instances", lambda x: sorted([Node(x[0]), Node(x[1])], key=lambda n: n.value)[0].value)


class Optim:
    """Gradient descent with state, differentiated through."""

    def __init__(self, lr, momentum=0.9):
        self.lr, self.momentum, self.velocity = lr, momentum, {}

    def step(self, params, grads):
        for k, g in grads.items():
            v = self.velocity.get(k, 0.0) * self.momentum - self.lr * g
            self.velocity[k] = v
            params[k] = params[k] + v
        return params


@rows.of(P3)
def optimiser_with_state(p):
    opt, params = Optim(p[0] * 0.1), {"a": p[1], "b": p[2]}
    for _ in range(4):
        params = opt.step(params, {"a": 2 * params["a"], "b": np.cos(params["b"])})
    return params["a"] * params["b"]


class Weird(Exception):
    def __init__(self, value):
        super().__init__("weird")
        self.value = value


@rows.of()
def exception_with_a_value(x):
    try:
        raise Weird(x[0] * 2)
    except Weird as e:
        return e.value + x[1]


class WithNew:
    def __new__(cls, v):
        self = super().__new__(cls)
        self.v = v * 2
        return self


rows("__new__", lambda x: WithNew(x[0]).v)


class Iter:
    def __init__(self, x):
        self.x, self.i = x, 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.i >= len(self.x):
            raise StopIteration
        self.i += 1
        return self.x[self.i - 1] ** self.i


rows("iterator class", lambda x: sum(Iter(x)))
rows("repr in a format", lambda x: x[0] * len(f"{Point3.__name__}"))
