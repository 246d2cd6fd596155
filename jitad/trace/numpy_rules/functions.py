"""All NumPy functions that have a rule: importing this module fills `dispatch.FUNCTIONS`."""
from jitad.trace.arrays import indexing
from jitad.trace.dispatch import FUNCTIONS, implements
from jitad.trace.numpy_rules.algebra import contract, convolve, factors, fft, linalg, polynomials
from jitad.trace.numpy_rules.elements import elementwise
from jitad.trace.numpy_rules.reductions import count, nan, order, quantile, reduce, sets, statistics
from jitad.trace.numpy_rules.shapes import grids, join, pad, pick, shape

__all__ = ["FUNCTIONS", "contract", "convolve", "count", "elementwise", "factors", "fft", "grids", "implements",
           "indexing", "join", "linalg", "nan", "order", "pad", "pick", "polynomials", "quantile", "reduce", "sets",
           "shape", "statistics"]
