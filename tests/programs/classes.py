"""Classes that recorded code makes use of: constructors, methods, properties, state, inheritance."""
from __future__ import annotations

import copy
import functools
import math

import numpy as np

from tests.programs.table import P3, Table

rows = Table()
t = np.linspace(0.0, 1.0, 4)
y = np.array([0.1, 0.7, -0.2, 0.4])


class Model:
    """A model with an array of its own and a method that fills one."""

    scale = 2.0
    knots = np.array([0.0, 0.5, 1.0])

    def __init__(self, rate, n=3):
        self.rate, self.n = rate, n
        self.weights = np.ones(n)

    def predict(self, x):
        out = np.zeros(self.n)
        for i in range(self.n):
            out[i] = self.rate * x[i]
        return out * self.weights

    @staticmethod
    def curve(x):
        out = np.zeros_like(x)
        out[0] = x[1] ** 2
        return out + np.exp([x[0], x[1], x[2]])

    @classmethod
    def default(cls, x):
        return cls(x[0] * cls.scale)

    @property
    def total(self):
        return np.sum(self.weights) * self.rate

    def __call__(self, x):
        return math.exp(self.rate) * x.sum()


class Sloped(Model):
    def __init__(self, rate, slope):
        super().__init__(rate)
        self.slope = slope

    def predict(self, x):
        return super().predict(x) + self.slope * np.array([x[0], 1.0, x[2]])

    @classmethod
    def default(cls, x):
        made = cls(x[0], x[1])
        made.rate = made.rate + super().curve(x).sum()
        return made


rows("constructor and method", lambda x: Model(2.0).predict(x))
rows("traced attribute", lambda x: Model(x[0]).predict(x))
rows("static method of a class", lambda x: Model.curve(x))
rows("static method of an instance", lambda x: Model(1.0).curve(x))
rows("class method makes an instance", lambda x: Model.default(x).predict(x))
rows("property", lambda x: Model(x[1]).total)
rows("call of an instance", lambda x: Model(x[0])(x))
rows("super in methods", lambda x: Sloped(x[0], x[1]).predict(x))
rows("super in a class method", lambda x: Sloped.default(x).predict(x))
rows("class attribute", lambda x: Model.scale * x + Model.knots)
rows("isinstance", lambda x: x * 2 if isinstance(Sloped(x[0], 1.0), Model) else x)
rows("type of an instance", lambda x: x * 2 if type(Model(x[0])) is Model else x)
rows("class in a variable", lambda x: (lambda K: K(x[0]).predict(x))(Model))
rows("classes in a list", lambda x: sum(K(x[0]).total for K in [Model, Model]))
rows("name of the class", lambda x: x * len(Model.__name__))
rows("name of type self", lambda x: x * len(type(Model(1.0)).__name__))
rows("attribute set from outside", lambda x: _set_outside(x))
rows("getattr and setattr", lambda x: _setattr(x))
rows("two instances with state", lambda x: _two(x))

made_outside = Model(1.5)
sloped_outside = Sloped(0.5, 1.0)
rows("captured instance", lambda x: made_outside.predict(x))
rows("captured subclass instance", lambda x: sloped_outside.predict(x))
rows("captured instance is called", lambda x: made_outside(x))
rows("captured instance and its class", lambda x: Model(made_outside.rate * x[0]).predict(x))
rows("captured instance is an instance", lambda x: x * 3 if isinstance(sloped_outside, Model) else x)
rows("type of captured makes another", lambda x: type(made_outside)(x[0]).predict(x))
rows("class of captured makes another", lambda x: made_outside.__class__(x[0]).predict(x))
rows("class method of a captured instance", lambda x: made_outside.default(x).predict(x))
rows("static method of a captured instance", lambda x: made_outside.curve(x))
rows("deepcopy of a captured instance", lambda x: _deepcopied(x))
rows("copy of a captured instance", lambda x: _copied(x))


def _set_outside(x):
    m = Model(1.0)
    m.rate = x[0] * x[1]
    m.weights[1] = x[2]
    m.extra = np.exp(x)
    return m.predict(m.extra)


def _setattr(x):
    m = Model(1.0)
    for name, value in zip(("rate", "offset"), x):
        setattr(m, name, value)
    return getattr(m, "rate") * x + getattr(m, "offset", 0.0) + getattr(m, "none", 1.0)


def _two(x):
    a, b = Model(x[0]), Model(x[1])
    a.weights *= 2.0
    b.weights[0] = x[2]
    return a.predict(x) - b.predict(x)


def _deepcopied(x):
    m = copy.deepcopy(made_outside)
    m.rate = x[0]
    m.weights[0] = x[1]
    return m.predict(x)


def _copied(x):
    m = copy.copy(made_outside)
    m.rate = x[0]
    return m.predict(x)


class Counter:
    """State that changes while the function runs."""

    def __init__(self):
        self.count, self.seen, self.total = 0, [], 0.0

    def add(self, value):
        self.count += 1
        self.seen.append(value)
        self.total += value
        return self

    def mean(self):
        return self.total / self.count


@rows.of()
def object_with_mutable_state(x):
    c = Counter()
    for v in x:
        c.add(v ** 2)
    return c.mean() + np.array(c.seen)


@rows.of()
def chained_calls(x):
    return Counter().add(x[0]).add(x[1] * 2).mean()


class Kalman:
    """A filter as textbooks write it."""

    def __init__(self, q, r):
        self.x = np.zeros(2)
        self.P = np.eye(2)
        self.F = np.array([[1.0, 1.0], [0.0, 1.0]])
        self.H = np.array([[1.0, 0.0]])
        self.Q = q * np.eye(2)
        self.R = r

    def predict(self):
        self.x = self.F @ self.x
        self.P = self.F @ self.P @ self.F.T + self.Q

    def update(self, z):
        S = self.H @ self.P @ self.H.T + self.R
        K = self.P @ self.H.T / S[0, 0]
        v = z - (self.H @ self.x)[0]
        self.x = self.x + K[:, 0] * v
        self.P = (np.eye(2) - K @ self.H) @ self.P
        return -0.5 * (np.log(2 * np.pi * S[0, 0]) + v ** 2 / S[0, 0])


@rows.of(P3)
def kalman_filter_as_a_class(p):
    kf = Kalman(p[0], p[1])
    ll = 0.0
    for z in y:
        kf.predict()
        ll += kf.update(z)
    return ll


class Layer:
    def __init__(self, W, b):
        self.W, self.b = W, b

    def forward(self, x):
        return np.tanh(self.W @ x + self.b)


class Net:
    """Layers in a list."""

    def __init__(self, params):
        self.layers = [Layer(p[0] * np.eye(2), p[1:]) for p in (params, params * 2)]

    def forward(self, x):
        for layer in self.layers:
            x = layer.forward(x)
        return x

    def __len__(self):
        return len(self.layers)

    def __iter__(self):
        return iter(self.layers)

    def __getitem__(self, i):
        return self.layers[i]


rows("layers in a list", lambda x: Net(x).forward(np.array([0.2, -0.3])))
rows("len, item and iteration", lambda x: sum(l.W.sum() for l in Net(x)) * len(Net(x)) + Net(x)[0].b.sum())


class Vec:
    """Operators of its own."""

    __slots__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, o):
        return Vec(self.x + o.x, self.y + o.y)

    def __sub__(self, o):
        return Vec(self.x - o.x, self.y - o.y)

    def __mul__(self, k):
        return Vec(self.x * k, self.y * k)

    __rmul__ = __mul__

    def __matmul__(self, o):
        return self.x * o.x + self.y * o.y

    def __neg__(self):
        return Vec(-self.x, -self.y)

    def __abs__(self):
        return math.sqrt(self @ self)

    def __eq__(self, o):
        return self.x == o.x and self.y == o.y

    def __hash__(self):
        return 1


rows("operators of a class with slots", lambda x: abs(Vec(x[0], x[1]) + 2.0 * Vec(x[2], 1.0) - Vec(0.0, x[0])))
rows("matmul of a class", lambda x: Vec(x[0], x[1]) @ -Vec(x[2], 3.0))
rows("equality of a class", lambda x: x if Vec(1, 2) == Vec(1, 2) else -x)
rows("methods as functions", lambda x: Model.predict(Model(x[1]), x))
rows("bound method in a variable", lambda x: (lambda f: f(x) + f(2 * x))(Model(x[0]).predict))
rows("partial method", lambda x: functools.partial(Model.predict, Model(x[0]))(x))
rows("hasattr", lambda x: x * (2 if hasattr(Model(1.0), "rate") else 3))


class Dual:
    """A differentiation of the user's own."""

    def __init__(self, v, d=0.0):
        self.v, self.d = v, d

    def __mul__(self, o):
        o = o if isinstance(o, Dual) else Dual(o)
        return Dual(self.v * o.v, self.v * o.d + self.d * o.v)

    def __add__(self, o):
        o = o if isinstance(o, type(self)) else type(self)(o)
        return self.__class__(self.v + o.v, self.d + o.d)

    __radd__, __rmul__ = __add__, __mul__

    def sin(self):
        return Dual(np.sin(self.v), np.cos(self.v) * self.d)


rows("dual numbers", lambda x: (lambda z: (z * z + 3.0 * z).sin().d)(Dual(x[0], 1.0)))
