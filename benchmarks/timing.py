"""How calls are timed: engines behind one face, in turns, the best of many rounds."""

import gc
from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat
from time import perf_counter
from typing import Any

LEAST = 3                     # turns of the slowest engine


@dataclass(frozen=True)
class Engine:
    """``call()`` gives (value, gradient) once; ``run(n)`` does the same n times as cheaply as it can, and returns the
    seconds that this took if it knows better than a clock around it.

    ``owner`` is kept alive with the engine.
    """

    name: str
    call: Callable[[], Any]
    run: Callable[[int], float | None]
    owner: Any = None

    def seconds(self, n: int) -> float:
        """The time of n calls."""
        start = perf_counter()
        known = self.run(n)
        return perf_counter() - start if known is None else known


def from_call(name: str, call: Callable[[], Any]) -> Engine:
    """An engine that Python calls each time."""

    def run(n: int) -> None:
        for _ in repeat(None, n):
            call()

    return Engine(name, call, run)


def from_run(name: str, seconds: Callable[[int], float]) -> Engine:
    """An engine elsewhere, of which only the time of n calls is known."""
    return Engine(name, lambda: seconds(1), seconds)


def bind(f: Callable[..., Any], *args: Any) -> Callable[[], Any]:
    """``f(*args)`` without arguments; a lambda is cheaper than a partial here."""
    if len(args) == 2:
        a, b = args
        return lambda: f(a, b)
    if len(args) == 3:
        a, b, c = args
        return lambda: f(a, b, c)
    if len(args) == 4:
        a, b, c, d = args
        return lambda: f(a, b, c, d)
    return lambda: f(*args)


def paired_times(engines: list[Engine], rounds: int = 30, seconds: float = 4e-3) -> dict[str, float]:
    """Best time of one call in seconds for each engine, measured in turns so that all meet the same noise. An engine
    that a single call keeps for long has fewer turns."""
    counts = [calls_within(engine, seconds) for engine in engines]
    best, spent = [float("inf")] * len(engines), [0.0] * len(engines)
    collecting = gc.isenabled()
    gc.disable()
    try:
        for turn in range(rounds):
            for k, engine in enumerate(engines):
                if turn < LEAST or spent[k] < 2 * rounds * seconds:
                    taken = engine.seconds(counts[k])
                    spent[k] += taken
                    best[k] = min(best[k], taken / counts[k])
    finally:
        if collecting:
            gc.enable()
    return {engine.name: time for engine, time in zip(engines, best, strict=True)}


def calls_within(engine: Engine, seconds: float) -> int:
    """How many calls take about that long (at least one)."""
    engine.call()
    n = 1
    while True:
        elapsed = engine.seconds(n)
        if elapsed >= seconds / 2:
            return max(1, round(n * seconds / elapsed))
        n *= 2


def best(*calls: Callable[[], Any], seconds: float = 1.0) -> list[float]:
    """The shortest time of each call; they take turns, so that each finds the machine idle now and then."""
    counts = []
    for call in calls:
        call()
        start = perf_counter()
        call()
        counts.append(max(1, int(0.001 / (perf_counter() - start + 1e-9))))
    shortest, end = [float("inf")] * len(calls), perf_counter() + seconds
    while perf_counter() < end:
        for n, (call, count) in enumerate(zip(calls, counts, strict=True)):
            start = perf_counter()
            for _ in range(count):
                call()
            shortest[n] = min(shortest[n], (perf_counter() - start) / count)
    return shortest


def readable(seconds: float) -> str:
    """A time with three digits and a unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
