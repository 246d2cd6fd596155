"""``python -m benchmarks.sampling [--numpyro PYTHON] [--pymc PYTHON] [name ...]``: seconds of a process from its start
to the end of 4 x 1,000 draws.

Each posterior is sampled in processes of their own, with empty caches on disk (cold) and with those of the process
before (warm, the best of `--warm`), beside NumPyro and PyMC with nutpie where interpreters are given that have them.
CPU is what all cores have done, and moves less with what else the machine does. The last column is the least effective
sample size of a number, by ArviZ.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.sampling.data import MAKERS

ROOT = Path(__file__).resolve().parents[2]
MODULES = {"jitad": "ours", "NumPyro": "with_numpyro", "PyMC": "with_pymc"}


def once(library: str, python: str, name: str, folder: str, draws: str) -> tuple[float, float]:
    """Seconds by the clock and of CPU, of one process."""
    code = (f"from benchmarks.sampling.{MODULES[library]} import run; import numpy as np; found = run({name!r})\n"
            + (f"np.save({draws!r}, found)" if draws else ""))
    caches = {"JITAD_CACHE_DIR": folder, "JITAD_DISK_CACHE": "1", "PEER_CACHE": folder, "NUMBA_CACHE_DIR": folder,
              "PYTENSOR_FLAGS": f"base_compiledir={folder}", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1",
              "OPENBLAS_NUM_THREADS": "1"}
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([python, "-W", "ignore", "-c", code], check=True, cwd=ROOT, env={**os.environ, **caches},
                   stderr=subprocess.DEVNULL)
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def row(library: str, python: str, name: str, repeat: int) -> None:
    import arviz

    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder, "draws.npy"))
        cold = once(library, python, name, folder, file)
        warm = np.min([once(library, python, name, folder, "") for _ in range(repeat)], axis=0)
        least = float(arviz.ess(arviz.convert_to_dataset({"u": np.load(file)}))["u"].min())
    figures = " ".join(f"{seconds:8.2f}" for seconds in (*cold, *warm))
    print(f"{name:<18} {library:<8} {figures} {least:10.0f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--numpyro", help="an interpreter with NumPyro")
    parser.add_argument("--pymc", help="an interpreter with PyMC and nutpie")
    parser.add_argument("--warm", type=int, default=3, help="how many warm processes")
    parser.add_argument("names", nargs="*", help=", ".join(MAKERS))
    given = parser.parse_args()
    print(f"{'posterior':<18} {'library':<8} {'cold':>8} {'CPU':>8} {'warm':>8} {'CPU':>8} {'least ESS':>10}   load "
          f"{os.getloadavg()[0]:.1f}")
    for name in given.names or MAKERS:
        for library, python in (("jitad", sys.executable), ("NumPyro", given.numpyro), ("PyMC", given.pymc)):
            if python:
                row(library, python, name, given.warm)


if __name__ == "__main__":
    main()
