"""Functions that machine code calls by a name of ours: their addresses, by that name."""
from __future__ import annotations

import re

ADDRESSES: dict[str, int] = {}
_OURS = re.compile(rb"jitad_\w+")


def named_in(code: bytes) -> dict[str, int]:
    """The functions that an object file names."""
    return {name: ADDRESSES[name] for name in map(bytes.decode, set(_OURS.findall(code))) if name in ADDRESSES}
