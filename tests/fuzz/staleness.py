"""Kinds of what a function captures, times kinds of change: after each a compiled function gives what plain Python
gives, or refuses by name. Each kind: lines that make it, the expression that reads it, and lines that change it."""
from __future__ import annotations

from typing import NamedTuple

HEAD = """
import copy, dataclasses, enum, functools, math, types
from collections import namedtuple, OrderedDict
import numpy as np
"""


class Kind(NamedTuple):
    name: str
    make: str
    read: str
    changes: tuple[str, ...]


NUMBER = ("k = 3.0", "k = 2", "k = np.float64(1.5)", "k = np.array(4.0)", "k = True", "k = np.array([1.0, 2.0, 3.0])")
ARRAY = ("a[0] = 9.0", "a *= 2.0", "a = a + 1.0", "a = np.array([1.0])", "a = a.astype(np.float32)", "a = list(a)",
         "a = a[::-1]", "a.sort()", "a = np.arange(3)", "a = 2.5", "a = a[:, None]", "a.fill(0.5)",
         "a = np.array([np.nan, 1.0, np.inf])", "a = a.copy(order='F')", "a = a.tolist()")
KINDS = (
    Kind("a global number", "k = 1.25", "k * np.sum(x)", NUMBER),
    Kind("a global array", "a = np.array([3.0, 1.0, 2.0])", "np.sum(np.asarray(a) * x)", ARRAY),
    Kind("a list of numbers", "l = [1.0, 2.0]", "l[0] * np.sum(x) + len(l) * x[0]",
         ("l[0] = 5.0", "l.append(3.0)", "l = (4.0, 5.0, 6.0)", "l.reverse()", "del l[1]", "l[0] = 1")),
    Kind("a list of arrays", "l = [np.ones(3), np.zeros(3)]", "sum(np.sum(v * x) for v in l)",
         ("l[1] = np.full(3, 2.0)", "l[0][1] = 7.0", "l.append(np.ones(3))", "l.pop()", "l[0] = 2.0", "l = l[::-1]")),
    Kind("a dict", "d = {'a': 1.5, 'b': np.ones(3)}", "d['a'] * np.sum(d['b'] * x) + len(d) * x[1]",
         ("d['a'] = 2.5", "d['b'][0] = 4.0", "d['c'] = 1", "d = {'b': np.zeros(3), 'a': 1.0}", "d['a'] = 2",
          "d.update(a=0.5)", "d['b'] = 3.0")),
    Kind("an order of keys", "d = {'a': 1.0, 'b': 2.0}", "list(d.values())[0] * x[0] + next(iter(d.values())) * x[1]",
         ("d = {'b': 2.0, 'a': 1.0}", "d['a'] = d.pop('a')")),
    Kind("a string", "mode = 'sin'", "np.sum(np.sin(x)) if mode == 'sin' else np.sum(x)",
         ("mode = 'cos'", "mode = None", "mode = 'si' + 'n'")),
    Kind("a flag", "flag = True", "np.sum(x) if flag else np.prod(x)",
         ("flag = False", "flag = 0", "flag = np.False_", "flag = []", "flag = 1.0", "flag = 'yes'")),
    Kind("a tuple", "t = (1.0, (2.0, 'a'))", "t[0] * x[0] + t[1][0] * x[1] * (2 if t[1][1] == 'a' else 3)",
         ("t = (1.0, (2.0, 'b'))", "t = (4.0, (2.5, 'a'))", "t = (1.0, (2.0, 'a'), 3)")),
    Kind("a set", "s = {1, 2}", "np.sum(x) * (2 if 3 in s else 1) + len(s) * x[0]",
         ("s.add(3)", "s = frozenset({3})", "s.clear()")),
    Kind("a helper", "def h(v): return v * 2.0", "np.sum(h(x))",
         ("def h(v): return v * 3.0", "h = np.sin", "h = lambda v: v + 1.0", "h.__code__ = (lambda v: v * 5.0).__code__",
          "h = functools.partial(np.power, 2.0)", "h = np.exp")),
    Kind("a helper's default", "def h(v, w=2.0): return v * w", "np.sum(h(x))",
         ("h.__defaults__ = (4.0,)", "h.__defaults__ = (np.array([1.0, 2.0, 3.0]),)", "h.__defaults__ = (3,)")),
    Kind("a keyword default", "def h(v, *, w=2.0): return v * w", "np.sum(h(x))",
         ("h.__kwdefaults__ = {'w': 4.0}", "h.__kwdefaults__['w'] = 5.0", "h.__kwdefaults__['w'] = 3")),
    Kind("a helper's global", "c = 2.0\ndef h(v): return v * c", "np.sum(h(x))", ("c = 3.0", "c = 'x' and 4", "c = np.ones(3)")),
    Kind("a helper's attribute", "def h(v): return v * h.scale\nh.scale = 2.0", "np.sum(h(x))",
         ("h.scale = 3.0", "h.scale = np.ones(3)", "h.scale = 4")),
    Kind("a closure", "def make():\n    c = 2.0\n    def h(v): return v * c\n    def put(n):\n        nonlocal c\n        c = n\n"
         "    return h, put\nh, put = make()", "np.sum(h(x))", ("put(3.0)", "put(np.arange(3.0))", "put(5)")),
    Kind("an attribute", "class P: pass\np = P(); p.a = 2.0; p.mode = 'x'",
         "p.a * np.sum(x) if p.mode == 'x' else np.sum(x * x)",
         ("p.a = 3.0", "p.mode = 'y'", "p.a = np.ones(3)", "q = P(); q.a = 9.0; q.mode = 'x'; p = q", "p.a = 4",
          "p.__dict__['a'] = 7.0", "p.__dict__ = {'a': 1.0, 'mode': 'x'}", "p.mode = 'X'.lower()")),
    Kind("a class attribute", "class P:\n    a = 2.0\np = P()", "p.a * np.sum(x) + P.a * x[0]",
         ("P.a = 3.0", "p.a = 5.0", "P.a = np.ones(3)", "class Q(P):\n    a = 4.0\np = Q()")),
    Kind("an inherited attribute", "class B:\n    a = 2.0\nclass P(B): pass\np = P()", "p.a * np.sum(x)",
         ("B.a = 3.0", "P.a = 4.0", "p.a = 5.0", "class C:\n    a = 7.0\nP.__bases__ = (C,)")),
    Kind("a method", "class P:\n    a = 2.0\n    def m(self, v): return v * self.a\np = P()", "np.sum(p.m(x))",
         ("P.m = lambda self, v: v * 3.0", "p.a = 4.0", "p.m = lambda v: v * 7.0",
          "class Q(P):\n    def m(self, v): return v\np = Q()", "p.__class__ = type('R', (P,), {'a': 9.0})")),
    Kind("a property", "class P:\n    def __init__(self): self._a = 2.0\n    @property\n    def a(self): return self._a * 2\np = P()",
         "p.a * np.sum(x)", ("p._a = 3.0", "P.a = property(lambda self: 5.0)", "P.a = 7.0")),
    Kind("a static and a class method", "class P:\n    k = 2.0\n    @staticmethod\n    def s(v): return v * 2.0\n    @classmethod\n"
         "    def c(cls, v): return v * cls.k", "np.sum(P.s(x)) + np.sum(P.c(x))",
         ("P.k = 3.0", "P.s = staticmethod(lambda v: v * 5.0)", "P.c = classmethod(lambda cls, v: v)")),
    Kind("slots", "class P:\n    __slots__ = ('a',)\np = P(); p.a = 2.0", "p.a * np.sum(x)", ("p.a = 3.0", "p.a = np.ones(3)", "p.a = 4")),
    Kind("a callable object", "class P:\n    def __init__(self): self.w = 2.0\n    def __call__(self, v): return v * self.w\np = P()",
         "np.sum(p(x))", ("p.w = 3.0", "P.__call__ = lambda self, v: v * 9.0", "p.w = np.arange(3.0)")),
    Kind("a data class", "@dataclasses.dataclass\nclass P:\n    a: float = 2.0\n    b: object = None\np = P()",
         "p.a * np.sum(x) + (0.0 if p.b is None else x[0])",
         ("p.a = 3.0", "p.b = 1", "p = P(4.0)", "p = dataclasses.replace(p, a=5.0)", "p.b = np.ones(2)")),
    Kind("a named tuple", "P = namedtuple('P', 'a b'); p = P(2.0, np.ones(3))", "p.a * np.sum(p.b * x)",
         ("p = p._replace(a=3.0)", "p.b[0] = 5.0", "p = P(2.0, 4.0)")),
    Kind("an enum", "class E(enum.Enum):\n    A = 1\n    B = 2\ne = E.A", "np.sum(x) * (1 if e is E.A else 2) * e.value",
         ("e = E.B", "e = E['B']")),
    Kind("a partial", "h = functools.partial(np.multiply, 2.0)", "np.sum(h(x))",
         ("h = functools.partial(np.multiply, 3.0)", "h = functools.partial(np.add, 2.0)", "h = np.sin")),
    Kind("a simple namespace", "p = types.SimpleNamespace(a=2.0, b='u')", "p.a * np.sum(x) if p.b == 'u' else x[0]",
         ("p.a = 3.0", "p.b = 'v'", "p = types.SimpleNamespace(a=1.0, b='u')", "p.a = np.ones(3)")),
    Kind("nested objects", "class P: pass\np = P(); p.q = P(); p.q.r = [1.0, {'z': 2.0}]", "p.q.r[1]['z'] * np.sum(x)",
         ("p.q.r[1]['z'] = 3.0", "p.q = P(); p.q.r = [0.0, {'z': 9.0}]", "p.q.r = [1.0, {'z': np.ones(3)}]")),
    Kind("a view", "base = np.arange(6.0); a = base[::2]", "np.sum(a * x)",
         ("base[0] = 9.0", "base = np.zeros(6)", "a = base[1::2]", "base *= 2.0")),
    Kind("an integer array", "i = np.array([0, 2])", "np.sum(x[i])", ("i[0] = 1", "i = np.array([0, 1, 2])", "i = np.array([2, 2])", "i = [1, 0]")),
    Kind("a mask", "m = np.array([True, False, True])", "np.sum(x[m])", ("m[1] = True", "m = ~m", "m[:] = False", "m = np.array([0, 1, 1])")),
    Kind("a length", "n = 2", "np.sum(x[:n]) + np.sum(np.zeros(n) + 1.0) * x[0]", ("n = 3", "n = 1", "n = 0", "n = np.int64(2)", "n = -1")),
    Kind("a loop's count", "n = 4", "sum(x[i % 3] ** i for i in range(n))", ("n = 6", "n = 0", "n = 1")),
    Kind("an exception's class", "E = ValueError", "np.sum(x) if issubclass(E, ValueError) else x[0]", ("E = KeyError", "E = UnicodeError")),
    Kind("a module's member", "m = types.ModuleType('m'); m.k = 2.0", "m.k * np.sum(x)", ("m.k = 3.0", "m.k = np.ones(3)", "m.k = 5")),
    Kind("a lambda in a dict", "d = {'f': lambda v: v * 2.0}", "np.sum(d['f'](x))", ("d['f'] = lambda v: v * 3.0", "d['f'] = np.cos")),
    Kind("a dtype", "t = np.float64", "np.sum(x.astype(t))", ("t = np.float32", "t = 'f4'", "t = float")),
    Kind("a getattr default", "class P: pass\np = P()", "getattr(p, 'w', 2.0) * np.sum(x)", ("p.w = 3.0", "P.w = 4.0")),
    Kind("an asked attribute", "class P: pass\np = P()", "np.sum(x) if hasattr(p, 'w') else x[0]", ("p.w = 3.0", "P.w = 1")),
    Kind("a kind asked for", "a = 2.0", "np.sum(x) if isinstance(a, float) else x[0] * 3", ("a = 2", "a = np.float32(2.0)", "a = '2'", "a = None")),
    Kind("an ordered dict", "d = OrderedDict(a=1.0, b=2.0)", "list(d)[0] == 'a' and np.sum(x) or x[0]", ("d.move_to_end('a')", "d['c'] = 1.0")),
    Kind("a complex number", "z = 1.0 + 2.0j", "np.sum(np.abs(z * x))", ("z = 3.0j", "z = 2.0", "z = np.complex64(1j)")),
    Kind("a number in text", "s = '{:.1f}'", "float(s.format(2.0)) * np.sum(x)", ("s = '{:.2e}'", "s = '3{:.0f}'")),
)
