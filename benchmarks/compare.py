"""The table of ratios: ``python -m benchmarks.compare [model ...] [--second] [--models FOLDER --data FOLDER]``.

All engines of a model are timed in turns, one thread each; the best of many rounds counts.
"""

import sys
from pathlib import Path

if __package__ in (None, ""):  # run as a file
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import benchmarks  # noqa: I001  (sets the number of threads; before NumPy)

import argparse
import math
import os
import platform
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from time import perf_counter

from benchmarks.checks import assert_same, check_derivative
from benchmarks.engines.jax_apart import Apart
from benchmarks.engines.makers import MAKERS, available, first_call, installed
from benchmarks.engines.overhead import IMPORTS, import_time, overhead_engines
from benchmarks.handwritten.lowlevel import WIDE
from benchmarks.models.model import Array, Data, Model
from benchmarks.models.outside import models_in, ratios_in
from benchmarks.models.second.table import SECOND
from benchmarks.models.table import MODELS
from benchmarks.timing import Engine, from_run, paired_times, readable

RESULTS = Path(__file__).with_name("RESULTS.md")
PACKAGES = ("jitad", "numba", "llvmlite", "numpy", "scipy", "jax", "jaxlib", "autograd", "pytensor", "casadi")
#: Column title, numerator, denominator.
RATIOS = (
    ("jitad / handwritten", "jitad", "handwritten"),
    ("C / handwritten", "jitad C", "handwritten"),
    ("jax / jitad", "jax", "jitad"),
    ("Stan / C", "Stan", "jitad C"),
)
LEAST_ROUNDS = 3
ENGINES = (*MAKERS, "Stan")
Folders = tuple[Path, Path] | None


@dataclass
class Row:
    """What was measured of one model: seconds of a warm call and of a first call by engine."""

    name: str
    warm: dict[str, float]
    first: dict[str, float] = field(default_factory=dict)

    def ratio(self, numerator: str, denominator: str) -> float | None:
        """Ratio of two warm calls, if both were measured."""
        if numerator in self.warm and denominator in self.warm:
            return self.warm[numerator] / self.warm[denominator]
        return None


def measure(model: Model, rounds: int, first_rounds: int, folders: Folders = None,
            stan: float | None = None) -> Row:
    """Check the engines against each other, then time them. `folders`: where the model is from; `stan`: what Stan's
    time is of JAX's."""
    theta, data = model.problem()
    names = available(model)
    first: dict[str, float] = {}
    for name in ("jitad", "jax"):
        if name in names and first_rounds:
            first[name] = min(_first_seconds(name, model) for _ in range(first_rounds))
    engines = _checked(model, names, theta, data)
    apart = Apart(model.name, folders) if "jax" in names else None
    try:
        if apart is not None:
            engines.append(from_run("jax apart", apart.seconds))
        warm = paired_times(engines, rounds)
    finally:
        if apart is not None:
            apart.close()
    if apart is not None:
        warm["jax"] = min(warm["jax"], warm.pop("jax apart"))
        if stan is not None:
            warm["Stan"] = warm["jax"] * stan
    return Row(model.name, warm, first)


def _checked(model: Model, names: list[str], theta: Array, data: Data) -> list[Engine]:
    """The engines of a model, which all agree. What autograd cannot do, it need not."""
    engines: list[Engine] = []
    expected = None
    for name in names:
        try:
            engine = MAKERS[name](model, theta, data)
            result = engine.call()
        except Exception as error:
            if name != "autograd":
                raise
            print(f"    not under autograd: {error}", file=sys.stderr)
            continue
        if expected is None:
            expected = result
            check_derivative(model.logp, theta, data, expected)
        assert_same(result, expected, 1e-8)
        engines.append(engine)
    return engines


def _first_seconds(name: str, model: Model) -> float:
    """Time of one first call."""
    theta, data = model.problem()
    call = first_call(name, model, theta, data)
    start = perf_counter()
    call()
    return perf_counter() - start


def table(rows: list[Row]) -> list[str]:
    """A Markdown table, model by model, with geometric means below."""
    engines = [name for name in ENGINES if any(name in row.warm for row in rows)]
    ratios = [r for r in RATIOS if any(row.ratio(*r[1:]) for row in rows)]
    compilers = [name for name in ("jitad", "jax") if any(name in row.first for row in rows)]
    lines = [["model", *engines, *(title for title, *_ in ratios), *(f"first call, {name}" for name in compilers)]]
    for row in rows:
        line = [row.name, *(_time(row.warm.get(name)) for name in engines)]
        line += [_number(row.ratio(*pair)) for _, *pair in ratios]
        lines.append(line + [_time(row.first.get(name)) for name in compilers])
    means = [_number(_mean([row.ratio(*pair) for row in rows])) for _, *pair in ratios]
    means += [_time(_mean([row.first.get(name) for row in rows])) for name in compilers]
    lines.append(["geometric mean", *("" for _ in engines), *means])
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    padded = [
        [cell.rjust(w) if k else cell.ljust(w) for k, (cell, w) in enumerate(zip(line, widths, strict=True))]
        for line in lines
    ]
    rule = ["-" * w if k == 0 else "-" * (w - 1) + ":" for k, w in enumerate(widths)]
    return ["| " + " | ".join(line) + " |" for line in [padded[0], rule, *padded[1:]]]


def _time(seconds: float | None) -> str:
    return "" if seconds is None else readable(seconds)


def _number(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"


def _mean(values: list[float | None]) -> float | None:
    """Geometric mean of those that were measured."""
    logs = [math.log(value) for value in values if value is not None]
    return math.exp(sum(logs) / len(logs)) if logs else None


def overheads() -> list[str]:
    """Import times and, with jitad, what a call adds to its kernel."""
    lines = []
    for modules in IMPORTS:
        if modules != "jitad" or installed("jitad"):
            lines.append(f"- `import {modules}`: {readable(min(import_time(modules) for _ in range(5)))}")
    if installed("jitad"):
        times = paired_times(overhead_engines(), rounds=100, seconds=2e-3)
        extra = readable(max(times["call"] - times["kernel"], 0.0))
        lines.append(
            f"- A warm call with four small arrays: {readable(times['call'])}; its bare kernel, result allocated:"
            f" {readable(times['kernel'])}; difference: {extra}"
        )
    return lines


def machine() -> list[str]:
    """Where and with what."""
    names = [line.split(":")[1].strip() for line in _cpuinfo() if line.startswith("model name")]
    cpu = names[0] if names else platform.processor() or platform.machine()
    versions = ", ".join(f"{package} {v}" for package in PACKAGES if (v := _version(package)))
    threads = ", ".join(f"{name}={os.environ[name]}" for name in sorted(benchmarks.ONE_THREAD) if "THREADS" in name)
    return [
        f"- Date: {date.today().isoformat()}",
        f"- Machine: {cpu}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}",
        f"- Versions: {versions}",
        f"- Threads: {threads}",
        f"- Hand-written kernels: {'512-bit' if WIDE else 'default'} vector width",
    ]


def _cpuinfo() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def main(arguments: list[str] | None = None) -> None:
    """Measure, print, perhaps write ``RESULTS.md``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description="Table of ratios by model.")
    parser.add_argument("names", nargs="*", metavar="model", help=f"any of {', '.join([*MODELS, *SECOND])}")
    parser.add_argument("--second", action="store_true", help="the second set in place of the first, if none is named")
    parser.add_argument("--models", type=Path, metavar="FOLDER", help="more models: see benchmarks/folder.py")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="their data, in JSON files")
    parser.add_argument("--stan", type=Path, metavar="FILE",
                        help="a Markdown table with the ratio JAX/Stan by model, from which Stan's time is estimated")
    parser.add_argument("--rounds", type=int, default=40, help="rounds of the paired timer")
    parser.add_argument("--first-rounds", type=int, default=3, help="first calls of each model; 0 for none")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args(arguments)
    if (options.models is None) != (options.data is None):
        parser.error("--models and --data go together")
    folders = None if options.models is None else (options.models, options.data)
    outside = models_in(*folders) if folders else {}
    stan = ratios_in(options.stan, "JAX/Stan") if options.stan else {}
    known = {**MODELS, **SECOND, **outside}
    usual = {**(SECOND if options.second else MODELS), **outside}
    if unknown := set(options.names) - set(known):
        parser.error(f"unknown model: {', '.join(sorted(unknown))}; known: {', '.join(known)}")
    rows = []
    for name in options.names or usual:
        print(f"{name} ...", end="", file=sys.stderr, flush=True)
        rows.append(measure(known[name], max(LEAST_ROUNDS, options.rounds), options.first_rounds,
                            folders if name in outside else None, 1 / stan[name] if name in stan else None))
        times = ", ".join(f"{engine} {readable(t)}" for engine, t in rows[-1].warm.items())
        print(f" {times}", file=sys.stderr, flush=True)
    lines = [*table(rows), "", *overheads(), *machine()]
    print("\n".join(lines))
    if options.write:
        note = "Written by `python -m benchmarks.compare --write`; `README.md` says how to read it."
        RESULTS.write_text("\n".join(["# Results", "", note, "", *lines, ""]))


if __name__ == "__main__":
    main()
