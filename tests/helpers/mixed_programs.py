"""Random programs as people write them, as source text: branches, loops, assignments, views and aliases together.

A program is a function ``f(x, y)`` of two float vectors whose result is a number. All it does is analytic where it is
differentiable, so that a complex step gives the gradient to the last digits, with NumPy alone; loops contract.
"""
from __future__ import annotations

import linecache

import numpy as np

N = 5                  # length of x
LONG = 40              # length of y
UNARY = ("np.sin({})", "np.tanh({})", "np.exp(-{} ** 2)", "np.log1p({} ** 2)", "np.sqrt(1.0 + {} ** 2)", "-{}",
         "0.5 * {}", "np.cos({}) * 0.7")
BINARY = ("{} + {}", "{} - {}", "np.tanh({}) * {}", "{} / (1.5 + np.cos({}))", "{} * np.sin({})", "0.3 * {} + 0.6 * {}")
SUMS = ("np.sum({})", "np.mean({})", "{}[0]", "{}[-1]", "np.dot({0}, {0})", "np.sum({0}[1:] * {0}[:-1])",
        "np.max({})")


class Writer:
    """Writes the lines of one program. `scalars` and `arrays` are the names in use; arrays have length N."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.lines: list[str] = []
        self.scalars, self.arrays = ["x[0]", "s"], ["a", "x"]
        self.made = 0
        self.budget = 14
        self.inside = 0                       # loops around
        self.index = ""                       # the counter of the innermost loop

    # --- choices -----------------------------------------------------------------------------
    def below(self, n: int) -> int:
        return int(self.rng.integers(n))

    def some(self, sequence):
        return sequence[self.below(len(sequence))]

    def number(self) -> str:
        return f"{self.rng.uniform(-1.2, 1.2):.3f}"

    def name(self, prefix: str) -> str:
        self.made += 1
        return f"{prefix}{self.made}"

    def put(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    # --- expressions -------------------------------------------------------------------------
    def place(self) -> str:
        """An index of an array of length N."""
        kinds = [str(self.below(N)), f"-{1 + self.below(N)}"]
        if self.index:
            kinds += [f"{self.index} % {N}", f"({self.index} + {self.below(N)}) % {N}"]
        if self.below(6) == 0:
            kinds.append(f"int({self.some(self.scalars)}.real * 1.7) % {N}")
        return self.some(kinds)

    def scalar(self, deep: int = 0) -> str:
        kind = self.below(9 if deep < 2 else 4)
        if kind == 0:
            return self.number()
        if kind == 1:
            return f"{self.some(self.arrays)}[{self.place()}]"
        if kind == 2 and self.index:
            return f"y[{self.index} % {LONG}]"
        if kind <= 3:
            return self.some(self.scalars)
        if kind <= 5:
            return self.some(UNARY).format(f"({self.scalar(deep + 1)})")
        if kind <= 7:
            return self.some(BINARY).format(f"({self.scalar(deep + 1)})", f"({self.scalar(deep + 1)})")
        return self.some(SUMS).format(self.some(self.arrays))

    def array(self, deep: int = 0) -> str:
        kind = self.below(9 if deep < 2 else 3)
        if kind <= 1:
            return self.some(self.arrays)
        if kind == 2:
            return f"np.array([{', '.join(self.scalar(1) for _ in range(N))}])" if deep == 0 and self.below(2) else (
                f"{self.some(self.arrays)}[::-1]")
        if kind <= 4:
            return self.some(UNARY).format(f"({self.array(deep + 1)})")
        if kind <= 6:
            return self.some(BINARY).format(f"({self.array(deep + 1)})", f"({self.array(deep + 1)})")
        if kind == 7:
            return f"np.where({self.mask()}, {self.array(deep + 1)}, {self.array(deep + 1)})"
        return f"({self.array(deep + 1)}) * ({self.scalar(2)})"

    def mask(self) -> str:
        return f"{self.some(self.arrays)} > {self.number()}"

    def test(self) -> str:
        kind = self.below(6)
        if kind == 0 and self.index:
            return f"{self.index} % {2 + self.below(4)} == {self.below(2)}"
        if kind == 1:
            return f"np.sum({self.some(self.arrays)}) > {self.number()}"
        if kind == 2:
            return f"{self.scalar(1)} > {self.number()} and {self.some(self.scalars)} < {self.number()}"
        if kind == 3:
            return f"np.any({self.mask()})"
        return f"{self.some(self.scalars)} {self.some('<>')} {self.number()}"

    # --- statements --------------------------------------------------------------------------
    def statement(self, depth: int) -> None:
        self.budget -= 1
        nested = depth < 4 and self.budget > 2
        kinds = [self.assign_scalar, self.assign_scalar, self.new_array, self.store, self.store, self.store_slice,
                 self.store_mask, self.alias, self.in_place, self.in_place]
        if nested:
            kinds += [self.branch, self.branch, self.short_loop, self.long_loop, self.long_loop, self.while_loop,
                      self.listed]
        if self.inside:
            kinds += [self.leave]
        self.some(kinds)(depth)

    def block(self, depth: int, most: int = 3) -> None:
        """Names that are made inside are not known outside."""
        scalars, arrays = list(self.scalars), list(self.arrays)
        self.put(depth, "pass")
        for _ in range(1 + self.below(most)):
            self.statement(depth)
        self.scalars, self.arrays = scalars, arrays

    def assign_scalar(self, depth: int) -> None:
        if self.below(3):
            self.put(depth, f"s = np.tanh(s) + 0.4 * ({self.scalar()})")
        else:
            name = self.name("u")
            self.put(depth, f"{name} = {self.scalar()} + 0.0 * s")
            self.scalars.append(name)

    def new_array(self, depth: int) -> None:
        name = self.name("b")
        made = self.some(["np.zeros({n}, x.dtype)", "np.ones({n}, x.dtype)", "x.copy()", "np.zeros_like(x)",
                          "({e}) + 0.0"])
        self.put(depth, f"{name} = {made.format(n=N, e=self.array())}")
        self.arrays.append(name)

    def target(self) -> str:
        return self.some([a for a in self.arrays if a != "x"])

    def store(self, depth: int) -> None:
        self.put(depth, f"{self.target()}[{self.place()}] {self.some(['=', '=', '+=', '-='])} {self.scalar()}")

    def store_slice(self, depth: int) -> None:
        start, step = self.below(3), self.some(["", ":2"])
        where = f"{start}:{start + 2 + self.below(2)}{step}"
        value = self.scalar() if self.below(2) else f"({self.array(1)})[{where}]"
        self.put(depth, f"{self.target()}[{where}] {self.some(['=', '+=', '*='])} {value}")

    def store_mask(self, depth: int) -> None:
        a = self.target()
        if self.below(3) == 0:
            self.put(depth, f"{a}[[{self.below(N)}, {self.below(N)}]] = {self.scalar()}")
        else:
            self.put(depth, f"{a}[{self.mask()}] = {self.scalar()}")

    def alias(self, depth: int) -> None:
        name = self.name("v")
        view = self.some(["{}", "{}[:]", "{}[::-1]", "{}.reshape(1, -1)[0]"])
        self.put(depth, f"{name} = {view.format(self.target())}")
        self.arrays.append(name)

    def in_place(self, depth: int) -> None:
        self.put(depth, f"{self.target()} {self.some(['+=', '*=', '-='])} 0.5 * np.tanh({self.array(1)})")

    def branch(self, depth: int) -> None:
        self.put(depth, f"if {self.test()}:")
        self.block(depth + 1)
        if self.below(2):
            self.put(depth, f"elif {self.test()}:")
            self.block(depth + 1, 2)
        if self.below(2):
            self.put(depth, "else:")
            self.block(depth + 1)

    def loop(self, depth: int, head: str, index: str, most: int = 3) -> None:
        self.put(depth, head)
        before, self.index = self.index, index
        self.inside += 1
        self.block(depth + 1, most)
        self.inside -= 1
        self.index = before
        self.put(depth + 1, "s = np.tanh(s)")
        for a in self.arrays[:1] + self.arrays[2:]:      # what grows would lose its digits on the way back
            self.put(depth + 1, f"{a} *= 0.5")

    def short_loop(self, depth: int) -> None:
        i = self.name("i")
        self.loop(depth, f"for {i} in range({2 + self.below(3)}):", i)

    def long_loop(self, depth: int) -> None:
        """Long enough to be rolled up, inside of another loop as well."""
        i = self.name("t")
        self.loop(depth, f"for {i} in range({self.below(3)}, {LONG if not self.inside else 12}):", i, 2)

    def while_loop(self, depth: int) -> None:
        k = self.name("k")
        self.put(depth, f"{k} = 0")
        self.loop(depth, f"while {k} < {3 + self.below(20)} and s < {self.number()}:", k, 2)
        self.put(depth + 1, f"{k} += 1")

    def leave(self, depth: int) -> None:
        self.put(depth, f"if {self.test()}:")
        self.put(depth + 1, "break")

    def listed(self, depth: int) -> None:
        name, i = self.name("l"), self.name("j")
        self.put(depth, f"{name} = [{self.scalar(1)}]")
        self.put(depth, f"for {i} in range({N - 1}):")
        self.put(depth + 1, f"{name}.append(np.sin({name}[-1]) + 0.3 * x[{i}])")
        b = self.name("b")
        self.put(depth, f"{b} = np.array({name})")
        self.arrays.append(b)


def source(seed: int) -> str:
    writer = Writer(seed)
    writer.put(0, "def f(x, y):")
    writer.put(1, "a = 0.5 * x")
    writer.put(1, "s = x[1] * x[2]")
    while writer.budget > 0:
        writer.statement(1)
    total = " + ".join(f"np.sum({a})" for a in writer.arrays[:4])
    writer.put(1, f"return s + {total}")
    return "\n".join(writer.lines) + "\n"


def program(seed: int):
    """The function, and its source, which tracebacks show."""
    text, name = source(seed), f"<mixed {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    made = {"np": np}
    exec(compile(text, name, "exec"), made)
    return made["f"], text


def complex_step(f, x: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    """The value, and the gradient with respect to x, by NumPy alone."""
    step, gradient = 1e-30, []
    for i in range(len(x)):
        moved = x.astype(complex)
        moved[i] += 1j * step
        gradient.append(np.imag(f(moved, y)) / step)
    return float(np.real(f(x, y))), np.array(gradient)
