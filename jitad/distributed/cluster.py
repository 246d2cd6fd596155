"""Actors on the workers of a `distributed.Client`, and rounds of calls of them.

A round goes from the client to the workers and back, not by way of the scheduler, which is asked only which workers
are alive when one does not answer. Calls that are many and small go by lines (`jitad/distributed/lines.py`).
"""
from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from jitad.distributed.keeper import versions
from jitad.distributed.lines import DirectLine, message, new_secret, opened
from jitad.errors import ArgumentTypeError, ClusterError

PATIENCE = 2.0               # seconds without an answer, after which the scheduler is asked whether the worker is alive


@dataclass(eq=False)
class Actor:
    """An object on a worker; it lives as long as the future. `line` is False until one is wanted, None if there is
    none."""

    address: str
    future: Any
    line: DirectLine | bool | None = False


class Lost:
    """In place of an answer: the worker is gone."""


class Cluster:
    """A client whose workers are asked in rounds. `libraries` are those on which results depend besides ours."""

    def __init__(self, client: Any, libraries: tuple[str, ...] = ()):
        _require_client(client)
        self.client, self.libraries, self.checked = client, libraries, set[str]()
        self.process = os.getpid()

    def workers(self) -> list[str]:
        """The addresses of the workers that are alive, in a fixed order; all have our versions of the libraries.

        Raises `ClusterError` if there are none, if they have others, or without a scheduler.
        """
        self._require_own_process()
        try:
            alive = sorted(self.client.nthreads())
        except OSError as error:
            raise ClusterError(f"the scheduler does not answer ({error}); make a new client, and the function with "
                               "it") from error
        if not alive:
            raise ClusterError("the cluster has no workers (any more)")
        self._require_versions([address for address in alive if address not in self.checked])
        return alive

    def _require_versions(self, addresses: list[str]) -> None:
        if not addresses:
            return
        ours = versions(self.libraries)
        found = self.client.run(versions, self.libraries, workers=addresses, on_error="return")
        for address, theirs in found.items():
            if isinstance(theirs, OSError):
                continue                                     # it is gone, which the round will find
            if isinstance(theirs, BaseException):
                raise ClusterError(f"the worker {address} cannot import jitad ({theirs}); install "
                                   f"jitad {ours['jitad']} there") from theirs
            wrong = [f"{name} {theirs.get(name)} there and {here} here" for name, here in ours.items()
                     if theirs.get(name) != here]
            if wrong:
                raise ClusterError(f"the worker {address} has other versions: {', '.join(wrong)}; results would depend "
                                   "on which worker gave them. Install the same")
            self.checked.add(address)

    def actors(self, make: Callable[..., Any], arguments: Sequence[Any], addresses: Iterable[str]) -> list[Actor]:
        """An object on each of the workers, but for those that are lost meanwhile."""
        from distributed import wait

        made = [Actor(address, self.client.submit(make, *arguments, actor=True, workers=[address], pure=False,
                                                  allow_other_workers=False)) for address in addresses]
        while made:
            try:
                wait([actor.future for actor in made], timeout=PATIENCE)
            except TimeoutError:
                alive = self.client.nthreads()
                made = [actor for actor in made if actor.address in alive]
            else:
                break
        return [actor for actor in made if actor.future.status == "finished"]

    def round(self, calls: Sequence[tuple[Actor, str, tuple[Any, ...]]]) -> list[Any]:
        """What methods of actors give for arguments, all at once; `Lost` for those whose worker is gone. The first
        error that one of them raised is raised."""
        return _without_errors([call[0] for call in calls], self._synchronously(self._round, calls))

    def ask(self, actors: Sequence[Actor], method: str, arguments: tuple[Any, ...]) -> list[Any]:
        """As `round` of one small call to all, by lines where there are such."""
        self._require_own_process()
        self._open([actor for actor in actors if actor.line is False])
        if any(actor.line is None for actor in actors):
            return self.round([(actor, method, arguments) for actor in actors])
        content, lines = message(method, arguments), [actor.line for actor in actors]
        over = False
        try:
            answers = [_sent(line, content) for line in lines]
            answers = [answer if isinstance(answer, Lost) else self._received(actor)
                       for actor, answer in zip(actors, answers, strict=True)]
            over = True
        finally:
            if not over:                                     # answers that nobody has taken must not be the next ones
                for actor in actors:
                    _close(actor)
        return _without_errors(actors, answers)

    def _open(self, actors: Sequence[Actor]) -> None:
        secret = new_secret()
        ports = self.round([(actor, "listen", (secret,)) for actor in actors]) if actors else []
        for actor, port in zip(actors, ports, strict=True):
            actor.line = None if isinstance(port, Lost) else opened(actor.address, port, secret)

    def _received(self, actor: Actor) -> Any:
        assert isinstance(actor.line, DirectLine)
        while True:
            try:
                return actor.line.receive(PATIENCE)
            except TimeoutError:
                if actor.address not in self._synchronously(self.client.scheduler.ncores, workers=None):
                    break
            except OSError:
                break
        _close(actor)
        return Lost()

    def _require_own_process(self) -> None:
        """A forked process has the same sockets: each would get answers that are the other's."""
        if os.getpid() != self.process:
            raise ClusterError("this process was forked from the one that has the client; make a client in it, and the "
                               "function with that")

    def _synchronously(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        self._require_own_process()
        try:
            return self.client.sync(function, *arguments, **named)
        except OSError as error:
            raise ClusterError(f"the scheduler does not answer ({error}); make a new client, and the function with "
                               "it") from error

    async def _round(self, calls: Sequence[tuple[Actor, str, tuple[Any, ...]]]) -> list[Any]:
        tasks = [asyncio.ensure_future(self._call(*call)) for call in calls]
        waiting = set(tasks)
        while waiting:
            _, waiting = await asyncio.wait(waiting, timeout=PATIENCE)
            if waiting:
                alive = await self.client.scheduler.ncores(workers=None)
                for task, (actor, _, _) in zip(tasks, calls, strict=True):
                    if task in waiting and actor.address not in alive:
                        task.cancel()
        return [Lost() if task.cancelled() else task.result() for task in tasks]

    async def _call(self, actor: Actor, method: str, arguments: tuple[Any, ...]) -> Any:
        from distributed.protocol import to_serialize

        try:
            reply = await self.client.rpc(actor.address).actor_execute(
                function=method, actor=actor.future.key, args=[to_serialize(x) for x in arguments], kwargs={})
        except (OSError, KeyError):                          # it is gone, or another has its address
            return Lost()
        return reply["result"] if reply["status"] == "OK" else reply["exception"]


def _sent(line: Any, content: bytes) -> Lost | None:
    try:
        line.send(content)
    except OSError:
        return Lost()
    return None


def _close(actor: Actor) -> None:
    if isinstance(actor.line, DirectLine):
        actor.line.close()
    actor.line = False


def _without_errors(actors: Sequence[Actor], answers: list[Any]) -> list[Any]:
    for actor, answer in zip(actors, answers, strict=True):
        if isinstance(answer, BaseException):
            answer.add_note(f"on the worker {actor.address}")
            raise answer
    return answers


def _require_client(client: Any) -> None:
    try:
        from distributed import Client
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("client= needs Dask, which is not installed: pip install 'jitad[dask]'",
                                  name=error.name) from None
    if not isinstance(client, Client):
        raise ArgumentTypeError(f"client must be a distributed.Client, not a {type(client).__name__}")
    if client.asynchronous:
        raise ArgumentTypeError("the client is asynchronous; give one that is not: Client(address)")
    if client.status != "running":
        raise ArgumentTypeError(f"the client is {client.status}; give one that is connected")
