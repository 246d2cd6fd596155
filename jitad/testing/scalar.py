"""The scalar code of a row, from which the loops of kernels are made, at special values."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.compile.reference import scalar as scalar_numpy
from jitad.primitives.core import loop_dtypes
from jitad.tape.expr import var
from jitad.tape.types import Primitive
from jitad.testing.rules import close, require

TAGS = {"d": "f8", "f": "f4", "?": "b1"}
SPECIAL: dict[str, list[Any]] = {
    "f8": [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 1.5, 2.5, -2.5, 0.3, -0.7, 1e-3, 7.3, -7.3, 40.0,
           -40.0, 1e5, -1e5, 1e17, 5e-324, -5e-324, 1e-310, 1e300, -1e300, np.inf, -np.inf, np.nan],
    "i8": [0, 1, -1, 2, -2, 3, -3, 5, -7, 62, 63, 64, 1000, 2**31, -2**31, 2**62, 2**63 - 1, -2**63],
    "b1": [False, True],
}
SPECIAL["f4"] = [x for x in SPECIAL["f8"] if not 0 < abs(x) < 1e-300 and not 1e38 < abs(x) < np.inf] + [1e-42, 3e38]


def tag(dtype: np.dtype[Any]) -> str:
    return TAGS.get(dtype.char, "i8")


def check_scalar(row: Primitive, kind: str, rtol: float = 1e-15) -> bool:
    """The scalar code of a ufunc's row at all pairs of special values of the dtype `kind`; False if NumPy has no
    loop for it."""
    assert row.ufunc is not None and row.scalar is not None
    grid = np.meshgrid(*[np.asarray(SPECIAL[kind], scalar_numpy.DTYPES[kind])] * row.ufunc.nin)
    arrays = [g.ravel() for g in grid]
    try:
        dtypes = loop_dtypes(row.ufunc, tuple(a.dtype for a in arrays))
    except TypeError:
        return False
    arrays = [a.astype(d) for a, d in zip(arrays, dtypes, strict=False)]
    if row.ufunc is np.power and dtypes[0].kind == "i":
        arrays = [a[arrays[1] >= 0] for a in arrays]
    names = [f"x{i}" for i in range(len(arrays))]
    expr = row.scalar(*(var(n, tag(d)) for n, d in zip(names, dtypes, strict=False)))
    case = f"the scalar code of {row.name} for {kind}"
    require(expr.dtype == tag(dtypes[-1]), case, f"dtype {expr.dtype}, expected {tag(dtypes[-1])}")
    got = scalar_numpy.evaluate(expr, dict(zip(names, arrays, strict=True)))
    got = np.broadcast_to(got, arrays[0].shape).astype(dtypes[-1])
    with np.errstate(all="ignore"):
        expected = row.ufunc(*arrays)
    for i in range(expected.size):
        at = f"at ({', '.join(repr(a[i]) for a in arrays)})"
        e = expected[i]
        finite = e.dtype.kind == "f" and np.isfinite(e)
        precise = rtol if e.dtype != np.float32 else 3e-7
        close(case, at, got[i], e, 4 * precise if finite else 0.0, float(np.finfo(e.dtype).tiny) if finite else 0.0)
    return True
