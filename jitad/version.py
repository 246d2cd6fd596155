"""The version of the library, and of what it stands on."""
from __future__ import annotations

import contextlib
from importlib import metadata

__version__ = "0.2.0"


def versions(*names: str) -> list[str]:
    """The installed versions of packages, without those that are not there.

    >>> len(versions("numpy", "no such package"))
    1
    """
    found = []
    for name in names:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found.append(f"{name} {metadata.version(name)}")
    return found
