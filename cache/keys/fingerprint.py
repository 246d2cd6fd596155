"""The key of what is stored on disk: equal in another process exactly if compiled code may be used there."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable

from .encoding import Unstorable, decode, dumps, encode, loads, register

__all__ = ["Unstorable", "decode", "digest", "dumps", "encode", "fingerprint", "loads", "python_tag", "register"]


def fingerprint(parts: Iterable[object]) -> str:
    """Return a hex digest of `parts`, the same in every process: each has to be what `encode` takes.

    For compiled code the parts are the `code_key` of the top function, what is asked of it, the `Signature` of the
    arguments, the versions of all libraries that take part, `python_tag()`, name and features of the processor.
    Functions that the top one calls, and all else that it captures, belong to the `Plan`.

    Raises `Unstorable` when a part means nothing in another process.

    >>> fingerprint(["f", 1]) == fingerprint(["f", 1]) != fingerprint(["f", True])
    True
    """
    return digest(dumps(tuple(parts)))


def digest(data: bytes) -> str:
    """The digest of bytes that `fingerprint` uses."""
    return hashlib.blake2b(data, digest_size=20).hexdigest()


def python_tag() -> str:
    """The interpreter, as far as bytecode and the layout of objects depend on it."""
    return f"{sys.implementation.cache_tag}-{sys.hexversion:x}-{sys.platform}-{sys.maxsize:x}"
