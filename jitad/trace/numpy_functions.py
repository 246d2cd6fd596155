"""All NumPy functions that have a rule: importing this module fills `dispatch.FUNCTIONS`."""
from jitad.trace import (
    indexing,
    numpy_contract,
    numpy_count,
    numpy_elementwise,
    numpy_join,
    numpy_linalg,
    numpy_linalg_factors,
    numpy_nan,
    numpy_order,
    numpy_pick,
    numpy_quantile,
    numpy_reduce,
    numpy_shape,
)
from jitad.trace.dispatch import FUNCTIONS, implements

__all__ = ["FUNCTIONS", "implements", "indexing", "numpy_contract", "numpy_count", "numpy_elementwise", "numpy_join", "numpy_linalg",
           "numpy_linalg_factors",
           "numpy_nan", "numpy_order", "numpy_pick", "numpy_quantile",
           "numpy_reduce", "numpy_shape"]
