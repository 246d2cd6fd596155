"""Chains on the workers of a cluster: what travels is the tape of the density, and what it has bound."""
from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitad.call.bound import tape_and_inputs
from jitad.compile.entry.callback import Callback
from jitad.distributed.tasks import Tasks
from jitad.errors import UnsupportedOperationError
from jitad.export.saved import packed_density, unpacked_density
from jitad.inference.density import Density
from jitad.inference.nuts import Chains, Forwarded, Progress, settings_of_one


class RemoteChains(Tasks):
    """As `Chains`, on the workers of a client."""

    def __init__(self, density: Density, points: Sequence[np.ndarray], seeds: Sequence[int], client: Any,
                 options: Mapping[str, Any], low_rank: bool, progress: Progress | None):
        settings_of_one(options, low_rank, seeds[0])            # what is wrong with them is said before all is sent
        content = packed_in_one_way(density, points[0])
        self.progress = progress
        super().__init__(client, chains_of, content, [([point], [seed], dict(options), low_rank)
                                                      for point, seed in zip(points, seeds, strict=True)],
                         None if progress is None else progress.report, ("nutpie",))

    def had(self) -> list[Any]:
        """Of the chains that have ended."""
        return [chain for (chain,) in super().had()]

    def stop(self) -> None:
        """Let those that have not ended go."""
        super().stop()
        if self.progress is not None:
            self.progress.close()


def packed_in_one_way(density: Density, u: np.ndarray) -> bytes:
    """A density as bytes. Raises `UnsupportedOperationError` for one with branches, `TapeFileError` for one that calls
    Python."""
    tape, inputs = tape_and_inputs(density.bound, u)
    if tape.guards:
        raise UnsupportedOperationError(
            f"the density takes different ways through its branches, at {tape.guards[0].where}, of which a tape has "
            "one; use np.where, or leave out client=")
    return packed_density("the density", tape, inputs)


@functools.lru_cache(1)                                         # its data are kept in the worker until another comes
def _density(content: bytes) -> Callback:
    saved, bound = unpacked_density(content)
    vector = np.zeros(saved.tape.nodes[saved.tape.inputs[0]].aval.shape)
    return Callback(saved.tape, [vector, *bound], saved, saved.__name__)


def chains_of(content: bytes, points: Sequence[np.ndarray], seeds: Sequence[int], options: Mapping[str, Any],
              low_rank: bool, say: Callable[[str], None] | None = None) -> list[tuple[np.ndarray, dict[
                  str, np.ndarray]]]:
    """Chains on a worker, one after the other."""
    progress = None if say is None else Forwarded(say)
    return Chains(_density(content), points, seeds, 1, options, low_rank, progress).wait()
