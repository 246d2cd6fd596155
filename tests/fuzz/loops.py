"""Random loops whose steps go different ways, called at points with different patterns of branches.

``python -m tests.fuzz.loops FIRST COUNT`` tries as many as you like.
"""
from __future__ import annotations

import sys
from typing import Any

import numpy as np

from jitad import cache, value_and_grad

from .judging import quietly
from .writing import function

HEADS = ["for t in range(n):\n    u = z[t]", "for t, u in enumerate(z):", "for t in range(1, n):\n    u = z[t - 1]",
         "t = -1\nwhile t < n - 1:\n    t += 1\n    u = z[t]", "for t, u in zip(range(n), z):",
         "t = -1\nwhile a * a < 40.0 and t < n - 1:\n    t += 1\n    u = z[t]",
         "for t in range(n - 1, -1, -1):\n    u = z[t]"]
NUMBERS = ["s", "a", "u", "q", "p[0]", "p[1]", "0.7", "v[0]", "v @ v"]
EXPRESSIONS = ["0.5 * {x} + 0.3 * {y}", "np.tanh({x} - {y})", "np.sin({x}) * {y}", "{x} / (1.5 + {y} ** 2)", "-{x}",
               "max({x}, {y})", "min({x}, 0.4)", "np.exp(-{x} ** 2)", "{x} if {x} > {y} else 0.2 * {y}", "abs({x})",
               "0.0",
               "np.sqrt(1.0 + {x} * {x})", "bend({x})"]
PLAIN = ["s = {e}", "a = {e}", "s += 0.1 * ({e})", "q = {e}", "v = 0.6 * v + ({e})", "v[1] = {e}", "v *= 0.8",
         "out[t] = {e}", "s = 0.9 * out[t - 1] + {e}", "w = np.array([{e}, {e}, 0.5])\nv = 0.3 * v + w",
         "for j in range(3):\n    if v[j] > a:\n        s = 0.9 * s + 0.1 * v[j]\n    else:\n"
         "        v[j] = 0.5 * v[j] + 0.1",
         "k = 0\nwhile abs(a) > 1.0 and k < 5:\n    a *= 0.7\n    k += 1", "{x}, a = a, {x}",
         "old = v", "v = old", "v = 0.7 * old + ({e})", "old = 0.5 * v + ({e})", "old[2] = {e}", "s = s + 0.1 * old[2]"]
LEAVING = ["continue", "break", "return s + a", "continue"]
BEGIN = "s, a, q = p[0], 0.4, 0.0\nv = p * 1.0\nold = v\nout = np.zeros(n)\nrows = []"


def program(seed: int) -> str:
    """The source of ``f(p, z)`` of a vector of three and one of twelve."""
    rng = np.random.default_rng(seed)
    some = lambda things: things[int(rng.integers(len(things)))]
    number = lambda: some(NUMBERS)
    expression = lambda: some(EXPRESSIONS).format(x=number(), y=number())
    plain = lambda: some(PLAIN).format(e=expression(), x=some(["s", "q"]))

    def block(depth: int) -> str:
        lines = [plain() if depth > 1 or rng.random() < 0.5 else choice(depth) for _ in range(1 + int(rng.integers(3)))]
        return "\n".join(lines)

    def choice(depth: int) -> str:
        test = some(["{x} > {y}", "{x} < 0.1", "{x} > 0 and {y} < 0.5", "{x} > 1 or {y} < -1", "t % 3 == 1"])
        text = f"if {test.format(x=number(), y=number())}:\n{indented(block(depth + 1))}"
        if rng.random() < 0.12:
            text += f"\n    {some(LEAVING)}"
        return text if rng.random() < 0.4 else f"{text}\nelse:\n{indented(block(depth + 1))}"
    head = some(HEADS)
    steps = [choice(0), *(some([plain, lambda: choice(0)])() for _ in range(int(rng.integers(4))))]
    if rng.random() < 0.3:
        steps.append("rows.append(s)")
    end = "return s + 0.5 * a + q + np.sum(v + 0.3 * old) + np.sum(out * z) + 0.1 * sum(rows)"
    return "\n".join([
        "import numpy as np", "", "def bend(r):", "    if r > 0.3:", "        return 0.3 + 0.1 * r",
        "    return r * r", "",
        "def f(p, z):", "    n = len(z)", indented(BEGIN), indented(head), indented(indented("\n".join(steps))),
        indented(end), ""])


def indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))


def differs(seed: int, points: int) -> str:
    """What is wrong with the loop of this seed, if something is."""
    f = function(program(seed), f"<loop {seed}>")
    rng = np.random.default_rng(seed)
    g = value_and_grad(f)
    for _ in range(points):
        p, z = rng.normal(size=3), rng.normal(size=12)
        expected, got = quietly(f, p, z), quietly(g, p, z)
        if isinstance(expected, Exception) or isinstance(got, Exception):
            if type(expected) is not type(got):
                return f"{expected!r} is {got!r} at {p}, {z}"
            continue
        if not np.allclose(got[0], expected, rtol=1e-9, atol=1e-9, equal_nan=True):
            return f"the value {expected} is {got[0]} at {p}, {z}"
        for i, slope in enumerate(_slopes(f, p, z)):
            if slope is not None and not np.isclose(got[1][i], slope, rtol=1e-4, atol=1e-5):
                return f"the derivative {slope} by p[{i}] is {got[1][i]} at {p}, {z}"
    return ""


def _slopes(f: Any, p: np.ndarray, z: np.ndarray) -> list[float | None]:
    """The derivatives by differences; None at a kink."""
    found: list[float | None] = []
    for e in np.eye(3):
        ends = [[f(p + h * e, z), f(p, z), f(p - h * e, z)] for h in (1e-5, 3e-6)]
        slopes = [(a - c) / (2 * h) for (a, _, c), h in zip(ends, (1e-5, 3e-6), strict=True)]
        sides = [(a - b) / 3e-6 - (b - c) / 3e-6 for a, b, c in ends[1:]]
        scale = 1 + abs(slopes[0])
        smooth = abs(slopes[0] - slopes[1]) < 1e-5 * scale and abs(sides[0]) < 1e-3 * scale
        found.append(slopes[1] if smooth else None)
    return found


def main(first: int, count: int) -> int:
    wrong = 0
    for seed in range(first, first + count):
        cache.clear()
        words = differs(seed, 30)
        if words:
            wrong += 1
            print(f"DIFFERENT {seed}: {words}\n{program(seed)}", flush=True)
    print(f"{count} programs, {wrong} different")
    return wrong


if __name__ == "__main__":
    sys.exit(bool(main(int(sys.argv[1]), int(sys.argv[2]))))
