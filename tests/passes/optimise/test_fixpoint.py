"""Passes of the optimiser that look only at what the one before has changed."""
import numpy as np
import pytest

from jitad.cache.keys.identity import unwrap
from jitad.errors import TapeError
from jitad.passes.differentiate.modes import one, pullback
from jitad.passes.optimise import fixpoint as optimise_pass
from jitad.passes.optimise.fixpoint import Draft
from jitad.passes.optimise.rewrites import optimise, optimised
from jitad.primitives.core import full
from jitad.primitives.reduce import reduce_sum
from jitad.tape.builder import Builder
from jitad.tape.types import TABLE, Aval
from jitad.trace.record import record
from tests.helpers.mixed_programs import LONG, N, program


def gradient(seed: int):
    """The builder of a recorded program and its gradient, and the values that are wanted."""
    rng = np.random.default_rng(seed)
    recording = record(unwrap(program(seed)[0]), (rng.normal(size=N), rng.normal(size=LONG)), {})
    value, = recording.outputs
    return recording.builder, [value, *pullback(recording.builder, [value], [one(value)], recording.argument_inputs)]


@pytest.mark.parametrize("seed", range(12))
def test_what_is_left_out_would_not_have_changed(seed: int) -> None:
    builder, outputs = gradient(seed)
    tape, before = builder.finish(outputs), None
    whole = tape
    while whole != before:
        before, whole = whole, Draft.of(whole).rewritten().tape(whole.labels)       # of which nothing has been tried
    found = optimised(builder, outputs).check()
    whole = optimise(whole)
    assert found == whole == optimise(tape)
    assert [node.where for node in found.nodes] == [node.where for node in whole.nodes]


def test_a_tape_of_which_nothing_more_comes_is_the_same() -> None:
    builder = Builder()
    x = builder.input(Aval((3,), np.dtype(float)), "x")
    tape = optimise(builder.finish([x * 2.0 * 4.0 * 1.0]))
    assert [node.prim.name for node in tape.nodes] == ["input", "const", "view", "mul"]
    assert optimise(tape) is tape


@pytest.mark.parametrize("answer", [lambda node, x: reduce_sum(x, (0,)), lambda node, x: TABLE["lt"](x, 0.0)])
def test_a_rewrite_keeps_shape_and_dtype(answer, monkeypatch) -> None:
    monkeypatch.setattr(optimise_pass, "_rewrites_of", lambda prim: (answer,))
    builder = Builder()
    x = builder.input(Aval((3,), np.dtype(float)), "x")
    with pytest.raises(TapeError, match="has become"):
        optimise(builder.finish([TABLE["tan"](x)]))


def test_a_number_that_comes_late_is_seen_from_above() -> None:
    """2 ** 2 is a square first and a number in the next pass, where only it and what lies close above are looked at."""
    builder = Builder()
    x = builder.input(Aval((3,), np.dtype(float)), "x")
    two = full(x, 2.0, x.shape, x.dtype)
    less = TABLE["neg"](TABLE["neg"](x))                 # for which there is another pass
    tape = optimise(builder.finish([x * TABLE["pow"](two, two) * 0.5, TABLE["exp"](less)]))
    assert [node.prim.name for node in tape.nodes] == ["input", "const", "view", "mul", "exp"]
    assert tape.nodes[1].params["value"].value == 2.0
