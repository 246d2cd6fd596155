"""Shards in files: arrays by the names of arguments, of which only those that are wanted are read."""
from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from jitad.errors import SignatureError


def read(path: Path, names: Sequence[str]) -> Any:
    """An array, or arrays by name: of a table or a group those that `names` has.

    Raises `SignatureError` for columns that are not there or have missing values, `ModuleNotFoundError` if the package
    that reads such files is not installed, and what it raises.
    """
    return READERS[path.suffix](path, names)


def _numpy(path: Path, names: Sequence[str]) -> Any:
    found = np.load(path, allow_pickle=False)
    return found if isinstance(found, np.ndarray) else dict(found)


def _parquet(path: Path, names: Sequence[str]) -> Any:
    parquet = _package("pyarrow.parquet", "pyarrow", "Parquet files")
    with parquet.ParquetFile(path) as file:
        _require_there(file.schema_arrow.names, names, path)
        table = file.read(columns=list(names))
    return {name: _column(table.column(name), name, path) for name in names}


def _column(column: Any, name: str, path: Path) -> np.ndarray:
    width = getattr(column.type, "list_size", None)              # of columns that are the rows of a matrix
    parts = column.chunks if width is None else [chunk.flatten() for chunk in column.chunks]
    missing = max(column.null_count, sum(part.null_count for part in parts))
    if missing:
        raise SignatureError(f"{missing} values of `{name}` are missing in {path}; leave such rows out")
    if width is None:
        return np.asarray(column.to_numpy())
    return np.concatenate([part.to_numpy(zero_copy_only=False) for part in parts] or [np.empty(0)]).reshape(-1, width)


def _zarr(path: Path, names: Sequence[str]) -> Any:
    zarr = _package("zarr", "zarr", "Zarr stores")
    found = zarr.open(path, mode="r")
    if isinstance(found, zarr.Array):
        return np.asarray(found[...])
    _require_there(list(found), names, path)
    return {name: np.asarray(found[name][...]) for name in names}


def _package(module: str, package: str, what: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{what} need {package}, which is not installed: pip install 'jitad[shards]'",
                                  name=error.name) from None


def _require_there(known: Sequence[str], names: Sequence[str], path: Path) -> None:
    missing = [name for name in names if name not in known]
    if missing:
        raise SignatureError(f"{path} has {', '.join(known)}, but not {', '.join(missing)}, which the log-likelihood "
                             "takes")


READERS: Mapping[str, Callable[[Path, Sequence[str]], Any]] = {
    ".npy": _numpy, ".npz": _numpy, ".parquet": _parquet, ".zarr": _zarr}
