"""Repetitions in a row of tokens: where they are, their period, and where an iteration best begins."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from jitad.passes.reroll.spine import Spine

GRAM = 32             # tokens that are compared at once to find candidates, at most
CANDIDATES = 64       # distances that are tried at one position
LAGS = 64             # iterations back to which a value may be carried
FORBIDDEN = 1 << 40   # what it costs to carry a bundle
PATIENCE = 4          # steps of the search for each token, and
LEAST_PATIENCE = 50_000   # besides, without finding a loop


class Repetitions:
    """The search. `found(begin)` gives stretches ``(start, stop, period)`` in which each token is that of a period
    earlier, no stretch twice; so the search is linear in the number of tokens."""

    def __init__(self, spine: Spine, least: int):
        self.spine, self.tokens, self.least = spine, spine.tokens, least
        self.next = _next_gram(self.tokens, min(GRAM, max(least // 4, 2)))
        self.known: dict[int, int] = {}                 # to where a period has been followed
        self.found()

    def found(self) -> None:
        """A loop was found, so it is worth going on."""
        self.left = LEAST_PATIENCE + PATIENCE * len(self.tokens)

    def failed(self, period: int) -> None:
        """A repetition was looked at, an iteration of it closely, and is no loop."""
        self.left -= period

    def starts(self, begin: int) -> int:
        """The first position from `begin` whose gram comes again; the end when all patience is gone: the same
        operations in the same order, on operands without any, may go on for a million nodes."""
        if self.left <= 0:
            return len(self.tokens)
        while begin < len(self.next) and self.next[begin] < 0:
            begin += 1
        return begin

    def at(self, begin: int, most: int = 1 << 60) -> Iterator[tuple[int, int]]:
        """Periods up to `most` with which a repetition begins at `begin`, smallest first, with its end."""
        other, tries = begin, 0
        while tries < CANDIDATES and self.left > 0:
            other = self.next[other] if other < len(self.next) else -1
            if other < 0 or other - begin > most:
                return
            tries += 1
            self.left -= 1
            period = other - begin
            if self.known.get(period, -1) > begin or self.spine.between(begin + period, len(self.tokens)) < self.least:
                continue
            stop = self._follow(begin, period)
            self.known[period] = stop - period
            if self.spine.between(begin + period, stop) >= self.least:
                yield period, stop

    def _follow(self, begin: int, period: int) -> int:
        """The end of the stretch."""
        at, size, end = begin, 64, len(self.tokens) - period
        while at < end:
            size = min(2 * size, end - at)
            differ = self.tokens[at:at + size] != self.tokens[at + period:at + period + size]
            first = int(differ.argmax())
            if differ[first]:
                return at + first + period
            at += size
        return len(self.tokens)


def _next_gram(tokens: Any, size: int) -> list[int]:
    """For each position the next one with the same `size` tokens from there on, or -1."""
    count = len(tokens) - size + 1
    if count <= 0:
        return []
    grams = np.zeros(count, np.uint64)
    for i in range(size):
        grams = grams * np.uint64(0x9E3779B97F4A7C15) + tokens[i:i + count].astype(np.uint64)
    order = np.argsort(grams, kind="stable")
    same = grams[order[1:]] == grams[order[:-1]]
    following = np.full(count, -1, np.int64)
    following[order[:-1][same]] = order[1:][same]
    return following.tolist()


def best_cut(spine: Spine, begin: int, stop: int, period: int) -> int:
    """How far behind `begin` iterations should start for the least to be carried from one to the next."""
    middle = begin + (stop - begin) // period // 2 * period
    if middle + 2 * period > stop:
        middle -= period
    reach = np.zeros(period, np.int64)
    for m in range(middle, middle + period):
        here, there = spine.start[m], spine.start[m + period]
        count = spine.start[m + 1] - here
        made = spine.place[spine.source[here:here + count]]
        moved = spine.place[spine.source[there:there + count]]
        for a, b in zip(made, moved, strict=True):
            if a >= 0 and b - a == period and m - a <= LAGS * period:
                reach[(a - begin) % period] = max(reach[(a - begin) % period], m - a)
    cost = np.zeros(2 * period + 1)
    for j, distance in enumerate(reach.tolist()):
        aval = spine.nodes[spine.member[middle + j]].aval
        size = FORBIDDEN if aval.dtype == object else aval.size
        cost[j + 1] += size
        cost[j + 1 + distance % period] -= size
    turns = np.cumsum(cost)
    return int(np.argmin(turns[:period] + turns[period:2 * period]))
