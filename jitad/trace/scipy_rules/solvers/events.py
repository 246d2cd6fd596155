"""Events on the way of a differential equation: where functions of time and state change their sign.

An event is found as SciPy finds it, between the ends of a step on the polynomial of that step, and its time is
differentiated as the root that it is: the states after it, and how far one comes, move with it.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.trace.scipy_rules.classes import lifted, require, this_recorder
from jitad.trace.scipy_rules.solvers.callbacks import SolverCallback, floats, implicit
from jitad.trace.scipy_rules.solvers.roots import narrowed
from jitad.trace.scipy_rules.solvers.steps import Passed
from jitad.trace.scipy_rules.solvers.stiff import Equations

__all__ = ["Events"]

ROOM = 64                # events of one function that there is memory for


class Events:
    """The functions, which ends are theirs, and what happened."""

    def __init__(self, functions: Any, args: tuple[Any, ...], name: str) -> None:
        functions = (functions,) if callable(functions) else tuple(functions)
        self.name = name
        self.functions = [SolverCallback(g, args, name) for g in functions]
        self.limits = [_limit(getattr(g, "terminal", None)) for g in functions]
        self.directions = [float(getattr(g, "direction", 0) or 0) for g in functions]

    def begun(self, t: Any, y: Any) -> list[Any]:
        """What goes from step to step: whether all is over; of each event its value, how often it was met, when, and in
        which states."""
        state: list[Any] = [floats(0.0) != 0.0]
        for g in self.functions:
            state += [self._number(g(t, y)), lifted(0), np.broadcast_to(t * 0.0, (ROOM,)),
                      np.broadcast_to(y * 0.0, (ROOM, y.shape[0]))]
        return state

    def _number(self, value: Any) -> Any:
        if value.size != 1:
            raise ValueError(f"an event of {self.name} gives a result of shape {value.shape}; it must be a number")
        return value.reshape(())

    def passed(self, step: Passed, state: list[Any]) -> tuple[Any, Any, Any, list[Any]]:
        """The end of the step and the state there, whether an event ends all, and what goes on."""
        found = []
        for i, (g, direction) in enumerate(zip(self.functions, self.directions, strict=True)):
            before, now = state[1 + 4 * i], self._number(g(step.after, step.new))
            up, down = (before <= 0) & (now >= 0), (before >= 0) & (now <= 0)
            met = step.good & (up if direction > 0 else down if direction < 0 else up | down)
            on_the_way = Equations(lambda s, g=g: self._number(g(s, step.at(s.reshape(1))[0])), self.name)
            place = narrowed(on_the_way, step.t, before, step.after, now, met)
            found.append((now, met, np.where(met, implicit(on_the_way, place, 0), step.after)))
        last, ended = step.after, step.good & ~step.good
        for (_, met, place), limit, i in zip(found, self.limits, range(len(found)), strict=True):
            if limit:
                final = met & (state[2 + 4 * i] + 1 >= limit)
                last = np.where(final & (step.sign * (place - last) < 0), place, last)
                ended = ended | final
        after, new = last, np.where(ended, step.at(last.reshape(1))[0], step.new)
        results: list[Any] = [state[0] | ended]
        for i, (now, met, place) in enumerate(found):
            value, count, times, states = state[1 + 4 * i:5 + 4 * i]
            kept = met & (step.sign * (place - after) <= 0)
            here = kept & (np.arange(ROOM) == count)
            results += [np.where(step.good, now, value), count + np.where(kept, 1, 0), np.where(here, place, times),
                        np.where(here[:, None], step.at(place.reshape(1)), states)]
        return after, new, ended, results

    def taken(self, found: Any, n: int) -> tuple[Any, list[Any], list[Any]]:
        """Whether an event has ended the solution, the times of each event, and the states, of what `begun` has begun,
        in one vector."""
        ended, times, states, at = found[0] > 0, [], [], 1
        for _ in self.functions:
            count = found[at + 1]
            require(count <= ROOM, RuntimeError(f"{self.name}: an event happens more than {ROOM} times"))
            known = this_recorder().knows(count.number)
            number = int(count.astype(int)) if known else 0
            rows = found[at + 2 + ROOM:at + 2 + ROOM * (n + 1)].reshape((ROOM, n))
            times.append(found[at + 2:at + 2 + number] if known else None)
            states.append(rows[:number] if number else np.zeros(0) if known else None)
            at += 2 + ROOM * (n + 1)
        return ended, times, states


def _limit(terminal: Any) -> int:
    """After how many events all is over; 0 for never."""
    if terminal is None or terminal is False:
        return 0
    if terminal is True or terminal == 1:
        return 1
    if int(terminal) == terminal and terminal > 0:
        return int(terminal)
    raise ValueError("The `terminal` attribute of each event must be a boolean or positive integer.")
