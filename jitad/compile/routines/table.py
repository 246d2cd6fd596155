"""Routines of the runtime: factorizations and BLAS on whole row-major arrays.

A routine with its sizes becomes one internal function of the module. LAPACK and BLAS are those of SciPy,
called by address without Python; kernels with routines need `register_symbols` before they are linked.
"""
from __future__ import annotations

import ctypes
import sys
from functools import cache, partial
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any

from jitad.compile.llvm.symbols import ADDRESSES
from jitad.compile.routines import (  # noqa: F401  (they register their routines)
    cholesky,
    cotangent,
    fft,
    functions,
    general,
    opaque,
    order,
    solve,
    sparse,
    spectral,
    svd,
)
from jitad.compile.routines.code import ROUTINES, RoutineCode
from jitad.compile.routines.failures import failing
from jitad.compile.routines.products import gemm  # noqa: F401
from jitad.compile.sparse import elements  # noqa: F401  (it says how elements of inverses are found)
from jitad.primitives.linalg.failures import FAILS

EXTERNAL = {"cython_blas": ("gemm", "symm", "trmm", "trsm", "trsv"),
            "cython_lapack": ("potrf", "potri", "trtri", "lauum", "getrf", "gesdd", "syevd", "geqrf", "orgqr", "gees",
                              "trsyl", "gbsv", "pbsv", "geev")}
COMPLEX = "heevd", "gesdd", "geev", "getrf", "geqrf", "ungqr"     # of LAPACK, called for complex matrices too


def build_routine(emitter: Any, name: str, pointers: list[Any], numbers: tuple[float, ...]) -> Any:
    """LLVM code for ``name(*pointers, *numbers)``; the value is the status.

    `emitter` has the `builder` to write with.
    """
    if name == "opaque":
        return opaque.emit(emitter, pointers, *map(int, numbers))
    if name not in ROUTINES:
        raise NotImplementedError(f"no compiled routine {name}")
    register_symbols()
    return emitter.builder.call(routine(name, emitter.builder.module, [p.type for p in pointers], numbers), pointers)


def routine(name: str, module: Any, kinds: list[Any], numbers: tuple[float, ...]) -> Any:
    """The function of the module that does `name` for pointers of these kinds and these numbers."""
    label = f"jitad.{name}.{'.'.join(dict.fromkeys(k.pointee.text for k in kinds))}.{'.'.join(map(str, numbers))}"
    function = module.globals.get(label)
    if function is None:
        code = RoutineCode(module, label, kinds)
        ROUTINES[name](code, *code.function.args, *numbers)
        function = code.finish()
    return function


ROUTINES.update({fails.name: partial(failing, partial(routine, row.name)) for row, fails in FAILS.items()})


@cache
def register_symbols() -> None:
    """Tell LLVM the addresses of ``jitad_dgemm`` and the like."""
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    for module, names in EXTERNAL.items():
        capsules = _cython_module(module).__pyx_capi__
        kinds = ((names, "ds"), (COMPLEX if module == "cython_lapack" else (), "zc"))
        for name in (prefix + n for group, prefixes in kinds for n in group for prefix in prefixes):
            ADDRESSES[f"jitad_{name}"] = pointer_of(capsules[name], name_of(capsules[name]))


def _cython_module(name: str) -> Any:
    """``scipy.linalg.<name>`` alone, which takes a tenth of the time of importing `scipy.linalg` around it."""
    full = f"scipy.linalg.{name}"
    if full in sys.modules or "scipy.linalg" in sys.modules:
        return import_module(full)
    import scipy

    try:
        folder = Path(scipy.__file__).parent / "linalg"
        spec = FileFinder(str(folder), (ExtensionFileLoader, EXTENSION_SUFFIXES)).find_spec(full)
        module = module_from_spec(spec)                                # type: ignore[arg-type]
        spec.loader.exec_module(module)                                # type: ignore[union-attr]
    except (ImportError, AttributeError):
        return import_module(full)
    return module
