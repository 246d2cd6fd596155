"""The transforms of `jitad.compile.routines.fft` for generated source that runs as Python."""
from __future__ import annotations

from typing import Any

from jitad.compile.loops import STATUS_OK
from jitad.compile.reference.table import registered
from jitad.primitives import fft as rows


def _of_lines(name: str, out: Any, x: Any, shape: tuple[int, ...], **params: Any) -> int:
    found = getattr(rows, name).evaluate(x.reshape(shape), **params)
    out.reshape(found.shape)[...] = found
    return STATUS_OK


@registered
def dft(out: Any, x: Any, lines: int, n: int) -> int:
    return _of_lines("dft", out, x, (lines, n, 2))


@registered
def idft(out: Any, x: Any, lines: int, n: int) -> int:
    return _of_lines("idft", out, x, (lines, n, 2))


@registered
def rdft(out: Any, x: Any, lines: int, n: int) -> int:
    return _of_lines("rdft", out, x, (lines, n))


@registered
def irdft(out: Any, x: Any, lines: int, n: int) -> int:
    return _of_lines("irdft", out, x, (lines, n // 2 + 1, 2), n=n)
