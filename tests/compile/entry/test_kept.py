"""Machine code kept on disk by its text: bound data, C functions, the tape machine; LLVM runs in one process alone."""
from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import jitad
from jitad import cache
from jitad.cache.disk import DiskCacheWarning
from jitad.compile.llvm import object_cache as kept

X = np.linspace(-1.0, 1.0, 60).reshape(20, 3)
Y = (X[:, 0] > 0).astype(float)
THETA = np.array([0.3, -0.2, 0.1])


def logistic(theta, X, y):
    eta = X @ theta
    return y @ eta - np.sum(np.log1p(np.exp(eta))) + np.linalg.slogdet(X.T @ X + np.diag(np.exp(theta)))[1]


def wandering(x):
    total = 0.0
    for i in range(300):
        total = total + x[(7 * i * i) % 11] * np.sin(x[i % 13] + total / (i + 1))
    return total


@jitad.primitive(opaque=True, vjp=lambda ct, y, t: 2 * ct * t)
def squares(t):
    return np.dot(t, t)


def calling(theta, X):
    return squares(theta) + np.sum(X @ theta)


def by_pointer(cfunc, x):
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, *[ctypes.c_void_p] * 4)(cfunc.address)
    gradient, value = np.empty_like(x), np.empty(1)
    assert function(x.size, x.ctypes.data, gradient.ctypes.data, value.ctypes.data, cfunc.data) == 0
    return [float(value[0]), *gradient.tolist()]


def results():
    """What each of the three gives."""
    g = jitad.jit_grad(logistic)
    value, gradient = g.bind(X, Y).value_and_grad(THETA)
    machine = jitad.jit_grad(wandering, tier="machine")
    return {"bound": [value, *gradient.tolist()], "pointer": by_pointer(g.compile(THETA, X, Y).cfunc, THETA),
            "machine": machine(np.linspace(0.1, 1.0, 13)).tolist()}


def main():
    made = []
    inner = kept.compile_module
    kept.compile_module = lambda *args, **kwargs: made.append(1) or inner(*args, **kwargs)
    print(json.dumps({"results": results(), "compiled": len(made)}))


def in_a_process(folder):
    environment = {**os.environ, "JITAD_DISK_CACHE": "1", "JITAD_CACHE_DIR": str(folder),
                   "PYTHONPATH": str(Path(__file__).parents[3])}
    code = "from tests.compile.entry import test_kept; test_kept.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout)


def test_another_process_compiles_nothing_of_it(tmp_path):
    first, second = in_a_process(tmp_path / "cache"), in_a_process(tmp_path / "cache")
    assert first["compiled"] == 3 and second["compiled"] == 0
    assert first["results"] == second["results"]
    np.testing.assert_allclose(first["results"]["bound"], first["results"]["pointer"], rtol=1e-14)


def kept_entries():
    return [e for e in cache.persistent_store().disk.entries() if e.meta.get("kind") == "code"]


def test_other_data_of_the_same_shape_is_served_by_the_same_code(folder):
    expected = []
    for shift in (0.0, 0.5):
        cache.clear()
        value, _ = jitad.jit_grad(logistic).bind(X + shift, Y).value_and_grad(THETA)
        expected.append((value, jitad.value_and_grad(logistic)(THETA, X + shift, Y)[0]))
    assert all(abs(a - b) < 1e-12 * abs(b) for a, b in expected) and expected[0] != expected[1]
    assert len([e for e in kept_entries() if e.meta["function"] == "logistic"]) == 2, "bound, and the plain kernel"


def test_code_that_calls_python_is_not_kept(folder):
    value, _ = jitad.jit_grad(calling).bind(X).value_and_grad(THETA)
    assert value == pytest.approx(calling(THETA, X)) and kept_entries() == []


def test_broken_code_on_the_disk_is_compiled_again(folder):
    expected = jitad.jit_grad(logistic).bind(X, Y)(THETA)
    for path in folder.glob("*"):
        path.write_bytes(path.read_bytes()[:-7])
    cache.clear()
    with pytest.warns(DiskCacheWarning, match="broken"):
        again = jitad.jit_grad(logistic).bind(X, Y)(THETA)
    np.testing.assert_array_equal(again, expected)
