"""All of NumPy's functions that have a rule: importing this module fills `dispatch.FUNCTIONS` and `SUBSTITUTES`."""
from jitad.trace.arrays import indexing
from jitad.trace.numpy_rules.algebra import contract, convolve, factors, fft, linalg, polynomials
from jitad.trace.numpy_rules.elements import cmath_functions, elementwise, faddeeva, math_functions, vectorize
from jitad.trace.numpy_rules.reductions import (
    count,
    histograms,
    methods,
    nan,
    order,
    quantile,
    reduce,
    samples,
    sets,
    statistics,
)
from jitad.trace.numpy_rules.shapes import fill, grids, join, pad, pick, shape

__all__ = ["cmath_functions", "contract", "convolve", "count", "elementwise", "factors", "faddeeva", "fft", "fill",
           "grids", "histograms", "indexing", "join", "linalg", "math_functions", "methods", "nan", "order", "pad",
           "pick", "polynomials", "quantile", "reduce", "samples", "sets", "shape", "statistics", "vectorize"]
