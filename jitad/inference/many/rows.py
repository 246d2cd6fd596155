"""What a data frame of many fits says of each: estimates and errors of modes, or what draws are like."""
from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from jitad.api.batch import batch
from jitad.api.derivatives import jacobian
from jitad.api.transforms import jit
from jitad.constraints.joint import flat_values_of, values_alone
from jitad.errors import EstimateWarning, JitadError
from jitad.inference.given import labels
from jitad.inference.many.newton import Modes
from jitad.inference.starts import require_count

Posterior = Any              # that of `jitad.inference.model`
Row = dict[Any, Any]
SILENT: Any = {"on_mismatch": "silent"}
STATISTICS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "mean": lambda x: np.mean(x, 0), "sd": lambda x: np.std(x, 0, ddof=1), "5%": lambda x: np.quantile(x, 0.05, 0),
    "95%": lambda x: np.quantile(x, 0.95, 0)}


class OfModes(Protocol):
    """Rows that are made of modes. `jacobian` says of which density."""

    jacobian: bool

    def many(self, numbers: Sequence[int], found: Modes) -> list[Row | None]:
        """Of some data sets side by side; None where no mode was found."""

    def one(self, number: int, data: tuple[Any, ...]) -> Row:
        """Of a data set by itself."""


class Estimates:
    """Modes and standard errors by the delta method."""

    def __init__(self, post: Posterior, seed: Any, start: Any, starts: int, jacobian: bool):
        self.post, self.jacobian = post, jacobian
        self.options = {"start": start, "starts": starts, "seed": seed, "jacobian": jacobian}

    def many(self, numbers: Sequence[int], found: Modes) -> list[Row | None]:
        """See `OfModes`."""
        flat = flat_values_of(values_alone(self.post.free.blocks))
        values, slopes = (batch(made(flat, **SILENT), **SILENT)(found.free) for made in (jit, jacobian))
        rows: list[Row | None] = []
        for i in range(len(numbers)):
            if not found.found[i]:
                rows.append(None)
                continue
            root = np.linalg.cholesky(-found.hessian[i])
            errors = np.sqrt(np.sum(np.linalg.solve(root, slopes[i].T) ** 2, axis=0))
            rows.append(self._row(values[i], errors, float(found.value[i]), True, ""))
        return rows

    def one(self, number: int, data: tuple[Any, ...]) -> Row:
        """See `OfModes`."""
        try:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always", EstimateWarning)
                fit = self.post.with_data(*data).optimise(**self.options)
        except JitadError as error:
            nothing = np.full(len(_names(self.post)), np.nan)
            return self._row(nothing, nothing, np.nan, False, _first_line(error))
        values, errors = (np.concatenate([np.ravel(x[name]) for name in self.post.shapes])
                          for x in (fit.values, fit.errors))
        return self._row(values, errors, fit.value, fit.converged, _told(said))

    def _row(self, values: np.ndarray, errors: np.ndarray, value: float, converged: bool, problem: str) -> Row:
        names = _names(self.post)
        return {**{("estimate", name): x for name, x in zip(names, values, strict=True)},
                **{("error", name): x for name, x in zip(names, errors, strict=True)},
                ("fit", "value"): value, ("fit", "converged"): bool(converged), ("fit", "problem"): problem}


class Normals:
    """Draws of the normal distributions of the free vector at the modes."""

    jacobian = True

    def __init__(self, post: Posterior, seed: Any, start: Any, starts: int, draws: int, count: int):
        require_count("draws", draws, 2)
        self.post, self.draws = post, draws
        self.options = {"start": start, "starts": starts, "seed": seed}
        self.seeds = np.random.SeedSequence(seed).spawn(count + 1)[-1].spawn(count)

    def many(self, numbers: Sequence[int], found: Modes) -> list[Row | None]:
        """See `OfModes`."""
        return [self._row(number, found.free[i], np.linalg.cholesky(-found.hessian[i]), float(found.value[i]), "")
                if found.found[i] else None for i, number in enumerate(numbers)]

    def one(self, number: int, data: tuple[Any, ...]) -> Row:
        """See `OfModes`."""
        try:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always", EstimateWarning)
                fit = self.post.with_data(*data).normal(**self.options)
            root = np.linalg.cholesky(np.linalg.inv(fit.covariance))
        except JitadError as error:
            return self._nothing(_first_line(error))
        except np.linalg.LinAlgError:
            return self._nothing(_told(said) or "the Hessian at the mode is not negative definite")
        return self._row(number, fit.mean, root, fit.value, _told(said))

    def _row(self, number: int, mean: np.ndarray, root: np.ndarray, value: float, problem: str) -> Row:
        """`root` is the Cholesky factor of minus the Hessian."""
        z = np.random.default_rng(self.seeds[number]).normal(size=(self.draws, mean.size))
        flat = batch(jit(flat_values_of(values_alone(self.post.free.blocks)), **SILENT), **SILENT)
        evidence = value + 0.5 * mean.size * math.log(2 * math.pi) - float(np.sum(np.log(np.diag(root))))
        return {**summarised(self.post, flat(mean + np.linalg.solve(root.T, z.T).T)), ("fit", "log_evidence"): evidence,
                ("fit", "converged"): True, ("fit", "problem"): problem}

    def _nothing(self, problem: str) -> Row:
        return {**summarised(self.post, None), ("fit", "log_evidence"): np.nan, ("fit", "converged"): False,
                ("fit", "problem"): problem}


def summarised(post: Posterior, values: np.ndarray | None) -> Row:
    """What draws are like, of shape (draws, elements) in the order of the parameters; NaN if there are none."""
    names = _names(post)
    return {(kind, name): x for kind, statistic in STATISTICS.items() for name, x in zip(
        names, [np.nan] * len(names) if values is None else statistic(values), strict=True)}


def _names(post: Posterior) -> list[str]:
    return [label for name, shape in post.shapes.items() for label in labels(name, shape)]


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0]


def _told(said: Sequence[warnings.WarningMessage]) -> str:
    return "; ".join(str(each.message) for each in said if issubclass(each.category, EstimateWarning))
