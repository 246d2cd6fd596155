"""Modes of one posterior with each of many data sets: those of the same shapes side by side in one kernel."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitad.api.batch import batch
from jitad.api.derivatives import hessian
from jitad.api.transforms import value_and_grad
from jitad.distributed.keeper import program
from jitad.distributed.tasks import Tasks
from jitad.errors import JitadError, UnsupportedOperationError
from jitad.export.saved import packed, unpacked
from jitad.inference.density import FAR, NO_DENSITY, Density
from jitad.inference.estimate import minimised, newton
from jitad.inference.many.datasets import DataSets, axes_of, groups_of, stacked
from jitad.inference.many.newton import Both, Modes, best_modes
from jitad.inference.many.rows import SILENT, OfModes, Row
from jitad.inference.starts import REACH

Posterior = Any              # that of `jitad.inference.model`
BLOCK = 32                   # data sets of one kernel
FEW = 4                      # of one shape, for which no kernel for many is compiled
CONVERGED = 1e-9             # of what a step promises, beside the value
SMALL = 50                   # free numbers up to which all Hessians are held at once


def modes_of(post: Posterior, sets: DataSets, client: Any, seed: Any, start: Any, starts: int,
             rows_of: OfModes) -> list[Row]:
    """A row for each data set."""
    density = post.density if rows_of.jacobian else post.likelihood_density
    given = None if start is None else post.free.vector(start, "the point to start from")
    seeds = np.random.SeedSequence(seed).spawn(len(sets.values))
    groups = groups_of(sets.values) if post.dim <= SMALL else []
    if client is None:
        groups = [group for group in groups if len(group) >= FEW]
    elif sum(map(len, groups)) < len(sets.values):
        raise UnsupportedOperationError(
            f"fits go to workers for up to {SMALL} free numbers, and data that are arrays of numbers, floats, and "
            "what all have the same; leave out client=, or use method=\"sample\"")
    blocks = [numbers[i:i + BLOCK] for numbers in groups for i in range(0, len(numbers), BLOCK)]
    sizes = [min(BLOCK, len(numbers)) for numbers in groups for _ in range(0, len(numbers), BLOCK)]
    full = [block + [block[-1]] * (size - len(block)) for block, size in zip(blocks, sizes, strict=True)]
    calls = [([seeds[i] for i in block], given, starts, post.dim, stacked([sets.values[i] for i in block]))
             for block in full]
    rows: list[Row | None] = [None] * len(sets.values)
    for block, found in zip(blocks, (_here if client is None else _there)(density, calls, client), strict=True):
        for number, row in zip(block, rows_of.many(block, found) if found is not None else [], strict=False):
            rows[number] = row
    return [rows_of.one(number, data) if row is None else row
            for number, (row, data) in enumerate(zip(rows, sets.values, strict=True))]


# --- blocks ----------------------------------------------------------------------------------------------------

def _functions(density: Density, data: Sequence[Any]) -> list[Any]:
    axes = (0, *axes_of(tuple(data)))
    return [batch(made(density.function, **SILENT), in_axes=axes, **SILENT) for made in (value_and_grad, hessian)]


def _here(density: Density, calls: Sequence[Any], client: None) -> list[Modes | None]:
    found: list[Modes | None] = []
    for call in calls:
        try:
            found.append(_block(*_functions(density, call[-1]), *call))
        except (*NO_DENSITY, JitadError):                        # each for itself, with words for what is wrong
            found.append(None)
    return found


def _there(density: Density, calls: Sequence[Any], client: Any) -> list[Modes | None]:
    tapes: dict[Any, tuple[bytes, bytes]] = {}
    tasks = []
    for call in calls:
        seeds, _, _, dim, data = call
        key = len(seeds), *((x.shape, x.dtype.str) if isinstance(x, np.ndarray) else x for x in data)
        if key not in tapes:
            points = np.full((len(seeds), dim), 0.1)
            value, curvature = (packed(f.compile(points, *data)) for f in _functions(density, data))
            for content in (value, curvature):
                _require_one_way(unpacked(content, "the tape").tape.guards)
            tapes[key] = value, curvature
        tasks.append((*tapes[key], *call))
    return Tasks(client, _remote, b"", tasks).wait()


def _require_one_way(guards: Sequence[Any]) -> None:
    if guards:
        raise UnsupportedOperationError(f"the density takes different ways through its branches, at {guards[0].where},"
                                        " of which a tape has one; use np.where, or leave out client=")


def _remote(nothing: bytes, value: bytes, curvature: bytes, *call: Any) -> Modes | None:
    """Runs on a worker."""
    try:
        return _block(program(value), program(curvature), *call)
    except (*NO_DENSITY, JitadError):
        return None


def _block(both: Callable[..., Any], curvature: Callable[..., Any], seeds: Sequence[Any], given: np.ndarray | None,
           starts: int, dim: int, data: Sequence[Any]) -> Modes:
    data = [np.array(x) if isinstance(x, np.ndarray) else x for x in data]      # messages leave arrays unaligned
    values, matrices = (lambda u: both(u, *data)), (lambda u: curvature(u, *data))
    with np.errstate(all="ignore"):
        modes = best_modes(values, matrices, given, seeds, dim, starts)
        for i in np.flatnonzero(~modes.found).tolist():
            if seeds[i] in seeds[:i]:
                continue                                     # a data set that only fills the block
            _repair(modes, i, values, matrices, given, seeds[i], starts)
        return modes


def _repair(modes: Modes, i: int, both: Both, curvature: Callable[[np.ndarray], np.ndarray], given: np.ndarray | None,
            seed: Any, starts: int) -> None:
    """Look for the mode of one of the densities as `Posterior.optimise` does. The others of the block are evaluated
    with it, for nothing, which costs less than a kernel for one."""
    count, dim = modes.free.shape

    def loss(u: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = (x[i] for x in both(np.tile(u, (count, 1))))
        return (-float(value), -slope) if np.isfinite(value) and np.isfinite(slope).all() else (FAR, np.zeros(dim))
    generator = np.random.default_rng(seed)
    points = [given] if given is not None else list(generator.uniform(-REACH, REACH, (starts, dim)))
    ends = [minimised(loss, point) for point in points if loss(point)[0] < FAR]
    if not ends:
        return
    u, matrix = newton(loss, lambda u: -curvature(np.tile(u, (count, 1)))[i], min(ends, key=lambda u: loss(u)[0]))
    value, slope = loss(u)
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return
    if slope @ np.linalg.solve(matrix, slope) < CONVERGED * (1 + abs(value)):
        for field, x in zip(modes, (u, -value, -slope, -matrix, True), strict=True):
            field[i] = x
