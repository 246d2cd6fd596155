"""Choices between arrays, element by element."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.core import select
from jitad.tape.builder import Value
from jitad.trace.dispatch import as_value, builder_in, checked, stand_in


def truth(x: Any) -> Any:
    """`x` as Boolean."""
    if not isinstance(x, Value):
        return np.asarray(x).astype(bool)
    return x if x.dtype.kind == "b" else x != 0


def choose(condition: Any, *branches: Any) -> Any:
    """``np.where``; the result without dimensions is a number."""
    builder = builder_in(condition, branches)
    if len(branches) == 1:
        raise ValueError("either both or neither of x and y should be given")
    operands = [o if isinstance(o, Value) else as_value(builder, o) if isinstance(o, (list, tuple)) else
                checked(builder, o) for o in (condition, *branches)]
    shapes = [np.shape(o) for o in operands]
    if len(set(shapes)) > 1:
        np.where(*map(stand_in, shapes))                            # NumPy's own message
    return select(truth(operands[0]), *operands[1:])
