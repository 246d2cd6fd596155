"""The order in which a flat tape runs, and its program.

The op-codes take turns; what is ready and has the same one runs together. Two things keep the number of jumps down that
the processor cannot foresee: cheap op-codes are one (`Mixture`), and a long sum is one operation (`CHAIN`), whose
reverse has no chain at all.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jitad.compile.tapemachine.flatten import FlatTape
from jitad.compile.tapemachine.interpreter import LANES
from jitad.compile.tapemachine.opcodes import CHAIN, Code, Mixture, OpCode

MIXED = 6                     # op-codes of which all are computed for one
LINKS = 8                     # operations of a sum from which it is a chain
STEPS = 32                    # bits of the number of a step within a turn
GIVEN, INSIDE = -1, -2        # in place of an op-code: an input or constant; a link of a chain
NONE = -3                     # in place of that of chains, where there are none


@dataclass(frozen=True, eq=False)
class Schedule:
    """`runs` are pairs (op-code, count), `words` what their operands read, with a margin behind; of the memory the
    first `given` places are inputs and constants, the others results in order."""

    codes: tuple[Code, ...]
    runs: np.ndarray
    words: np.ndarray
    given: int
    size: int


def scheduled(flat: FlatTape, wanted: Iterable[int]) -> tuple[Schedule, np.ndarray]:
    """The program, and the places of the numbers of the flat tape; those of `wanted` are read when it has run."""
    plain = np.array([*flat.op, -1], np.int32)[:-1]
    codes, number, which = _mixed(flat.codes, np.bincount(plain[plain >= 0], minlength=len(flat.codes)))
    op, columns = number[plain], [np.array(c, np.int64) for c in flat.operands]
    chains = _chains(flat, plain, columns, wanted)
    if chains:
        codes = (*codes, CHAIN)
        for k, (links, _) in enumerate(chains):
            op[links] = INSIDE
            op[links[-1]], columns[0][links[-1]] = len(codes) - 1, k
    when = np.array(_turns(op.tolist(), columns, [terms for _, terms in chains], codes), np.int64)
    done, given = np.flatnonzero(op >= 0), np.flatnonzero(op == GIVEN)
    order = done[np.argsort(when[done], kind="stable")]
    place = np.zeros(len(op), np.int32)
    place[given] = np.arange(len(given), dtype=np.int32)
    place[order] = np.arange(len(given), len(given) + len(order), dtype=np.int32)
    runs, words = _encoded(codes, op[order], when[order], [c[order] for c in columns], which[plain[order]], place,
                           chains)
    return Schedule(codes, runs, words, len(given), len(given) + len(order)), place


def _mixed(codes: Sequence[OpCode], counts: np.ndarray) -> tuple[tuple[Code, ...], np.ndarray, np.ndarray]:
    """The op-codes of the machine; for each of `codes` its number there, and which it is in a mixture."""
    general = [replace(c, active=(True,) * c.arity) for c in codes]
    total: dict[OpCode, int] = {}
    for code, count in zip(general, counts.tolist(), strict=True):
        if code.mixes:
            total[code] = total.get(code, 0) + count
    members = sorted(sorted(total, key=lambda c: -total[c])[:MIXED], key=str)
    mixture = (Mixture(tuple(members)),) if len(members) > 1 else ()
    alone = sorted((c for c, g in zip(codes, general, strict=True) if not mixture or g not in members), key=str)
    number = [0 if mixture and g in members else len(mixture) + alone.index(c)
              for c, g in zip(codes, general, strict=True)]
    which = [members.index(g) if mixture and g in members else 0 for g in general]
    return (*mixture, *alone), np.array([*number, GIVEN], np.int32), np.array([*which, 0], np.int32)


# --- sums ----------------------------------------------------------------------------------------

def _chains(flat: FlatTape, op: np.ndarray, columns: Sequence[np.ndarray],
            wanted: Iterable[int]) -> list[tuple[list[int], list[int]]]:
    """Sums and differences each of which is used by the next alone: the numbers of the operations, and the terms, what
    is taken away as the complement of its number."""
    names = [c.prim.name if c.dtypes == ("float64", "float64") else "" for c in flat.codes]
    is_sum = np.isin(op, [k for k, name in enumerate(names) if name in ("add", "sub")])
    numbers = np.flatnonzero(is_sum)
    uses = np.bincount(np.concatenate([c[op >= 0] for c in columns]), minlength=len(op))
    uses[list(wanted)] += 2
    link = is_sum & (uses == 1)
    added = np.isin(op[numbers], [k for k, name in enumerate(names) if name == "add"])
    a, b = columns[0][numbers], columns[1][numbers]
    by_first = link[a]
    by_second = link[b] & added & ~by_first
    before = np.where(by_first, a, np.where(by_second, b, -1))
    term = np.where(by_second, a, np.where(added, b, ~b))
    after = np.full(len(op), -1)
    after[before[before >= 0]] = numbers[before >= 0]
    terms = np.zeros(len(op), np.int64)
    terms[numbers] = term
    following, other, found = after.tolist(), terms.tolist(), []
    for start, first in zip(numbers[before < 0].tolist(), a[before < 0].tolist(), strict=True):
        links = [start]
        while following[links[-1]] >= 0:
            links.append(following[links[-1]])
        if len(links) >= LINKS:
            found.append((links, [first, *(other[n] for n in links)]))
    return found


# --- turns ---------------------------------------------------------------------------------------

def _turns(classes: Sequence[int], columns: Sequence[np.ndarray], chains: Sequence[Sequence[int]],
           codes: Sequence[Code]) -> list[int]:
    """When each operation runs: the classes take turns, and in its turn a class does all that is ready, then what has
    become ready by that, and so on. Equal numbers (of one class) run together."""
    when: list[int] = []
    count, chain = len(codes), len(codes) - 1 if chains else NONE
    for k, a, b, c in zip(classes, *(column.tolist() for column in columns), strict=True):
        if k < 0:
            when.append(0)
            continue
        if k == chain:
            last = max([when[n if n >= 0 else ~n] for n in chains[a]])
        else:
            last = when[a]
            if when[b] > last:
                last = when[b]
            if c and when[c] > last:
                last = when[c]
        turn = last >> STEPS
        ahead = (k - turn) % count
        when.append(turn + ahead << STEPS if ahead else last + 1)
    return when


# --- code ----------------------------------------------------------------------------------------

def _encoded(codes: Sequence[Code], op: np.ndarray, when: np.ndarray, operands: Sequence[np.ndarray], which: np.ndarray,
             place: np.ndarray, chains: Sequence[tuple[list[int], list[int]]]) -> tuple[np.ndarray, np.ndarray]:
    """Runs, and their words: operand by operand, with what is meant of a mixture behind."""
    if not len(op):
        return np.zeros(0, np.int32), np.zeros(LANES, np.int32)
    chained = op == (len(codes) - 1 if chains else NONE)
    begins = np.flatnonzero(np.r_[True, (when[1:] != when[:-1]) | chained[1:]])
    counts, kinds = np.diff(np.r_[begins, len(op)]), op[begins]
    columns = np.array([c.columns for c in codes])[kinds]
    lengths = columns * counts
    sums = np.flatnonzero(chained[begins])
    for r in sums.tolist():
        lengths[r] = len(chains[operands[0][begins[r]]][1])
    offsets = np.cumsum(lengths) - lengths
    words = np.zeros(int(lengths.sum()) + LANES, np.int32)
    run = np.repeat(np.arange(len(begins)), counts)
    within = np.arange(len(op)) - begins[run]
    for k, column in enumerate(operands):
        values = place[np.where(chained, 0, column)]
        if k == 2 and isinstance(codes[0], Mixture):
            values = np.where(op == 0, which, values)
        has = (columns[run] > k) & ~chained
        words[(offsets[run] + k * counts[run] + within)[has]] = values[has]
    for r in sums.tolist():
        terms = np.array(chains[operands[0][begins[r]]][1])
        taken = terms < 0
        places = place[np.where(taken, ~terms, terms)]
        words[offsets[r]:offsets[r] + len(terms)] = np.where(taken, ~places, places)
        counts[r] = len(terms)
    return np.stack([kinds, counts], 1).astype(np.int32).ravel(), words


def operations(program: Schedule) -> dict[str, Any]:
    """For each op-code how many operations there are, and how many runs."""
    kinds, counts = program.runs[::2], program.runs[1::2]
    return {str(code): (int(counts[kinds == k].sum()), int((kinds == k).sum())) for k, code in enumerate(program.codes)}
