"""Benchmarks of jitad against hand-written numba and JAX.

Importing this package first pins every linear algebra library and XLA to one thread, and turns the disk cache off; it
must therefore come before NumPy (``python -m benchmarks.compare`` and ``pytest benchmarks`` both see to that).
"""

import os

ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
    "JITAD_DISK_CACHE": "0",  # first calls are to be first calls
}
for _name, _setting in ONE_THREAD.items():
    os.environ.setdefault(_name, _setting)
