"""Many programs at once, from the command line: ``python -m tests.fuzz.run FIRST COUNT [EVERY]``.

With EVERY, one program of so many is compiled, and the others run by the interpreter: what is recorded, differentiated
and rewritten is tried three times as often.
"""
from __future__ import annotations

import sys
from collections import Counter

from jitad import cache

from .judging import Verdict, judge
from .writing import function, program

KINDS = (("float64", False), ("float64", True), ("float32", False))


def try_one(seed: int, interpreted: bool = False) -> tuple[Verdict, str]:
    dtype, wild = KINDS[seed % 4 % 3]                    # half of them plain float64
    text, points = program(seed, wild, dtype)
    f = function(text, f"<fuzz {seed}>")
    return judge(f, points, text, seed, interpreted), text


def main(first: int, count: int, every: int = 1) -> int:
    counts: Counter[str] = Counter()
    for seed in range(first, first + count):
        interpreted = seed % every != 0
        verdict, text = try_one(seed, interpreted)
        counts[verdict.kind] += 1
        counts["compiled"] += not interpreted
        counts["kinks"] += verdict.kinks
        if verdict.kind == "refused":
            print(f"refused {seed}: {verdict.words[:200]}", flush=True)
        if verdict.kind == "different":
            print(f"DIFFERENT {seed}{' interpreted' * interpreted}: {verdict.words}", flush=True)
            print(text.partition('soft"}')[2], flush=True)
        if seed % 50 == 0:
            cache.clear()
        if seed % 1000 == 0:
            print(dict(counts), flush=True)
    print(dict(counts))
    return counts["different"]


if __name__ == "__main__":
    sys.exit(bool(main(*map(int, sys.argv[1:]))))
