"""Why a kernel does not serve a call."""
from __future__ import annotations

import contextlib


class KernelMiss(Exception):
    """A kernel does not serve this call; the caller looks further."""


class SignatureMiss(KernelMiss):
    """Another shape, layout or type of an argument."""


def marked(error: BaseException) -> BaseException:
    """An exception of Python code that the kernel called, marked as no miss of the kernel, whatever its class."""
    with contextlib.suppress(AttributeError, TypeError):
        error.__jitad_raised__ = True                              # type: ignore[attr-defined]
    return error


def is_marked(error: BaseException) -> bool:
    return getattr(error, "__jitad_raised__", False)


class StatusMiss(KernelMiss):
    """The kernel stopped: an index out of bounds or a factorization that failed."""
