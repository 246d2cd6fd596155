"""The routines as plain Python on flat arrays, for generated source: the arguments are those of the compiled ones."""
from __future__ import annotations

from collections.abc import Callable

ROUTINES: dict[str, Callable[..., int]] = {}            # by the name of the row


def registered(routine: Callable[..., int]) -> Callable[..., int]:
    """A decorator of the routine of that name: ``routine(result, *operands, *numbers)`` gives the status."""
    ROUTINES[routine.__name__] = routine
    return routine
