"""Random programs as source text, grown line by line: each line runs under NumPy as it is written, so that shapes and
dtypes are known, and a line that NumPy refuses is not kept.

A program is ``f(x, y)`` of a float vector and a float matrix; it reads a few captured things (see `CAPTURED`) and
returns one number that all its float arrays enter.
"""
from __future__ import annotations

import copy
import linecache
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .phrases import EFFECTS, PHRASES, PICKS

LARGEST = 60                                             # elements of an array

PREAMBLE = '''\
import math
from collections import namedtuple

import numpy as np

Pair = namedtuple("Pair", "first second")


class Scale:
    unit = 0.5

    def __init__(self, a, b=0.25):
        self.a, self.b = a, b
        self.seen = []

    def apply(self, v):
        self.seen.append(v)
        return np.tanh(v) * self.a + self.b

    @property
    def total(self):
        return sum(np.sum(v) for v in self.seen)

    @staticmethod
    def bend(v):
        return v / (1.0 + v * v)


def helper(v, power=2):
    return np.sum(np.tanh(v) ** power)


def guarded(v):
    try:
        return math.sqrt(v)
    except ValueError:
        return 0.125 * v


def gram(m):
    return m @ m.T


def pieces(v):
    for part in (v, -v, 0.5 * v):
        yield part


weights = np.array([0.3, -0.7, 1.1, 0.2])
table = np.arange(12.0).reshape(3, 4) / 7.0 - 0.6
order = np.array([2, 0, 3, 1])
flags = np.array([True, False, True, True])
offset = 0.37
settings = {"rate": 0.45, "mode": "soft"}
'''


class Writer:
    """One program in the making. `known` holds what NumPy gives for every name in sight, at the first point."""

    def __init__(self, seed: int, wild: bool, dtype: str = "float64") -> None:
        self.rng = np.random.default_rng(seed)
        self.wild = wild                                 # whether NaN, infinity and empty arrays are welcome
        self.lines: list[str] = []
        self.globals: dict[str, Any] = {}
        exec(PREAMBLE, self.globals)
        self.dtype = np.dtype(dtype)
        self.known: dict[str, Any] = {"x": self.point()[0], "y": self.point()[1], "total": 0.0}
        self.made = 0

    def point(self) -> tuple[np.ndarray, np.ndarray]:
        """Arguments at which the program may be called."""
        x, y = self.rng.normal(size=5), self.rng.normal(size=(3, 4))
        if self.wild and self.rng.random() < 0.3:
            x[self.rng.integers(5)] = self.rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1e300])
        return x.astype(self.dtype), y.astype(self.dtype)

    # --- choices -----------------------------------------------------------------------------
    def below(self, n: int) -> int:
        return int(self.rng.integers(n))

    def some(self, sequence: Any) -> Any:
        return sequence[self.below(len(sequence))]

    def fresh(self) -> str:
        self.made += 1
        return f"v{self.made}"

    def arrays(self, least: int = 0) -> list[str]:
        """Names of float arrays and numbers with at least so many dimensions, the latest twice."""
        found = [n for n, v in self.known.items() if isinstance(v, (np.ndarray, np.floating, float))
                 and np.asarray(v).dtype.kind == "f" and np.ndim(v) >= least]
        return found + found[-3:]

    def whole(self) -> list[str]:
        return [n for n, v in self.known.items() if isinstance(v, (np.ndarray, np.integer))
                and np.asarray(v).dtype.kind == "i"]

    def number(self) -> str:
        return self.some(["0.5", "-1.5", "2.0", "0.0", "1", "3", f"{self.rng.normal():.3f}", "offset",
                          "settings['rate']", "Scale.unit"])

    # --- pieces of text ------------------------------------------------------------------------
    def operand(self, least: int = 0) -> str:
        names = self.arrays(least) or ["x"]
        name = self.some(names)
        if np.ndim(self.known.get(name, 0)) and self.below(4) == 0:
            return f"{name}[{self.index(np.shape(self.known[name]))}]"
        return name

    def index(self, shape: tuple[int, ...]) -> str:
        parts = [self._one_index(n) for n in shape[:1 + self.below(len(shape))]] if shape else ["..."]
        if len(parts) < len(shape) and self.below(3) == 0:
            parts.append("...")
        if self.below(8) == 0:
            parts.insert(self.below(len(parts) + 1), "None")
        return ", ".join(parts)

    def _one_index(self, n: int) -> str:
        start, stop = sorted((self.below(n + 1), self.below(n + 1)))
        kinds = [f"{start}:{stop}", ":", "::-1", f"{start}::2", f":{stop}", "-2:", f"{stop}:{start}:-1"]
        if n:
            several = [self.below(n) for _ in range(1 + self.below(3))]
            kinds += [str(self.below(n)), f"-{1 + self.below(n)}", str(several)]
            kinds += [f"{i} % {n}" for i in self.whole() if np.ndim(self.known[i]) == 0][:2]
        if n == 4:
            kinds += ["order", "flags"]
        return self.some(kinds)

    def phrase(self) -> str:
        """An expression: a phrase with its holes filled."""
        text = self.some(PHRASES if self.below(5) else PICKS)
        return self.fill(text)

    def fill(self, text: str) -> str:
        holes: dict[str, Callable[[], str]] = {
            "A": lambda: self.operand(), "V": lambda: self.operand(1), "M": lambda: self.operand(2),
            "C": self.number, "I": lambda: self.some(self.whole() or ["order"]), "T": self.test,
            "AX": lambda: self.some(["0", "-1", "None", "(0,)"]), "N": lambda: str(self.below(4))}
        while "<" in text:
            start = text.index("<")
            stop = text.index(">", start)
            name = text[start + 1:stop]
            if name not in holes:                        # a comparison in the text of an operand
                break
            text = text[:start] + holes[name]() + text[stop + 1:]
        return text.replace("{lt}", "<").replace("{gt}", ">")

    def test(self) -> str:
        kinds = [f"np.sum({self.operand()}) {{gt}} {self.number()}", f"np.any({self.operand()} {{lt}} {self.number()})",
                 f"{self.operand()}.size {{gt}} 2", "settings['mode'] == 'soft'",
                 f"np.max(np.abs({self.operand(1)})) {{lt}} 1.0"]
        return self.some(kinds)

    # --- lines -----------------------------------------------------------------------------------
    def runs(self, text: str, names: dict[str, Any] | None = None) -> bool:
        """Run lines on what is known; False, and nothing is changed, if NumPy refuses or too much comes out."""
        state = copy.deepcopy(self.known if names is None else names)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                exec(compile(text, "<line>", "exec"), self.globals, state)
            except Exception:
                return False
        for value in state.values():
            if isinstance(value, np.ndarray) and (value.size > LARGEST or value.dtype.kind not in "fib"):
                return False
            if isinstance(value, np.ndarray) and not self.wild and value.dtype.kind == "f" and not (
                    np.isfinite(value).all() and np.abs(value).max(initial=0) < 1e4):
                return False
            if isinstance(value, complex):
                return False
        target = self.known if names is None else names
        target.clear()
        target.update(state)
        return True

    def statement(self, depth: int) -> bool:
        kinds: list[Callable[[int], bool]] = [self.new, self.new, self.new, self.new, self.effect, self.effect]
        if depth < 3:
            kinds += [self.branch, self.loop, self.caught]
        return self.some(kinds)(depth)

    def put(self, depth: int, text: str) -> None:
        self.lines += ["    " * depth + line for line in text.split("\n")]

    def new(self, depth: int) -> bool:
        name = self.fresh()
        text = f"{name} = {self.phrase()}"
        if not self.runs(text):
            return False
        self.put(depth, text)
        return True

    def effect(self, depth: int) -> bool:
        """A write into an array the function made."""
        own = [n for n in self.known if n not in ("x", "y") and isinstance(self.known[n], np.ndarray)
               and self.known[n].dtype.kind == "f" and self.known[n].ndim]
        if not own:
            return False
        name = self.some(own)
        place = self.index(self.known[name].shape)
        text = self.fill(self.some(EFFECTS).replace("{a}", name).replace("{i}", place))
        if not self.runs(text):
            return False
        self.put(depth, text)
        return True

    def block(self, depth: int, count: int) -> None:
        """Lines that may change what is known outside, but whose new names end with them."""
        outside = set(self.known)
        self.put(depth, "pass")
        for _ in range(count):
            self.statement(depth)
        for name in sorted(set(self.known) - outside):   # all that is computed counts: nothing is dead
            if np.asarray(self.known[name]).dtype.kind in "fib" and np.size(self.known[name]):
                text = f"total = total + 0.01 * np.sum({name})"
                if self.runs(text):
                    self.put(depth, text)
            del self.known[name]

    def branch(self, depth: int) -> bool:
        test = self.fill(self.test())
        if not self.runs(f"_t = bool({test})"):
            return False
        taken = self.known.pop("_t")
        self.put(depth, f"if {test}:")
        for way in (True, False):
            if not way:
                self.put(depth, "else:")
            if way == taken:
                self.block(depth + 1, 2)
            else:                                        # what is done there is not done here
                kept, self.known = self.known, copy.deepcopy(self.known)
                self.block(depth + 1, 2)
                self.known = kept
        return True

    def loop(self, depth: int) -> bool:
        index, count = self.fresh(), 2 + self.below(4)
        head = self.some([f"for {index} in range({count}):", f"for {index}, _u in enumerate(weights[:{count}]):"])
        first = len(self.lines)
        before = copy.deepcopy(self.known)
        self.put(depth, head)
        self.known[index] = np.int64(0)
        self.block(depth + 1, 2)
        text = "\n".join(line[4 * depth:] for line in self.lines[first:])
        self.known = before
        if not self.runs(text):
            del self.lines[first:]
            return False
        for name in [index, "_u"]:
            self.known.pop(name, None)
        return True

    def caught(self, depth: int) -> bool:
        """A line that may fail, and what is done then."""
        name = self.fresh()
        risky = self.fill(self.some([
            "math.sqrt(<A>)", "math.log(<A>)", "math.exp(400 * <A>)", "<V>[<N>]", "float(<C>) / (int(<N>) or 2)",
            "np.linalg.cholesky(gram(<M>))[0, 0]", "np.linalg.inv(<M>)[0, 0]", "math.acos(<A>)",
            "np.linalg.solve(<M>, <V>)[0]", "np.concatenate([<A>, <V>]).sum()"]))
        kinds = self.some(["Exception", "(ValueError, IndexError, ZeroDivisionError, OverflowError, TypeError, "
                           "np.linalg.LinAlgError)"])
        text = f"try:\n    {name} = {risky}\nexcept {kinds}:\n    {name} = {self.fill('0.25 * np.sum(<A>)')}"
        if not self.runs(text):
            return False
        self.put(depth, text)
        return True


def program(seed: int, wild: bool = False, dtype: str = "float64", size: int = 9) -> tuple[str, list[tuple[Any, Any]]]:
    """The text of a program, which defines ``f``, and points at which to call it."""
    writer = Writer(seed, wild, dtype)
    writer.put(0, "def f(x, y):")
    if writer.below(3):
        writer.put(1, "x, y = x.copy(), y.copy()")
    writer.put(1, "total = 0.0")
    done = 0
    for _ in range(5 * size):
        done += writer.statement(1)
        if done >= size:
            break
    parts = []
    for place, name in enumerate(n for n in writer.known if n not in ("x", "y", "total")):
        value = writer.known[name]
        if isinstance(value, (np.ndarray, np.floating, float, np.integer, int, np.bool_)) and np.size(value):
            parts.append(f"{0.3 + 0.1 * (place % 7):.1f} * np.sum({name})")
    writer.put(1, f"return {' + '.join(parts) or 'np.sum(x)'} + 0.1 * np.sum(x * x) + total")
    points = [writer.point() for _ in range(3)]
    return PREAMBLE + "\n\n" + "\n".join(writer.lines) + "\n", points


def function(text: str, name: str) -> Callable[..., Any]:
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    made: dict[str, Any] = {"__name__": "fuzzed"}
    exec(compile(text, name, "exec"), made)
    return made["f"]

