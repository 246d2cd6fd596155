"""What a function reads of the process without naming it, as values to compare: what its results may depend on."""

from __future__ import annotations

import decimal
import locale
import sys
import time
from collections.abc import Callable, Hashable

__all__ = ["STATES"]


def _context() -> Hashable:
    now = decimal.getcontext()
    traps = tuple(sorted(kind.__name__ for kind, set_ in now.traps.items() if set_))
    return now.prec, now.rounding, now.Emin, now.Emax, now.capitals, now.clamp, traps


# Each is equal in two processes, or at two times, where what it stands for is.
STATES: dict[str, Callable[[], Hashable]] = {
    "decimal context": _context,
    "hashes of texts": lambda: hash("jitad"),                # another number in each process
    "local time": lambda: (time.timezone, time.altzone, *time.tzname),
    "locale": lambda: locale.setlocale(locale.LC_ALL),
    "options of the interpreter": lambda: tuple(sys.flags),
}
