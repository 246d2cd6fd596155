"""What a worker holds for one `Sharded`: some of its shards, and the tapes for them."""
from __future__ import annotations

import functools
import platform
import time
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import numpy as np

from jitad.distributed.kinds import answer
from jitad.distributed.lines import Answering
from jitad.distributed.shards import Data, Leaves, Range, loaded, signature, subtrees, summed
from jitad.errors import SignatureError
from jitad.export.saved import SavedTape, unpacked
from jitad.version import __version__

Key = tuple[Any, ...]                        # kind, shapes of what is not data, and the signature of the data
PROGRAMS = 64                                # tapes that a worker keeps compiled


class Answer(NamedTuple):
    """Sums over subtrees, or the shards for which there is no tape; and how long it took."""

    parts: dict[Range, Leaves]
    missing: list[int]
    seconds: float


def versions(libraries: tuple[str, ...] = ()) -> dict[str, str]:
    """The versions on which the bits of a result depend, those of further libraries among them."""
    found = {name: _version(name) for name in ("numpy", "scipy", "numba", "llvmlite", *libraries)}
    return {"Python": ".".join(platform.python_version_tuple()[:2]), "jitad": __version__, **found}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


@functools.lru_cache(PROGRAMS)
def program(content: bytes) -> SavedTape:
    """The tape of these bytes, once in each process, whoever sent it."""
    return unpacked(content, "what was sent")


class Keeper(Answering):
    """An actor: lives in a worker, and answers its client. `names` are those of the arguments that are data."""

    def __init__(self, names: list[str], count: int):
        self.names, self.count = names, count
        self.data: dict[int, Data] = {}
        self.tapes: dict[Key, list[SavedTape]] = {}

    def take(self, sources: dict[int, Any]) -> None:
        """Load shards and keep them."""
        for number, source in sources.items():
            self.data[number] = loaded(source, number, self.names)

    def example(self, number: int) -> Data:
        """The data of a shard, for the client to record with."""
        return self.data[number]

    def learn(self, key: Key, content: bytes) -> None:
        """Take a tape for shards of the signature with which the key ends."""
        self.tapes.setdefault(key, []).append(program(content))

    def answer(self, key: Key, inputs: tuple[np.ndarray, ...]) -> Answer:
        """What the shards give, added as far as they are under one node of the tree."""
        begun = time.perf_counter()
        found: dict[int, Leaves] = {}
        missing: dict[Key, int] = {}
        for number in sorted(self.data):
            kept = (*key, signature(self.data[number]))
            leaves = self._one(self.tapes.get(kept, ()), inputs, number) if kept not in missing else None
            if leaves is None:
                missing.setdefault(kept, number)
            else:
                found[number] = leaves
        parts = {} if missing else {
            span: summed(span, found.__getitem__) for span in subtrees((0, self.count), set(found))}
        return Answer(parts, list(missing.values()), time.perf_counter() - begun)

    def _one(self, tapes: Iterable[SavedTape], inputs: tuple[np.ndarray, ...], number: int) -> Leaves | None:
        """By the tape whose way through the branches the data take; None if there is none."""
        for tape in tapes:
            try:
                return answer(tape, inputs, self.data[number], number, self.names)
            except SignatureError:
                continue
        return None
