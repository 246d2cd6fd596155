"""What happens on a call: one ladder, for decorated functions, bound ones, batches and explicit tapes alike.

A call begins on the first rung, and climbs down where a rung does not serve it:

1. *Shortcut.* What Python calls, `_call`, is the compiled entry itself, or a few generated lines around it (see
   `rungs.generated`). It looks at types, shapes and captured values, and leaves to the next rung what is other. One
   that is made anew of known code begins with the shortcuts of that code (`rungs.anew`).
2. *Recording.* In a function that is being recorded, the call goes on its tape. With ``out=``, the call without it is
   made, and its result written there.
3. *Remembered.* Where the last call ended in an error of the user's, Python looks whether this one does too
   (`rungs.raised`). The shortcuts of other calls that were made lately are tried: first with the arguments as they are;
   then the call is taken apart (`Arguments`: leaves, structure, signature), and those of its signature are tried.
4. *Memory.* The cache in memory has specializations by function and signature. One serves if what it has captured is
   as it was, and if its guards hold for the values at hand.
5. *Disk.* Code that this or another process has compiled before.
6. *Build.* The function is recorded, re-rolled, differentiated and optimised, or left to the tape machine. If it was
   known, a warning says what is new. Who takes yet another way through the branches than may be kept gets a
   specialization for this call alone, which is not compiled.
7. *Kernel.* The specialization has one for each layout of its inputs: at hand, on the disk, or compiled now, or by a
   thread. It becomes the shortcut.
8. *Run.* The kernel runs. Where it stops (a factorization failed, say), while a thread compiles it, and where it is not
   worth compiling, the reference interpreter runs the tape by NumPy, and raises what NumPy raises.

`Called` has the rungs that are the same for all; `Ladder` those of a user's function, from 4 on. A bound function has
shortcuts of its own and goes on at rung 4 of the function that it was bound from. A batch whose examples take different
ways is found out on rung 6, and then its examples are called one by one. An explicit tape takes rungs 4 to 7 when it is
made, and is called as its function.
"""
from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from jitad import cache
from jitad.cache.contents import ShapeChurnWarning
from jitad.call.build.specialization import Specialization, TapeNeeded
from jitad.call.build.specialize import build, complete
from jitad.call.messages import crowd_message, issue, report
from jitad.call.request.request import Arguments, differences
from jitad.call.request.results import write_out
from jitad.call.request.sameness import unlike
from jitad.call.request.subject import Subject
from jitad.call.rungs import stored
from jitad.call.rungs.anew import keep
from jitad.call.rungs.background import under_way
from jitad.call.rungs.better import improve
from jitad.call.rungs.raised import Raised, raise_again, raised_by
from jitad.call.rungs.shortcut import MISSED, Shortcut, attempt, first_on_its_way, with_fallback
from jitad.compile.llvm.fork_guard import gate
from jitad.passes.optimise.guards import conditions, first_missed
from jitad.trace.recorder import current, in_handler, outside, uncollected
from jitad.trace.steps.known import covers, is_of_steps, merged

REMEMBERED = 16  # shortcuts that a function has
RECENT = 4       # of these, how many are tried before a call is taken apart

Run = Callable[[], Any]


class Called:
    """What is called, with its shortcuts."""

    __slots__ = ("_call", "fallback", "shortcuts")
    _call: Callable[..., Any]              # what Python calls; as a slot that is `__call__`, without a detour
    fallback: Callable[..., Any]           # the same while there is no shortcut
    shortcuts: tuple[Shortcut, ...]        # latest first
    __call__: Callable[..., Any]
    __name__: str

    def begin(self, what: str) -> None:
        """Without a shortcut. `what` this is, in words."""
        known = weakref.ref(self)                        # weakly: it is held by what calls it

        def climb(*args: Any, **kwargs: Any) -> Any:
            found = known()
            if found is None:
                raise ReferenceError(f"{what} is gone; keep it, not its `__call__`")
            return found._climb(args, kwargs)
        self._call = self.fallback = climb
        self.shortcuts = ()

    # --- 2: recording, and out= ------------------------------------------------------------------
    @property
    def writes(self) -> Callable[[Any, Any], Any] | None:
        """What writes a result into ``out=``; None if that is the user's."""
        subject = self.subject
        return None if subject.own_out else partial(write_out, position=subject.request.position, name=self.__name__)

    def _climb(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call that the first shortcut does not serve."""
        write = self.writes if "out" in kwargs else None
        if write is not None:
            out = kwargs.pop("out")
            return write(self(*args, **kwargs), out)
        recorder = current()
        if recorder is not None:
            if in_handler():
                with outside():
                    return self._remembered(args, kwargs)
            return self._inside(recorder, args, kwargs)
        return self._remembered(args, kwargs)

    # --- 3: remembered ---------------------------------------------------------------------------
    def _remembered(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for known in self.shortcuts[1:RECENT]:
            result = attempt(known.strict, args, kwargs)
            if result is not MISSED:
                self._prefer(known)
                return result
        arguments = self._arguments(args, kwargs)
        changing, given, named = self._given_to_shortcuts(arguments, args, kwargs)
        for known in self.shortcuts:
            fits = known.signature == arguments.signature and known.changing == changing and not known.compares
            result = attempt(known.strict, given, named) if fits else MISSED
            if result is not MISSED:
                if changing:
                    self._prefer(known)
                return result
        return self._answer(arguments)

    def _answer(self, arguments: Arguments) -> Any:
        """The rungs from 4 on."""
        with gate, uncollected():
            run = self._prepared(arguments)
        return run()

    def put_first(self, known: Shortcut) -> None:
        """Make a shortcut the first to be tried, together with those of other ways through the same branches."""
        others = [k for k in self.shortcuts if k is not known and k.strict is not None]
        self.shortcuts = (known, *others[:REMEMBERED - 1])
        ways = [k.strict for k in self.shortcuts if k.guarded and k.signature == known.signature]
        self._call = known.call or self.fallback
        if known.guarded and len(ways) > 1:
            tried = ways if known.entry is None else ways[1:]
            call = with_fallback(first_on_its_way(tried), self.fallback, self.writes)
            self._call = call if known.entry is None else known.entry(call)

    # --- what differs ----------------------------------------------------------------------------
    @property
    def subject(self) -> Subject:
        """What the call is about."""
        raise NotImplementedError

    def _inside(self, recorder: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call in recorded code, which did not reach this through its captures."""
        raise NotImplementedError

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        """The call taken apart."""
        raise NotImplementedError

    def _given_to_shortcuts(self, arguments: Arguments, args: tuple[Any, ...],
                            kwargs: dict[str, Any]) -> tuple[bool, Sequence[Any], dict[str, Any]]:
        """Whether leaves are changed, and the arguments of a call as shortcuts take them."""
        raise NotImplementedError

    def _prefer(self, known: Shortcut) -> None:
        """Make a shortcut that has served a call the first."""
        raise NotImplementedError

    def _prepared(self, arguments: Arguments) -> Run:
        """Rungs 4 to 7: what gives the result."""
        raise NotImplementedError


class Ladder(Called):
    """A user's function together with what is asked of it: all rungs."""

    _subject: Subject
    _raised: Raised | None = None          # how the last call ended that no shortcut has served

    @property
    def subject(self) -> Subject:
        return self._subject

    def _remembered(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._raised is not None:
            raise_again(self.subject, self._raised, args, kwargs)
            self._raised = None                          # not this time
        try:
            return super()._remembered(args, kwargs)
        except Exception as error:
            self._raised = raised_by(self.subject, error)
            raise

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        return self.subject.arguments(args, kwargs)

    def _given_to_shortcuts(self, arguments: Arguments, args: tuple[Any, ...],
                            kwargs: dict[str, Any]) -> tuple[bool, Sequence[Any], dict[str, Any]]:
        return (True, args, kwargs) if arguments.changes else (False, arguments.args, arguments.kwargs)

    # --- 4: memory -------------------------------------------------------------------------------
    def specialized(self, arguments: Arguments) -> Specialization:
        """The specialization that serves a call: in memory, on the disk, or built."""
        key = self.subject.key(arguments.signature)
        ways = self._ways(key)
        if len(ways) >= cache.configuration().ways:
            return self.in_memory(arguments) or self._passing(ways, arguments)
        return cache.store.get_or_build(                                        # type: ignore[no-any-return]
            self.subject.owner, key, lambda: self._made(arguments), accept=lambda known: self._serves(known, arguments))

    def in_memory(self, arguments: Arguments) -> Specialization | None:
        return cache.store.get(self.subject.owner, self.subject.key(arguments.signature),
                               lambda known: self._serves(known, arguments))

    def _serves(self, known: Specialization, arguments: Arguments) -> bool:
        """Whether the captures are those of the specialization, and the call takes its way through the code."""
        target = self.subject.target
        captured = known.captured(target)
        return captured is not None and not unlike(known.asked, arguments, known.plan, target) and known.missed(
            [*arguments.inputs, *captured]) is None

    def _ways(self, key: Any) -> list[Specialization]:
        """The specializations that differ in nothing but the way through the branches; not looked at closely while
        there are few."""
        found = [known for its, known in cache.store.entries(self.subject.owner)
                 if (known.guarded or known.asked) and its == key]
        if len(found) < cache.configuration().ways:
            return found
        return [known for known in found if known.captured(self.subject.target) is not None]

    # --- 5 and 6: disk, build --------------------------------------------------------------------
    def _made(self, arguments: Arguments) -> Specialization:
        reasons, how = self._reasons(arguments), self.on_mismatch
        if reasons and how == "error":
            report(self.__name__, reasons, how)
        target, request = self.subject.target, self.subject.settled
        ways = self._ways(self.subject.key(arguments.signature))
        found = stored.load(target, request, arguments) or build(
            target, request, arguments, merged(way.loops for way in ways))
        for way in ways:
            if way.loops and covers(found.loops, way.loops) and self._only_steps(way, arguments):
                cache.store.discard(self.subject.owner, way)
        cache.store.note_miss(self.subject.owner, reasons)
        if reasons:
            report(self.__name__, reasons, how)
        return found

    def _only_steps(self, known: Specialization, arguments: Arguments) -> bool:
        """Whether a specialization would serve a call, if it knew more ways of the steps of loops."""
        captured = known.captured(self.subject.target)
        if captured is None or known.recorded is None or unlike(
                known.asked, arguments, known.plan, self.subject.target):
            return False
        rest = tuple(g for g in known.tape.guards if not is_of_steps(known.tape, g))
        return len(rest) < len(known.tape.guards) and first_missed(
            conditions(replace(known.tape, guards=rest)), [*arguments.inputs, *captured]) is None

    def _passing(self, ways: list[Specialization], arguments: Arguments) -> Specialization:
        """A specialization for one call, which takes a way beyond those that are compiled."""
        reasons = self._reasons(arguments)
        if self.on_mismatch == "error":
            report(self.__name__, reasons, "error")
        made = build(self.subject.target, self.subject.settled, arguments, merged(way.loops for way in ways))
        made.passing = True
        cache.store.note_miss(self.subject.owner, reasons, building=False)
        if not any(way.crowded for way in ways):
            ways[0].crowded = True
            issue(crowd_message(self.__name__, len(ways), made.guards), ShapeChurnWarning)
        return made

    @property
    def on_mismatch(self) -> str:
        return self.subject.settings.on_mismatch or cache.configuration().on_mismatch

    def _changes(self, known: Specialization, arguments: Arguments) -> list[str]:
        """What a specialization of the same signature does not have in common with this call, in words."""
        captured = known.captured(self.subject.target)
        if captured is None:
            return known.plan.changes(self.subject.target)
        if other := unlike(known.asked, arguments, known.plan, self.subject.target):
            return [other]
        guard = known.missed([*arguments.inputs, *captured])
        if guard is None:
            return []
        return [f"another way is taken {f'at {guard.where}' if guard.where else 'through the branches'}"]

    def _reasons(self, arguments: Arguments) -> list[str]:
        """How this call differs from the closest that the function has seen, the latest if several are as close; empty
        for the first."""
        subject = self.subject
        seen = [known for key, known in cache.store.entries(subject.owner) if key == subject.key(known.signature)]
        seen = [*dict.fromkeys([k.specialization for k in self.shortcuts if k.specialization in seen] + seen)]
        found = [self._changes(known, arguments) for known in seen if known.signature == arguments.signature] or [
            differences(arguments, subject.parameters.names(len(s.structures) - len(s.keywords)), s) for s in seen]
        return min(found, key=len, default=[])

    # --- 7: kernel -------------------------------------------------------------------------------
    def _prepared(self, arguments: Arguments) -> Run:
        specialization = self.specialized(arguments)
        captured = specialization.captured(self.subject.target)
        while captured is None:                # changed by another thread since the specialization was chosen
            specialization = self.specialized(arguments)
            captured = specialization.captured(self.subject.target)
        inputs = [*arguments.inputs, *captured]
        if not specialization.passing and not (self.subject.settings.background and under_way(specialization, inputs)):
            self._with_tape(specialization, arguments, lambda: self._remember(specialization, arguments, inputs))
        return lambda: self._run(specialization, arguments, inputs)

    def _remember(self, specialization: Specialization, arguments: Arguments, inputs: list[Any]) -> None:
        """Let the next call of this kind go straight to the kernel."""
        from jitad.call.rungs.generated import native_shortcut, python_shortcut

        changes = arguments.changes
        known = Shortcut(self, arguments.signature, specialization, bool(changes))
        target, parameters = self.subject.target, self.subject.parameters
        kernel = self._kernel(specialization, arguments, inputs)
        counters, leaves = cache.store.attach(self.subject.owner, known, specialization), arguments.leaves
        known.strict = python_shortcut(specialization, kernel, target, counters, leaves,
                                       parameters.keywords(len(arguments.args)),
                                       parameters.loose(specialization.keywords), changes, arguments.passed)
        if known.strict is not None:
            call = with_fallback(known.strict, self.fallback, self.writes)
            native = None if changes else native_shortcut(specialization, kernel, target, counters, leaves, call)
            known.call = native or call
            specialization.remember(known)
            self._prefer(known)
            keep(self.subject, known)
            if specialization.kernels.get(kernel.kinds) is not kernel:    # a better one has come meanwhile
                known.forget()
        if kernel.quick:
            improve(specialization, kernel.kinds)

    def _kernel(self, specialization: Specialization, arguments: Arguments, inputs: list[Any]) -> Any:
        """The kernel: at hand, from the disk, or compiled and written there."""
        if not specialization.has_kernel(inputs):
            stored.load_kernels(specialization, self.subject.target, arguments)
        kernel = specialization.kernel(inputs)
        if not kernel.saved:
            kernel.saved = True
            if kernel.quick:                             # on the disk lies what is worth more
                cache.store.touch_size(specialization)
                return kernel
            if specialization.loaded:
                specialization.loaded = False
                cache.store.note_compile(self.subject.owner)
            cache.store.touch_size(specialization)
            stored.save(specialization, self.subject.target, arguments, kernel)
        return kernel

    def _prefer(self, known: Shortcut) -> None:
        """Make a shortcut the first, unless the cache has dropped its specialization meanwhile."""
        cache.store.publish(self.subject.owner, self.subject.key(known.signature), known.specialization, known,
                            lambda: self.put_first(known))

    # --- 8: run ----------------------------------------------------------------------------------
    def _run(self, specialization: Specialization, arguments: Arguments, inputs: list[Any]) -> Any:
        waiting = self.subject.settings.background and not specialization.has_kernel(inputs)
        if specialization.machine is None and (specialization.passing or waiting):
            return specialization.interpret(inputs)
        return self._with_tape(specialization, arguments, lambda: specialization.run(inputs))

    def _with_tape(self, specialization: Specialization, arguments: Arguments, action: Run) -> Any:
        """`action`, once more with the tape recorded if it turns out to need that."""
        try:
            return action()
        except TapeNeeded:
            complete(specialization, self.subject.target, arguments)
            return action()


Called.__call__ = Called._call                                        # type: ignore[method-assign, misc]
