"""Functions of functions, containers that are captured, modules of Python, imports inside."""
from __future__ import annotations

import bisect
import contextlib
import copy
import datetime
import functools
import heapq
import itertools
import json
import re
import string
import types
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque, namedtuple
from enum import Enum, IntEnum
from operator import itemgetter

import numpy as np
from scipy import stats

from tests.programs.table import P3, Table

rows = Table()
y = np.array([0.1, 0.7, -0.2])
queue = deque([1.0, 2.0, 3.0])
words = Counter("abracadabra")
layers = ChainMap({"a": 2.0}, {"a": 1.0, "b": 3.0})
fixed = types.MappingProxyType({"a": 2.0, "b": np.array([1.0, 2.0, 3.0])})
first = itemgetter(0)
parabola = np.poly1d([1.0, -2.0, 3.0])
record = np.array([(1.0, 2.0), (3.0, 4.0), (0.5, 1.5)], dtype=[("t", float), ("y", float)])
rec = record.view(np.recarray)
dates = np.array(["2020-01-01", "2020-01-03", "2020-01-08"], dtype="datetime64[D]")
names = np.array(["a", "b", "a"])
groups = {"one": [0, 2], "two": [1]}
settings = OrderedDict(scale=2.0, shift=np.array([1.0, 0.0, -1.0]))
nested = {"data": {"y": y, "n": 3}, "prior": [1.0, 2.0], "names": ("a", "b")}
table = defaultdict(list, {"a": [1.0, 2.0]})
space = types.SimpleNamespace(mu=0.5, inner=types.SimpleNamespace(y=y))
Point = namedtuple("Point", "x y")
origin = Point(0.5, y)
terms = [lambda x: x ** 2, np.sin, lambda x: x * y]
frozen_set = frozenset({1, 2})
a_set = {1.0, 3.0}
text = "1.5 2.5 3.5"
a_range = range(3)
matrix = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
normal = stats.norm(0.5, 2.0)
poly = np.polynomial.Polynomial([1.0, 2.0, 0.5])


class Kind(Enum):
    SQUARE = "square"
    CUBE = "cube"


class Level(IntEnum):
    LOW = 1
    HIGH = 3


kind, level = Kind.CUBE, Level.HIGH

rows("captured deque", lambda x: sum(queue) * x)
rows("captured deque by index", lambda x: queue[1] * x + queue[-1] + len(queue))
rows("captured deque iterated", lambda x: sum(q * v for q, v in zip(queue, x)))
rows("deque made inside", lambda x: _queue(x))
rows("captured Counter", lambda x: words["a"] * x + words["z"])
rows("captured Counter iterated", lambda x: sum(words.values()) * x + len(words.most_common(1)))
rows("Counter made inside", lambda x: x * Counter([1, 1, 2])[1])
rows("captured ChainMap", lambda x: layers["a"] * x + layers["b"])
rows("captured ChainMap get", lambda x: layers.get("c", 1.0) * x + ("a" in layers))
rows("captured mappingproxy", lambda x: fixed["a"] * x + fixed["b"])
rows("captured mappingproxy iterated", lambda x: sum(np.sum(v) for v in fixed.values()) * x + len(fixed))
rows("captured itemgetter", lambda x: first(x) ** 2)
rows("itemgetter of a dict", lambda x: itemgetter("data")(nested)["y"] * x)
rows("sorted by itemgetter", lambda x: sorted(zip(y, x), key=itemgetter(0))[0][1])
rows("captured poly1d", lambda x: parabola(x))
rows("poly1d made inside", lambda x: np.poly1d([1.0, 0.0, 2.0])(x))
rows("poly1d of traced", lambda x: np.poly1d([x[0], x[1], 1.0])(y))
rows("derivative of a poly1d", lambda x: parabola.deriv()(x) + parabola.order)
rows("captured Polynomial", lambda x: poly(x))
rows("structured array by field", lambda x: record["t"] * x + record["y"])
rows("structured array by row", lambda x: record[1]["y"] * x)
rows("structured array length", lambda x: x * len(record) + record["t"].mean())
rows("recarray by attribute", lambda x: rec.t * x + rec.y)
rows("datetime differences", lambda x: (dates - dates[0]) / np.timedelta64(1, "D") * x)
rows("datetime diff as float", lambda x: np.diff(dates).astype(float).sum() * x)
rows("datetime astype", lambda x: (dates - dates.min()).astype("timedelta64[D]").astype(float) * x)
rows("datetime compared", lambda x: np.where(dates > np.datetime64("2020-01-02"), x, 0.0))
rows("strings compared", lambda x: x[names == "a"])
rows("strings compared in where", lambda x: np.where(names == "b", x, 0.0))
rows("strings unique", lambda x: sum(x[names == n].sum() for n in np.unique(names)))
rows("strings in a loop", lambda x: sum(v for v, n in zip(x, names) if n == "a"))
rows("strings isin", lambda x: x[np.isin(names, ["b"])])
rows("dict of index lists", lambda x: {k: x[i].sum() for k, i in groups.items()})
rows("captured OrderedDict", lambda x: settings["scale"] * x + settings["shift"])
rows("nested captured dicts", lambda x: nested["data"]["y"] * x * nested["data"]["n"] + nested["prior"][1])
rows("len of nested names", lambda x: x * len(nested["names"]))
rows("captured defaultdict", lambda x: sum(table["a"]) * x)
rows("defaultdict made inside", lambda x: _defaults(x))
rows("captured SimpleNamespace", lambda x: space.mu * x + space.inner.y)
rows("captured named tuple", lambda x: origin.x * x + origin.y)
rows("captured list of functions", lambda x: sum(f(x) for f in terms))
rows("captured sets", lambda x: x * len(frozen_set) * (2 in frozen_set) + len(a_set))
rows("captured text", lambda x: x * [float(w) for w in text.split()][1])
rows("captured range", lambda x: sum(x[i] * i for i in a_range))
rows("captured nested list", lambda x: np.dot(matrix, x))
rows("captured nested list as array", lambda x: np.array(matrix) @ x)
rows("captured list of arrays", lambda x: sum(a @ x for a in [y, y * 2]))
rows("captured enum", lambda x: x ** 3 if kind is Kind.CUBE else x ** 2)
rows("captured IntEnum", lambda x: x * level + (level > Level.LOW))
rows("enum by value", lambda x: x ** 2 if Kind("square") == Kind.SQUARE else x)
rows("enum iterated", lambda x: x * len(list(Kind)))
rows("match statement", lambda x: _matched(x, "b"))
rows("match on a mapping", lambda x: _mapped(x))
rows("match on a class", lambda x: _on_class(x[0]))
rows("frozen distribution", lambda x: normal.logpdf(x).sum())
rows("distribution by name", lambda x: getattr(stats, "norm").logpdf(x, 0.5, 2.0))
rows("distributions in a dict", lambda p: sum(d.logpdf(v) for d, v in zip([stats.norm(), stats.expon()], p)), P3)
rows("import inside", lambda x: _imports(x))
rows("import numpy inside", lambda x: _imports_numpy(x))
rows("import from scipy inside", lambda x: _imports_scipy(x))
rows("import as inside", lambda x: _imports_as(x))
rows("import of a standard module inside", lambda x: _imports_math(x))
rows("partial of a function", lambda x: functools.partial(_scaled, k=2.0)(x))
rows("partial captured", lambda x: tripled(x))
rows("reduce", lambda x: functools.reduce(lambda a, b: a * b + 1, x))
rows("reduce with a ufunc", lambda x: functools.reduce(np.maximum, [x, y, x * y]))
rows("compose", lambda x: composed(np.exp, np.sin, lambda v: v * 2)(x))
rows("curried", lambda x: (lambda a: lambda b: a * b)(x[0])(x[1]))
rows("decorated helper", lambda x: doubled_result(x))
rows("decorator with arguments", lambda x: scaled_result(x))
rows("lru_cache on a helper of data", lambda x: x * fibonacci(7))
rows("lru_cache on a helper of traced", lambda x: cached_square(x[0]))
rows("singledispatch", lambda x: area(2) * x + area(3.0))
rows("singledispatch of traced", lambda x: area(x).sum())
rows("singledispatch of a list", lambda x: area([x[0], x[1]]))
rows("wraps", lambda x: x * len(doubled_result.__name__))
rows("contextmanager", lambda x: _context(x))
rows("suppress", lambda x: _suppressed(x))
rows("errstate", lambda x: _quiet(x))
rows("itertools product", lambda x: sum(a * b for a, b in itertools.product(x, y)))
rows("itertools combinations", lambda x: sum(a * b for a, b in itertools.combinations(x, 2)))
rows("itertools accumulate", lambda x: np.array(list(itertools.accumulate(x))))
rows("itertools accumulate with a function", lambda x: list(itertools.accumulate(x, lambda s, v: 0.5 * s + v))[-1])
rows("itertools chain and islice", lambda x: sum(itertools.islice(itertools.chain(x, y), 4)))
rows("itertools zip_longest", lambda x: sum(a * b for a, b in itertools.zip_longest(x, y[:2], fillvalue=1.0)))
rows("itertools pairwise", lambda x: sum(b - a for a, b in itertools.pairwise(x)))
rows("itertools starmap and repeat", lambda x: sum(itertools.starmap(pow, zip(x, itertools.repeat(2)))))
rows("itertools count", lambda x: sum(v * k for v, k in zip(x, itertools.count(1))))
rows("itertools groupby", lambda x: sum(len(list(g)) * k for k, g in itertools.groupby([1, 1, 2])) * x)
rows("heapq", lambda x: heapq.nlargest(1, [v ** 2 for v in x])[0])
rows("bisect of data", lambda x: x * bisect.bisect([0.0, 1.0, 2.0], 1.5))
rows("json of a string", lambda x: json.loads('{"a": 2.5}')["a"] * x)
rows("re of a string", lambda x: x * int(re.search(r"(\d+)", "k12").group(1)))
rows("string formats", lambda x: x * len("{:>8}".format("a") + string.ascii_letters))
rows("datetime timedelta", lambda x: x * datetime.timedelta(days=2).days)
rows("copy of a dict", lambda x: _copied(x))
rows("deepcopy of a nested dict", lambda x: _deepcopied(x))
rows("dict merged", lambda x: {**{"a": x[0]}, "b": x[1]}["a"] * ({"a": x[0]} | {"b": x[2]})["b"])
rows("dict comprehension", lambda x: {i: v ** 2 for i, v in enumerate(x)})
rows("set comprehension", lambda x: x * len({i % 2 for i in range(5)}))
rows("nested comprehension", lambda x: sum(v * w for v in x for w in x if v is not w))
rows("recursion", lambda x: horner([1.0, x[0], x[1]], 2.0))
rows("star arguments", lambda x: starred(*x, scale=x[0], **{"shift": 2.0}))
rows("default mutable made inside", lambda x: np.sum(collecting(x)))
rows("default array", lambda x: with_default(x))
rows("function attributes", lambda x: annotated.factor * x)
rows("closure over a loop variable", lambda x: sum(f(x) for f in [lambda x, k=k: x * k for k in range(3)]))
rows("closure counter made inside", lambda x: _counter(x))
rows("dunder name", lambda x: x * len(horner.__name__))
rows("callable tested", lambda x: x * 2 if callable(horner) else x)
rows("types of functions", lambda x: x * 2 if isinstance(horner, types.FunctionType) else x)
rows("exec-free dispatch table", lambda x: OPS["mul"](OPS["add"](x, 1), 2))
rows("nested dict of params", lambda p: p["w"]["a"] @ y + p["b"], {"w": {"a": np.array([1.0, 2, 3])}, "b": 0.5})
rows("list of tuples as argument", lambda p: sum(a @ y + b for a, b in p), [(np.ones(3), 0.1), (np.zeros(3), 0.2)])
rows("dict items in order", lambda p: sum(i * np.sum(v) for i, (k, v) in enumerate(p.items())), {"b": 1.0, "a": y})
rows("params sorted by key", lambda p: np.concatenate([np.ravel(p[k]) for k in sorted(p)]), {"b": 1.0, "a": y})
rows("returned dict", lambda x: {"mean": x.mean(), "all": x * 2, "n": 3})
rows("returned nested", lambda x: (x[0], [x[1], {"z": x}]))
rows("None among the arguments", lambda x, w: x * 2 if w is None else x * w, np.ones(3), None)
rows("string argument", lambda x, how: {"sum": np.sum, "mean": np.mean}[how](x), np.ones(3) * 2, "mean")
rows("flag argument", lambda x, flag: x * 2 if flag else x, np.ones(3), True)
rows("several arguments", lambda a, b, c: a * b + c, 1.5, y, 2)


def _queue(x):
    q = deque(maxlen=2)
    for v in x:
        q.append(v)
    return sum(q) * q[0] + q.popleft()


def _defaults(x):
    d = defaultdict(float)
    e = defaultdict(list)
    for i, v in enumerate(x):
        d[i % 2] += v
        e[i % 2].append(v)
    return d[0] * d[1] + np.sum(e[0])


def _matched(x, key):
    match key:
        case "a":
            return x
        case "b" | "c":
            return x * 2
    return x * 3


def _mapped(x):
    match {"kind": "scale", "by": x[0]}:
        case {"kind": "scale", "by": by}:
            return x * by
    return x


def _on_class(v):
    match v:
        case int():
            return v
        case float():
            return v * 2.0


def _imports(x):
    import numpy
    return numpy.exp(x) + numpy.linalg.norm(x)


def _imports_numpy(x):
    from numpy import array, sin
    return sin(array([x[0], x[1]]))


def _imports_scipy(x):
    from scipy.special import gammaln
    from scipy.stats import norm
    return gammaln(x ** 2 + 1) + norm.logpdf(x)


def _imports_as(x):
    import scipy.linalg as la
    import numpy.fft as fft
    return la.norm(x) + np.abs(fft.fft(x))


def _imports_math(x):
    import math
    from math import sqrt
    from functools import reduce
    return math.exp(x[0]) + sqrt(x[2]) + reduce(lambda a, b: a + b, x)


def _scaled(x, k=1.0):
    return x * k


tripled = functools.partial(_scaled, k=3.0)


def composed(*functions):
    return lambda x: functools.reduce(lambda value, f: f(value), reversed(functions), x)


def doubling(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        return 2 * f(*args, **kwargs)
    return wrapper


def scaling(k):
    def decorate(f):
        @functools.wraps(f)
        def wrapper(*args):
            return k * f(*args)
        return wrapper
    return decorate


@doubling
def doubled_result(x):
    return np.sin(x)


@scaling(3.0)
def scaled_result(x):
    return np.cos(x)


@functools.lru_cache
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@functools.lru_cache
def cached_square(v):
    return v ** 2


@functools.singledispatch
def area(shape):
    return shape * 1.0


@area.register
def _(shape: int):
    return shape * shape


@area.register(list)
def _(shape):
    return shape[0] * shape[1]


@area.register(np.ndarray)
def _(shape):
    return np.exp(shape)


@contextlib.contextmanager
def doubled_within(v):
    yield v * 2


def _context(x):
    with doubled_within(x[0]) as v:
        return v * x[1]


def _suppressed(x):
    with contextlib.suppress(ZeroDivisionError):
        return x * (1 // 0)
    return x * 2


def _quiet(x):
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(x ** 2)


def _copied(x):
    d = dict(settings)
    d["scale"] = x[0]
    return d["scale"] * d["shift"]


def _deepcopied(x):
    d = copy.deepcopy(nested)
    d["data"]["y"][0] = x[0]
    d["prior"].append(x[1])
    return d["data"]["y"] * sum(d["prior"])


def horner(c, v):
    return c[0] if len(c) == 1 else c[0] + v * horner(c[1:], v)


def starred(*args, scale=1.0, **rest):
    return sum(args) * scale + rest["shift"]


def collecting(x, into=None):
    into = [] if into is None else into
    for v in x:
        into.append(v * 2)
    return into


def with_default(x, w=np.array([1.0, 2.0, 3.0])):
    return w * x


def annotated(x: np.ndarray, k: int = 1) -> np.ndarray:
    z: np.ndarray = x * k
    return z


annotated.factor = 2.5


def _counter(x):
    n = 0

    def count(v):
        nonlocal n
        n += 1
        return v * n
    return sum(count(v) for v in x)


OPS = {"add": np.add, "mul": np.multiply}
