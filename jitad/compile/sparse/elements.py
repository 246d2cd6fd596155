"""How the rows of `jitad.primitives.factors` find elements of inverses: numba is imported when one asks."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.factors.sparse import SELECTED

__all__ = ["elements"]


def elements(*given: Any) -> np.ndarray | None:
    """Z[columns, rows] of the factors that come before `rows` and `columns`; None where one is not known."""
    from jitad.compile.sparse.selected import places, selected

    *factors, rows, columns = given
    l_starts, l_rows, _, u_starts, u_columns, *_ = factors
    at = places(l_starts, l_rows, u_starts, u_columns, rows, columns)
    *found, whole = selected(*factors)
    return np.concatenate(found)[at] if whole and not np.any(at < 0) else None


SELECTED.elements = elements
