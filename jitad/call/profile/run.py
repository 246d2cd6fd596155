"""`g.profile`: the tape of a call, measured."""
from __future__ import annotations

import time
from typing import Any

from jitad.call.profile.measure import measured
from jitad.call.profile.profile import Profile
from jitad.compile.outline.outline import slow
from jitad.errors import CaptureError, UnsupportedOperationError
from jitad.tape.tape import Tape
from jitad.tape.types import Where

CALLS, PATIENCE = 50, 0.1           # calls of the function itself, and seconds from which on there are no more
SHORT = 3.0                         # times a kernel's time that a call takes where the kernel is not what takes it


def profile(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Profile:
    """The profile of a call; `function` is a `Transformed`."""
    seconds = _call_seconds(function, args, kwargs)
    arguments = function.subject.arguments(args, kwargs)
    specialization = function.with_tape(arguments)
    name = function.__name__
    if specialization.machine is not None or function.subject.settled.tier == "machine" or slow(specialization.tape):
        raise UnsupportedOperationError(
            f"`{name}` is too long and irregular to be compiled at once, and has no loops to measure (see `tier` of "
            "g.compile(*args)); profile a smaller example, or write it with fewer different steps")
    captured = specialization.captured(function.subject.target)
    if captured is None:
        raise CaptureError(f"what `{name}` captures changes from call to call, while it is measured; pass it as an "
                           "argument")
    request = function.subject.settled
    active = {leaf for place in request.places or (0,) for leaf in arguments.span(place)}
    numbers = [leaf for leaf, dynamic in enumerate(arguments.dynamic) if dynamic]
    tape = specialization.tape
    varying = [tape.inputs[i] for i, leaf in enumerate(numbers) if leaf in active]
    found = measured(tape, [*arguments.inputs, *captured], varying, name)
    if seconds > SHORT * sum(part.seconds for part in found.parts):
        found.hints.append(f"most of a call's time is the way from Python into the kernel: `{name}.bind(...)`, "
                           "`.compile(...).cfunc` for samplers, or `jitad.batch` for many points at once")
    return Profile(name, function.__wrapped__, found, _places(tape), seconds)


def _call_seconds(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
    """The least time of a call; the first one compiles."""
    best, start, calls = float("inf"), 0.0, 0
    function(*args, **kwargs)
    start = time.perf_counter()
    while calls < 2 or (calls < CALLS and time.perf_counter() - start < PATIENCE):
        before = time.perf_counter()
        function(*args, **kwargs)
        best, calls = min(best, time.perf_counter() - before), calls + 1
    return best


def _places(tape: Tape) -> list[Where]:
    """The lines that have nodes on a tape, bodies of loops included."""
    found: dict[Where, None] = {}
    stack = [tape]
    while stack:
        for node in stack.pop().nodes:
            if node.where is not None and not node.is_leaf:
                found[Where(*node.where)] = None
            if node.body is not None:
                stack.append(node.body)
    return list(found)
