"""The tape machine on long irregular programs: what recording takes, the first call beyond it, and a warm one.

``python benchmarks/tape_machine.py [operations]``. ns are those of value and gradient together, for each operation
that was recorded and is needed; seconds are those of the processor, so that other work on the machine does not count.
"""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from time import thread_time as clock
from typing import Any

import numpy as np

import jitad
from jitad.cache.keys.identity import unwrap
from jitad.trace.record import record


def numbers() -> Iterator[int]:
    """A congruential generator, by which the programs choose."""
    state = 12345
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield state >> 20


def graph(count: int) -> Callable[[Any], Any]:
    """Operations on any two results before them, and the sum of half of them all."""
    def f(x: Any) -> Any:
        s, choose = [x[i] for i in range(100)], numbers()
        for _ in range(count):
            op, a, b = next(choose) % 5, s[next(choose) % len(s)], s[next(choose) % len(s)]
            s.append(a + b if op == 0 else a * b if op == 1 else np.sin(a) if op == 2 else a - b if op == 3
                     else np.tanh(a))
        result = s[0]
        for v in s[-count // 2:]:
            result = result + v
        return result
    return f


def window(count: int) -> Callable[[Any], Any]:
    """Operations on two of the last twenty results: not much that could run side by side."""
    def f(x: Any) -> Any:
        s, choose = [x[i] for i in range(100)], numbers()
        for _ in range(count):
            op, a, b = next(choose) % 6, s[-1 - next(choose) % 20], s[-1 - next(choose) % 20]
            s.append(a + b if op == 0 else a * b if op == 1 else a - b if op == 2 else np.sin(a) if op == 3
                     else np.tanh(a) if op == 4 else a / (1.0 + b * b))
        return s[-1] + s[-2]
    return f


def tree(count: int) -> Callable[[Any], Any]:
    """Messages from the leaves of a random tree to its root."""
    def f(x: Any) -> Any:
        messages, choose = [0.0] * (count // 6), numbers()
        parents = [next(choose) % max(i, 1) for i in range(len(messages))]
        for i in range(len(messages) - 1, 0, -1):
            e = np.exp(x[i % 100] + np.tanh(messages[i]))
            messages[parents[i]] = messages[parents[i]] + np.log(e + 1.0 / e)
        return messages[0]
    return f


def chain(count: int) -> Callable[[Any], Any]:
    """Operations each of which needs the one before."""
    def f(x: Any) -> Any:
        result, choose = x[0], numbers()
        for _ in range(count):
            op, b = next(choose) % 5, x[next(choose) % 100]
            result = (result + b if op == 0 else result * b if op == 1 else result - b if op == 2 else b - result
                      if op == 3 else result * 0.5)
        return result
    return f


def main(count: int) -> None:
    x = np.linspace(0.1, 1, 100)
    print(f"{'program':8} {'operations':>10} {'recording':>10} {'beyond':>8} {'warm':>11} {'first pass':>11}")
    for make in (graph, window, tree, chain):
        start = clock()
        record(unwrap(make(count)), [x])
        recording = clock() - start
        g = jitad.value_and_grad(make(count), on_mismatch="silent")
        start = clock()
        g(x)
        first = clock() - start
        machine = g.compile(x)._specialization.machine
        if machine is None:
            print(f"{make.__name__:8} runs as a kernel")
            continue
        both, value = best(lambda g=g: g(x)), best(lambda m=machine: m.missed([x]))
        print(f"{make.__name__:8} {len(machine):10} {recording:8.2f} s {first - recording:6.2f} s "
              f"{both / len(machine) * 1e9:5.1f} ns/op {value / len(machine) * 1e9:5.1f} ns/op")


def best(call: Callable[[], Any], seconds: float = 1.0) -> float:
    """The shortest of many calls."""
    found, end = [], clock() + seconds
    while clock() < end or len(found) < 5:
        start = clock()
        call()
        found.append(clock() - start)
    return min(found)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
