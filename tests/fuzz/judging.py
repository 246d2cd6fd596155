"""Whether jitad computes what NumPy computes, and the derivative that differences in long double give."""
from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitad import InternalError, JitadError, TapeError, value_and_grad
from jitad.call import ladder
from jitad.call.ladder import under_way

STEP = 1e-4                                              # of central differences, extrapolated once
SMOOTH = 1e-5                                            # by how much two steps may differ where there is no kink


@dataclass
class Verdict:
    """What became of a program: ``same``, ``refused`` (an error of ours, or Python's own), or ``different``."""

    kind: str
    words: str = ""
    kinks: int = 0


def quietly(function: Callable[..., Any], *args: Any) -> Any:
    """The result, or the exception, without NumPy's warnings."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return function(*[np.array(a) for a in args])
        except Exception as error:
            return error


def slope(f: Callable[..., Any], x: np.ndarray, y: np.ndarray, direction: tuple[np.ndarray, np.ndarray],
          wide: Any) -> float | None:
    """The derivative along a direction by differences; None at a kink, or where there is no number."""
    def moved(t: float) -> Any:
        t = wide(t)
        return quietly(f, *(a.astype(wide) + t * d.astype(wide) for a, d in zip((x, y), direction, strict=True)))

    found = []
    for step in (STEP, STEP / 4):
        ends = [moved(s * step) for s in (1, -1, 0.5, -0.5)]
        if any(isinstance(e, Exception) or not np.isfinite(e) for e in ends):
            return None
        far, near = (ends[0] - ends[1]) / (2 * step), (ends[2] - ends[3]) / step
        found.append((4 * near - far) / 3)
    here = moved(0.0)
    at_once = abs(ends[2] + ends[3] - 2 * here) / step   # of order `step` where it is smooth
    scale = 1 + abs(found[0])
    return float(found[1]) if abs(found[0] - found[1]) < SMOOTH * scale and at_once < 1e-3 * scale else None


def unsteady(f: Callable[..., Any], x: np.ndarray, y: np.ndarray, by: float, seed: int) -> bool:
    """Whether the last bits of the arguments decide about more than a thousandth of `by`: singular matrices."""
    rng = np.random.default_rng(seed)
    near = [quietly(f, *(a * (1 + 50 * np.finfo(a.dtype).eps * rng.normal(size=a.shape)).astype(a.dtype)
                        for a in (x, y))) for _ in range(12)]
    values = [float("nan") if isinstance(v, Exception) else float(v) for v in near]
    return len(set(map(np.isnan, values))) > 1 or not np.ptp(values) <= 1e-3 * abs(by)


def judge(f: Callable[..., Any], points: list[tuple[np.ndarray, np.ndarray]], text: str, seed: int,
          interpreted: bool = False) -> Verdict:
    """Compare at all points: the first records, the others run what was compiled, or record another way. `interpreted`
    leaves out the compilation, as if it were for ever under way in the background."""
    ladder.under_way = (lambda *args: True) if interpreted else under_way
    compiled = value_and_grad(f, argnums=(0, 1), compile="background" if interpreted else "now")
    rng = np.random.default_rng(seed)
    exact = "linalg" not in text and points[0][0].dtype == np.float64
    wide = np.longdouble if exact else np.float64
    tolerance = 1e-6 if exact else 2e-4 if points[0][0].dtype == np.float64 else 5e-3
    kinks = 0
    for number, (x, y) in enumerate(points):
        expected = quietly(f, x, y)
        found = quietly(compiled, x, y)
        if isinstance(found, (InternalError, TapeError)):
            return Verdict("different", f"{type(found).__name__}: {found}")     # no words for users
        if isinstance(found, JitadError):
            return Verdict("refused", f"{type(found).__name__}: {found}")
        if isinstance(found, ValueError) and "read-only" in str(found) and not isinstance(expected, Exception):
            return Verdict("refused", f"at point {number}: {found}")        # np.add.at writes into what is read-only
        if isinstance(expected, Exception) or isinstance(found, Exception):
            if type(expected) is type(found):
                continue
            if "'float' object has no attribute" in str(expected):
                continue                                 # Python's numbers are as NumPy's
            if "linalg" in text and unsteady(f, x, y, 1.0, seed):
                kinks += 1
                continue
            return Verdict("different", f"point {number}: NumPy {expected!r}, jitad {found!r}", kinks)
        value, gradient = found
        if not close(value, expected, 1e-9 if x.dtype == np.float64 else 1e-4):
            if "linalg" in text and unsteady(f, x, y, expected - value, seed):
                kinks += 1
                continue
            return Verdict("different", f"point {number}: NumPy {expected!r}, jitad {value!r}", kinks)
        if not abs(expected) < 1e6:                      # differences of large numbers say nothing
            continue
        direction = tuple(rng.normal(size=a.shape) * np.isfinite(a) for a in (x, y))
        reference = slope(f, x, y, direction, wide)      # type: ignore[arg-type]
        if reference is None:
            kinks += 1
            continue
        total, size = along(gradient, direction)
        if np.isnan(total):                              # as that of a root at 0: there must be a number beside it
            x, y = (a + 1e-3 * d.astype(a.dtype) for a, d in zip((x, y), direction, strict=True))
            reference, found = slope(f, x, y, direction, wide), quietly(compiled, x, y)
            kinks += 1
            if reference is None or isinstance(found, Exception):
                continue
            total, size = along(found[1], direction)
        if not abs(total - reference) <= tolerance * size and not (
                "linalg" in text and unsteady(f, x, y, (total - reference) * STEP, seed)):
            return Verdict("different", f"point {number}: slope {reference!r}, jitad {total!r}", kinks)
    return Verdict("same", kinks=kinks)


def along(gradient: Any, direction: tuple[np.ndarray, np.ndarray]) -> tuple[Any, Any]:
    """The derivative along a direction, and how large its terms are."""
    terms = [np.where(d != 0, g * d, 0.0) for g, d in zip(gradient, direction, strict=True)]
    return sum(t.sum() for t in terms), 1 + sum(np.abs(t).sum() for t in terms)


def close(a: Any, b: Any, rtol: float) -> bool:
    a, b = float(a), float(b)
    return (np.isnan(a) and np.isnan(b)) or a == b or bool(abs(a - b) <= rtol * (1 + abs(b)))
