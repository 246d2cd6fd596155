"""Functions that machine code calls by a name of ours: their addresses, by that name."""
from __future__ import annotations

import re
from collections.abc import Callable

ADDRESSES: dict[str, int] = {}
LATER: dict[str, Callable[[], int]] = {}        # those that are found when code first names them
_OURS = re.compile(rb"jitad_\w+")


def named_in(code: bytes) -> dict[str, int]:
    """The functions that an object file names."""
    names = set(map(bytes.decode, _OURS.findall(code)))
    for name in names & LATER.keys() - ADDRESSES.keys():
        ADDRESSES[name] = LATER[name]()
    return {name: ADDRESSES[name] for name in names & ADDRESSES.keys()}
