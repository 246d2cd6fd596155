"""Names of the variables of a kernel: the user's for inputs and outputs, the primitive's and a number for the rest."""
from __future__ import annotations

import keyword
import re

import jitad.primitives  # noqa: F401  (fills the table of rows)
from jitad.compile.math.table import EXPANSIONS
from jitad.tape.tape import Tape
from jitad.tape.types import TABLE

VARIABLES = (*"ijklmnpq", *(f"i_{place}" for place in range(8, 64)))       # of the loops, outermost first
RESERVED = frozenset((
    *keyword.kwlist, *EXPANSIONS, *VARIABLES,
    *"block end lane part turn first last status np base64 zlib range min max abs len".split(),
    *"select accumulate maximum minimum logical_not quotient bits unbits".split(),
    *"floor ceil trunc rint copysign fmod sqrt".split(),
    *(name for name, row in TABLE.items() if row.kind == "call")))
"""What the printed source uses, besides what the lowering makes."""

# What the lowering calls its own variables. A name with enough underscores at its end is never one of them.
_TEMPORARY = re.compile(r"special_\w*[a-z0-9]|[tc]\d+|(part|within)_\d+(_\d+)?|work_\w\d|end_\w+|\w+_(at|\d+_|row\d)")


def plain_name(name: str, otherwise: str = "x") -> str:
    """`name` as an identifier; `otherwise` where too little of it is left."""
    clean = "".join(c if c.isalnum() and c.isascii() else "_" for c in name).strip("_")
    return clean if clean and not clean[0].isdigit() else otherwise


def unique_names(tape: Tape) -> dict[int, str]:
    """A readable name for each node, that nothing else in the kernel has."""
    names: dict[int, str] = {}
    taken: set[str] = set()

    def take(number: int, name: str) -> None:
        while name in taken or name in RESERVED or _TEMPORARY.fullmatch(name):
            name += "_"
        names[number] = name
        taken.add(name)

    for number, name in [*zip(tape.inputs, tape.names, strict=True), *zip(tape.outputs, tape.labels, strict=False)]:
        take(number, plain_name(name, f"x{number}"))
    for number, node in enumerate(tape.nodes):
        if number not in names:
            take(number, f"{str(node.prim).removeprefix('reduce_')}_{number}")
    return names
