"""What users can set about the cache, in one checked and immutable value."""

from __future__ import annotations

import enum
import os
from typing import NamedTuple

from .bounds import Limits, count

__all__ = ["KEEP", "Configuration", "Keep", "initial"]

ON_MISMATCH = ("warn", "error", "silent")


class Keep(enum.Enum):
    """The default of an option that is to stay as it is, where None has a meaning of its own."""

    KEEP = enum.auto()


KEEP = Keep.KEEP


class Configuration(NamedTuple):
    """The options of the cache, as `configure` takes them."""

    maxsize: int
    maxbytes: int | None
    policy: str
    ttl: float | None
    per_function: int | None
    on_mismatch: str
    disk: bool
    ways: int = 32
    parallel: bool = False
    threads: int | None = None

    @property
    def limits(self) -> Limits:
        """The options that the store in memory obeys."""
        return Limits(*self[:5])

    def changed(self, **options: object) -> Configuration:
        """Return the configuration with those options changed that are not `KEEP`, checked.

        Raises `TypeError` or `ValueError`, which names the option, for one that makes no sense.
        """
        given = {name: value for name, value in options.items() if value is not KEEP}
        if given.get("policy", "ttl") != "ttl" and "ttl" not in given:
            given["ttl"] = None  # means nothing to another policy
        new = self._replace(**given)  # type: ignore[arg-type]
        new.limits.checked()
        if new.on_mismatch not in ON_MISMATCH:
            raise ValueError(f"on_mismatch must be one of {', '.join(map(repr, ON_MISMATCH))}, not {new.on_mismatch!r}")
        if not isinstance(new.disk, bool):
            raise TypeError(f"disk must be True or False, not {new.disk!r}")
        count("ways", new.ways, "an integer number of ways")
        if not isinstance(new.parallel, bool):
            raise TypeError(f"parallel must be True or False, not {new.parallel!r}; threads= says how many threads")
        if new.threads is not None:
            count("threads", new.threads, "an integer number of threads, or None for one on each core")
        return new


def initial(limits: Limits) -> Configuration:
    """The configuration of a new process; `JITAD_DISK_CACHE=0` in its environment turns the disk cache off."""
    on = os.environ.get("JITAD_DISK_CACHE", "").strip().lower() not in ("0", "false", "no", "off")
    return Configuration(*limits, on_mismatch="warn", disk=on)
