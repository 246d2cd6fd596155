"""Which recordings are for the tape machine, and their way there.

What would be thousands of lines of straight code, with nothing in it that repeats, takes longer to compile than it is
worth, so its recording becomes a program for the tape machine as it is: not re-rolled, not differentiated, not
optimised.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from jitad.call.build.derive import Derivation
from jitad.errors import UnsupportedOperationError
from jitad.call.request.request import PARTS, Request
from jitad.call.request.results import Result
from jitad.tape.tape import needed
from jitad.trace.recorder import Recording

if TYPE_CHECKING:
    from jitad.compile.tapemachine.machine import TapeMachine

STRAIGHT = 3000           # operations on numbers that are too many to be compiled
SMALL = 8                 # elements of an array whose operations are written out one by one
GRAM = 32                 # operations in a row that come again somewhere else in a loop
GROWTH = 3                # elements for each node, at most: tapes of large arrays are for kernels
FORCED = 512              # elements that are never too many where the machine is asked for


def suited(request: Request) -> bool:
    """Whether the machine can answer: with values and first derivatives, in reverse."""
    return not request.batch and not request.seed_name and {*PARTS[request.what]} <= {"value", "scalar", "gradient"}


def too_long(recording: Recording, most: int) -> bool:
    """Whether more than `most` operations would be straight code."""
    return len(recording.builder.nodes) > most and len(_straight(recording)) > most


def irregular(recording: Recording, most: int) -> bool:
    """Whether that is clear without a search for loops: more than `most` operations are in no row that comes again."""
    if len(recording.builder.nodes) <= most:
        return False
    nodes, numbers = recording.builder.nodes, _straight(recording)
    known: dict[object, int] = {}
    tokens = np.array([known.setdefault(nodes[i].prim, len(known)) for i in numbers], np.uint64)
    if len(tokens) <= most + GRAM:
        return False
    grams = np.zeros(len(tokens) - GRAM + 1, np.uint64)
    for i in range(GRAM):
        grams = grams * np.uint64(0x9E3779B97F4A7C15) + tokens[i:i + len(grams)]
    _, counts = np.unique(grams, return_counts=True)
    return int((counts == 1).sum()) > most


def _straight(recording: Recording) -> list[int]:
    """The operations on numbers and small arrays that are needed."""
    builder = recording.builder
    alive = needed(builder.nodes, [*(v.number for v in recording.outputs), *builder.guards])
    return [i for i, node in enumerate(builder.nodes) if alive[i] and node.elementwise and (
        not node.aval.shape or node.aval.size <= SMALL)]


def on_machine(derivation: Derivation, forced: bool) -> tuple[TapeMachine, Result] | None:
    """The machine for what is asked for, and how its results are returned; None for what has no form there. More will
    do where the machine is asked for."""
    from jitad.compile.tapemachine.machine import Unsuitable, machine_of

    asked, builder = PARTS[derivation.request.what], derivation.builder
    scalar = derivation.scalar if "gradient" in asked else None
    wrt = derivation.wrt if "gradient" in asked else []
    values, _, result = replace(derivation, standing_in=tuple(derivation.wrt)).parts()
    most = max(GROWTH * len(builder.nodes), FORCED if forced else 0)
    try:
        return machine_of(builder, values[:len(values) - len(wrt)], scalar, wrt, most), result
    except (Unsuitable, UnsupportedOperationError):
        return None


def choose(raw: Recording, request: Request, rerolled: Callable[..., Recording],
           derived: Callable[[Recording], Derivation]) -> tuple[TapeMachine, Result] | Recording:
    """The machine for a recording, with the form of its results; or the recording with its loops re-rolled, which is to
    be compiled."""
    forced = request.tier == "machine"
    if request.tier != "kernel" and (forced or irregular(raw, STRAIGHT)):
        found = on_machine(derived(raw), forced)
        if found is not None:
            return found
    if request.tier:
        return rerolled(raw)
    recording = rerolled(raw, STRAIGHT)
    if not too_long(recording, STRAIGHT):
        return recording
    found = on_machine(derived(raw), forced=False)
    if found is not None:
        return found
    return recording if recording is not raw else rerolled(raw)


__all__ = ["choose", "suited"]
