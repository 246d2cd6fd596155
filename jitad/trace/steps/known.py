"""What is known of a loop from one recording to the next, and why a recording starts over."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jitad.tape.tape import Tape
from jitad.tape.types import Guard, Where
from jitad.trace.steps.rewrite import Place, SourceLoop

__all__ = ["GOING", "KNOWN", "WHOLE", "Known", "Loops", "StartOver",
           "covers", "frozen", "is_of_steps", "merged", "thawed"]


class StartOver(BaseException):
    """The recording is to start over: more is known of its loops than when it began."""


@dataclass
class Known:
    """What is known of a loop. `paths` are the ways through a step that have been seen, as outcomes of the branches
    on it; `moving` the variables whose numbers, Python's own, differ from step to step; `fresh` those that do not stay
    of one kind, so that a step must assign them first; `stored` those whose array or list a step changes; `held` those
    whose containers get other contents, with the numbers of the leaves that do; `choosing` says that there are so many
    ways that branches which only assign numbers are choices; `unfit` says why the loop is Python's
    own."""

    loop: SourceLoop
    stepped: bool = False
    unfit: str = ""
    paths: dict[tuple[Any, ...], None] = field(default_factory=dict)
    moving: set[str] = field(default_factory=set)
    fresh: set[str] = field(default_factory=set)
    stored: set[str] = field(default_factory=set)
    held: dict[str, set[int]] = field(default_factory=dict)
    choosing: bool = False
    longest: int = 0
    renewals: int = 0

    @property
    def walked(self) -> bool:
        """Whether it is walked as a loop."""
        return self.stepped and not self.unfit


WHOLE = -1                                               # among the leaves of a container: the container itself
KNOWN, GOING = "known", "going"                          # carries: the way is known; the loop goes on
Loops = dict[Place, Known]                               # of one function


def merged(several: Iterable[Mapping[Place, Known]]) -> Loops:
    """What is known of the loops of a function from several recordings, to be added to."""
    found: Loops = {}
    for loops in several:
        for place, known in loops.items():
            mine = found.setdefault(place, Known(known.loop))
            mine.stepped |= known.stepped
            mine.unfit = mine.unfit or known.unfit
            if known.choosing != mine.choosing:          # the ways are others
                mine.paths = {} if known.choosing else mine.paths
            if known.choosing or not mine.choosing:
                mine.paths |= known.paths
            mine.choosing |= known.choosing
            mine.moving |= known.moving
            mine.fresh |= known.fresh
            mine.stored |= known.stored
            mine.held |= {name: leaves | mine.held.get(name, set()) for name, leaves in known.held.items()}
            mine.longest = max(mine.longest, known.longest)
    return found


def covers(new: Mapping[Place, Known], old: Mapping[Place, Known]) -> bool:
    """Whether all that is known of loops in `old` is in `new` too."""
    return all(place in new and known.paths.keys() <= new[place].paths.keys() and (
        bool(known.unfit) == bool(new[place].unfit)) for place, known in old.items())


def is_of_steps(tape: Tape, guard: Guard) -> bool:
    """Whether a guard of a tape says that a loop has known the ways of all its steps, and had room for them."""
    node = tape.nodes[guard.node]
    return node.picks is not None and tape.nodes[node.inputs[0]].body.names[node.picks] in (KNOWN, GOING)


def frozen(loops: Mapping[Place, Known]) -> tuple[Any, ...]:
    """What is known as tuples of numbers and text."""
    paths = lambda known: tuple(tuple((tuple(where or ()), outcome) for where, outcome in path) for path in known.paths)
    return tuple((place, known.stepped, known.unfit, paths(known),
                  tuple(sorted(known.moving)), tuple(sorted(known.fresh)), tuple(sorted(known.stored)),
                  tuple((name, tuple(sorted(leaves))) for name, leaves in known.held.items()), known.choosing,
                  known.longest)
                 for place, known in loops.items())


def thawed(text: Iterable[Any]) -> Loops:
    """The inverse of `frozen`."""
    return {tuple(place): Known(
        SourceLoop(tuple(place), (), (), (), (), ""), stepped, unfit,
        dict.fromkeys(tuple((Where(*where) if where else None, outcome) for where, outcome in path) for path in paths),
        set(moving), set(fresh), set(stored), {name: set(leaves) for name, leaves in held}, choosing, longest)
        for place, stepped, unfit, paths, moving, fresh, stored, held, choosing, longest in text}
