"""All NumPy functions that have a rule: importing this module fills `dispatch.FUNCTIONS`."""
from jitad.trace import (
    indexing,
    numpy_contract,
    numpy_convolve,
    numpy_count,
    numpy_elementwise,
    numpy_fft,
    numpy_grids,
    numpy_join,
    numpy_linalg,
    numpy_linalg_factors,
    numpy_nan,
    numpy_order,
    numpy_pad,
    numpy_pick,
    numpy_polynomials,
    numpy_quantile,
    numpy_reduce,
    numpy_sets,
    numpy_shape,
    numpy_statistics,
)
from jitad.trace.dispatch import FUNCTIONS, implements

__all__ = ["FUNCTIONS", "implements", "indexing", "numpy_contract", "numpy_convolve",
           "numpy_count", "numpy_elementwise", "numpy_fft", "numpy_grids",
           "numpy_join", "numpy_linalg", "numpy_linalg_factors", "numpy_nan", "numpy_order", "numpy_pad", "numpy_pick",
           "numpy_polynomials", "numpy_quantile", "numpy_reduce", "numpy_sets", "numpy_shape", "numpy_statistics"]
