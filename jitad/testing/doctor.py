"""`python -m jitad doctor`: what is installed here, and whether gradients come out right.

The facts are those that a report of a fault should name. The checks compile one function of each kind, afresh and not
from the disk, and compare with derivatives known on paper; they take a few seconds.
"""
from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from jitad import cache
from jitad.api.batch import batch
from jitad.api.derivatives import hessian
from jitad.api.transforms import jit_grad, value_and_grad
from jitad.cache.disk import default_root
from jitad.cache.tables import in_bytes, in_seconds, show_facts
from jitad.compile.llvm.native import processor
from jitad.version import __version__, versions

__all__ = ["CHECKS", "doctor", "facts"]

PACKAGES = ("numpy", "scipy", "numba", "llvmlite")
OTHERS = ("cachetools", "optree", "platformdirs", "nutpie", "arviz")
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
PATIENCE = 120.0                                    # seconds that another process may take


def doctor() -> int:
    """Print facts and checks; return the exit status, 1 if a check failed.

    A check that raises is shown with what it raised, and the others go on.
    """
    known = facts()
    width = max(map(len, [*known, *CHECKS]))
    show_facts(known.items(), width)
    print()
    failed: list[str] = []
    show_facts(_verdicts(failed), width)
    print(f"\n{len(failed)} of {len(CHECKS)} checks failed: please report this page" if failed else "\nAll is well.")
    return int(bool(failed))


def _verdicts(failed: list[str]) -> Iterator[tuple[str, str]]:
    """Each check, as it has been done, and what came of it; the names of those that `failed` are gathered."""
    for name, check in CHECKS.items():
        start = time.perf_counter()
        try:
            with _afresh():
                check()
        except Exception as error:
            failed.append(name)
            yield name, f"FAILED: {type(error).__name__}: {str(error).strip()}"
        else:
            yield name, f"right, {in_seconds(time.perf_counter() - start)}"


# --- facts -----------------------------------------------------------------------------------------------------------

def facts() -> dict[str, str]:
    """What is installed and what the machine is, by name."""
    name, features = processor()
    threads = [f"{variable}={os.environ[variable]}" for variable in THREADS if variable in os.environ]
    return {
        "jitad": f"{__version__}, in {Path(__file__).parents[1]}",
        "Python": f"{platform.python_version()}, {platform.platform()}",
        "packages": ", ".join(versions(*PACKAGES)),
        "others": ", ".join(versions(*OTHERS)),
        "processor": f"{name}, vectors of {_vector_bits(features)} bits, {os.cpu_count()} cores",
        "BLAS": _blas(),
        "threads": ", ".join(threads) or "not set: BLAS takes as many as there are cores",
        "disk cache": _folder(),
    }


def _vector_bits(features: str) -> int:
    present = {feature[1:] for feature in features.split(",") if feature.startswith("+")}
    return 512 if "avx512f" in present else 256 if "avx" in present else 128


def _blas() -> str:
    """The library that NumPy was built with; kernels call the one of SciPy."""
    import scipy

    texts = []
    for package in (np, scipy):
        with contextlib.suppress(Exception):          # what a build says of itself is its own business
            blas = package.show_config(mode="dicts")["Build Dependencies"]["blas"]
            texts.append(f"{package.__name__} with {blas['name']} {blas['version']}")
    return ", ".join(texts) or "unknown"


def _folder() -> str:
    root = Path(default_root())
    if not root.parts:
        return "none: there is no home folder, set JITAD_CACHE_DIR"
    if os.environ.get("JITAD_DISK_CACHE") == "0":
        return f"off (JITAD_DISK_CACHE); would be in {root}"
    if not root.exists():
        return f"{root}, not made yet"
    size = sum(path.stat().st_size for path in root.iterdir() if path.is_file())
    return f"{root}, {in_bytes(size)}{'' if os.access(root, os.W_OK) else ', CANNOT BE WRITTEN'}"


# --- checks ----------------------------------------------------------------------------------------------------------

@contextlib.contextmanager
def _afresh() -> Iterator[None]:
    """Within it nothing is read from the disk or written there."""
    before = cache.configuration().disk
    cache.configure(disk=False)
    try:
        yield
    finally:
        cache.configure(disk=before)


def _same(found: object, expected: object) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)     # type: ignore[call-overload]


def _elementwise() -> None:
    x = np.linspace(-3.0, 3.0, 1001)
    value, slope = value_and_grad(lambda x: np.sum(np.exp(-x * x) * np.sin(x)))(x)
    _same(value, 0.0)
    _same(slope, np.exp(-x * x) * (np.cos(x) - 2 * x * np.sin(x)))


def _products() -> None:
    rng = np.random.default_rng(0)
    A, x = rng.normal(size=(200, 30)), rng.normal(size=30)
    _same(jit_grad(lambda x, A: 0.5 * np.sum((A @ x) ** 2))(x, A), A.T @ (A @ x))


def _factorizations() -> None:
    rng = np.random.default_rng(1)
    root = rng.normal(size=(12, 12))
    S = root @ root.T + 12 * np.eye(12)
    slope = jit_grad(lambda S: 2 * np.sum(np.log(np.diag(np.linalg.cholesky(S)))))(S)
    _same((slope + slope.T) / 2, np.linalg.inv(S))
    _same(hessian(lambda x, S: 0.5 * x @ np.linalg.solve(S, x))(np.ones(12), S), np.linalg.inv(S))


def _loops() -> None:
    def logistic_map(r: float) -> float:
        x = 0.3
        for _ in range(40):
            x = r * x * (1 - x) if x < 0.5 else r * x - r * x * x
        return x

    gradient = jit_grad(logistic_map, on_mismatch="silent")
    for r in (1.5, 2.5):
        x, slope = 0.3, 0.0
        for _ in range(40):
            slope, x = x * (1 - x) + r * (1 - 2 * x) * slope, r * x * (1 - x)
        _same(gradient(r), slope)


def _special() -> None:
    from scipy.special import digamma, gammaln

    x = np.array([0.1, 1.0, 2.5, 30.0])
    _same(jit_grad(lambda x: np.sum(gammaln(x)))(x), digamma(x))


def _batches() -> None:
    X = np.random.default_rng(2).normal(size=(17, 3))
    _same(batch(jit_grad(lambda x: np.sum(x ** 3)))(X), 3 * X * X)


def _pointers() -> None:
    """The C function that samplers call."""
    x = np.array([1.0, 2.0, 3.0])
    pointer = jit_grad(lambda x, y: -0.5 * np.sum((x - y) ** 2)).compile(x, np.zeros(3)).cfunc
    double = ctypes.POINTER(ctypes.c_double)
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, double, double, double, ctypes.c_void_p)(pointer.address)
    slope, value = np.empty(3), np.empty(1)
    status = call(3, *(array.ctypes.data_as(double) for array in (x, slope, value)), pointer.data)
    _same([status, value[0], *slope], [0, -7.0, -1.0, -2.0, -3.0])


PROGRAM = """
import numpy as np
import jitad
gradient = jitad.jit_grad(lambda x: np.sum(np.tanh(x)))
gradient(np.zeros(4))
print(jitad.cache.info().compiles)
"""


def _disk() -> None:
    """One process compiles, and the next one finds it."""
    with tempfile.TemporaryDirectory(prefix="jitad-doctor-") as folder:
        program = Path(folder) / "program.py"
        program.write_text(PROGRAM)
        environment = {**os.environ, "JITAD_CACHE_DIR": str(Path(folder) / "cache"), "JITAD_DISK_CACHE": "1"}
        compiled = [subprocess.run([sys.executable, str(program)], env=environment, capture_output=True, text=True,
                                   check=True, timeout=PATIENCE).stdout.strip() for _ in range(2)]
        if compiled != ["1", "0"]:
            raise AssertionError(f"two processes compiled {' and '.join(compiled)} times, not 1 and 0")


CHECKS: dict[str, Callable[[], None]] = {
    "elementwise": _elementwise, "products": _products, "factorizations": _factorizations, "loops": _loops,
    "special functions": _special, "batches": _batches, "C pointers": _pointers, "the disk": _disk}
