"""Why a kernel does not serve a call."""
from __future__ import annotations


class Miss(Exception):
    """A kernel does not serve this call; the caller looks further."""


class SignatureMiss(Miss):
    """Another shape, layout or type of an argument."""


class StatusMiss(Miss):
    """The kernel stopped: an index out of bounds or a factorization that failed."""
