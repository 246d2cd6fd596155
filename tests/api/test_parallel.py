"""`parallel=True` from the decorator to the kernel: in memory, on disk, bound, from C, in batches."""
import ctypes
import pickle

import numpy as np
import pytest

import jitad
from jitad import batch, cache, hessian, jit, jit_grad, value_and_grad
from jitad.compile.loops import Portions
from jitad.errors import ArgumentTypeError

rng = np.random.default_rng(5)
X, Y, THETA = rng.normal(size=(60_000, 6)), (rng.random(60_000) < 0.5) * 1.0, 0.1 * rng.normal(size=6)


def logp(theta, X, y):
    eta = X @ theta
    return y @ eta - np.sum(np.log1p(np.exp(eta)))


def parts(transformed, *args):
    program = transformed.compile(*args)._printable.program
    return sum(isinstance(s, Portions) for s in program.body)


@pytest.fixture
def configured():
    """Sets options, for the time of a test."""
    yield cache.configure
    cache.configure(parallel=False, threads=None)


def test_only_who_asks_runs_on_several_cores(configured):
    one, several = value_and_grad(logp), value_and_grad(logp, parallel=True)
    assert (parts(one, THETA, X, Y), parts(several, THETA, X, Y)) == (0, 1)
    assert parts(several.value, THETA, X, Y) == 1
    assert "for part in range(" in several.source(THETA, X, Y)
    a, b = one(THETA, X, Y), several(THETA, X, Y)
    assert a[0] == pytest.approx(b[0], rel=1e-13)
    np.testing.assert_allclose(a[1], b[1], rtol=1e-11)
    configured(parallel=True)
    assert parts(one, THETA, X, Y) == 1 and parts(value_and_grad(logp, parallel=False), THETA, X, Y) == 0
    again = one(THETA, X, Y)
    assert again[0].hex() == b[0].hex() and again[1].tobytes() == b[1].tobytes()
    configured(parallel=False)
    assert one(THETA, X, Y)[0].hex() == a[0].hex()


def test_every_way_to_call_gives_the_same_bits(configured):
    configured(threads=2)
    several = value_and_grad(logp, parallel=True)
    value, _ = several(THETA, X, Y)
    bound = several.bind(np.asfortranarray(X), Y)
    expected = bound(THETA)
    assert expected[0] == pytest.approx(value, rel=1e-13)
    c = bound.cfunc(THETA)
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, *[ctypes.c_void_p] * 4)(c.address)
    grad, logp_at = np.empty(6), np.empty(1)
    assert call(6, THETA.ctypes.data, grad.ctypes.data, logp_at.ctypes.data, c.data) == 0
    assert (logp_at[0], grad.tobytes()) == (expected[0], expected[1].tobytes())
    copied = pickle.loads(pickle.dumps(several))
    assert copied.subject.settings.parallel is True and parts(copied, THETA, X, Y) == 1


def test_the_transforms_take_it(configured):
    calls = [jit_grad(logp, parallel=parallel)(THETA, X, Y).tobytes() for parallel in (None, True, None, True)]
    assert calls[0] == calls[2] != calls[1] == calls[3], "made anew in each call"
    chains = np.stack([THETA, 2 * THETA, THETA - 1.0])
    assert parts(batch(jit_grad(logp, parallel=True), (0, None, None)), chains, X, Y) >= 1
    assert parts(batch(jit_grad(logp), (0, None, None), parallel=True), chains, X, Y) >= 1
    assert parts(hessian(logp, parallel=True), THETA, X, Y) >= 1
    assert parts(jit(lambda x: np.exp(x), parallel=True), X) == 1
    value, pullback = jitad.vjp(jit(lambda x: np.exp(np.sin(x)), parallel=True), X[:, 0])
    np.testing.assert_allclose(pullback(np.ones(60_000))[0], value * np.cos(X[:, 0]), rtol=1e-13)


@pytest.mark.parametrize("wrong", [3, 1, "yes", 0.0])
def test_what_is_neither_yes_nor_no_is_refused(wrong):
    with pytest.raises(ArgumentTypeError, match=r"parallel must be True, False, or None .*test_parallel.py.*threads="):
        jit_grad(logp, parallel=wrong)
    with pytest.raises(TypeError, match=r"parallel must be True or False, not .*threads="):
        cache.configure(parallel=wrong)


@pytest.mark.parametrize("wrong, error", [(0, ValueError), (True, TypeError), (1.5, TypeError)])
def test_threads_are_counted(wrong, error):
    with pytest.raises(error, match="threads must be"):
        cache.configure(threads=wrong)
    assert cache.configuration().threads is None


def test_code_on_disk_is_that_of_its_kind(folder):
    x = np.linspace(-2.0, 2.0, 100_000)

    def f(x):
        return np.sum(np.exp(-x * x) * np.sin(x + 1.0))

    def calls():
        cache.clear()
        cache._persistent = None                         # as far as the cache can tell, another process
        found = [value_and_grad(f, parallel=parallel)(x)[0].hex() for parallel in (False, True)]
        return found, cache.info().compiles
    first, second = calls(), calls()
    assert (first[1], second[1]) == (2, 0) and first[0] == second[0] and first[0][0] != first[0][1]
