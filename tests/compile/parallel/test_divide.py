"""Loops in parts: what is divided, and that it computes what the whole loop computes."""
import numpy as np
import pytest

from jitad import batch, jit, value_and_grad
from jitad.compile.emit.source import run, write
from jitad.compile.entry.kernel import Kernel
from jitad.compile.entry.kernel_errors import StatusMiss
from jitad.compile.loops import Loop, Portions
from jitad.compile.parallel import divide
from jitad.compile.parallel.pool import pool

rng = np.random.default_rng(3)
N = 1201
X, V, W = rng.normal(size=(N, 5)), rng.normal(size=N), rng.normal(size=N)
GROUPS = rng.integers(0, 4, N)


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Loops that are short enough for a test are long enough to be divided."""
    monkeypatch.setattr(divide, "WORTH", 200.0)
    monkeypatch.setattr(divide, "PART", 40.0)
    monkeypatch.setattr(divide, "ROWS", 8)
    monkeypatch.setattr(divide, "SHARE", 100.0)


def listed(result):
    return [np.asarray(x) for x in (result if isinstance(result, tuple) else (result,))]


def compare(transformed, *args):
    """The loops of the divided kernel that have parts, which is compared with the whole one and with its source."""
    compiled = transformed.compile(*args)
    parts = Kernel(compiled.tape, compiled._kernel.kinds, parallel=True)
    inputs = compiled._inputs()
    expected, found = listed(compiled.kernel(*inputs)), listed(parts.call(*inputs))
    status, stepped = run(write(parts.source), parts.program, compiled.tape, inputs)
    assert status == 0
    tolerance = 2e-5 if args[0].dtype == np.float32 else 1e-11
    for a, b, c in zip(expected, found, stepped, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance * np.abs(a).max())
        np.testing.assert_allclose(c, a, rtol=tolerance, atol=tolerance * np.abs(a).max())
    words = pool().words
    before = list(words)
    words[0] = 1                                         # one thread, and then more than there are cores
    one = listed(parts.call(*inputs))
    pool().limit(3)
    many = listed(parts.call(*inputs))
    pool().limit(before[0])
    assert all(a.tobytes() == b.tobytes() == c.tobytes() for a, b, c in zip(found, one, many, strict=True))
    return sum(isinstance(s, Portions) for s in parts.program.body)


def logistic(theta, X, y):
    eta = X @ theta
    return y @ eta - np.sum(np.log1p(np.exp(eta)))


def softmax(x):
    m = np.max(x, axis=1, keepdims=True)
    return np.sum(m[:, 0] + np.log(np.sum(np.exp(x - m), axis=1)))


def stencil(u):
    return np.sum((u[1:-1, 1:-1] * 4 - u[:-2, 1:-1] - u[2:, 1:-1] - u[1:-1, :-2] - u[1:-1, 2:]) ** 2)


@pytest.mark.parametrize("function, args, parts", [
    (logistic, (rng.normal(size=5), X, (V > 0) * 1.0), 1),
    (logistic, (rng.normal(size=5), np.asfortranarray(X), (V > 0) * 1.0), 1),
    (lambda x: np.sum(np.exp(-x * x) * np.sin(x)), (V,), 1),
    (lambda x: np.sum(np.sin(x) * x), (V.astype(np.float32),), 1),
    (lambda z, x, y: np.sum((y - z[GROUPS] * x) ** 2), (rng.normal(size=4), V, W), 1),      # gathered, scattered
    (lambda x: np.sum(np.diff(x) ** 2 * np.exp(x[1:])), (V,), 2),                           # neighbours in turns
    (stencil, (rng.normal(size=(40, 31)),), 2),
    (lambda w, v: np.mean((np.tanh(X @ w) @ v - V) ** 2), (rng.normal(size=(5, 8)), rng.normal(size=8)), 3),
    (lambda w: np.sum(np.tanh(X.astype(np.float32) @ w)), (rng.normal(size=(5, 3)).astype(np.float32),), 4),
    (softmax, (X[:, :3],), 1),
    (lambda x: np.max(np.sin(x)) + np.min(x), (V,), 3),
    (lambda a: np.sum(np.exp(a * np.arange(3.0)[:, None])), (X[:1200, :3].T.copy(),), 1),       # three long rows
    (lambda a, b: np.sum(np.tanh(a @ b) ** 2), (X[:300], rng.normal(size=(5, 30))), 3),
    (lambda x: np.sum(np.exp(x.T) + 2 * x.T * np.arange(5.0)[:, None]), (X,), 1),
    (lambda x: np.any(x > 9) * 1.0 + np.sum(x[::-1] * np.exp(x)), (V,), 1),
], ids=range(15))
def test_gradients_are_those_of_the_whole_loop(function, args, parts):
    assert compare(value_and_grad(function), *args) == parts


@pytest.mark.parametrize("function, args, parts", [
    (lambda x: np.exp(x) + np.cumsum(x), (V,), 1),                       # the sums run on, the rest has parts
    (lambda x: np.exp(x)[::-1] + np.roll(x, 3) ** 2, (V,), 1),
    (lambda x: np.exp(x) + 2 * x.T[:, :1], (rng.normal(size=(40, 40)),), 1),
    (lambda x: np.exp(np.add.accumulate(x)), (V,), 1),
    (lambda x: np.sort(np.exp(x)), (V,), 2),
], ids=range(5))
def test_values_are_those_of_the_whole_loop(function, args, parts):
    assert compare(jit(function), *args) == parts


def test_examples_of_a_batch_have_arrays_of_their_own():
    def recursion(theta, y):
        m = s = 0.0
        for t in range(1, len(y)):
            s = s + (y[t] - theta[0] * y[t - 1] - theta[1] * m) ** 2
            m = 0.5 * m + y[t]
        return -s
    assert compare(batch(value_and_grad(recursion), (0, None)), rng.normal(size=(42, 2)), V[:30]) == 2


def test_examples_of_a_batch_are_factored_apart():
    def density(theta, x):
        K = np.exp(theta[0] - 0.5 * (x[:, None] - x[None, :]) ** 2 * np.exp(theta[1])) + np.eye(9)
        return -np.sum(np.log(np.diag(np.linalg.cholesky(K)))) - 0.5 * x @ np.linalg.solve(K, x)
    assert compare(batch(value_and_grad(density), (0, None)), rng.normal(size=(30, 2)), V[:9]) == 1


def test_steps_that_go_on_from_the_one_before_are_not_divided():
    def recursion(theta, y):
        level = np.zeros(len(y))
        for t in range(1, len(y)):
            level[t] = np.tanh(theta[0] * level[t - 1]) + y[t]
        return np.sum(level * y)
    compiled = value_and_grad(recursion).compile(np.array([0.5]), V)
    program = Kernel(compiled.tape, compiled._kernel.kinds, parallel=True).program
    assert sum(type(s) is Loop and s.stop - s.start > N - 3 for s in program.body) == 2       # there and back
    compare(value_and_grad(recursion), np.array([0.5]), V)


def test_a_part_that_stops_stops_the_kernel():
    index = GROUPS.copy()
    compiled = jit(lambda z, g: np.sum(np.exp(z[g]))).compile(V[:4], index)
    kernel = Kernel(compiled.tape, compiled._kernel.kinds, parallel=True)
    assert sum(isinstance(s, Portions) for s in kernel.program.body) == 1
    kernel.call(V[:4], index)
    for place in (0, N // 2, N - 1):
        wrong = index.copy()
        wrong[place] = 4
        with pytest.raises(StatusMiss):
            kernel.call(V[:4], wrong)


def test_loops_without_steps_are_not_divided(monkeypatch):
    monkeypatch.setattr(divide, "WORTH", 0.0)
    assert compare(jit(lambda x: np.sum(np.exp(x))), np.zeros(0)) == 0
