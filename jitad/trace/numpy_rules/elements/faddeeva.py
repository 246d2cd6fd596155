"""The Faddeeva function of scipy.special by real and imaginary parts, and the Voigt profile.

``w(z) = exp(-z**2) erfc(-i z)`` by the midpoint and the trapezium rule with the residues of the poles nearby (M. Al
Azah and S. N. Chandler-Wilde, SIAM J. Numer. Anal. 59 (2021) 2346, with N = 11), in real arithmetic: in the terms of
the real part nothing cancels.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.scipy_ufuncs import ufuncs as sp
from jitad.trace.arrays.choice import choose
from jitad.trace.dispatch import lift_all
from jitad.trace.ufuncs import as_float, composed
from jitad.trace.values.pairs import pair

COUNT = 11
STEP = float(np.sqrt(np.pi / (COUNT + 1)))
HALVES, WHOLES = (np.arange(COUNT + 1) + 0.5) * STEP, np.arange(1, COUNT + 1) * STEP
FAR = float(np.pi / STEP)                     # imaginary parts from which on no pole is near


def _sums(x: Any, y: Any, nodes: np.ndarray) -> tuple[Any, Any]:
    """``2 h i z / pi`` times the sum of ``exp(-t**2) / (z**2 - t**2)``."""
    x, y = (np.expand_dims(v, -1) for v in (x, y))
    squares, weights = x * x + y * y, 2.0 * STEP / np.pi * np.exp(-nodes * nodes)
    below, above = np.square(x - nodes) + y * y, np.square(x + nodes) + y * y
    re = np.sum(weights * y * ((squares + nodes * nodes) / below) / above, axis=-1)
    return re, np.sum(weights * x * ((squares - nodes * nodes) / below) / above, axis=-1)


def _residue(x: Any, y: Any, sign: float) -> tuple[Any, Any]:
    """``2 exp(-z**2) / (1 + sign exp(-2 pi i z / h))``."""
    turn, grown = 2.0 * np.pi / STEP * x, np.exp(2.0 * np.pi / STEP * y)
    re, im = 1.0 + sign * grown * np.cos(turn), -sign * grown * np.sin(turn)
    scale = 2.0 * np.exp((y - x) * (y + x)) / (re * re + im * im)
    cosine, sine = np.cos(2.0 * x * y), np.sin(2.0 * x * y)
    return scale * (cosine * re - sine * im), -scale * (cosine * im + sine * re)


def upper(x: Any, y: Any) -> tuple[Any, Any]:
    """``w(x + iy)`` for y >= 0."""
    size = np.absolute(x) / STEP
    place = size - np.floor(size)
    alone = (y >= FAR) & (y >= np.absolute(x))
    whole = (place >= 0.25) & (place <= 0.75) & ~alone              # by nodes at whole steps, whose poles are far
    half_x, whole_x = choose(whole, STEP, x), choose(whole, x, 0.5 * STEP)
    near = y < FAR
    low, zero = choose(near, y, 1.0), 0.0 * y
    halves, wholes = _sums(half_x, y, HALVES), _sums(whole_x, y, WHOLES)
    squares = whole_x * whole_x + y * y
    wholes = (wholes[0] + STEP / np.pi * y / squares, wholes[1] + STEP / np.pi * whole_x / squares)
    corrected = []
    for sums, at, sign in ((halves, half_x, 1.0), (wholes, whole_x, -1.0)):
        residue = _residue(choose(near, at, 0.4 * STEP), low, sign)
        corrected.append(tuple(part + choose(near, extra, zero) for part, extra in zip(sums, residue, strict=True)))
    first, second = corrected
    return choose(whole, second[0], first[0]), choose(whole, second[1], first[1])


def faddeeva(x: Any, y: Any) -> tuple[Any, Any]:
    """``w(x + iy)``, below the real line as ``2 exp(-z**2) - w(-z)``."""
    below = y < 0
    re, im = upper(x, choose(below, -y, y))
    depth = choose(below, y, 0.0)
    grown = 2.0 * np.exp((depth - x) * (depth + x))
    return (choose(below, grown * np.cos(2.0 * x * depth) - re, re),
            choose(below, im - grown * np.sin(2.0 * x * depth), im))


@composed(sp.wofz)
def _wofz(x: Any) -> Any:
    """Of a real number."""
    x = as_float(lift_all(x)[0])
    return pair(*faddeeva(x, 0.0 * x))


@composed(sp.voigt_profile)
def _voigt(x: Any, sigma: Any, gamma: Any) -> Any:
    """``Re w((x + i gamma) / (sigma sqrt(2))) / (sigma sqrt(2 pi))``; that of Cauchy for sigma = 0."""
    x, sigma, gamma = (as_float(v) for v in lift_all(x, sigma, gamma))
    zero = sigma == 0
    scale = np.sqrt(2.0) * choose(zero, 1.0, sigma)
    re, im = x / scale, gamma / scale
    profile = faddeeva(re + 0.0 * im, im + 0.0 * re)[0] / (np.sqrt(np.pi) * scale)
    return choose(zero, gamma / np.pi / (x * x + gamma * gamma), profile)
