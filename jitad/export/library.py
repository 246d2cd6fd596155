"""Densities as libraries: an object file and a C header and, where a C compiler is at hand, a shared library with
BridgeStan's C interface, which its clients for Python, R and Julia evaluate without Python's compiling anything."""
from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jitad.compile.entry.cfunction import object_code
from jitad.compile.llvm.native import processor
from jitad.errors import UnsupportedOperationError
from jitad.passes.optimise.guards import implied
from jitad.tape.builder import Builder
from jitad.tape.tape import Tape
from jitad.tape.types import Aval
from jitad.version import __version__

LINEAR = Path(__file__).parent / "linear.c"       # routines of BLAS and LAPACK that are linked to the code
BRIDGESTAN = (2, 9, 0)                            # the version of the interface
Shapes = Mapping[str, tuple[int, ...]]
Function = tuple[Tape, Sequence[Any]]             # a tape and its inputs, of which the first is the vector


class Exported(NamedTuple):
    """The files that were written; `library` is None where there is no C compiler."""

    header: Path
    object: Path
    library: Path | None


class Exportable(NamedTuple):
    """What a library is made of. `density` and `likelihood` (without the log-Jacobian) give a value and its gradient;
    the others a vector: `values` those of the parameters, each in C order, `generated` these and what follows them,
    `free` the way back from the values."""

    name: str
    density: Function
    likelihood: Function
    values: Function
    generated: Function
    free: Function
    shapes: Shapes
    further: Shapes
    free_names: Sequence[str]


def export(given: Exportable, path: str | os.PathLike[str]) -> Exported:
    """Write ``path.h``, ``path.o`` and, with a compiler (``$CC``, ``cc``), ``path.so``, which has routines of its own
    for products, triangular systems, Cholesky and LU factors of large matrices."""
    stem = Path(path).with_suffix("")
    symbol = re.sub(r"\W", "_", f"_{stem.name}" if stem.name[:1].isdigit() else stem.name)
    functions = {f"{symbol}_{name}": getattr(given, name) for name in (
        "density", "likelihood", "values", "generated", "free")}
    for name in ("density", "likelihood", "values", "generated"):
        _require_one_way(getattr(given, name)[0], given.name)
    compiler = shutil.which(os.environ.get("CC", "cc"))
    linear = re.findall(r"^void (jitad_\w+)", LINEAR.read_text(encoding="utf-8"), re.M) if compiler else []
    code = object_code(functions, linear)
    stem.parent.mkdir(parents=True, exist_ok=True)
    header, found = stem.with_suffix(".h"), stem.with_suffix(".o")
    header.write_text(_header(given, symbol), encoding="utf-8")
    found.write_bytes(code)
    return Exported(header, found, _linked(given, symbol, stem, compiler) if compiler else None)


def _require_one_way(tape: Tape, name: str) -> None:
    certain = set(implied(tape))
    for guard in tape.guards:
        if guard not in certain:
            raise UnsupportedOperationError(
                f"`{name}` takes different ways through its code (at {guard.where}), and a library has one of them. "
                "Write branches that depend on parameters with np.where")


def _header(given: Exportable, symbol: str) -> str:
    dim, count, all_ = _sizes(given)
    return f"""/* {given.name}: compiled by jitad {__version__} for {processor()[0]}.

   Each function gives 0, or something else where it cannot be evaluated. The data are part of the code. The functions
   may be called by several threads at once. Names that begin with jitad_d are BLAS's and LAPACK's in Fortran's
   interface; the shared library has them. */
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif
/* The log density of {dim} free numbers and its gradient; without the log-Jacobian of the constraints. */
int64_t {symbol}_density(const double *free, double *value, double *gradient);
int64_t {symbol}_likelihood(const double *free, double *value, double *gradient);
/* {count} values of the parameters, in C order; with the generated ones {all_}. */
int64_t {symbol}_values(const double *free, double *values);
int64_t {symbol}_generated(const double *free, double *values);
/* The free numbers of {count} values; not 0 where a value is outside of the set of its parameter. */
int64_t {symbol}_free(const double *values, double *free);
#ifdef __cplusplus
}}
#endif
"""


def _linked(given: Exportable, symbol: str, stem: Path, compiler: str) -> Path:
    """The shared library. Raises `UnsupportedOperationError` where the compiler fails, with what it says."""
    source, library = stem.with_suffix(".c"), stem.with_suffix(".so")
    text = (Path(__file__).parent / "library.c").read_text(encoding="utf-8")
    for name, value in _table(given, symbol, stem).items():
        text = text.replace(f"@{name}@", value)
    source.write_text(text, encoding="utf-8")
    complete = ["-Wl,-z,defs"] if sys.platform == "linux" else []              # elsewhere the default
    done = subprocess.run([compiler, "-O3", "-shared", "-fPIC", "-fvisibility=hidden", *complete, "-o", library, source,
                           LINEAR, stem.with_suffix(".o"), "-lm"], capture_output=True, text=True)
    source.unlink()
    if done.returncode:
        raise UnsupportedOperationError(f"{compiler} could not link the library:\n{done.stderr.strip()}")
    return library


def _sizes(given: Exportable) -> tuple[int, int, int]:
    count = sum(map(math.prod, given.shapes.values()))
    return len(given.free_names), count, count + sum(map(math.prod, given.further.values()))


def _table(given: Exportable, symbol: str, stem: Path) -> dict[str, str]:
    """What stands for the names in the C source."""
    dim, count, all_ = _sizes(given)
    shapes = {**given.shapes, **given.further}
    places, names, begin = [], [], 0
    for name, shape in shapes.items():
        size = math.prod(shape)
        places += (begin + np.arange(size).reshape(shape).ravel(order="F")).tolist()
        indices = [index[::-1] for index in np.ndindex(*shape[::-1])]
        names += [".".join([name, *(str(i + 1) for i in index)]) for index in indices]
        begin += size
    free = [".".join(re.findall(r"[A-Za-z_]\w*", name.partition("[")[0])[:1] + [
        str(int(i) + 1) for i in re.findall(r"\d+", name.partition("[")[2])]) for name in given.free_names]
    info = f"jitad {__version__}, for {processor()[0]}; data are part of the library"
    return {"HEADER": stem.with_suffix(".h").name, "C": symbol, "NAME": _quoted(given.name), "INFO": _quoted(info),
            "NAMES": _quoted(",".join(names[:count])), "ALL_NAMES": _quoted(",".join(names)),
            "FREE_NAMES": _quoted(",".join(free)), "BLOCKS": ", ".join(map(_quoted, given.shapes)),
            "SIZES": ", ".join(str(math.prod(shape)) for shape in given.shapes.values()),
            "PLACES": ", ".join(map(str, places)), "DIM": str(dim), "COUNT": str(count), "ALL": str(all_),
            "PARAMETERS": str(len(given.shapes)), **dict(zip(("MAJOR", "MINOR", "PATCH"), map(str, BRIDGESTAN),
                                                             strict=True))}


def _quoted(text: str) -> str:
    return json.dumps(text)


def of_vector(name: str, function: Function, argument: str, path: str | os.PathLike[str]) -> Exported:
    """The library of a density of one vector, which has no constraints: `CompiledTape.export`."""
    vector = function[1][0]
    builder = Builder()
    same = builder.tape([builder.input(Aval(vector.shape, vector.dtype), argument).number]), [vector]
    names = [f"{argument}[{i}]" for i in range(vector.size)]
    return export(Exportable(name, function, function, same, same, same, {argument: vector.shape}, {}, names), path)
