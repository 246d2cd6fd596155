"""Random programs: kernel against interpreter, value and pullback, on the first inputs and on new ones."""
from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jitad.primitives  # noqa: F401  (fills the table)
from jitad.tape.evaluate import evaluate
from tests.helpers.programs import Random, call, compare, run, scale_of


@settings(max_examples=120, derandomize=True, deadline=None, database=None,
          suppress_health_check=list(HealthCheck))
@given(st.data(), st.integers(1, 24))
def test_random_programs(data: st.DataObject, length: int) -> None:
    program = Random(lambda n: data.draw(st.integers(0, max(n - 1, 0))))
    check(program, length)


def check(program: Random, length: int) -> None:
    tape = program.build(length)
    rtol = 1e-11 if program.dtype == "float64" else 2e-4
    kernel, outputs = run(tape, program.inputs)
    compare("first inputs", outputs, evaluate(tape, *program.inputs), rtol, scale_of(tape, program.inputs))
    again = [(a + a.dtype.type(0.25) * np.sign(a)).astype(a.dtype) if a.dtype.kind == "f" else a
             for a in program.inputs]
    compare("new inputs", call(kernel, again), evaluate(tape, *again), rtol, scale_of(tape, again))
