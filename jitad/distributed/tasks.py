"""Tasks on the workers of a cluster that know nothing of each other, done again where a worker is lost."""
from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from jitad.distributed.cluster import Cluster
from jitad.errors import ClusterError

Report = Callable[[int, str], None]              # (number of the task, what it says)


class Tasks:
    """``function(shared, *arguments)`` for each of several arguments; with `report`, ``function(shared, *arguments,
    say)``, whose ``say(text)`` is reported here. `libraries` are those on which results depend besides ours.

    What a task gives is fetched when it ends. Errors of tasks are raised here.
    """

    def __init__(self, client: Any, function: Callable[..., Any], shared: bytes, arguments: Sequence[tuple[Any, ...]],
                 report: Report | None = None, libraries: tuple[str, ...] = ()):
        Cluster(client, libraries).workers()
        self.client, self.found = client, dict[int, Any]()
        self.topic = f"jitad-{uuid.uuid4().hex}" if report is not None else None
        if report is not None:
            client.subscribe_topic(self.topic, lambda event: report(*event[1]))
        sent = client.submit(bytes, shared, pure=False)          # a task, so that it is there again if it is lost
        self.numbers = {client.submit(_told, function, sent, each, self.topic, number, pure=False): number
                        for number, each in enumerate(arguments)}

    def ended(self, within: float) -> bool:
        """Whether all have ended, or end within so many seconds."""
        from distributed import wait

        until = time.monotonic() + within
        while self.numbers:
            try:
                done = wait(list(self.numbers), max(until - time.monotonic(), 0.0), "FIRST_COMPLETED").done
            except TimeoutError:
                return False
            except OSError as error:
                raise ClusterError(f"the scheduler does not answer ({error})") from error
            self._take(sorted(done, key=self.numbers.__getitem__))
        return True

    def _take(self, done: list[Any]) -> None:
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        try:
            found = self.client.gather(done)
        except KilledWorker as error:
            raise ClusterError(f"a task was given up, since worker after worker was lost with it ({error}); they may "
                               "be out of memory") from error
        except FutureCancelledError as error:
            raise ClusterError("the cluster has lost its tasks: the scheduler was restarted, or the client closed"
                               ) from error
        for future, result in zip(done, found, strict=True):
            self.found[self.numbers.pop(future)] = result

    def wait(self) -> list[Any]:
        """What each gave, in order."""
        try:
            while not self.ended(within=10.0):
                pass
            return self.had()
        finally:
            self.stop()

    def each(self) -> Iterator[tuple[int, Any]]:
        """The number of each task and what it gave, as they end; which is not kept here."""
        try:
            over = False
            while not over or self.found:
                over = self.ended(within=0.2)
                while self.found:
                    yield self.found.popitem()
        finally:
            self.stop()

    def had(self) -> list[Any]:
        """What those gave that have ended, in order."""
        return [self.found[number] for number in sorted(self.found)]

    def stop(self) -> None:
        """Let the others go."""
        with contextlib.suppress(Exception):                     # the cluster may be gone
            self.client.cancel(list(self.numbers), force=True)
            if self.topic is not None:
                self.client.unsubscribe_topic(self.topic)
        self.numbers, self.topic = {}, None


def _told(function: Callable[..., Any], shared: bytes, arguments: tuple[Any, ...], topic: str | None,
          number: int) -> Any:
    """Runs on a worker."""
    if topic is None:
        return function(shared, *arguments)
    from distributed import get_worker

    worker = get_worker()
    return function(shared, *arguments, lambda text: worker.log_event(topic, [number, text]))
