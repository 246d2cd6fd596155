"""Kernels with complex values: one program for each family, values and gradients on inputs it was not recorded on."""
from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from jitad import cache, jit, jit_grad
from tests.helpers.cases.complex import FAMILIES, OTHER, POINT, gradient, of_real, same, weighed

INTERPRETED = {"branch", "eigvalsh upper", "svd", "cholesky upper", "pinv", "matrix_power -1", "solve matrix",
               "solve real"}
"""The one with a guard, and what are much the same factorizations as others."""


@pytest.mark.parametrize("family", list(FAMILIES))
def test_a_program_with_all_of_a_family(family):
    functions = [of_real(case) for name, case in FAMILIES[family].items() if name not in INTERPRETED]

    def values(t):
        return [f(t) for f in functions]

    def total(t):
        return sum(weighed(f(t)) for f in functions)
    cache.clear()                                       # the families are not told apart by code, only by captures
    program, slope = jit(values), jit_grad(total)
    program(POINT)
    same(program(OTHER), values(OTHER), 1e-12, 1e-13)
    np.testing.assert_allclose(slope(OTHER), gradient(total, OTHER), rtol=1e-11, atol=1e-11)


FILE = """
import sys
import numpy as np
from jitad import cache, jit_grad
c = np.array([1j, 2.0, 3 - 1j])
@jit_grad
def f(z, s):
    return np.sum(np.abs(np.fft.fft(z * c) * s) ** 2)
z = np.array([1 + 2j, 0.5, -1j])
print(f(z, 2j).tolist(), cache.info(f).compiles)
"""


def test_a_second_process_finds_the_kernel_on_disk(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(FILE)

    def run():
        environment = {"JITAD_CACHE_DIR": str(tmp_path / "cache"), "PATH": "", "PYTHONPATH": ":".join(sys.path)}
        return subprocess.run([sys.executable, str(path)], capture_output=True, text=True, env=environment,
                              check=True).stdout.split("] ")
    first, second = run(), run()
    assert first[0] == second[0] and int(first[1]) == 1 and int(second[1]) == 0
    c, z = np.array([1j, 2.0, 3 - 1j]), np.array([1 + 2j, 0.5, -1j])
    np.testing.assert_allclose(np.array(eval(first[0] + "]")), 24 * np.abs(c) ** 2 * z, rtol=1e-13)
