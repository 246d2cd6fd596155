"""Programs whose kernels were wrong once, or might be: found by the fuzzer, or looked for in its place."""
from __future__ import annotations

import numpy as np
import pytest

import jitad.primitives  # noqa: F401  (fills the table)
from jitad.passes.differentiate.modes import pullback
from jitad.primitives.reduce import contract, cumsum, reduce_sum
from jitad.primitives.view import view
from jitad.tape.types import TABLE
from tests.helpers.many import Many
from tests.helpers.programs import call, run


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


def test_booleans_and_unsigned_integers_accumulate() -> None:
    many = Many()
    p = many.input(np.array([[True, False, True], [True, True, True]]))
    u = many.input(np.array([[1, 200, 100], [255, 0, 9]], "uint8"))
    for x in (p, u):
        many.output("accumulate", reduce_sum(x, (1,)), cumsum(x, axis=1, reverse=False), contract(x, x, "ij,kj->ik"),
                    TABLE["reduce_max"](x, axes=(0,)), TABLE["reduce_min"](x, axes=(1,)),
                    TABLE["scatter"](x, np.array([1, 1]), axes=(0,), shape=(3, 3)))
    many.compare(run(many.tape(), many.inputs)[1], many.inputs, 0.0)


def test_reshapes_of_nothing() -> None:
    many = Many()
    x = many.input(np.zeros((0, 4)))
    many.output("reshape", TABLE["reshape"](x, shape=(2, 0, 3)), TABLE["reshape"](x * 2.0, shape=(5, 0)),
                TABLE["reshape"](TABLE["concatenate"](x, x, axis=1), shape=(0,)))
    many.compare(run(many.tape(), many.inputs)[1], many.inputs, 0.0)


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
