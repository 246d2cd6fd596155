"""Discrete Fourier transforms along the last dimension, unnormalised, of complex values that are packed: a last
dimension of two holds the real and the imaginary part. With ``w = exp(-2 pi i / n)``::

    dft(x)[k]   = sum_j x[j] w^(j k)                idft(x)[j] = sum_k x[k] w^(-j k)
    rdft(x)[k]  = sum_j x[j] w^(j k),  k <= n / 2   irdft(x)[j] = sum_(k <= n / 2) Re(x[k] w^(-j k))

As real linear maps the two of each line are each other's adjoints. All functions of `numpy.fft` are made of them
(`jitad.trace.numpy_rules.algebra.fft`).
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.primitives.linear import linear
from jitad.tape.builder import Value
from jitad.tape.types import Aval, Primitive

Samples = list[tuple[tuple[Any, ...], dict[str, Any]]]


def _as_complex(x: Any) -> Any:
    return x[..., 0] + 1j * x[..., 1]


def _packed(z: Any, dtype: Any) -> Any:
    return np.stack([z.real, z.imag], axis=-1).astype(dtype)


def _irdft(x: Any, n: int) -> Any:
    """NumPy counts all coefficients but the first, and the last of an even number, twice."""
    weight = np.full(n // 2 + 1, 0.5)
    weight[0] = 1.0
    if n % 2 == 0:
        weight[-1] = 1.0
    return (np.fft.irfft(_as_complex(x) * weight, n) * n).astype(x.dtype)


def _samples(*tails: tuple[int, ...]) -> Callable[[np.random.Generator], Samples]:
    return lambda rng: [((rng.normal(size=tail),), {}) for tail in tails]


def _first(prim: Primitive, operands: Any, length: int, **params: Any) -> Value:
    """Leading dimensions are a batch."""
    return prim(operands[0][0], **params)


def _row(name: str, evaluate: Callable[..., Any], infer: Callable[..., Aval], adjoint: Callable[..., Any],
         numbers: Callable[..., tuple[int, ...]], samples: Callable[[np.random.Generator], Samples]) -> Primitive:
    prim = linear(name, evaluate, infer, lambda ct, y, x, **params: (adjoint(ct, x),), samples=samples, numbers=numbers)
    prim.batch, prim.cost = _first, 100
    return prim


def _lines(x: Aval, dimensions: int) -> int:
    return math.prod(x.shape[:x.ndim - dimensions])


_PACKED = _samples((2, 6, 2), (5, 2), (1, 2), (3, 1, 7, 2), (34, 2), (16, 2))

dft: Primitive = _row(
    "dft", lambda x: _packed(np.fft.fft(_as_complex(x)), x.dtype), lambda x: Aval(x.shape, x.dtype),
    lambda ct, x: idft(ct), lambda x, out: (_lines(x, 2), x.shape[-2]), _PACKED)
idft: Primitive = _row(
    "idft", lambda x: _packed(np.fft.ifft(_as_complex(x)) * x.shape[-2], x.dtype), lambda x: Aval(x.shape, x.dtype),
    lambda ct, x: dft(ct), lambda x, out: (_lines(x, 2), x.shape[-2]), _PACKED)
rdft: Primitive = _row(
    "rdft", lambda x: _packed(np.fft.rfft(x), x.dtype),
    lambda x: Aval((*x.shape[:-1], x.shape[-1] // 2 + 1, 2), x.dtype), lambda ct, x: irdft(ct, n=x.shape[-1]),
    lambda x, out: (_lines(x, 1), x.shape[-1]), _samples((2, 6), (5,), (1,), (2,), (3, 1, 8), (34,), (17,)))
irdft: Primitive = _row(
    "irdft", _irdft, lambda x, n: Aval((*x.shape[:-2], n), x.dtype), lambda ct, x: rdft(ct),
    lambda x, out: (_lines(x, 2), out.shape[-1]), lambda rng: [
        ((rng.normal(size=(*lead, n // 2 + 1, 2)),), {"n": n})
        for lead, n in (((2,), 6), ((), 5), ((), 1), ((), 2), ((3, 1), 8), ((), 34), ((), 17))])

__all__ = ["dft", "idft", "irdft", "rdft"]
