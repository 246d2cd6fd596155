"""What the marks in copied code go to: which loops of a recording are walked as loops, and what is known of them.

A loop begins as Python's own: its steps are recorded one after the other. Once a branch within it turns out to depend
on traced values the recording starts over, and the loop is walked as a `LoopRun` (see `trace.steps.run`). Where that
does not fit, it starts over once more, and the loop is Python's own for good.
"""
from __future__ import annotations

import dis
import itertools
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from jitad.errors import MutationError
from jitad.tape.builder import Value
from jitad.tape.tape import needed
from jitad.trace.captures.bytecode import codes_in, compares_identity
from jitad.trace.captures.extremes import are_alike, one_of
from jitad.trace.steps.asking import asking
from jitad.trace.steps.changed import is_array, storage_of
from jitad.trace.steps.known import Known, StartOver
from jitad.trace.steps.rewrite import Place, loops_around, loops_in, marked
from jitad.trace.steps.run import LoopRun
from jitad.trace.steps.walks import Zipped, counts_steps, numbers_of, walk_over
from jitad.trace.values.tracer import Tracer
from jitad.trace.where import is_library_file

__all__ = ["Marks"]

_ASKING = frozenset("isinstance issubclass type __class__ dtype issubdtype hasattr".split())
_BRACKETS = ("BINARY_SUBSCR", "STORE_SUBSCR", "BINARY_OP")      # the last since Python 3.14
RENEWALS = 1024               # of the steps of one loop, at most
FEW = 2                       # steps that need no loop


class Plain:
    """A loop as Python walks it."""

    active = False

    def __init__(self, steps: Any) -> None:
        self.steps, self._left, self._value = steps, "", None

    def breaks(self) -> bool:
        self._left = "break"
        return True

    def ends(self) -> bool:
        return True

    def returns(self, value: Any) -> bool:
        self._left, self._value = "return", value
        return True

    def broken(self) -> bool:
        return self._left == "break"

    def returned(self) -> bool:
        return self._left == "return"

    def result(self) -> Any:
        return self._value


class Marks:
    """The loops of one recording. `known` outlives it."""

    def __init__(self, recorder: Any, known: dict[Place, Known]) -> None:
        self.recorder, self.known = recorder, known
        self.runs: list[LoopRun] = []                        # under way, the innermost last
        self.walked: list[Known] = []
        self.originals: dict[int, CodeType] = {}
        self.codes: dict[CodeType, CodeType] = {}
        self.version = 0                                 # grows with what is known of any loop
        self._before: list[int] = []
        self.again = False                               # whether it is known that the recording starts over

    def code(self, code: CodeType) -> CodeType:
        """The code that a copied function has: with marks, if any of its loops is to be walked; with questions, if it
        compares by ``is``."""
        if code not in self.codes:
            self.codes[code] = self._marked(code)
            asked = self.recorder.captures.asked
            if asked.objects and compares_identity(code):
                made = asking(code, asked) if self.codes[code] is code else None
                asked.unseen = asked.unseen or ("" if made else code.co_qualname)
                self.codes[code] = made or self.codes[code]
        return self.codes[code]

    def _marked(self, code: CodeType) -> CodeType:
        """The code with marks, and so that of the functions that it makes, if any of its loops is to be walked."""
        if not any(k.stepped and place[0] == code.co_filename for place, k in self.known.items()):
            return code
        for loop in loops_in(code):
            if loop.where in self.known:
                self.known[loop.where].loop = loop
        made = marked(code, self) or code
        inner = tuple([self._marked(c) if isinstance(c, CodeType) else c for c in made.co_consts])
        if any(new is not c for new, c in zip(inner, made.co_consts, strict=True)):
            made = made.replace(co_consts=inner)
        if made is not code:
            self.originals[id(made)] = code
        return made

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Around a recording: what fails in the walk of a loop need not fail where Python walks it."""
        try:
            yield
        except StartOver:
            self.recorder.errors.clear()
            raise
        except Exception as error:
            if not self.walked and not self.again:
                raise
            self.recorder.errors.clear()
            if not self.again:
                self._failed(error)
            raise StartOver from None

    def _failed(self, error: Exception) -> None:
        run = self.runs[-1] if self.runs else None
        if run is not None and isinstance(error, MutationError):
            inside = [n for n in run.known.loop.augmented if n not in run.known.stored and is_array(run.names.get(n))]
            if inside:                                   # ``x += dx``, of an array
                run.known.stored |= set(inside)
                return
        if run is not None and run.forced is not None:
            run.known.paths.pop(run.forced, None)
            return
        for known in self.walked if run is None else [run.known]:
            known.unfit = known.unfit or "it fails where it is walked"

    def check(self, outputs: Sequence[Value]) -> None:
        """Raise unless all loops have ended as they should, and nothing is left of their placeholders."""
        if self.again:
            raise StartOver
        for run in self.runs:
            self.unfit(run.known, "it is left by an exception")
        if self.walked:
            recorder = self.recorder
            given = set(recorder.inputs)
            read = needed(recorder.nodes, [*(v.number for v in outputs), *recorder.guards])
            if any(wanted and node.is_input and n not in given for n, (node, wanted) in enumerate(
                    zip(recorder.nodes, read, strict=True))):
                for known in self.walked:
                    known.unfit = known.unfit or "a value of one of its steps is kept"
                raise StartOver

    # --- what the code calls -----------------------------------------------------------------------
    def enter(self, where: Place, things: Any) -> Any:
        known = self.known.get(where)
        recorder = self.recorder
        if known is not None and known.walked and not recorder.bodies and recorder.explorer is None:
            doubt = lambda: self.unfit(known, "an array that it walks is written")
            walk = None if things is None else walk_over(recorder, things, doubt)
            if things is not None and walk is None:
                self.unfit(known, "what it walks has no element at a traced position")
            if walk is None or walk.length > FEW:
                self.walked.append(known)
                return LoopRun(self, known, walk)
        return Plain(itertools.repeat(None) if things is None else iter(things))

    # --- what is chosen without a branch -----------------------------------------------------------
    def chooses(self, flag: Any) -> bool:
        """Whether a branch that only assigns may be a choice."""
        return type(flag) is Tracer and flag.ndim == 0 and flag.dtype == np.bool_ and self.may_choose([flag])

    def chosen(self, flag: Any, yes: tuple[Any, ...], no: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """What variables are after a branch, of what they are on its sides; None if that cannot be chosen."""
        alike = all(x is y or are_alike(self.recorder, (x, y)) for x, y in zip(yes, no, strict=True))
        if not alike or self._noted() != self._before:
            return None
        return tuple(x if x is y else one_of(flag, x, y) for x, y in zip(yes, no, strict=True))

    def _noted(self) -> list[int]:
        """How much is noted of what may fail, and of errors."""
        return [len(several) for several in self._notes()]

    def _notes(self) -> tuple[list[Any], ...]:
        recorder = self.recorder
        return recorder.fallible, recorder.indices, recorder.errors, recorder.refusals

    @contextmanager
    def sides_of_branch(self) -> Iterator[None]:
        """Around the sides of a branch, both of which are computed: what is raised on the way, and what could fail, is
        not the program's, which computes one of them."""
        self._before = self._noted()
        with suppress(Exception):
            yield
        for notes, before in zip(self._notes(), self._before, strict=True):
            del notes[before:]

    def item(self, things: Any, index: Any) -> Any:
        """``things[index]``: of a list of numbers, where the index is another one in each step, an element of an array
        of these."""
        if type(things) in (list, tuple) and type(index) is Tracer and self.run_of(index.number) is not None:
            found = numbers_of(self.recorder, things)
            if found is not None:
                picked = found[0][index]
                picked.weak = found[1]
                return picked
        return things[index]

    def walk(self, kind: Any, *args: Any, **kwargs: Any) -> Zipped:
        return Zipped(kind, args, kwargs)

    # --- branches ------------------------------------------------------------------------------------
    def noticed(self) -> None:
        """A branch depends on traced values: the loops around it are walked from now on."""
        frame: Any = sys._getframe(2)
        found = False
        while frame is not None and not self.again:
            code = frame.f_code
            if not is_library_file(code.co_filename) and hasattr(type(frame.f_globals), "jitad_recorded"):
                for loop in _around(self.originals.get(id(code), code), _place_of(frame)):
                    known = self.known.setdefault(loop.where, Known(loop, unfit=loop.refused or self._by_identity()))
                    if not known.stepped and not known.unfit:
                        known.stepped = found = True
            frame = frame.f_back
        if found:
            self.start_over()

    def _by_identity(self) -> str:
        compares = self.recorder.captures.identities.unique
        return "the function, or one that it calls, compares by `is`" if compares else ""

    def asks_kinds(self) -> bool:
        """Whether any code that is recorded may ask of which class a number is."""
        functions = self.recorder.captures.copies.originals.values()
        return any(not _ASKING.isdisjoint(code.co_names) for f in functions for code in codes_in(f.__code__))

    def may_choose(self, things: Sequence[Any]) -> bool:
        """Whether what depends on these may be chosen without a branch: where a loop branches, and in a step of one
        that goes many ways."""
        if self.recorder.bodies or self.recorder.explorer or not any(k.stepped for k in self.known.values()):
            return False
        runs = [run for x in things if type(x) is Tracer and (run := self.run_of(x.number)) is not None]
        return not runs or max(runs, key=self.runs.index).known.choosing

    def is_forced(self) -> bool:
        """Whether a step is under way of which the numbers are not those of any call."""
        return any(run.forced is not None and run.example is None for run in self.runs)

    def drop(self, known: Known, path: tuple[Any, ...]) -> None:
        """No step goes this way, as the loop is now."""
        known.paths.pop(path, None)
        self.start_over()

    def start_over(self) -> None:
        self.again = True
        raise StartOver

    def unfit(self, known: Known, why: str) -> None:
        """The loop is Python's own from now on."""
        known.unfit = known.unfit or why
        self.again = True
        raise StartOver(why)

    def renew(self, run: LoopRun) -> None:
        """The steps of a loop are recorded again, as more is known of them."""
        run.variants.clear()
        run.known.renewals += 1
        if run.known.renewals > RENEWALS:
            self.unfit(run.known, "what its steps are does not settle")

    def written(self, storage: Any) -> None:
        """An array is written: the loops around see to it that it is one that they know of."""
        for run in self.runs:
            if not run.holds(storage):
                run.changes([n for n in run.known.loop.changeable
                             if storage_of(self.recorder, run.names.get(n)) is storage])

    def run_of(self, number: int) -> LoopRun | None:
        """The innermost loop from step to step of which a node differs."""
        for run in reversed(self.runs):
            if run.depends(number):
                return run
        return None

    def decide(self, value: Value) -> Any:
        """The outcome of a branch that belongs to a step; None if it does not."""
        if value.node.constant is None:
            self.noticed()
        run = self.run_of(value.number)
        if run is not None and value.dtype != np.bool_ and _is_index(3) and counts_steps(run, value.number):
            self.unfit(run.known, "its position is the index of a list")
        return None if run is None else run.decide(value)

    def guard(self, value: Value, expected: bool | int) -> bool:
        """Whether a guard belongs to a step."""
        run = self.run_of(value.number)
        if run is None:
            return False
        run.note(value.number, expected)
        return True


def _is_index(depth: int) -> bool:
    """Whether a number is asked for, by the function that many frames above, as what is in brackets."""
    frame = sys._getframe(depth + 1)
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] in _BRACKETS and sys._getframe(depth).f_code.co_name == (
        "__index__")


def _place_of(frame: Any) -> tuple[int, int]:
    positions = _positions(frame.f_code)[frame.f_lasti // 2]
    return positions[0] or 0, positions[2] or 0


@lru_cache(maxsize=64)
def _positions(code: CodeType) -> list[Any]:
    return list(code.co_positions())


_around = lru_cache(maxsize=1024)(loops_around)
