"""What SciPy itself does when the compiled function runs, called through Python: results through which no derivative
flows, such as positions."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.primitives.core import stop_gradient
from jitad.primitives.custom import Code, opaque
from jitad.primitives.index import reshape
from jitad.tape.builder import Value
from jitad.tape.types import Aval
from jitad.trace.scipy_rules.classes import lifted, this_recorder

__all__ = ["served"]


def served(name: str, function: Callable[..., Any], operands: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """``function(*operands)``, an array of this shape and dtype, as a constant to derivatives."""
    recorder = this_recorder()
    given = [lifted(x) for x in operands]
    shapes = [x.shape for x in given]
    with recorder.plain():
        flat = [reshape(stop_gradient(v) if v.dtype.kind == "f" else v, v.shape or (1,))
                for v in (Value(recorder, x.number) for x in given)]

        def serve(arrays: Any) -> np.ndarray:
            found = function(*(a.reshape(s) for a, s in zip(arrays, shapes, strict=True)))
            return np.ascontiguousarray(found, dtype).reshape(-1)
        code = Code(name, function, serve, tuple(Aval(v.shape, v.dtype) for v in flat),
                    int(np.prod(shape, dtype=np.int64)), np.dtype(dtype))
        result = reshape(opaque(*flat, code=code), shape)
    return recorder.value(result.number)
