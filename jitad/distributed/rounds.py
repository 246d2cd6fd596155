"""Shards on the workers of a cluster: who holds which, the tapes for them, and rounds that are done again."""
from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jitad.distributed.cluster import Actor, Cluster, Lost
from jitad.distributed.keeper import Keeper, Key
from jitad.distributed.kinds import KINDS, names_of
from jitad.distributed.shards import Data, Leaves, joined, signature
from jitad.errors import ClusterError, SignatureError
from jitad.export.saved import packed, reader, unpacked

TRIES = 64                   # rounds of one evaluation, each of which brings a tape that was missing or a loss
CHANGED = ("has changed since the first evaluation, and workers have tapes with its old value; make the function again "
           "or pass it as data")


class Example(NamedTuple):
    """A shard and its data."""

    number: int
    data: Data


class Rounds:
    """The engine of a `Sharded` with a client."""

    def __init__(self, function: Callable[..., Any], sources: list[Any], client: Any):
        self.function, self.sources, self.cluster = function, sources, Cluster(client)
        self.names = names_of(function)
        self.held: dict[Actor, set[int]] = {}
        self.seconds: dict[str, float] = {}
        self.tapes: dict[Key, list[bytes]] = {}
        self.captured: dict[tuple[str, ...], tuple[Callable[[], Any], list[np.ndarray]]] = {}     # by their names
        self.lock = threading.RLock()

    def evaluate(self, kind: str, inputs: tuple[np.ndarray, ...]) -> Leaves:
        """As `Engine.evaluate`."""
        self._require_unchanged()
        key = kind, *(x.shape for x in inputs)
        recorded: set[int] = set()
        for _ in range(TRIES + 2 * len(self.sources)):
            with self.lock:
                found = self._attempt(key, inputs)
            if found is None:
                continue
            if not isinstance(found, Example):
                return found
            if found.number in recorded:
                raise SignatureError(f"the tape for shard {found.number} does not serve the shard that it was recorded "
                                     "for")
            recorded.add(found.number)
            self._teach(key, found, inputs)                  # without the lock: recording has one of its own
        raise ClusterError("no round came to its end: workers are lost again and again, or the log-likelihood takes "
                           "another way through its branches each time")

    def _attempt(self, key: Key, inputs: tuple[np.ndarray, ...]) -> Leaves | Example | None:
        """The sum; or a shard for which there is no tape; or None if workers were lost."""
        self._place()
        actors = list(self.held)
        answers = self._without_lost(actors, self.cluster.ask(actors, "answer", (key, inputs)))
        if answers is None:
            return None
        for actor, answer in zip(actors, answers, strict=True):
            for number in answer.missing:
                examples = self._round([(actor, "example", (number,))])
                return None if examples is None else Example(number, examples[0])
        self.seconds = {actor.address: answer.seconds for actor, answer in zip(actors, answers, strict=True)}
        return joined((0, len(self.sources)),
                      {span: leaves for answer in answers for span, leaves in answer.parts.items()})

    def _round(self, calls: list[Any]) -> list[Any] | None:
        """The answers; None if workers were lost, whose shards nobody has then."""
        return self._without_lost([call[0] for call in calls], self.cluster.round(calls))

    def _without_lost(self, actors: list[Actor], answers: list[Any]) -> list[Any] | None:
        lost = [actor for actor, answer in zip(actors, answers, strict=True) if isinstance(answer, Lost)]
        for actor in lost:
            self.held.pop(actor, None)
        return None if lost else answers

    # --- shards --------------------------------------------------------------------------------------------------
    def _place(self) -> None:
        """Let each shard have a worker: at first in equal runs, later those of lost workers where there are least."""
        while True:
            taken = set().union(*self.held.values())
            free = [n for n in range(len(self.sources)) if n not in taken]
            if not free:
                return
            alive = self.cluster.workers()
            known = {actor.address for actor in self.held}
            fresh = self.cluster.actors(Keeper, (self.names, len(self.sources)),
                                        [address for address in alive if address not in known])
            self.held.update({actor: set() for actor in fresh})
            shares = _shares(free, {actor: len(held) for actor, held in self.held.items()})
            calls = [(actor, "take", ({n: self.sources[n] for n in numbers},)) for actor, numbers in shares.items()]
            if self._round(calls) is None:
                self.held = {actor: held for actor, held in self.held.items() if actor not in shares}
                continue
            for actor, numbers in shares.items():
                self.held[actor].update(numbers)
            self._spread(list(shares), [(key, tape) for key, tapes in self.tapes.items() for tape in tapes])

    # --- tapes ---------------------------------------------------------------------------------------------------
    def _teach(self, key: Key, example: Example, inputs: tuple[np.ndarray, ...]) -> None:
        """Record with the data of a shard, and send the tape to all."""
        function = KINDS[key[0]](self.function, len(example.data))
        compiled = function.compile(inputs[0], *example.data, *inputs[1:])
        content = packed(compiled)
        captured = unpacked(content, "the tape").captured
        with self.lock:
            self.captured.setdefault(tuple(captured), (reader(compiled), list(captured.values())))
            key = *key, signature(example.data)
            known = self.tapes.setdefault(key, [])
            if content not in known:
                known.append(content)
                self._spread(list(self.held), [(key, content)])

    def _spread(self, actors: list[Actor], lessons: list[tuple[Key, bytes]]) -> None:
        self._round([(actor, "learn", lesson) for lesson in lessons for actor in actors])

    def _require_unchanged(self) -> None:
        """Raise `SignatureError` if what the log-likelihood reads is no longer what the tapes were recorded with."""
        for names, (read, known) in self.captured.items():
            now = read()
            if now is None:
                raise SignatureError(f"what the log-likelihood reads {CHANGED}")
            for name, before, value in zip(names, known, map(np.asarray, now), strict=True):
                if before.shape != value.shape or before.tobytes() != value.tobytes():
                    raise SignatureError(f"`{name}`, which the log-likelihood reads, {CHANGED}")


def _shares(numbers: list[int], loads: dict[Actor, int]) -> dict[Actor, list[int]]:
    """Shards for workers, in runs, so that in the end all have about as many."""
    order = sorted(loads, key=lambda actor: (loads[actor], actor.address))
    total = len(numbers) + sum(loads.values())
    found: dict[Actor, list[int]] = {}
    rest = list(numbers)
    for place, actor in enumerate(order):
        fair = max(0, -(-total // len(order)) - loads[actor]) if place < len(order) - 1 else len(rest)
        if rest and fair:
            found[actor], rest = rest[:fair], rest[fair:]
    return found
