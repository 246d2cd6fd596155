"""scipy.signal's designs of filters by traced frequencies, and what a filter does at given ones.

A digital filter is an analog prototype, whose poles and zeros are constants, moved to the frequencies that are asked
and mapped to the unit circle by ``z = (2 + s) / (2 - s)`` (Oppenheim and Schafer, Discrete-Time Signal Processing,
chapter 7). The order of second-order sections is SciPy's at another frequency, since it does not depend on that where
all zeros are at one place.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitad.trace.dispatch import builder_in, refused
from jitad.trace.scipy_rules.classes import lifted, require, this_recorder
from jitad.trace.scipy_rules.signal.filters import lfilter
from jitad.trace.substitutes import substitute

MODULE = "scipy.signal"
BANDS = {"lowpass": "lowpass", "low": "lowpass", "lp": "lowpass", "l": "lowpass", "highpass": "highpass",
         "high": "highpass", "hp": "highpass", "h": "highpass", "bandpass": "bandpass", "band": "bandpass",
         "pass": "bandpass", "bp": "bandpass", "bandstop": "bandstop", "bands": "bandstop", "stop": "bandstop",
         "bs": "bandstop"}

Zpk = tuple[list[Any], list[Any], Any]       # zeros, poles, gain, one by one


def _moved(prototype: Zpk, kind: str, edges: Any) -> Zpk:
    """The analog prototype, whose edge is at 1, with its edges at these frequencies: ``lp2lp_zpk`` and its like."""
    zeros, poles, gain = prototype
    degree = len(poles) - len(zeros)
    if kind == "lowpass":
        return [edges * z for z in zeros], [edges * p for p in poles], gain * edges**degree
    if kind == "highpass":
        gain = gain * (np.prod(-np.array(zeros)) / np.prod(-np.array(poles))).real
        return [edges / z for z in zeros] + [0.0] * degree, [edges / p for p in poles], gain
    width, centre = edges[1] - edges[0], np.sqrt(edges[0] * edges[1])
    if kind == "bandpass":
        found = [_twins([r * (width / 2.0) for r in roots], centre) for roots in (zeros, poles)]
        return found[0] + [0.0] * degree, found[1], gain * width**degree
    gain = gain * (np.prod(-np.array(zeros)) / np.prod(-np.array(poles))).real
    found = [_twins([(width / 2.0) / r for r in roots], centre) for roots in (zeros, poles)]
    return found[0] + [1j * centre] * degree + [-1j * centre] * degree, found[1], gain


def _twins(roots: Sequence[Any], centre: Any) -> list[Any]:
    """Each root as two, moved from 0 to plus and minus the centre."""
    apart = [np.sqrt(r * r - centre * centre) for r in roots]
    return [r + d for r, d in zip(roots, apart, strict=True)] + [r - d for r, d in zip(roots, apart, strict=True)]


def _digital(analog: Zpk) -> Zpk:
    """By the bilinear map at a rate of 2, where an edge at w is that of ``4 tan(pi w / 2)``."""
    zeros, poles, gain = analog
    ratio: Any = 1.0
    for root in zeros:
        ratio = ratio * (4.0 - root)
    for root in poles:
        ratio = ratio / (4.0 - root)
    found = [[(4.0 + r) / (4.0 - r) for r in roots] for roots in (zeros, poles)]
    return found[0] + [-1.0] * (len(poles) - len(zeros)), found[1], gain * np.real(ratio)


def _polynomial(roots: Sequence[Any]) -> Any:
    """The real coefficients of the polynomial with these roots, that of the highest power first."""
    found: list[Any] = [1.0]
    for root in roots:
        found = [a - root * b for a, b in zip([*found, 0.0], [0.0, *found], strict=True)]
    return np.stack([lifted(np.real(c)) for c in found])


def _sections(zpk: Zpk, reference: tuple[Any, Any, Any]) -> Any:
    """Second-order sections of a filter whose zeros are all at one place. Their poles are those of `reference`, whose
    roots stand in the same order. Of an odd number SciPy makes an even one by a pole and a zero at 0; the zero goes to
    the first section, from the last one on, whose poles are closer to 0 than to the other zeros."""
    from scipy import signal

    zeros, poles, gain = zpk
    zero, spare = zeros[0], len(poles) % 2 == 1
    rows: list[Any] = []
    for row in signal.zpk2sos(*reference)[::-1]:
        own = [poles[int(np.argmin(np.abs(reference[1] - p)))] for p in np.roots(np.trim_zeros(row[3:], "b"))]
        last = len(rows) == len(poles) // 2
        single = spare and (last or bool(np.abs(own[0]) < np.abs(own[0] - zero)))        # a recorded branch
        spare = spare and not single
        parts = (c for roots in ([zero] if single else [zero] * 2, own)
                 for c in (_polynomial(roots), np.zeros(2 - len(roots))))
        rows.insert(0, np.concatenate(list(parts)))
    rows[0] = rows[0] * np.concatenate([np.stack([lifted(gain)] * 3), np.ones(3)])
    return np.stack(rows)


def _paired(zpk: Zpk, reference: tuple[Any, Any, Any]) -> Any:
    """Second-order sections of any digital filter, paired as `scipy.signal.zpk2sos` says of the ``nearest``: from the
    last section on, the pole that is nearest to the unit circle with its conjugate, or the next such real one, and the
    zero that is nearest to it. What is nearest is taken from `reference`, and asked of the traced roots by a guard."""
    zeros, poles, gain = zpk
    known: list[list[Any]] = [list(reference[0]), list(reference[1])]
    roots = [list(zeros), list(poles)]
    if len(known[1]) % 2:
        known, roots = [[*k, 0.0] for k in known], [[*r, 0.0] for r in roots]
    whole = [np.round(np.asarray(k, complex), 14) for k in known]
    left = [[i for i, r in enumerate(k) if r.imag >= 0] for k in whole]
    rows: list[Any] = []
    holds: list[Any] = [np.abs(np.imag(r)) > 1e-9 if k.imag else np.abs(np.imag(r)) <= 1e-9
                        for side in (0, 1) for k, r in zip(whole[side], roots[side], strict=True)]

    def take(side: int, distance: Callable[[Any], Any], only_real: bool = False) -> int:
        usable = [i for i in left[side] if not (only_real and whole[side][i].imag)]
        best = min(usable, key=lambda i: distance(whole[side][i]))
        holds.extend(distance(roots[side][best]) <= distance(roots[side][i]) + 1e-9 for i in usable if i != best)
        left[side].remove(best)
        return best

    def two(side: int, first: int, distance: Callable[[Any], Any]) -> Any:
        root = whole[side][first]
        second = take(side, distance, True) if not root.imag else int(np.argmin(np.abs(whole[side] - np.conj(root))))
        return _polynomial([roots[side][first], roots[side][second]])
    while left[1]:
        to_circle = lambda r: np.abs(1.0 - np.abs(r))
        pole = take(1, to_circle)
        there, traced = whole[1][pole], roots[1][pole]
        near = lambda r, there=there, traced=traced: np.abs(r - (there if isinstance(r, complex) else traced))
        denominator, zero = two(1, pole, to_circle), take(0, near)
        rows.insert(0, np.concatenate([two(0, zero, near), denominator]))
    pairs_the_same = [bool(h) for h in holds]                                            # recorded branches
    assert all(pairs_the_same)
    rows[0] = rows[0] * np.concatenate([np.stack([lifted(gain)] * 3), np.ones(3)])
    return np.stack(rows)


def _design(name: str, N: Any, plain: dict[str, Any], Wn: Any, btype: str, analog: bool, output: str, fs: Any) -> Any:
    from scipy import signal

    prototypes: dict[str, Callable[..., Any]] = {
        "butter": signal.buttap, "cheby1": signal.cheb1ap, "cheby2": signal.cheb2ap, "ellip": signal.ellipap,
        "bessel": signal.besselap}
    if builder_in(N, plain) is not None:
        raise refused(this_recorder(), f"{MODULE}.{name} with a traced order or ripple", "pass them as static values")
    kind = BANDS.get(btype.lower())
    if kind is None:
        raise ValueError(f"'{btype}' is an invalid bandtype for filter.")
    edges, pair = lifted(Wn), kind in ("bandpass", "bandstop")
    if edges.size != 1 + pair:
        raise ValueError(f"Wn must specify {'start and stop frequencies' if pair else 'a single critical frequency'} "
                         f"for {kind} filter")
    edges = edges if pair else edges.reshape(())
    if not analog:
        edges = edges if fs is None else 2.0 * edges / fs
        require((edges > 0) & (edges < 1), ValueError(
            "Digital filter critical frequencies must be 0 < Wn < " + ("1" if fs is None else f"fs/2 (fs={fs})")))
        share, edges = edges, 4.0 * np.tan(np.pi * edges / 2.0)
    elif fs is not None:
        raise ValueError("fs cannot be specified for an analog filter")
    z, p, k = prototypes[name](N, *plain.values())
    z, p = np.atleast_1d(z), np.atleast_1d(p)
    found = _moved((list(z), list(p), float(np.real(k))), kind, edges)
    found = found if analog else _digital(found)
    if output == "zpk":
        return (*(np.stack([lifted(r) for r in roots]) if roots else np.zeros(0) for roots in found[:2]), found[2])
    if output == "ba":
        return found[2] * _polynomial(found[0]), _polynomial(found[1])
    if output != "sos":
        raise ValueError(f"'{output}' is not a valid output form.")
    if pair or len(z) or analog or name == "bessel":
        if analog or not this_recorder().knows(share.number):
            raise refused(this_recorder(), f"{MODULE}.{name} of this kind with traced frequencies and output='sos'",
                          "use output='ba', or frequencies that are static values")
        at = np.asarray(this_recorder().concrete(share.number))
        return _paired(found, getattr(signal, name)(N, *plain.values(), at, kind, output="zpk"))
    return _sections(found, getattr(signal, name)(N, *plain.values(), 0.3, kind, output="zpk"))


@substitute(MODULE, "butter")
def butter(N: Any, Wn: Any, btype: str = "low", analog: bool = False, output: str = "ba", fs: Any = None) -> Any:
    return _design("butter", N, {}, Wn, btype, analog, output, fs)


@substitute(MODULE, "cheby1")
def cheby1(N: Any, rp: Any, Wn: Any, btype: str = "low", analog: bool = False, output: str = "ba",
           fs: Any = None) -> Any:
    return _design("cheby1", N, {"rp": rp}, Wn, btype, analog, output, fs)


@substitute(MODULE, "cheby2")
def cheby2(N: Any, rs: Any, Wn: Any, btype: str = "low", analog: bool = False, output: str = "ba",
           fs: Any = None) -> Any:
    return _design("cheby2", N, {"rs": rs}, Wn, btype, analog, output, fs)


@substitute(MODULE, "ellip")
def ellip(N: Any, rp: Any, rs: Any, Wn: Any, btype: str = "low", analog: bool = False, output: str = "ba",
          fs: Any = None) -> Any:
    return _design("ellip", N, {"rp": rp, "rs": rs}, Wn, btype, analog, output, fs)


@substitute(MODULE, "freqz")
def freqz(b: Any, a: Any = 1, worN: Any = 512, whole: bool = False, plot: Any = None, fs: Any = 2 * np.pi,
          include_nyquist: bool = False) -> Any:
    if plot is not None:
        raise refused(this_recorder(), f"{MODULE}.freqz with plot=", "plot outside of the function")
    b, a = (np.atleast_1d(lifted(c)) for c in (b, a))
    if b.ndim != 1 or a.ndim != 1:
        raise refused(this_recorder(), f"{MODULE}.freqz of several filters", "call it for each")
    if worN is None or isinstance(worN, (int, np.integer)):
        n = 512 if worN is None else int(worN)
        w = np.linspace(0.0, 2.0 * np.pi if whole else np.pi, n, endpoint=bool(include_nyquist) and not whole)
    else:
        w = 2.0 * np.pi * lifted(worN) / fs
    response = _at(b, w) / _at(a, w)
    return w * (fs / (2.0 * np.pi)), response


def _at(c: Any, w: Any) -> Any:
    """The polynomial with the coefficients `c` in ``exp(-i w)``."""
    phase = np.multiply.outer(lifted(w), np.arange(c.shape[0], dtype=float))
    return np.cos(phase) @ c - 1j * (np.sin(phase) @ c)


@substitute(MODULE, "deconvolve")
def deconvolve(signal: Any, divisor: Any) -> Any:
    number, divisor = (np.atleast_1d(lifted(c)) for c in (signal, divisor))
    if number.ndim > 1 or divisor.ndim > 1:
        raise ValueError("signal must be 1-D." if number.ndim > 1 else "divisor must be 1-D.")
    n, d = number.shape[0], divisor.shape[0]
    if d > n:
        return np.zeros(0), number
    quotient = lfilter(number, divisor, np.eye(1, n - d + 1)[0])
    return quotient, number - np.convolve(divisor, quotient)
