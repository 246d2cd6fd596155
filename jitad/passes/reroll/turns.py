"""Lists of references that are made of a few walks: one behind the other, as what is left of two loops, or taking
turns, as where two lines of a step add to the same sum."""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from jitad.passes.reroll.spine import Ref, Views

MOST = 8              # walks that take turns
LEAST = 8             # elements of each


def turns(views: Views, refs: Sequence[Ref]) -> Iterator[tuple[int, int, int]]:
    """``(count, first, stop)`` for all stretches of the list, in order: `count` walks take turns in
    ``refs[first:stop]``, in whole rounds; a single reference counts as one walk."""
    first = 0
    while first < len(refs):
        count, stop = _stretch(views, refs, first)
        yield count, first, stop
        first = stop


def _stretch(views: Views, refs: Sequence[Ref], first: int) -> tuple[int, int]:
    for count in range(1, MOST + 1):
        stop = first + count
        if first + LEAST * count > len(refs):
            break
        steps = [_step(views, refs[k], refs[k + count]) for k in range(first, stop)]
        if None in steps:
            continue
        while stop + count < len(refs) and (
                _step(views, refs[stop], refs[stop + count]) == steps[(stop - first) % count]):
            stop += 1
        stop += count - (stop - first) % count
        if stop - first >= LEAST * count:
            return count, stop
    return 1, first + 1


def _step(views: Views, a: Ref, b: Ref) -> tuple[int, ...] | None:
    """How far b is from a in the same array; None where they differ otherwise."""
    if a[0] != b[0] or not a[1] or not b[1] or views.form[a[1]] != views.form[b[1]]:
        return None
    return tuple([y - x for x, y in zip(views.offsets[a[1]], views.offsets[b[1]], strict=True)])
