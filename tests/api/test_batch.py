"""`jitad.batch`: what a loop over the examples gives, at once."""
from __future__ import annotations

import ctypes
import pickle
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import special

import jitad
from jitad import TapeMismatchWarning, batch, jit, jit_grad, value_and_grad
from jitad.compile.entry.kernel import Kernel
from jitad.errors import ArgumentTypeError, MutationError, OutputError, SignatureError
from jitad.primitives.scan import Form
from tests.helpers.public import fresh  # noqa: F401

rng = np.random.default_rng(7)


def logistic(theta: Any, X: Any, y: Any) -> Any:
    eta = X @ theta
    return y @ eta - np.sum(np.log1p(np.exp(eta))) - 0.5 * theta @ theta


def eight_schools(theta: Any, y: Any, sigma: Any) -> Any:
    z, mu, tau = theta[:-2], theta[-2], np.exp(theta[-1])
    effect = mu + tau * z
    prior = -0.5 * z @ z - 0.5 * (mu / 5) ** 2 - np.log1p((tau / 5) ** 2) + theta[-1]
    return prior + np.sum(-0.5 * ((y - effect) / sigma) ** 2 - np.log(sigma))


def garch(q: Any, y: Any) -> Any:
    alpha = np.exp(q[1])
    a, b = special.expit(q[2]), special.expit(q[3])
    sigma = np.zeros(len(y))
    sigma[0] = 1.0
    for t in range(1, len(y)):
        sigma[t] = np.sqrt(alpha + a * (y[t - 1] - q[0]) ** 2 + (1 - a) * b * sigma[t - 1] ** 2)
    return np.sum(-0.5 * ((y - q[0]) / sigma) ** 2 - np.log(sigma))


def hierarchy(theta: Any, group: Any, y: Any) -> Any:
    effects = theta[0] + np.exp(theta[1]) * theta[2:]
    return -0.5 * np.sum((y - effects[group]) ** 2) - 0.5 * theta @ theta


def gaussian(theta: Any, x: Any, y: Any) -> Any:
    scale = np.exp(theta)
    K = scale[0] * np.exp(-0.5 * ((x[:, None] - x) / scale[1]) ** 2) + (scale[2] + 0.1) * np.eye(len(x))
    L = np.linalg.cholesky(K)
    z = np.linalg.solve(L, y)
    return -0.5 * z @ z - np.sum(np.log(np.diag(L)))


SMALL = rng.normal(size=3), (rng.normal(size=(30, 3)), rng.integers(0, 2, 30).astype(float))
LARGE = 0.1 * rng.normal(size=20), (rng.normal(size=(200, 20)), rng.integers(0, 2, 200).astype(float))
MODELS = {
    "eight schools, in lanes": (eight_schools, rng.normal(size=10), (rng.normal(size=8) * 8, rng.uniform(9, 18, 8))),
    "logistic, a loop": (logistic, *SMALL),
    "logistic, BLAS": (logistic, *LARGE),
    "garch, a loop in a loop": (garch, rng.normal(size=4) * 0.3, (rng.normal(size=40),)),
    "hierarchy": (hierarchy, rng.normal(size=12), (rng.integers(0, 10, 90), rng.normal(size=90))),
    "gaussian process, small": (gaussian, rng.normal(size=3) * 0.2, (np.linspace(0, 3, 4), rng.normal(size=4))),
    "gaussian process, LAPACK": (gaussian, rng.normal(size=3) * 0.2, (np.linspace(0, 3, 20), rng.normal(size=20))),
}


@pytest.mark.parametrize("name", MODELS)
def test_models(name: str) -> None:
    f, theta, data = MODELS[name]
    chains = theta + 0.1 * rng.normal(size=(13, len(theta)))
    g = value_and_grad(f)
    batched = batch(g, in_axes=(0, *[None] * len(data)))
    value, gradient = batched(chains, *data)
    assert value.shape == (13,) and gradient.shape == chains.shape
    for i, chain in enumerate(chains):
        expected = g(chain, *data)
        np.testing.assert_allclose(value[i], expected[0], rtol=1e-12)
        np.testing.assert_allclose(gradient[i], expected[1], rtol=1e-10, atol=1e-12)
    interpreted = batched.compile(chains, *data).interpret(chains, *data)
    np.testing.assert_allclose(interpreted[1], gradient, rtol=1e-10, atol=1e-12)


def test_the_ways_of_the_models() -> None:
    """Which of them a model takes is seen on its tape."""
    def tape(name: str, count: int) -> Any:
        f, theta, data = MODELS[name]
        chains = theta + 0.1 * rng.normal(size=(count, len(theta)))
        return batch(jit_grad(f), (0, *[None] * len(data))).compile(chains, *data).tape
    lanes = [Form.of(n) for n in tape("eight schools, in lanes", 64).nodes if n.prim.name == "scan"]
    assert [(form.length, form.carries) for form in lanes] == [(64, 0)]
    assert not any(n.prim.name == "scan" for n in tape("logistic, BLAS", 64).nodes)
    steps = [Form.of(n) for n in tape("garch, a loop in a loop", 14).nodes if n.prim.name == "scan"]
    assert [form.length for form in steps] == [4]                     # four together, the last of them repeated
    inner = [Form.of(n) for n in steps[0].body.nodes if n.prim.name == "scan"]
    assert all(any(form.input(i).shape == (4,) for i in range(form.carries)) for form in inner) and inner


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 21])
def test_any_number_of_examples(count: int) -> None:
    f, theta, data = MODELS["eight schools, in lanes"]
    chains = theta + 0.1 * rng.normal(size=(count, len(theta)))
    g = jit_grad(f, on_mismatch="silent")
    found = batch(g, (0, None, None))(chains, *data)
    assert found.shape == chains.shape and found.dtype == np.float64
    np.testing.assert_allclose(found, np.array([g(c, *data) for c in chains]).reshape(chains.shape), rtol=1e-12)


# --- which axes ------------------------------------------------------------------------------------

def test_all_arguments_by_default() -> None:
    x, y = rng.normal(size=(4, 3)), rng.normal(size=4)
    np.testing.assert_allclose(batch(lambda a, b: np.sum(a) * b)(x, y), x.sum(1) * y)
    np.testing.assert_allclose(batch(lambda a, b: np.sum(a) * b)(x, b=y), x.sum(1) * y)


def test_other_axes() -> None:
    x, y = rng.normal(size=(3, 4, 2)), rng.normal(size=(2, 4))
    found = batch(lambda a, b: a * b, in_axes=(1, -1), out_axes=-1)(x, y)
    assert found.shape == (3, 2, 4)
    np.testing.assert_allclose(found, np.stack([x[:, i] * y[:, i] for i in range(4)], -1))


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclass
class Model:
    mean: Any
    scale: Any


def test_trees() -> None:
    p = {"w": rng.normal(size=(5, 2)), "b": rng.normal(size=5), "k": 2}
    f = lambda p, x: {"sum": np.sum(p["w"] * x) + p["b"] * p["k"], "w": p["w"]}
    found = batch(f, in_axes=({"w": 0, "b": 0, "k": None}, None), out_axes={"sum": 0, "w": 1})(p, np.array([1.0, 2.0]))
    np.testing.assert_allclose(found["sum"], p["w"] @ [1.0, 2.0] + 2 * p["b"])
    np.testing.assert_allclose(found["w"], p["w"].T)
    gradient = batch(jit_grad(lambda m, x: m.scale * np.sum((x - m.mean) ** 2)), in_axes=(0, None))(
        Model(rng.normal(size=(4, 2)), np.arange(4.0)), np.zeros(2))
    assert type(gradient) is Model and gradient.mean.shape == (4, 2) and gradient.scale.shape == (4,)
    pair = batch(lambda p: p.a * p.b, in_axes=(Pair(0, None),))(Pair(np.arange(3.0), 2.0))
    np.testing.assert_array_equal(pair, [0.0, 2.0, 4.0])


def test_strings_and_keywords_are_shared() -> None:
    def f(x: Any, how: str, *, scale: Any = 2.0) -> Any:
        return (np.sum if how == "sum" else np.max)(x) * scale
    x = rng.normal(size=(3, 2))
    np.testing.assert_allclose(batch(f)(x, "sum"), x.sum(1) * 2)
    np.testing.assert_allclose(batch(f, in_axes=(0, None))(x, "max", scale=3.0), x.max(1) * 3)
    np.testing.assert_allclose(batch(f)(x, "max", scale=np.arange(3.0)), x.max(1) * np.arange(3))


def test_a_result_that_no_example_changes() -> None:
    found = batch(lambda x, y: (x + y, y * 2), in_axes=(0, None), out_axes=(0, None))(np.arange(3.0), 1.5)
    assert found[0].tolist() == [1.5, 2.5, 3.5] and found[1] == 3.0 and type(found[1]) is float
    assert batch(lambda x, y: y * 2, in_axes=(0, None))(np.arange(3.0), 1.5).tolist() == [3.0, 3.0, 3.0]


def test_dtypes() -> None:
    x = np.arange(3, dtype=np.float32)
    assert batch(lambda a: a * 2)(x).dtype == np.float32
    assert batch(lambda a: a > 1)(x).tolist() == [False, False, True]
    assert batch(lambda a: a + 1)(np.arange(3)).dtype == np.int64
    assert batch(jit_grad(lambda a: a * a))(np.arange(3)).tolist() == [0.0, 2.0, 4.0]


# --- of what ---------------------------------------------------------------------------------------

def test_of_every_derivative() -> None:
    theta, data = SMALL
    chains = theta + rng.normal(size=(5, 3))
    for what in (jit_grad, jit, jitad.jacobian, jitad.hessian, jitad.value_gradient_and_hessian):
        g = what(logistic)
        found = jitad.trace.pytree.leaves_of(batch(g, (0, None, None))(chains, *data))[0]
        for i, chain in enumerate(chains):
            for x, y in zip(found, jitad.trace.pytree.leaves_of(g(chain, *data))[0], strict=True):
                np.testing.assert_allclose(x[i], y, rtol=1e-10, atol=1e-12)
    v = rng.normal(size=(5, 3))
    found = batch(jitad.hvp(logistic), (0, None, None, 0))(chains, *data, v)
    np.testing.assert_allclose(found[2], jitad.hessian(logistic)(chains[2], *data) @ v[2], rtol=1e-10)


def test_the_family() -> None:
    theta, data = SMALL
    chains = theta + rng.normal(size=(4, 3))
    g = batch(jit_grad(logistic), (0, None, None))
    assert type(g.value) is type(g) and g.value(chains, *data).shape == (4,)
    assert [x.shape for x in g.value_and_grad(chains, *data)] == [(4,), (4, 3)]
    assert "input theta" in str(g.tape(chains, *data)) and "def sweep" in str(g.source(chains, *data))
    compiled = g.compile(chains, *data)
    np.testing.assert_array_equal(compiled(chains, *data), g(chains, *data))
    out = np.empty((4, 3))
    assert g(chains, *data, out=out) is out
    np.testing.assert_array_equal(out, g(chains, *data))
    assert repr(g) == "<jitad batch of grad of logistic>"
    again = pickle.loads(pickle.dumps(g))
    np.testing.assert_array_equal(again(chains, *data), out)
    twice = batch(compiled, (0, None, None)).value(chains[None], *data)
    np.testing.assert_allclose(twice[0], g.value(chains, *data), rtol=1e-14)


@batch(in_axes=(0, None))
@jit_grad
def decorated(x: Any, y: Any) -> Any:
    return np.sum(x * x * y)


class Regression:
    def __init__(self) -> None:
        self.y = np.array([1.0, 2.0])

    @batch
    @jit_grad
    def logp(self, theta: Any) -> Any:
        return -0.5 * np.sum((self.y - theta) ** 2)


def test_decorators_methods_and_captures() -> None:
    x = rng.normal(size=(3, 2))
    np.testing.assert_allclose(decorated(x, 2.0), 4 * x)
    model = Regression()
    np.testing.assert_allclose(model.logp(x), model.y - x)
    model.y = np.array([5.0, 6.0])                                    # no compile, as it is data
    np.testing.assert_allclose(model.logp(x), model.y - x)


def test_batches_of_batches() -> None:
    a, b = rng.normal(size=(3, 2)), rng.normal(size=(4, 2))
    outer = batch(batch(lambda x, y: np.exp(x @ y), in_axes=(None, 0)), in_axes=(0, None))
    np.testing.assert_allclose(outer(a, b), np.exp(a @ b.T))


def test_another_number_of_examples_is_another_shape() -> None:
    f = batch(lambda x: np.sum(np.tanh(x)))
    f(np.zeros((3, 2)))
    with pytest.warns(TapeMismatchWarning, match=r"argument `x`: shape \(3, 2\) -> \(4, 2\)"):
        f(np.zeros((4, 2)))


# --- a C function, and finiteness --------------------------------------------------------------------

def test_the_c_function_of_a_batch() -> None:
    f, theta, data = MODELS["eight schools, in lanes"]
    chains = theta + 0.1 * rng.normal(size=(9, 10))
    g = batch(value_and_grad(f), (0, None, None))
    made = g.compile(chains, *data).cfunc
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, *[ctypes.c_void_p] * 4)(made.address)
    gradient, value = np.empty_like(chains), np.empty(9)
    pointers = [x.ctypes.data for x in (chains, gradient, value)]
    assert call(90, *pointers, made.data) == 0
    expected = g(chains, *data)
    np.testing.assert_allclose(value, expected[0], rtol=1e-14)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-13)
    assert call(80, *pointers, made.data) == -1
    chains[3, 9] = np.nan
    assert call(90, *pointers, made.data) == 1
    with pytest.raises(SignatureError, match="must be as its in_axes"):
        batch(value_and_grad(f), (0, None, None), out_axes=(0, 1)).compile(chains, *data).cfunc   # noqa: B018


def test_the_c_function_where_examples_differ() -> None:
    g = batch(value_and_grad(lambda x: np.sum(x) if x[0] > 0 else 2 * np.sum(x)))
    x = np.ones((2, 3))
    made = g.compile(x).cfunc
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, *[ctypes.c_void_p] * 4)(made.address)
    x[1] = -1.0
    gradient, value = np.empty_like(x), np.empty(2)
    with pytest.warns(TapeMismatchWarning, match="different ways"):
        assert call(6, x.ctypes.data, gradient.ctypes.data, value.ctypes.data, made.data) == 0
    assert value.tolist() == [3.0, -6.0] and gradient.tolist() == [[1.0] * 3, [2.0] * 3]


def test_check_finite_looks_at_each_example() -> None:
    g = batch(jit_grad(lambda x: np.sum(np.log(x))))
    g.check_finite(np.ones((3, 2)))
    with pytest.raises(jitad.NonFiniteError, match="log"):
        g.check_finite(np.array([[1.0, 1.0], [0.0, 1.0]]))


def test_a_failure_is_that_of_numpy() -> None:
    f = batch(lambda a: np.linalg.cholesky(np.array([[a, 0.0], [0.0, 1.0]]))[0, 0])
    np.testing.assert_allclose(f(np.arange(1.0, 10.0)), np.sqrt(np.arange(1.0, 10.0)))
    with pytest.raises(np.linalg.LinAlgError):
        f(np.array([1.0, 2.0, 3.0, 4.0, -5.0, 6.0, 7.0, 8.0, 9.0]))


def test_a_divisor_whose_reciprocal_overflows() -> None:
    f = batch(lambda x, s: x[0] / s + x[1], in_axes=(0, None))
    x = np.full((9, 2), 1e-310)
    assert f(x, 2.0).tolist() == [1e-310 / 2 + 1e-310] * 9
    assert f(x, 1e-310).tolist() == [1.0] * 9


# --- what cannot be ----------------------------------------------------------------------------------

def f_of_two(x: Any, y: Any) -> Any:
    return x * y


@pytest.mark.parametrize(("options", "arguments", "message"), [
    ({}, (np.ones(3), 2.0), r"argument `y` of `f_of_two` is a number and no axis 0 of examples .* in_axes=None"),
    ({}, (np.ones(3), np.ones(4)), "different numbers of examples: `x` has 3, `y` has 4"),
    ({"in_axes": (0,)}, (np.ones(3), np.ones(3)), r"in_axes=\(0,\) of `f_of_two` is for 1 positional arguments, but it "
                                                   "was called with 2"),
    ({"in_axes": None}, (np.ones(3), 2.0), "no argument of `f_of_two` has examples"),
    ({"in_axes": (2, None)}, (np.ones((3, 2)), 2.0), "argument `x` of `f_of_two` has 2 dimensions and no axis 2"),
    ({"in_axes": ({"a": 0}, None)}, (np.ones(3), 2.0), "in_axes for `x`, {'a': 0}, has another structure"),
    ({"out_axes": {"a": 0}}, (np.ones(3), np.ones(3)), "out_axes of `f_of_two`, {'a': 0}, has another structure"),
])
def test_calls_that_are_refused(options: dict[str, Any], arguments: tuple[Any, ...], message: str) -> None:
    g = batch(f_of_two, **options)
    with pytest.raises(ArgumentTypeError, match=message):
        g(*arguments)
    assert jitad.cache.info(f_of_two).currsize == 0


def test_axes_that_are_refused() -> None:
    with pytest.raises(ArgumentTypeError, match=r"in_axes must be an int or None.* not 'x'"):
        batch(f_of_two, in_axes="x")
    with pytest.raises(ArgumentTypeError, match=r"out_axes must be an int or None.* not True"):
        batch(f_of_two, out_axes=True)
    with pytest.raises(OutputError, match="out_axes of `f_of_two` has axis 1 for a result of 1 dimensions"):
        batch(f_of_two, out_axes=1)(np.ones(3), np.ones(3))
    with pytest.raises(OutputError, match="out_axes of `f_of_two` is None for a result that is not the same"):
        batch(f_of_two, out_axes=None)(np.ones(3), np.ones(3))
    inner = batch(f_of_two)
    with pytest.raises(MutationError, match="out= of `f_of_two`"):
        jit(lambda x: inner(x, x, out=x))(np.ones(3))


def test_kernels_are_programs() -> None:
    """The printed program gives what the machine code gives, transposes included."""
    f, theta, data = MODELS["eight schools, in lanes"]
    chains = theta + 0.1 * rng.normal(size=(11, 10))
    compiled = batch(value_and_grad(f), (0, None, None)).compile(chains, *data)
    assert isinstance(compiled._printable, Kernel)
    for x, y in zip(compiled.step(chains, *data), compiled(chains, *data), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-13)
