"""The wiring of a loop: what each operand of an iteration is, checked for every iteration.

The operands of an iteration are *columns*: column q has the reference of operand q in each iteration. It is one of

    inside     made at place j of the same iteration (lag 0)
    carried    made at place j of the iteration `lag` before; the first `lag` references are initial values
    fixed      one reference in all iterations
    walked     one array, at offsets that grow by a fixed step
    listed     anything else from before the loop: constants, elements at irregular offsets, values

Iterations at both ends that do not fit are left to stand before and after the loop. Whatever does not fit in
between makes the loop shorter, or no loop.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jitad.passes.reroll.find import LAGS
from jitad.passes.reroll.spine import Ref, Spine

EDGE = 8          # irregular iterations that are left out for a walk rather than made a list
Resolve = Callable[[int, int], Ref]


@dataclass(eq=False)
class Column:
    """Operand q of an iteration. `place` and `lag` for what the loop makes itself, `refs` for initial values and for
    a list (references on the new tape), `start` and `step` (offsets by dimension) for a walk."""

    kind: str
    view: int = 0
    place: int = -1
    lag: int = 0
    refs: list[Ref] = field(default_factory=list)
    start: tuple[int, ...] = ()
    step: tuple[int, ...] = ()


@dataclass(eq=False)
class Wiring:
    """`length` iterations of `period` nodes from position `begin` of the spine on."""

    begin: int
    period: int
    length: int
    columns: list[Column]

    @property
    def stop(self) -> int:
        return self.begin + self.period * self.length


class Wire:
    """The columns of ``count`` iterations from `begin`; `wiring` answers for those that are regular."""

    def __init__(self, spine: Spine, resolve: Resolve, begin: int, period: int, count: int):
        self.spine, self.resolve, self.begin, self.period, self.count = spine, resolve, begin, period, count
        low, width = int(spine.start[begin]), int(spine.start[begin + period] - spine.start[begin])
        self.source = spine.source[low:low + count * width].reshape(count, width)
        self.view = spine.view[low:low + count * width].reshape(count, width)
        self.made = spine.place[self.source]
        self.distance = self.made - (begin + period * np.arange(count))[:, None]
        self._classify()

    def _classify(self) -> None:
        r = self.middle = (self.count - 1) // 2
        source, view, made, distance = self.source, self.view, self.made, self.distance
        alike = view[r] == view[r + 1]
        self.moving = alike & (made[r] >= 0) & (distance[r] == distance[r + 1]) & (distance[r] >= -LAGS * self.period)
        self.fixed = alike & (source[r] == source[r + 1])
        self.lag = np.where(self.moving, -(distance[r] // self.period), 0)
        far = self.lag > max(self.count // 4, 1)
        self.moving, self.lag = self.moving & ~far, np.where(far, 0, self.lag)
        fits = (view == view[r]) & np.where(self.moving, distance == distance[r], source == source[r])
        varied = self.fixed & (fits.mean(axis=0) < 0.9) & (made < self.begin).all(axis=0)
        self.fixed &= ~varied
        self.other = ~self.moving & ~self.fixed
        self.fits = fits | self.other

    def wiring(self, least: int) -> Wiring | None:
        """The longest regular part around the middle that saves `least` nodes (see `Spine.between`), or None."""
        self.first, self.stop = 0, self.count
        self._shrink()
        walks = {}
        for q in np.flatnonzero(self.other).tolist():
            if not self._enough(least):
                return None
            found = self._outer(q)
            if found is None:
                return None
            walks[q] = found
        self._past_fixed()
        if not self._enough(least):
            return None
        columns = [self._column(q, walks) for q in range(self.source.shape[1])]
        if any(column is None for column in columns):
            return None
        return Wiring(self.begin + self.first * self.period, self.period, self.stop - self.first,
                      columns)                                                          # type: ignore[arg-type]

    def _enough(self, least: int) -> bool:
        length = self.stop - self.first
        return length >= 3 and (length - 1) * self.spine.between(self.begin, self.begin + self.period) >= least

    def _shrink(self) -> None:
        """Leave out the iterations in which a column does not fit, but for initial values."""
        bad, r = ~self.fits, self.middle
        if bad.any():
            rows = np.arange(self.count)[:, None]
            before = np.where(bad & (rows <= r), rows, -1).max(axis=0)
            self.first = max(0, int((before + 1 - self.lag).max()))
            self.stop = int(np.where(bad & (rows > r), rows, self.count).min())
            if not self._initial_before():
                self.first = int(before.max()) + 1
        self._past_fixed()

    def _initial_before(self) -> bool:
        """Whether the initial values are all made before the loop."""
        head = self.begin + self.first * self.period
        rows = np.arange(self.first, self.stop)[:, None]
        late = self.moving & (rows < self.first + self.lag) & (self.made[self.first:self.stop] >= head)
        return not late.any()

    def _past_fixed(self) -> None:
        """Begin behind everything that is the same in all iterations."""
        made = self.made[self.middle][self.fixed]
        if made.size:
            self.first = max(self.first, int((made.max() - self.begin) // self.period) + 1)

    def _outer(self, q: int) -> Column | None:
        """A walk or a list. A walk may shorten the loop a little."""
        head = self.begin + self.first * self.period
        inside = np.flatnonzero(self.made[self.first:self.stop, q] >= head)
        if inside.size:
            return None
        low, views = self.first, self.spine.views
        refs = list(map(self.resolve, self.source[low:self.stop, q].tolist(), self.view[low:self.stop, q].tolist()))
        column = Column("listed", refs=refs, place=low)
        r = self.middle - low
        source, form = refs[r][0], views.form[refs[r][1]]
        if not form or not 0 <= r < len(refs) - 1 or refs[r + 1][0] != source or views.form[refs[r + 1][1]] != form:
            return column
        other = (-1 << 40,) * len(views.offsets[refs[r][1]])
        offsets = np.array([views.offsets[v] if s == source and views.form[v] == form else other for s, v in refs])
        step = offsets[r + 1] - offsets[r]
        line = offsets[r] + step * (np.arange(len(refs)) - r)[:, None]
        bad = np.flatnonzero((offsets != line).any(axis=1))
        first, stop = int(bad[bad < r].max(initial=-1)) + 1, int(bad[bad > r].min(initial=len(refs)))
        if len(refs) - (stop - first) > max(2 * EDGE if step.any() else 0, len(refs) // 2):
            return column
        self.first, self.stop = low + first, low + stop
        return Column("walked", views.intern(*_map(views, form, line[first])), refs=[(source, form)], place=low,
                      start=tuple(line[0].tolist()), step=tuple(step.tolist()))

    def _column(self, q: int, walks: dict[int, Column]) -> Column | None:
        first, r = self.first, self.middle
        source, view = int(self.source[r, q]), int(self.view[r, q])
        if self.moving[q]:
            lag, place = int(self.lag[q]), int(self.distance[r, q] % self.period)
            if not lag:
                return Column("inside", view, place)
            head = self.begin + first * self.period
            if lag >= self.stop - first or (self.made[first:first + lag, q] >= head).any():
                return None
            refs = [self.resolve(int(self.source[k, q]), int(self.view[k, q])) for k in range(first, first + lag)]
            return Column("carried", view, place, lag, refs)
        if self.fixed[q]:
            return Column("fixed", refs=[self.resolve(source, view)])
        column = walks[q]
        skipped = first - column.place
        if column.kind == "walked":
            start = tuple(a + b * skipped for a, b in zip(column.start, column.step, strict=True))
            return Column("walked", column.view, refs=column.refs, start=start, step=column.step)
        return Column("listed", refs=column.refs[skipped:skipped + self.stop - first])


def _map(views: Any, form: int, offsets: Any) -> Any:
    shape, terms = views.forms[form]
    return shape, tuple(zip(map(int, offsets), terms, strict=True))


def replays(wire: Wire, wiring: Wiring) -> bool:
    """Whether the loop, walked step by step, gives exactly the references of the recording: how it is accepted."""
    first, length, period, views = wire.first, wiring.length, wiring.period, wire.spine.views
    steps = np.arange(length)
    for q, column in enumerate(wiring.columns):
        source, view = wire.source[first:first + length, q], wire.view[first:first + length, q]
        if column.kind in ("inside", "carried"):
            expected = wiring.begin + (steps - column.lag) * period + column.place
            same = (wire.spine.place[source] == expected) & (view == column.view)
            if not same[column.lag:].all():
                return False
            source, view = source[:column.lag], view[:column.lag]
        found = map(wire.resolve, source.tolist(), view.tolist())
        if column.kind == "fixed":
            if (source != source[0]).any() or (view != view[0]).any() or next(found) != column.refs[0]:
                return False
        elif column.kind == "walked":
            origin, form = column.refs[0]
            walk = (np.array(column.start) + steps[:, None] * np.array(column.step)).tolist()
            if any(s != origin or views.form[v] != form or list(views.offsets[v]) != at
                   for (s, v), at in zip(found, walk, strict=True)):
                return False
        elif list(found) != column.refs:
            return False
    return True
