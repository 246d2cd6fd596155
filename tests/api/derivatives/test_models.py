"""The Hessian of every benchmark model against differences of its gradient, and of programs for each rule by which
unit vectors keep their structure."""
from __future__ import annotations

import numpy as np
import pytest

from benchmarks.models.table import MODELS
from jitad import hessian, jacobian, jit_grad
from jitad.call.build.specialize import build
from jitad.testing.checks import assert_same_as_fresh
from tests.helpers.public import fresh

__all__ = ["fresh"]

SMALL = {"logistic_1d": 500, "glm": 300, "thin_logistic": 400, "varying_intercepts": 900}


def problem(name):
    """The model's starting point and data, of the long ones the first observations."""
    theta, data = MODELS[name].problem()
    return theta, tuple(d[:SMALL[name]] for d in data) if name in SMALL else data


@pytest.mark.parametrize("name", MODELS)
def test_hessians_of_the_models(name):
    theta, data = problem(name)
    logp = MODELS[name].logp
    H, gradient = hessian(logp)(theta, *data), jit_grad(logp)
    np.testing.assert_array_equal(H, H.T)
    rng, scale = np.random.default_rng(3), np.abs(H).max()
    for _ in range(3):
        v = rng.normal(size=theta.size)
        near, far = ((gradient(theta + h * v, *data) - gradient(theta - h * v, *data)) / (2 * h) for h in (1e-4, 2e-4))
        np.testing.assert_allclose(H @ v, (4 * near - far) / 3, rtol=1e-7, atol=1e-8 * scale * np.abs(v).max())


# --- programs ----------------------------------------------------------------------------------------------

RNG = np.random.default_rng(11)
X, Y, B = RNG.normal(size=(7, 5)), RNG.normal(size=(5, 7)), RNG.normal(size=(2, 3, 5))
GROUP, PAIRS = np.array([0, 4, 2, 2, -1, 3, 0]), (np.array([0, 1, 1]), np.array([2, 0, -1]))
M = np.eye(5) * 4 + Y @ Y.T / 10
x5 = RNG.uniform(0.5, 1.5, size=5)
x23 = RNG.uniform(0.5, 1.5, size=(2, 3))


def loop(x):
    """A recursion, which is re-rolled."""
    total, s = 0.0, x[0]
    for i in range(40):
        s = 0.9 * np.sin(s) + x[1] * X[i % 7, 0]
        total = total + s**2
    return total * x[2]


PROGRAMS = {
    "slices": lambda x: np.sum(np.exp(x[1:4]) * x[:3] * x[4]) + x[0] * x[-1] ** 2,
    "reversed": lambda x: np.sum(x**2 * x[::-1]),
    "broadcast": lambda x: np.sum(np.tanh(x[:, None] * x[None, :] + x[0])),
    "gather": lambda x: np.sum(np.exp(x[GROUP] * X[:, 0]) * x[1]),
    "gather of gather": lambda x: np.sum(np.exp((x**2)[GROUP][::-1][np.array([1, 1, 0])])),
    "gather rows": lambda x: np.sum(np.sin((x[:, None] * Y)[GROUP] * X[:, :1])),
    "contract": lambda x: np.sum(np.log1p(np.exp(X @ x))) + x @ M @ x,
    "contract of a product": lambda x: np.sum((x * Y.T) @ (Y * x[:, None])) ** 2,
    "contract by batches": lambda x: np.sum(np.einsum("bij,j->bi", B, x) ** 3),
    "outer": lambda x: np.sum(np.outer(x, x**2) @ X.T),
    "matrix": lambda x: np.sum(np.sin(x) @ np.sin(x).T * x[:, :2]),
    "matrix by index": lambda x: np.sum(np.exp(x[PAIRS]) * x[1, 1]),
    "matrix rows": lambda x: np.sum(np.cos(x[np.array([1, 0, 1])] * x[0])),
    "reshape": lambda x: np.sum(np.cumsum((x.reshape(3, 2).T * x).ravel()) ** 2),
    "sum of an axis": lambda x: np.sum(np.exp(x.sum(axis=0)) * x[0]) + np.sum(x.sum(axis=1) ** 3),
    "cumsum": lambda x: np.sum(np.cumsum(x**2) ** 2),
    "tril": lambda x: np.sum(np.tril(np.outer(x, x)) ** 2),
    "where": lambda x: np.sum(np.where(x > 1, x**3, np.sin(x[0] * x))),
    "maximum": lambda x: np.sum(np.maximum(x, 1.0) ** 2 * x[0]) + np.max(x) ** 3,
    "concatenate": lambda x: np.sum(np.concatenate([x[:2] ** 2, [x[3] * x[0]], x[2:]]) ** 3),
    "stack": lambda x: np.prod(np.array([x[0] * x[1], x[2], x[3] + x[4]])),
    "assignment": lambda x: assigned(x),
    "norm": lambda x: np.linalg.norm(x * x[::-1]) + np.var(x),
    "many scalars": lambda x: np.sum(x[0] * X[:, 0] + x[1] * X[:, 1] ** 2 + np.exp(x[2] * X[:, 2]) * x[3] / x[4]) ** 2,
    "softmax": lambda x: np.log(np.sum(np.exp(X @ x))) * np.sum(x),
    "cholesky": lambda x: np.sum(np.log(np.diag(np.linalg.cholesky(M + np.outer(x, x))))),
    "solve": lambda x: x @ np.linalg.solve(M * x[0] + np.diag(x), x),
    "loop": loop,
    "float32": lambda x: np.sum(np.exp(x.astype(np.float32)).astype(float) * x),
    "powers": lambda x: np.sum(x**x[::-1]) + np.prod(x),
}


def assigned(x):
    a = np.zeros(7)
    a[1:6] = x**2
    a[0], a[2] = x[1] * x[2], 3.0
    a[GROUP] += x[GROUP] ** 2
    return np.sum(a**2 * np.arange(7))


def interpreted(g, *args):
    arguments = g.subject.arguments(args, {})
    entry = build(g.subject.target, g.subject.request, arguments)
    return entry.interpret([*arguments.inputs, *(entry.captured(g.subject.target) or ())])


@pytest.mark.parametrize("name", PROGRAMS)
def test_hessians_of_programs(name):
    """By the interpreter: forward over reverse against reverse over reverse, and against differences."""
    f = PROGRAMS[name]
    x = x23 if name.startswith(("matrix", "reshape", "sum of")) else x5
    H = interpreted(hessian(f), x)
    assert H.shape == x.shape * 2 and H.dtype == np.float64
    rough = 1e-5 if name == "float32" else 1e-12
    np.testing.assert_allclose(H, interpreted(jacobian(jit_grad(f), mode="reverse"), x), rtol=rough,
                               atol=rough * np.abs(H).max())
    if name == "float32":
        return
    v = np.random.default_rng(2).normal(size=x.shape)
    arguments = jit_grad(f).subject.arguments((x,), {})
    entry = build(jit_grad(f).subject.target, jit_grad(f).subject.request, arguments)
    captured = entry.captured(jit_grad(f).subject.target) or ()

    def slope(h):
        return (entry.interpret([x + h * v, *captured]) - entry.interpret([x - h * v, *captured])) / (2 * h)
    expected = (4 * slope(1e-4) - slope(2e-4)) / 3
    np.testing.assert_allclose(np.tensordot(H, v, x.ndim), expected, rtol=1e-6, atol=1e-7 * np.abs(H).max())


@pytest.mark.parametrize("name", ["gather", "many scalars", "contract of a product", "matrix by index", "loop"])
def test_kernels_of_hessians(name):
    f = PROGRAMS[name]
    x = x23 if name.startswith("matrix") else x5
    assert_same_as_fresh(hessian(f), [(x,), (x + 0.1,)])


def test_elements_that_follow_one_parameter_cost_no_matrix():
    """In a varying-intercept model no value is as large as parameters times observations."""
    theta, data = problem("varying_intercepts")
    tape = hessian(MODELS["varying_intercepts"].logp).compile(theta, *data).tape
    n = SMALL["varying_intercepts"]
    assert not any(node.aval.size >= theta.size * n for node in tape.nodes)
