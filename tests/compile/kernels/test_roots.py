"""Several roots of a phase: into one array, of equal extents in another order, of what is computed twice."""
from __future__ import annotations

import numpy as np
import pytest

from jitad import jit_grad
from jitad.passes.differentiate.modes import pullback
from jitad.primitives.reduce import contract, reduce_sum
from jitad.primitives.view import view
from jitad.tape.types import TABLE
from tests.helpers.many import Many
from tests.helpers.programs import call, run

N = 200


def indices(seed: int, n: int = N) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 4, n)


def test_a_product_of_one_element_adds_to_a_scatter() -> None:
    """It was stored over what the scatter had added."""
    def f(x, matrix, index):
        return np.sum(x[index] ** 2) + np.sum((matrix @ x) ** 2)

    gradient = jit_grad(f)(np.array([2.0]), np.array([[3.0]]), np.zeros(5, int))
    np.testing.assert_allclose(gradient, [5 * 4.0 + 9 * 4.0])


@pytest.mark.filterwarnings("ignore:.*is compiled again")
@pytest.mark.parametrize("n", [N, 300])
def test_two_scatters_into_one_small_array(n: int) -> None:
    """Their lanes were one array, in one group (n alike) and in two, and were summed twice."""
    rng = np.random.default_rng(0)
    i, j, a, b = indices(1), indices(2, n), rng.normal(size=N), rng.normal(size=n)
    gradient = jit_grad(lambda x, i, j, a, b: np.sum(x[i] * a) + np.sum(x[j] * b))(np.zeros(4), i, j, a, b)
    np.testing.assert_allclose(gradient, np.bincount(i, a, 4) + np.bincount(j, b, 4), rtol=1e-12)


def test_same_extents_in_another_order() -> None:
    """Two roots of a phase whose loops have equal extents but walk the array differently."""
    many = Many()
    x = many.input(np.arange(9.0).reshape(3, 3) / 8)
    outer = TABLE["tanh"](view(x, (3, 3, 3), ((0, ((2, 1),)), (0, ((1, 1),)))) * view(
        x, (3, 3, 3), ((0, ((0, 1),)), (0, ((1, 1),)))))
    many.output("both", outer, reduce_sum(outer, (1,)), contract(reduce_sum(outer, (1,)), x, "ij,kj->ik"))
    many.compare(run(many.tape(), many.inputs)[1], many.inputs, 1e-13)


def test_two_sums_into_one_array() -> None:
    many = Many()
    rng = np.random.default_rng(3)
    a, b, c = (many.input(rng.normal(size=s)) for s in ((4, 6), (4, 6), (5,)))
    index = many.input(np.array([1, 1, 3, 0, -1]))
    total = TABLE["scatter"](c, index, axes=(0,), shape=(4,)) + reduce_sum(a * b, (1,)) + reduce_sum(a, (1,))
    total = total + contract(a, b, "ij,ij->i")
    many.output("total", total)
    many.compare(run(many.tape(), many.inputs)[1], many.inputs, 1e-13)


@pytest.mark.parametrize("n", [3, 17, 1000])
def test_extremum_of_what_is_computed_again(n: int) -> None:
    """The share of an element in a maximum is decided by equality, which must not depend on how an
    expression that is computed twice was rounded."""
    many = Many()
    rng = np.random.default_rng(n)
    a, b, c, d = (many.input(rng.normal(size=n)) for _ in range(4))
    p, q = a * b, c * d
    for name in ("reduce_max", "reduce_min"):
        y = TABLE[name](p + q, axes=(0,)) + reduce_sum(p * p + TABLE["sin"](q), (0,))
        many.output(name, y, *pullback(many.builder, [y], [many.builder.const(1.0)], [a, b, c, d]))
    for name in ("maximum", "minimum", "fmax", "fmin"):
        y = TABLE[name](p + q, p - q)
        total = reduce_sum(TABLE["exp"](y * p * 0.1) + y, (0,))
        many.output(name, y, *pullback(many.builder, [total], [many.builder.const(1.0)], [a, b, c, d]))
    kernel, outputs = run(many.tape(), many.inputs)
    many.compare(outputs, many.inputs, 1e-12)
    for seed in range(20):
        again = [np.random.default_rng((seed, i)).normal(size=n) for i in range(4)]
        many.compare(call(kernel, again), again, 1e-12)
