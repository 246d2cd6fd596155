"""The loop language: what a kernel is, before it is printed or built.

A `Program` is a list of statements over named buffers and scalar variables. It
is the seam to the machine: `lower` writes it, the emitters turn it into Python
source or LLVM IR, nothing else reads it. Scalar arithmetic is in `jitad.tape.expr`.

Meaning of the statements:

=========== =====================================================================
Let         a new scalar variable, assigned once
Accumulator a scalar variable that `Combine` and `Assign` change, with its first value
Assign      a new value for such a variable
Combine     ``variable = variable op expr`` with op one of add, max, min, and, or; the order
            of an ``add`` is free (reassociation is what lets a sum run in vector lanes);
            ``add_in_order`` keeps it
SetElement  one element of a buffer is set
Update      ``buffer[index] = buffer[index] op expr``
Fill        every element of a buffer is set to a number
Loop        ``for variable in range(start, stop)``; `step` greater than one only
            on the loops over blocks
Portions    a loop whose steps may run at the same time, on several cores: they write at different places
Stop        leave the loop around unless the condition holds
Transpose   a matrix between two buffers: ``target[t + c * rows + r] = source[s + r * columns + c]``
CallRoutine a routine of the runtime on whole buffers (factorizations, BLAS)
Return      stop with a status unless the condition holds
Calls       many calls, in order, of a few pieces of code; see `jitad.compile.outline`
Note        a line for the reader
=========== =====================================================================

Buffers are addressed by one flat element index when they lie in C order
(`Buffer.flat`), else by one index for each dimension.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from jitad.tape.expr import Expr

SHORT = 100       # statements outside of loops up to which they are compiled as carefully as loops
ENDLESS = 1 << 40 # elements of a buffer of which a piece is not told how many there are
TINY = 4          # steps up to which a loop does not run in vector lanes
DTYPE_TAGS = {"float64": "f8", "float32": "f4", "int64": "i8", "int32": "i4", "int16": "i2", "int8": "i1",
              "uint8": "u1", "uint16": "u2", "uint32": "u4", "bool": "b1"}


_TAG_OF_NUMBER = {np.dtype(name).num: tag for name, tag in DTYPE_TAGS.items()}


def tag(dtype: np.dtype) -> str:
    """The tag of a supported dtype."""
    return _TAG_OF_NUMBER.get(dtype.num) or DTYPE_TAGS[dtype.name]


@dataclass(frozen=True)
class Buffer:
    """`kind`: ``input`` and ``output`` are parameters of the kernel, ``constant`` is data of the
    kernel, ``work`` lies in the workspace (`offset` elements into the one of its dtype). `order`
    is C, F, or A for any strides."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    kind: str
    order: str = "C"
    offset: int = 0
    value: np.ndarray | None = field(default=None, compare=False)

    @property
    def flat(self) -> bool:
        return self.order == "C"

    @property
    def size(self) -> int:
        return int(math.prod(self.shape))


@dataclass
class Let:
    name: str
    expr: Expr


@dataclass
class Accumulator:
    name: str
    first: Expr


@dataclass
class Assign:
    name: str
    expr: Expr


@dataclass
class Combine:
    name: str
    op: str
    expr: Expr


@dataclass
class SetElement:
    buffer: str
    index: tuple[Expr, ...]
    expr: Expr


@dataclass
class Update:
    buffer: str
    index: tuple[Expr, ...]
    op: str
    expr: Expr


@dataclass
class Fill:
    buffer: str
    number: float


@dataclass
class Loop:
    """`body` for `variable` from `start` up to `stop` (expressions or integers)."""

    variable: str
    start: Expr | int
    stop: Expr | int
    body: list[Statement]
    step: int = 1


@dataclass
class Portions(Loop):
    """The buffers `own` hold, in each step, what that step has written. `time` is that of all, in ns on one core."""

    own: tuple[Buffer, ...] = ()
    time: float = 0.0


@dataclass
class Stop:
    condition: Expr


@dataclass
class Transpose:
    """The matrix of `rows` and `columns` at `source_start` of a buffer, transposed to `target_start` of another."""

    target: str
    target_start: Expr
    source: str
    source_start: Expr
    rows: int
    columns: int


@dataclass
class CallRoutine:
    """`routine(*buffers, *numbers)`; the routine returns a status, zero for success. It is given the `pieces` of the
    buffers, each by its first element and their number, or if there are none the whole buffers."""

    routine: str
    buffers: tuple[str, ...]
    numbers: tuple[float, ...]
    pieces: tuple[tuple[Expr, int], ...] = ()


@dataclass
class Return:
    """Leave with `status` unless `condition` holds."""

    condition: Expr
    status: int


@dataclass
class Note:
    text: str


@dataclass
class Calls:
    """`rows` are calls, each the number of a piece and what it is given: for each of the parameters, outputs included,
    a buffer with the offset of its first element, or an integer. A piece is a program without results."""

    pieces: tuple[Program, ...]
    rows: list[tuple[int, tuple[tuple[str, int] | int, ...]]]


Statement = (Let | Accumulator | Assign | Combine | SetElement | Update | Fill | Loop | Stop | Transpose | CallRoutine
             | Return | Note | Calls)


@dataclass(frozen=True)
class Program:
    """A kernel: parameters (buffers of kind input and output, scalars as (name, dtype)),
    statements, and the scalar results in order."""

    parameters: tuple[Buffer | tuple[str, str], ...]
    outputs: tuple[Buffer, ...]
    buffers: tuple[Buffer, ...]
    body: Sequence[Statement]
    results: tuple[Expr, ...]
    workspace: dict[str, int]

    @property
    def straight(self) -> bool:
        """Whether much of the code runs once: then it should be small rather than fast."""
        return _once(self.body) > SHORT

    @property
    def general(self) -> bool:
        """Whether it is told all lengths, and so may be of use to other kernels."""
        return any(isinstance(p, Buffer) and p.size == ENDLESS for p in self.parameters)

    @property
    def fails(self) -> bool:
        """Whether the status may be another than zero."""
        return _fails(self.body)


def _once(body: Sequence[Statement]) -> int:
    """The statements that are in no loop, or in one too short for vector lanes."""
    return sum(_once(s.body) if isinstance(s, Loop) and isinstance(s.start, int) and isinstance(s.stop, int)
               and s.stop - s.start < TINY * s.step else 1 for s in body)


def _fails(body: Sequence[Statement]) -> bool:
    return any(isinstance(s, (CallRoutine, Return)) or (isinstance(s, Loop) and _fails(s.body)) or (
        isinstance(s, Calls) and any(p.fails for p in s.pieces)) for s in body)


STATUS_OK, STATUS_INDEX, STATUS_LINALG, STATUS_RANGE, STATUS_GUARD, STATUS_MEMORY = 0, 1, 2, 3, 4, 5
"""Fine; an index out of bounds; a factorization that failed; a divisor whose reciprocal overflows; another path
through the user's code; no memory for the work arrays."""
