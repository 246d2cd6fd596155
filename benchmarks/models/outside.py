"""Models from outside: a folder of modules with log densities, and one of JSON files with their data.

A module has ``load(data)`` (the data arguments), ``init(data, rng)`` (a starting point), ``logp(theta, *args)`` in
plain NumPy, and ``make_jax()``, the same for JAX. Its data is ``<name of the module>.json``. Modules whose names begin
with an underscore are helpers, which the others may import.
"""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.models.model import Array, Data, Model


def models_in(folder: Path, data: Path) -> dict[str, Model]:
    """The models of `folder` whose data is there, by name."""
    found: dict[str, Model] = {}
    sys.path.insert(0, str(folder))
    for path in sorted(folder.glob("[!_]*.py")):
        values = data / f"{path.stem}.json"
        if values.exists():
            found[path.stem] = _model(_imported(path), json.loads(values.read_text()))
    return found


def _model(module: ModuleType, data: Any) -> Model:
    def make(rng: np.random.Generator) -> tuple[Array, Data]:
        return module.init(data, rng), tuple(module.load(data))

    return Model(module.__name__, module.logp, make, jax=module.make_jax)


def _imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def ratios_in(table: Path, column: str) -> dict[str, float]:
    """A column of numbers of a Markdown table, by the names in its first column."""
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")]
            for line in table.read_text().splitlines() if line.startswith("|")]
    place = rows[0].index(column)
    return {row[0]: float(row[place]) for row in rows[2:] if len(row) > place and row[place] not in ("", "-")}
