"""What sampling gives: the draws as NumPy arrays, and as ArviZ has them."""
from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from jitad.call.messages import issue
from jitad.errors import SamplingWarning, SignatureError

Dims = Mapping[str, Sequence[str]]
RESERVED = ("chain", "draw")                      # dimensions of every variable in ArviZ
TAKEN = (*RESERVED, "unconstrained_parameter")     # and of the sampler's own statistics
RHAT, DEEP, ENERGY = 1.02, 0.05, 0.3              # what is still taken for fine


class Draws(Mapping[str, np.ndarray]):
    """Draws of a posterior: ``draws["tau"]`` has shape ``(chains, draws, *shape)``.

    `free` are the free vectors, of shape ``(chains, draws, dim)``; `log_likelihood` has arrays by name; `statistics`
    and `warmup_statistics` say what the sampler did, with shape ``(chains, draws)`` each. `arviz()` is all of it as
    ArviZ's InferenceData.
    """

    def __init__(self, free: np.ndarray, groups: Mapping[str, Mapping[str, np.ndarray]],
                 statistics: Mapping[str, np.ndarray], warmup_statistics: Mapping[str, np.ndarray],
                 data: Mapping[str, np.ndarray], names: Sequence[str], labels: tuple[Dims, Mapping[str, Any]]):
        self.free, self.statistics, self.warmup_statistics = free, statistics, warmup_statistics
        self.values_by_name = {**groups["posterior"], **groups.get("generated", {})}
        self.log_likelihood = dict(groups.get("log_likelihood", {}))
        self.data, self.names, self.labels = dict(data), list(names), labels

    def __getitem__(self, name: str) -> np.ndarray:
        return self.values_by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_name)

    def __len__(self) -> int:
        return len(self.values_by_name)

    def __repr__(self) -> str:
        chains, draws, _ = self.free.shape
        return f"<{chains} chains of {draws} draws: {', '.join(self)}>"

    def arviz(self) -> Any:
        """The draws as ArviZ's InferenceData, with the groups posterior, sample_stats, warmup_sample_stats,
        log_likelihood and constant_data. Raises `ModuleNotFoundError` without ArviZ."""
        import arviz

        dims, coords = self.labels
        given: dict[str, Any] = {"posterior": self.values_by_name, "sample_stats": _renamed(self.statistics)}
        if self.warmup_statistics:
            given["warmup_sample_stats"] = _renamed(self.warmup_statistics)
        if self.log_likelihood:
            given["log_likelihood"] = self.log_likelihood
        if self.data:
            given["constant_data"] = self.data
        known = {name: list(of) for name, of in dims.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)              # that chains are more than draws, and the like
            return arviz.from_dict(**given, dims=known or None, coords=dict(coords) or None,
                                   save_warmup=bool(self.warmup_statistics))

    def rhat(self) -> np.ndarray:
        """The split R-hat of each free number, of shape ``(dim,)``: near 1 where the halves of all chains agree
        (Gelman et al., Bayesian Data Analysis, 3rd edition, section 11.4)."""
        half = self.free.shape[1] // 2
        if half < 2:
            return np.ones(self.free.shape[2])
        parts = np.concatenate([self.free[:, :half], self.free[:, -half:]])
        within = parts.var(axis=1, ddof=1).mean(axis=0)
        between = parts.mean(axis=1).var(axis=0, ddof=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(within > 0, np.sqrt((half - 1) / half + between / within), 1.0)

    def warn(self, target_accept: float, maxdepth: int) -> None:
        """Warn of what says that the draws are not yet to be trusted, each time with what to change."""
        s, count = self.statistics, self.free.shape[0] * self.free.shape[1]
        diverging = int(np.sum(s["diverging"])) if "diverging" in s else 0
        if diverging:
            issue(f"{diverging} of {count} draws diverged: where the density bends sharply, the draws miss a part of "
                  f"it. Raise target_accept (now {target_accept:g}, try {(1 + target_accept) / 2:.3g}), or write "
                  "effects as mean + scale * standard normal (offset_scale, or by hand)", SamplingWarning)
        rhat = self.rhat()
        if rhat.max(initial=1.0) > RHAT:
            worst = ", ".join(f"{self.names[i]} {rhat[i]:.3f}" for i in np.argsort(-rhat)[:3])
            issue(f"the chains do not agree yet (split R-hat, to be below {RHAT}: {worst}). Take more draws and a "
                  "longer warm-up; if it stays, chains are in different modes: give `start`, or order the parameters",
                  SamplingWarning)
        deep = float(np.mean(s["maxdepth_reached"])) if "maxdepth_reached" in s else 0.0
        if deep > DEEP:
            issue(f"{deep:.0%} of the trajectories reached the longest length 2**{maxdepth}: draws are right but dear. "
                  "Parameters of similar scale help, or low_rank=True, or a larger maxdepth", SamplingWarning)
        if "energy" in s and self.free.shape[1] > 10:
            energy = s["energy"]
            with np.errstate(invalid="ignore", divide="ignore"):
                share = np.mean(np.diff(energy, axis=1) ** 2, axis=1) / np.var(energy, axis=1)
            if np.nanmin(share) < ENERGY:
                issue(f"the energy moves slowly (E-BFMI {np.nanmin(share):.2f}, to be above {ENERGY}): tails are not "
                      "reached. Write heavy tails and hierarchical scales as transformations of normal parameters",
                      SamplingWarning)


_ARVIZ = {"logp": "lp", "mean_tree_accept": "acceptance_rate", "depth": "tree_depth"}


def _renamed(statistics: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The names that ArviZ's functions look for."""
    return {_ARVIZ.get(name, name): values for name, values in statistics.items() if name not in RESERVED}


# --- labels --------------------------------------------------------------------------------------------------

def checked_labels(dims: Dims | None, coords: Mapping[str, Sequence[Any]] | None,
                   shapes: Mapping[str, tuple[int, ...]]) -> tuple[dict[str, tuple[str, ...]], dict[str, Any]]:
    """Names of dimensions by variable, and the labels of each dimension, counted from 0 where none are given. Raises
    `SignatureError` unless they fit the shapes of what is stored."""
    named = {name: _dimensions(name, of) for name, of in _mapping(dims, "dims", "names of dimensions").items()}
    labels = {name: _labels(name, of) for name, of in _mapping(coords, "coords", "labels").items()}
    require_names(list(labels), "a dimension in coords", TAKEN)
    for name, of in named.items():
        require_names(of, f"a dimension of {name!r}", TAKEN)
        if (also := [d for d in of if d in shapes]):
            raise SignatureError(f"a dimension of {name!r} is called {also[0]!r}, as is what is stored; a trace would "
                                 "keep one of the two: give the dimension another name")
        if len({*of}) < len(of):
            raise SignatureError(f"dims[{name!r}] = {of} has a dimension twice; give each a name of its own")
        if name not in shapes:
            raise SignatureError(f"dims names {name!r}, which is not stored; stored are {', '.join(shapes)}")
        if len(of) != len(shapes[name]):
            raise SignatureError(f"dims[{name!r}] = {of} has {len(of)} names, but the shape is {shapes[name]}")
        for dimension, size in zip(of, shapes[name], strict=True):
            have = len(labels.setdefault(dimension, list(range(size))))
            if have != size:
                raise SignatureError(f"dimension {dimension!r} has {have} labels, but {name!r} has {size} of them")
    return named, labels


def _mapping(given: Any, what: str, of: str) -> Mapping[str, Any]:
    if given is None or isinstance(given, Mapping):
        return given or {}
    raise SignatureError(f"{what} must map names to {of}; got {type(given).__name__}")


def _dimensions(name: str, of: Any) -> tuple[str, ...]:
    found = (of,) if isinstance(of, str) else tuple(of) if isinstance(of, Sequence) else (None,)
    if all(isinstance(d, str) and d for d in found):
        return found
    raise SignatureError(f"dims[{name!r}] must be names of dimensions, such as ['school']; got {of!r}")


def _labels(name: str, of: Any) -> list[Any]:
    if not isinstance(of, (str, bytes, Mapping)) and np.ndim(of) == 1:
        return list(of)
    raise SignatureError(f"coords[{name!r}] must be a list of labels, one for each place; got {of!r}")


def require_names(names: Sequence[str], what: str, reserved: Sequence[str] = RESERVED) -> None:
    """Raise `SignatureError` for names that a trace cannot have."""
    taken = [name for name in names if name in reserved]
    if taken:
        raise SignatureError(f"{what} must not be called {taken[0]!r}, which is a dimension of every trace; "
                             "give it another name")
