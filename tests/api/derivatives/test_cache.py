"""Derivatives through the cache: what compiles, what is counted, warned of, shared between threads and processes."""
from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import threading
import warnings
import weakref

import numpy as np
import pytest

import jitad
from jitad import cache, hessian, hvp, jacobian, jvp, linearize, value_gradient_and_hessian, vjp
from tests.helpers.public import compiling, fresh, same, x3, y3

__all__ = ["fresh"]


def f(x, a=2.0):
    return np.sin(x) * a


def energy(x):
    return np.sum(x**3)


cubed = hessian(energy)


# --- what compiles ---------------------------------------------------------------------------------------

def test_a_second_point_compiles_nothing():
    calls = (
        lambda x: vjp(f, x, 2.0)[1](y3), lambda x: linearize(f, x, 3.0)[1](y3, 0.0),
        lambda x: jvp(f, (x, 2.0), (y3, None)), lambda x: jacobian(f)(x), lambda x: hvp(energy)(x, y3),
        lambda x: hessian(energy)(x), lambda x: value_gradient_and_hessian(energy)(x),
        lambda x: hessian(energy, lazy=True)(x) @ y3, lambda x: jacobian(f, lazy=True)(x) @ y3)
    for call in calls:
        call(x3)
    with compiling(0):
        for call in calls:
            call(x3 + 1)


def test_a_pullback_is_one_call_of_a_kernel():
    _, pullback = vjp(f, x3, 2.0)
    pullback(y3)
    before = cache.info()
    for _ in range(5):
        pullback(x3)
    after = cache.info()
    assert (after.hits - before.hits, after.misses, after.compiles) == (5, before.misses, before.compiles)


def test_closures_made_again_are_the_same_function():
    def make(k):
        return lambda x: np.sum(x * k) * x

    first = vjp(make(y3), x3)[1](y3)[0]
    with compiling(0):
        second = vjp(make(2 * y3), x3)[1](y3)[0]
        same(second, 2 * first)


def test_functions_of_vjp_are_let_go_with_what_they_capture():
    def work():
        data = np.ones(1000)
        g = lambda x: x * data[:3]
        vjp(g, x3)[1](y3)
        jvp(g, (x3,), (y3,))
        return weakref.ref(data)

    watched = work()
    gc.collect()
    assert watched() is None


def test_info_explain_and_clear_know_the_function():
    H = hessian(energy)
    H(x3), H(x3), hvp(energy)(x3, y3)
    assert cache.info(energy).compiles == cache.info(H).compiles == 2
    with pytest.warns(jitad.TapeMismatchWarning, match=r"argument `x`: shape \(3,\) -> \(2,\)"):
        warnings.simplefilter("always", jitad.TapeMismatchWarning)
        H(x3[:2])
    assert "(3,) -> (2,)" in cache.explain(H)
    cache.clear(energy)
    assert cache.info(energy).currsize == 0
    with compiling(1):
        H(x3)


def test_another_seed_is_a_mismatch_like_another_argument():
    product = hvp(lambda x, v: np.sum(x**3) * v)          # `v` is taken: the seed is `v_`
    product(x3, 1.0, y3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", jitad.TapeMismatchWarning)
        with pytest.raises(jitad.ArgumentTypeError, match="shape"):
            product(x3, 1.0, y3[:2])
    with pytest.warns(jitad.TapeMismatchWarning, match="argument `v`: Python float -> Python int"):
        warnings.simplefilter("always", jitad.TapeMismatchWarning)
        product(x3, 1, y3)


def test_on_mismatch_error():
    J = jacobian(f, on_mismatch="error")
    J(x3)
    with pytest.raises(jitad.TapeMismatchError, match="would be compiled again"):
        J(x3[:2])
    same(J(2 * x3), np.diag(2 * np.cos(2 * x3)))


def test_captures_are_seen_by_the_next_call():
    k = np.array([1.0, 2.0, 3.0])
    J = jacobian(lambda x: x**2 * k)
    _, pullback = vjp(lambda x: x**2 * k, x3)
    same(J(x3), np.diag(2 * x3 * k)), same(pullback(y3)[0], 2 * x3 * k * y3)
    with compiling(0):
        k[0] = 10
        same(J(x3), np.diag(2 * x3 * k)), same(pullback(y3)[0], 2 * x3 * k * y3)


def test_branches():
    H = hessian(lambda x: np.sum(x**3) if x[0] > 0 else np.sum(x**4))
    with compiling(2):
        same(H(x3), np.diag(6 * x3)), same(H(-x3), np.diag(12 * x3**2))
    with compiling(0):
        same(H(2 * x3), np.diag(12 * x3)), same(H(-2 * x3), np.diag(48 * x3**2))


# --- threads, pickles, processes -----------------------------------------------------------------------------

def test_threads():
    H, failures = hessian(lambda x: np.sum(x**3) * 2), []
    _, pullback = vjp(lambda x: x**2, x3)

    def work(k):
        for i in range(30):
            x = x3 + k + i
            if not (np.allclose(H(x), np.diag(12 * x)) and np.allclose(pullback(x)[0], 2 * x3 * x)
                    and np.allclose(jvp(f, (x, 2.0), (y3, None))[1], 2 * np.cos(x) * y3)):
                failures.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_pickles():
    for g in (cubed, jacobian(f, mode="reverse"), hessian(energy, lazy=True)):
        again = pickle.loads(pickle.dumps(g))
        assert repr(again) == repr(g)
    same(pickle.loads(pickle.dumps(hvp(energy)))(x3, y3), 6 * x3 * y3)


SCRIPT = """
import numpy as np, jitad
from jitad import cache
def f(p, s):
    return {"u": p["a"] * s, "v": (np.sum(p["a"]),)}
x = np.array([1.0, 2.0, 3.0])
J = jitad.jacobian(f)({"a": x}, 2.0)
H = jitad.value_gradient_and_hessian(lambda x: np.sum(x**3))(x)
h = jitad.hvp(lambda x: np.sum(x**3))(x, x)
p = jitad.vjp(lambda x: x**2, x)[1](x)
print(J["u"]["a"].tolist(), J["v"][0]["a"].tolist(), H[0], H[2].tolist(), h.tolist(), p[0].tolist(),
      cache.info().compiles)
"""


def test_a_second_process_finds_them_on_the_disk(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "JITAD_CACHE_DIR": str(tmp_path / "cache"), "JITAD_DISK_CACHE": "1"}
    lines = [subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True,
                            check=True).stdout.split() for _ in range(2)]
    assert lines[0][:-1] == lines[1][:-1]
    assert (int(lines[0][-1]), int(lines[1][-1])) == (5, 0)
    assert "[[6.0, 0.0, 0.0], [0.0, 12.0, 0.0], [0.0, 0.0, 18.0]]" in " ".join(lines[1])
