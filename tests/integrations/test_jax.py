"""The bridge to JAX: values and derivatives of any order, vmap nested, trees, integers, what is refused."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jitad import jit_grad
from jitad.integrations.jax import to_jax

jax.config.update("jax_enable_x64", True)

RNG = np.random.default_rng(3)
X = RNG.normal(size=(20, 3))
Y = RNG.integers(0, 2, 20)
THETA = {"a": np.array(0.3), "b": RNG.normal(size=3)}


def model(xp):
    def logp(theta, x, y):
        eta = x @ theta["b"] + theta["a"]
        return xp.sum(y * eta - xp.logaddexp(0.0, eta)) - 0.5 * xp.sum(theta["b"] ** 2)

    return logp


OURS, THEIRS = to_jax(model(np)), model(jnp)


def same(found, wanted):
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12), found, wanted)


def test_value_and_gradients_under_jit():
    for argnums in (0, (0, 1)):
        both = jax.jit(jax.value_and_grad(OURS, argnums))
        same(both(THETA, X, Y), jax.value_and_grad(THEIRS, argnums)(THETA, X, Y))


def test_vmap_in_vmap_with_some_arguments_shared():
    grid = jnp.arange(6.0).reshape(2, 3)
    thetas = jax.tree.map(lambda leaf: leaf + grid.reshape(2, 3, *[1] * leaf.ndim), THETA)
    several = jnp.stack([X, 2 * X])

    def mapped(f):
        return jax.vmap(jax.vmap(f, (0, None, None)), (0, 0, None))

    ours, theirs = (mapped(jax.value_and_grad(f)) for f in (OURS, THEIRS))
    same(jax.jit(ours)(thetas, several, Y), theirs(thetas, several, Y))


def test_vmap_over_one_example():
    same(jax.vmap(OURS, (0, None, None))(jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], THETA), X, Y),
         THEIRS(THETA, X, Y)[None])


def test_hessian_by_reverse_over_reverse():
    ours = to_jax(lambda x, y: np.sum(np.exp(x) * y))
    x, y = jnp.array([0.1, 0.2]), jnp.array([1.0, 2.0])
    same(jax.jacrev(jax.grad(ours))(x, y), jnp.diag(jnp.exp(x) * y))


def test_vector_results():
    ours = to_jax(lambda x: np.sin(x) * np.sum(x), shape=(3,))

    def theirs(x):
        return jnp.sin(x) * jnp.sum(x)

    x = jnp.array([1.0, 2.0, 3.0])
    same(jax.vmap(ours)(jnp.stack([x, x + 1])), jax.vmap(theirs)(jnp.stack([x, x + 1])))
    same(jax.jacrev(ours)(x), jax.jacrev(theirs)(x))


def test_float32_stays_float32():
    value, gradient = jax.value_and_grad(to_jax(lambda x: np.sum(x**2)))(jnp.arange(3, dtype=jnp.float32))
    assert value.dtype == gradient.dtype == jnp.float32


def test_arguments_without_floats_are_refused():
    with pytest.raises(Exception, match="none of the arguments is made of floats"):
        OURS(1, 2, 3)


def test_an_argument_of_floats_and_integers_is_refused_when_differentiated():
    both = to_jax(lambda x, extra: np.sum(x) * extra["k"] * extra["c"])
    extra = {"k": jnp.array(2), "c": jnp.array(3.0)}
    assert both(jnp.ones(2), extra) == 12.0
    with pytest.raises(Exception, match="argument 1 holds both floats and integers"):
        jax.grad(both)(jnp.ones(2), extra)


def test_errors_of_the_function_reach_the_caller():
    with pytest.raises(Exception, match="sigma must be positive"):
        to_jax(refusing)(jnp.array([-1.0])).block_until_ready()


def refusing(theta):
    if theta[0] <= 0:
        raise ValueError("sigma must be positive")
    return np.log(theta[0])


def test_only_the_decorators_of_jitad_that_keep_the_density_are_taken_off():
    @functools.wraps(np.sum)
    def doubled(x):
        return 2.0 * np.sum(x)

    x = jnp.ones(3)
    for f in (doubled, jit_grad(doubled)):
        same(jax.value_and_grad(to_jax(f))(x), (6.0, 2.0 * x))
