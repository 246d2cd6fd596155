"""Many programs at once, from the command line: ``python -m tests.fuzz.run FIRST COUNT``."""
from __future__ import annotations

import sys
from collections import Counter

from jitad import cache

from .judging import Verdict, judge
from .writing import function, program

KINDS = (("float64", False), ("float64", True), ("float32", False))


def try_one(seed: int) -> tuple[Verdict, str]:
    dtype, wild = KINDS[seed % 4 % 3]                    # half of them plain float64
    text, points = program(seed, wild, dtype)
    f = function(text, f"<fuzz {seed}>")
    return judge(f, points, text, seed), text


def main(first: int, count: int) -> int:
    counts: Counter[str] = Counter()
    for seed in range(first, first + count):
        verdict, text = try_one(seed)
        counts[verdict.kind] += 1
        counts["kinks"] += verdict.kinks
        if verdict.kind == "refused":
            print(f"refused {seed}: {verdict.words[:200]}", flush=True)
        if verdict.kind == "different":
            print(f"DIFFERENT {seed}: {verdict.words}\n{text.partition('soft' + chr(34) + '}')[2]}", flush=True)
        if seed % 50 == 0:
            cache.clear()
    print(dict(counts))
    return counts["different"]


if __name__ == "__main__":
    sys.exit(bool(main(int(sys.argv[1]), int(sys.argv[2]))))
