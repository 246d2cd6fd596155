"""Random loops against the same loops written out: value, gradient, tangent, in every way of running them."""
from __future__ import annotations

import pytest

from jitad.passes.differentiate.modes import pullback, pushforward
from jitad.passes.optimise.rewrites import optimise
from jitad.primitives.core import full
from jitad.tape.builder import Builder
from jitad.tape.evaluate import evaluate
from tests.api.control.running import close, compiled, plain
from tests.helpers.random_loops import F8, Random


def outcomes(builder, values, total, problem, ways):
    one = full(total, 1.0, (), F8)
    gradient = pullback(builder, [total], [one], values)
    ts = [builder.input(v.aval, f"t{i}") for i, v in enumerate(values)]
    tangents = pushforward(builder, [total, *gradient], values, ts)
    tape = builder.finish([total, *gradient, *tangents])
    inputs = [*(x if x.ndim else float(x) for x in (*problem.inputs, *problem.tangents))]
    better = optimise(tape)
    better.check()
    return [way(tape if k == 0 else better, inputs) for k, way in enumerate(ways)]


def interpreted(tape, inputs):
    return evaluate(tape, *inputs)


@pytest.mark.parametrize("seed", range(12))
def test_random_loops(seed):
    check(seed, [interpreted, interpreted, compiled, plain] if seed % 4 == 0 else [interpreted, interpreted, compiled])


def check(seed, ways):
    problem = Random(seed)
    builder = Builder()
    values, total = problem.written_out(builder)
    (expected,) = outcomes(builder, values, total, problem, [interpreted])
    builder = Builder()
    values, total = problem.as_loop(builder)
    for found in outcomes(builder, values, total, problem, ways):
        for a, b in zip(found, expected, strict=True):
            close(a, b, 1e-9)
