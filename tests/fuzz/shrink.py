"""A program that differs, with as few lines as still do: ``python -m tests.fuzz.shrink SEED``."""
from __future__ import annotations

import sys
from typing import Any

from jitad import cache

from .judging import judge
from .run import KINDS
from .writing import PREAMBLE, function, program


def differs(body: list[str], points: Any, seed: int) -> str:
    """What is different, or nothing, also if it is no program any more."""
    text = PREAMBLE + "\n\n" + "\n".join(body) + "\n"
    cache.clear()
    try:
        verdict = judge(function(text, f"<shrunk {seed}>"), points, text, seed)
    except SyntaxError:
        return ""
    broken = any(word in verdict.words for word in ("NameError", "UnboundLocalError", "IndentationError"))
    return "" if verdict.kind != "different" or broken else verdict.words


def shrink(seed: int) -> tuple[list[str], str]:
    dtype, wild = KINDS[seed % 4 % 3]
    text, points = program(seed, wild, dtype)
    body = text.removeprefix(PREAMBLE).strip("\n").split("\n")
    words = differs(body, points, seed)
    size = max(len(body) // 2, 1)
    while words and size:
        start = 1
        while start < len(body) - 1:
            less = body[:start] + body[start + size:-1] + body[-1:]
            found = differs(less, points, seed) if len(less) < len(body) else ""
            if found:
                body, words = less, found
            else:
                start += 1
        size //= 2
    terms = body[-1].removeprefix("    return ").split(" + ")
    for term in list(terms):
        less = [*body[:-1], "    return " + " + ".join(t for t in terms if t != term)]
        found = differs(less, points, seed) if len(terms) > 1 else ""
        if found:
            terms.remove(term)
            body, words = less, found
    return body, words


if __name__ == "__main__":
    for number in map(int, sys.argv[1:]):
        lines, difference = shrink(number)
        print(number, difference, *lines, sep="\n", flush=True)
