"""Re-rolling: a loop of the user's that was recorded iteration by iteration becomes a `scan` on the tape.

It happens between recording and differentiation, so that the gradient is a loop too. The recording is reduced to a
row of tokens (`spine.py`), in which repetitions are found (`find.py`); what the operands of an iteration are is checked
for every iteration (`wiring.py`); then the loop is built (`loop.py`) on a new tape, on which everything else stays as
it was (`emit.py`). Loops within loops: the inner ones go first, and the result is looked at again.
"""
from __future__ import annotations

from collections.abc import Sequence

from jitad.passes.reroll.emit import Emitter
from jitad.passes.reroll.find import Repetitions, best_cut
from jitad.passes.reroll.loop import LoopBuilder, Unfit
from jitad.passes.reroll.spine import HEAVY, Spine
from jitad.passes.reroll.wiring import Wire, replays
from jitad.tape.builder import Builder, Value

LEAST = 200           # nodes that a loop must save; those of factorizations count for more


def reroll(builder: Builder, values: Sequence[Value], least: int = LEAST, most: int | None = None) -> list[Value]:
    """`values` on a builder in which the loops are scans: the same one if there are none, or if more than `most`
    operations are left over when the search for loops is given up.

    The new builder has the inputs of the old one, in their order, and what `values` and the guards need.
    """
    values = list(values)
    while True:
        found = _once(builder, values, least, most)
        if found is None:
            return values
        builder, values = found


def _once(builder: Builder, values: Sequence[Value], least: int,
          most: int | None) -> tuple[Builder, list[Value]] | None:
    if len(builder.nodes) * HEAVY < least:
        return None
    spine = Spine(builder.nodes, [*(v.number for v in values), *builder.guards])
    repetitions = Repetitions(spine, least)
    emitter = Emitter(builder, spine)
    begin = repetitions.starts(0)
    while begin < len(spine.members):
        begin = _roll(emitter, repetitions, begin, least)
        if repetitions.left <= 0 and most is not None and len(spine.members) - begin > most:
            return None
        begin = repetitions.starts(begin)
    if not emitter.loops:
        return None
    emitter.upto(len(spine.members))
    emitter.guards()
    return emitter.builder, [emitter.at(v.number) for v in values]


def _roll(emitter: Emitter, repetitions: Repetitions, begin: int, least: int) -> int:
    """Re-roll a loop that begins at `begin` or soon after, or one within its iterations; where to go on."""
    for period, stop in repetitions.at(begin):
        for within in range(begin + 1, begin + period):
            for inner, end in repetitions.at(within, period // 2):
                if _replaced(emitter, within, inner, end, least):
                    repetitions.known.pop(inner, None)
                    repetitions.found()
                    return emitter.done
                repetitions.failed(inner)
        if _replaced(emitter, begin, period, stop, least):
            repetitions.known.pop(period, None)
            repetitions.found()
            return emitter.done
        repetitions.failed(period)
    return begin + 1


def _replaced(emitter: Emitter, begin: int, period: int, stop: int, least: int) -> bool:
    """Re-roll this repetition, or the regular part of it, if that is possible."""
    first = begin + best_cut(emitter.spine, begin, stop, period)
    count = (stop - first) // period
    if count < 3 or emitter.spine.between(first + period, first + count * period) < least:
        return False
    wire = Wire(emitter.spine, emitter.ref, first, period, count)
    wiring = wire.wiring(least)
    if wiring is None or not replays(wire, wiring):
        return False
    try:
        LoopBuilder(emitter, wiring).run()
    except Unfit:
        return False
    return True
