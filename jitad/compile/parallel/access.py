"""Which elements the steps of a loop touch.

An index is a *form*: a sum of multiples of loop variables, or, where it is none, the variables that it depends on. What
steps that run at the same time may do with an array follows from the forms of all indices under which it is read and
written.
"""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jitad.compile.loops import (
    Accumulator,
    Assign,
    CallRoutine,
    Combine,
    Fill,
    Let,
    Loop,
    Note,
    Return,
    SetElement,
    Statement,
    Update,
)
from jitad.tape.expr import Expr

STEP = "step"                       # the symbol of the loop whose steps are apart; loops in it have numbers
APART = frozenset(
    "cholesky cholesky_inverse cholesky_cotangent solve_triangular solve inv det slogdet_sign slogdet_log factor gemm "
    "solve_factored inv_factored det_factored slogdet_sign_factored slogdet_log_factored".split())
"""Routines that set their first array from the others, and know nothing else."""
UNKNOWN = frozenset({None})
Symbol = str | int | None


class Entangled(Exception):
    """The loop does what steps at the same time may not do, or what cannot be seen through."""


@dataclass(frozen=True)
class Multiples:
    """``constant + sum(terms[symbol] * symbol)``; without `terms`, something else that depends on the `symbols`."""

    terms: Mapping[Symbol, int] | None
    constant: int = 0
    symbols: frozenset[Symbol] = frozenset()

    def plus(self, other: Multiples, sign: int = 1) -> Multiples:
        if self.terms is None or other.terms is None:
            return Multiples(None, 0, self.symbols | other.symbols)
        terms = dict(self.terms)
        for symbol, times in other.terms.items():
            terms[symbol] = terms.get(symbol, 0) + sign * times
        terms = {symbol: times for symbol, times in terms.items() if times}
        return Multiples(terms, self.constant + sign * other.constant, frozenset(terms))

    def times(self, other: Multiples) -> Multiples:
        if other.terms == {}:
            self, other = other, self
        if self.terms != {} or other.terms is None:
            return Multiples(None, 0, self.symbols | other.symbols)
        terms = {symbol: self.constant * times for symbol, times in other.terms.items() if self.constant}
        return Multiples(terms, self.constant * other.constant, frozenset(terms))


@dataclass(frozen=True)
class Span:
    """Something between ``times * step + low`` and ``times * step + high``, the ends included, and at most `most`."""

    times: int
    low: int
    high: int
    most: float = math.inf


@dataclass(frozen=True)
class Access:
    """A buffer is read (`how` is empty), set (``set``), or combined with something (the operation) at an index."""

    buffer: str
    how: str
    index: Multiples


@dataclass
class Inspection:
    """What one loop, with integer bounds, does: accesses, what it combines in variables of the outside, and names that
    it takes from there."""

    loop: Loop
    accesses: list[Access] = field(default_factory=list)
    combined: dict[str, tuple[str, str]] = field(default_factory=dict)      # operation and dtype
    taken: dict[str, str] = field(default_factory=dict)                     # dtype
    spans: dict[Symbol, Span] = field(default_factory=dict)
    filled: set[str] = field(default_factory=set)
    handed: set[str] = field(default_factory=set)                           # to routines, as wholes

    def __post_init__(self) -> None:
        self._forms: dict[str, Multiples] = {self.loop.variable: Multiples({STEP: 1}, 0, frozenset({STEP}))}
        self._spans: dict[str, Span] = {self.loop.variable: Span(1, 0, 0)}
        self._own: set[str] = set()
        self._statements(self.loop.body, 0)
        if self.combined.keys() & self.taken.keys():
            raise Entangled

    @property
    def total(self) -> int:
        """How far all steps go."""
        assert isinstance(self.loop.start, int) and isinstance(self.loop.stop, int)
        return self.loop.stop - self.loop.start

    def advance(self, form: Multiples) -> int | None:
        """How much further an index is in the next step; None if that is not known."""
        if form.terms is None:
            moving = {STEP, None} | {s for s, span in self.spans.items() if span.times}
            return None if form.symbols & moving else 0
        if None in form.symbols:
            return None
        return sum(n * (1 if s == STEP else self.spans[s].times) for s, n in form.terms.items())

    # --- statements --------------------------------------------------------------------------
    def _statements(self, body: list[Statement], depth: int) -> None:
        for s in body:
            if isinstance(s, (Let, Accumulator)):
                expr = s.expr if isinstance(s, Let) else s.first
                self._reads(expr)
                form, span = self._form(expr), self._span(expr)
                self._own.add(s.name)
                constant = isinstance(s, Let) and expr.dtype == "i8"
                self._forms[s.name] = form if constant else Multiples(None, 0, UNKNOWN)
                if constant and span is not None:
                    self._spans[s.name] = span
                else:
                    self._spans.pop(s.name, None)
            elif isinstance(s, (Combine, Assign)):
                self._reads(s.expr)
                self._changed(s)
            elif isinstance(s, (SetElement, Update)):
                for e in (*s.index, s.expr):
                    self._reads(e)
                (index,) = s.index or (Expr("const", (0,), "i8"),)
                self.accesses.append(Access(s.buffer, s.op if isinstance(s, Update) else "set", self._form(index)))
            elif isinstance(s, Fill):
                self.filled.add(s.buffer)
            elif type(s) is Loop:
                self._loop(s, depth)
            elif isinstance(s, Return):
                self._reads(s.condition)
            elif isinstance(s, CallRoutine) and s.routine in APART:
                whole, *read = s.buffers
                self.accesses += [Access(name, "", Multiples(None)) for name in read]
                self.filled.add(whole)
                self.handed |= set(s.buffers)
            elif not isinstance(s, Note):
                raise Entangled

    def _changed(self, s: Combine | Assign) -> None:
        if s.name in self._own:
            return
        how = (s.op, s.expr.dtype) if isinstance(s, Combine) else ("", "")
        if how[0] in ("", "add_in_order") or self.combined.setdefault(s.name, how) != how:
            raise Entangled

    def _loop(self, s: Loop, depth: int) -> None:
        for bound in (s.start, s.stop):
            if isinstance(bound, Expr):
                self._reads(bound)
        start, stop = self._bound(s.start), self._bound(s.stop)
        if start is None or stop is None or start.times != stop.times:
            raise Entangled
        symbol = len(self.spans)
        self.spans[symbol] = span = Span(start.times, start.low, max(stop.high - 1, start.low), stop.most - 1)
        kept = self._forms.get(s.variable), self._spans.get(s.variable)
        self._own.add(s.variable)
        self._forms[s.variable], self._spans[s.variable] = Multiples({symbol: 1}, 0, frozenset({symbol})), span
        self._statements(s.body, depth + 1)
        self._forms[s.variable], self._spans[s.variable] = Multiples(None, 0, UNKNOWN), span
        if kept[0] is not None and kept[1] is not None:
            self._forms[s.variable], self._spans[s.variable] = kept            # type: ignore[assignment]

    # --- expressions -------------------------------------------------------------------------
    def _reads(self, expr: Expr) -> None:
        stack, seen = [expr], {id(expr)}
        while stack:
            e = stack.pop()
            if e.op == "load":
                index = self._form(e.args[1]) if len(e.args) == 2 else Multiples(None, 0, UNKNOWN) if e.args[1:] else (
                    Multiples({}))
                self.accesses.append(Access(e.args[0], "", index))
            elif e.op == "var" and e.args[0] not in self._own and e.args[0] != self.loop.variable:
                self.taken[e.args[0]] = e.dtype
            elif e.op in ("loop", "sum"):
                raise Entangled                          # what they compute is not below as operands are
            further = [a for a in e.args if isinstance(a, Expr) and id(a) not in seen]
            seen |= set(map(id, further))
            stack += further

    def _form(self, e: Expr) -> Multiples:
        if e.op == "const" and isinstance(e.args[0], int):
            return Multiples({}, int(e.args[0]))
        if e.op == "var":
            known = self._forms.get(e.args[0])
            return known if known is not None else Multiples(None, 0, UNKNOWN)
        below = [self._form(a) for a in e.args if isinstance(a, Expr)]
        if e.op in ("add", "sub"):
            return below[0].plus(below[1], 1 if e.op == "add" else -1)
        if e.op == "mul":
            return below[0].times(below[1])
        symbols = frozenset[Symbol]().union(*(b.symbols for b in below))
        return Multiples(None, 0, symbols | UNKNOWN if e.op == "load" else symbols)

    def _bound(self, bound: Expr | int) -> Span | None:
        return Span(0, bound, bound) if isinstance(bound, int) else self._span(bound)

    def _span(self, e: Expr) -> Span | None:
        """Between what an integer is; None if it is not known."""
        if e.op == "const" and isinstance(e.args[0], int):
            return Span(0, int(e.args[0]), int(e.args[0]))
        if e.op == "var":
            return self._spans.get(e.args[0])
        if e.op not in ("add", "sub", "min", "mod"):
            return None
        a, b = (self._span(x) for x in e.args)
        if a is None or b is None:
            return None
        if e.op == "add":
            return Span(a.times + b.times, a.low + b.low, a.high + b.high)
        if e.op == "min":
            return self._least(a, b)
        if e.op == "mod":
            fits = a.times == b.times == 0 and a.low >= 0 and b.low == b.high > 0
            return Span(0, 0, b.high - 1) if fits else None
        found = Span(a.times - b.times, a.low - b.high, a.high - b.low)
        if e.args[1].op == "mod":                        # x - (x - y) % n is not below y, if x is not
            less = e.args[1].args[0]
            y = self._span(less.args[1]) if less.op == "sub" and _same(less.args[0], e.args[0]) else None
            if y is not None and y.times == a.times and y.high <= a.low:
                return Span(a.times, max(found.low, y.low), found.high, a.most)
        return found

    def _least(self, a: Span, b: Span) -> Span | None:
        """Of the end of a block and that of the loop, which is beyond its start."""
        if b.times == 0 == a.times - 1 and b.low == b.high == self.loop.stop and a.low > 0:
            return Span(1, 1, a.high, b.high)
        return None


def _same(a: Expr, b: Expr) -> bool:
    return a is b or (a.op == b.op == "var" and a.args == b.args)


def reach(seen: Inspection, accesses: Sequence[Access]) -> tuple[int, int] | None:
    """How many places of a buffer a step may touch, counted from the first to the last, and how much further the next
    step begins; None if that is not known. Places in arrays side by side, one for each value of an inner loop, count
    once: they are as far from each other as all steps go, and a step does not reach over its end."""
    lows, highs, advances, beside = [], [], set(), False
    for access in accesses:
        advance = seen.advance(access.index)
        if not advance or access.index.terms is None:
            return None
        near, low = _near(seen, access.index, advance)
        beside |= (near, low) != (access.index.terms, access.index.constant)
        high = low
        for symbol, n in near.items():
            if symbol != STEP:
                span = seen.spans[symbol]
                ends = (n * span.low, n * span.high)
                low, high = low + min(ends), high + max(ends)
        lows.append(low)
        highs.append(high)
        advances.add(advance)
    places, advance = max(highs) - min(lows) + 1, abs(advances.pop())
    return None if advances or (beside and places > advance * seen.loop.step) else (places, advance)


def _near(seen: Inspection, index: Multiples, advance: int) -> tuple[Mapping[Symbol, int], int]:
    """The terms and the constant of an index without what leads to another of the arrays side by side, where each has
    room for all steps."""
    terms: Mapping[Symbol, int] = index.terms or {}
    room, stop = abs(advance) * seen.total, seen.total + seen.loop.start        # type: ignore[operator]
    near = {s: n for s, n in terms.items() if s == STEP or seen.spans[s].times or n % room}
    whole = len(near) == 1 and STEP not in near and all(
        seen.spans[s].times == 1 and seen.spans[s].low >= 0 and seen.spans[s].most < stop for s in near)
    if seen.total % seen.loop.step and not whole:                  # the last step might reach into the next array
        return terms, index.constant
    return near, index.constant - room * round(index.constant / room)
