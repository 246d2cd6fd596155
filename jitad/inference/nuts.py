"""NUTS by nutpie's compiled library, which is given the C function of the density: no Python runs, and no lock is
taken, between two leapfrog steps.

The library alone is loaded, not the package around it, whose imports take seconds. Each chain is a sampler of its own,
so that it begins where it is told to.
"""
from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import inspect
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from jitad.compile.entry.expansion import copying
from jitad.errors import SamplerError, SignatureError

VERSIONS = "nutpie 0.16.6 to 0.16.11"
LISTS = {"store_gradient": ("gradient",), "store_mass_matrix": ("mass_matrix_inv",), "store_divergences": (
    "divergence_start", "divergence_start_gradient", "divergence_end", "divergence_momentum")}
DIMENSION = "unconstrained_parameter"
RATE = 100                   # milliseconds between two reports of progress
FORWARDED = 0.5              # seconds between two of a chain elsewhere


def library() -> Any:
    """nutpie's compiled library. Raises `ModuleNotFoundError` that says how to install it."""
    known = sys.modules.get("nutpie._lib")
    if known is not None:
        return known
    found = importlib.util.find_spec("nutpie")
    for folder in (found.submodule_search_locations or ()) if found else ():
        for path in sorted(Path(folder).glob("_lib.*")):
            if path.name.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES)):
                spec = importlib.util.spec_from_file_location("nutpie._lib", path)
                assert spec is not None and spec.loader is not None
                module = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
                return sys.modules.setdefault("nutpie._lib", module)
    raise not_installed("sampling")


def not_installed(what: str) -> ModuleNotFoundError:
    """The error that says how to install what `what` needs."""
    return ModuleNotFoundError(f"{what} needs nutpie, which is not installed: pip install 'nutpie>=0.16.6'",
                               name="nutpie")


def chain_seeds(seed: Any, chains: int) -> list[int]:
    """A seed for each chain. A chain has the same one wherever it runs."""
    return [int(number) for number in np.random.SeedSequence(seed).generate_state(chains, np.uint32)]


def settings_of_one(options: Mapping[str, Any], low_rank: bool, seed: int) -> Any:
    """nutpie's settings of one chain. Raises `SignatureError` for options that there are not."""
    kind = library().PyNutsSettings
    settings = (kind.LowRank if low_rank else kind.Diag)(seed)
    settings.num_chains = 1
    for name, value in options.items():
        try:
            setattr(settings, name, value)
        except (AttributeError, ValueError) as error:
            raise SignatureError(f"nutpie has no option {name!r}; it has those of nutpie.sample, such as maxdepth and "
                                 f"store_gradient ({error})") from None
    return settings


class Chains:
    """Chains that are running. `wait` gives (draws, statistics) for each, the warm-up first: free vectors of shape
    (number, dim), and arrays by name."""

    def __init__(self, cfunc: Any, points: Sequence[np.ndarray], seeds: Sequence[int], cores: int,
                 options: Mapping[str, Any], low_rank: bool, progress: Progress | None):
        self.library, self.cfunc, self.options, self.low_rank = library(), cfunc, options, low_rank
        self.dim, self.cores, self.progress = points[0].size, cores, progress
        self.waiting = [(i, np.array(point), number)         # nutpie gives no draws for one that is not aligned
                        for i, (point, number) in enumerate(zip(points, seeds, strict=True))]
        self.running: dict[int, Any] = {}
        self.found: dict[int, Any] = {}
        self.lists = [name for option, names in LISTS.items() if options.get(option) for name in names]
        self.stopped, self.error = False, cast("BaseException | None", None)
        self._fill()                                        # what is wrong with the options is said here
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _fill(self) -> None:
        while self.waiting and len(self.running) < self.cores:
            number, point, seed = self.waiting.pop(0)
            self.running[number] = self._started(number, point, seed)

    def _started(self, number: int, point: np.ndarray, seed: int) -> Any:
        library, dim, copy = self.library, self.dim, copying()
        settings = settings_of_one(self.options, self.low_rank, seed)
        try:
            sizes = {DIMENSION: dim}
            model = library.PyMcModel(
                library.LogpFunc(self.cfunc.address, self.cfunc.data, self.cfunc),
                library.ExpandFunc(dim, dim, copy.address, 0, copy),
                library.PyVariable.new_variables(["u"], ["float64"], [(dim,)], sizes, {"u": (DIMENSION,)}),
                dim, sizes, {}, lambda seed: point, lambda *args, **kwargs: None)
            shown = library.ProgressType.none() if self.progress is None else library.ProgressType.template_callback(
                RATE, TEMPLATE, 1, self.progress.of(number))
            given = {"settings": settings, "cores": 1, "model": model, "progress_type": shown, "extra_callback": None,
                     "extra_callback_rate": RATE, "store": library.PyStorage.arrow()}
            begin = library.PySampler.from_pymc         # newer versions have more parameters
            return begin(**{name: given[name] for name in inspect.signature(begin).parameters})
        except (AttributeError, KeyError, TypeError) as error:
            raise SamplerError(f"the installed nutpie cannot take what jitad compiles ({error}). Install {VERSIONS}, "
                               "or a newer jitad.") from error

    def ended(self, within: float) -> bool:
        """Whether all chains have ended, or end within so many seconds."""
        self.thread.join(within)
        return not self.thread.is_alive()

    def wait(self) -> list[tuple[np.ndarray, dict[str, np.ndarray]]]:
        """Raises `SamplerError` where a chain stopped."""
        try:
            while self.thread.is_alive():
                self.thread.join(0.1)                       # short, so that an interrupt is heard
        finally:
            self.stop()
        if self.error is not None:
            raise self.error
        return self.had()

    def had(self) -> list[tuple[np.ndarray, dict[str, np.ndarray]]]:
        """Of the chains that have ended."""
        return [self.found[number] for number in sorted(self.found)]

    def stop(self) -> None:
        """End the others."""
        self.stopped = True
        self.thread.join()
        if self.progress is not None:
            self.progress.close()

    def _run(self) -> None:
        try:
            while self.running and not self.stopped:
                for number, sampler in list(self.running.items()):
                    if _finished(sampler):
                        self.found[number] = self._taken(number, self.running.pop(number))
                self._fill()
                time.sleep(0.001)
        except BaseException as error:
            self.error = error
        for sampler in self.running.values():
            with contextlib.suppress(Exception):
                sampler.abort()

    def _taken(self, number: int, sampler: Any) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        try:
            sampler.wait(None)
            draws, statistics = sampler.take_results().get_arrow_trace()
        except BaseException as error:                      # the library's panics are no `Exception`
            words = str(error).split("Stack backtrace")[0].strip()
            raise SamplerError(f"chain {number} stopped, where the density raised the error that is printed above, or "
                               f"by a fault of nutpie: {words}") from None
        kinds = {name: str(statistics[0].column(name).type) for name in statistics[0].column_names if name != "chain"}
        names = [name for name, kind in kinds.items() if not kind.count("Utf8") and (
            name in self.lists or not kind.count("List"))]
        return _array(draws[0].column("u"), self.dim), {name: _array(statistics[0].column(name), self.dim)
                                                        for name in names}


def _finished(sampler: Any) -> bool:
    try:
        return sampler.is_finished()
    except TimeoutError:                                # it was too busy to answer
        return False
    except BaseException:                               # which is raised again when the results are taken
        return True


def _array(column: Any, dim: int) -> np.ndarray:
    """A column of an arrow table as an array, with NaN, or a row of them, for each item that is missing."""
    if not str(column.type).count("List"):
        return np.array(column.to_pylist(), float) if column.null_count else np.array(column.to_numpy())
    if not column.null_count:
        from arro3.core import list_flatten

        return np.array(list_flatten(column).to_numpy()).reshape(-1, dim)
    return np.array([[np.nan] * dim if row is None else row for row in column.to_pylist()])


# --- progress ------------------------------------------------------------------------------------------------

TEMPLATE = "{{ total_finished_draws }} {{ total_draws }} {% for chain in chains %}{{ chain.divergences }}{% endfor %}"


class Progress:
    """One line on the error stream for all chains."""

    def __init__(self, chains: int):
        self.chains, self.begun, self.width = chains, time.monotonic(), 0
        self.state: dict[int, list[int]] = {}

    def of(self, number: int) -> Callable[[str], None]:
        return lambda text: self.report(number, text)

    def report(self, number: int, text: str) -> None:
        """Take what nutpie says of a chain by `TEMPLATE`."""
        with contextlib.suppress(ValueError, OSError):
            self.state[number] = [int(word) for word in text.split()]
            self._show()

    def _show(self) -> None:
        done, total, divergences = (sum(state[i] for state in self.state.values() if len(state) > i) for i in range(3))
        total = total * self.chains // max(len(self.state), 1)
        text = (f"{self.chains} chains: {done} of {total} draws, {divergences} divergences, "
                f"{time.monotonic() - self.begun:.1f} s")
        sys.stderr.write("\r" + text.ljust(self.width))
        sys.stderr.flush()
        self.width = len(text)

    def close(self) -> None:
        if self.width:
            sys.stderr.write("\n")
        self.width = 0


class Forwarded(Progress):
    """The progress of one chain, told to where all are shown."""

    def __init__(self, say: Callable[[str], None]):
        super().__init__(1)
        self.say, self.told = say, 0.0

    def report(self, number: int, text: str) -> None:
        done, total, *_ = text.split()
        if time.monotonic() - self.told > FORWARDED or done == total:
            self.told = time.monotonic()
            self.say(text)
