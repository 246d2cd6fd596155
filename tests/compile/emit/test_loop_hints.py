"""Which loops LLVM is told not to unroll."""
from __future__ import annotations

import pytest

from jitad.compile.emit.loop_hints import NOT_UNROLLED, loop_hints
from jitad.compile.loops import Loop, SetElement
from jitad.tape.expr import call, const, load, var

X = load("x", (var("i", "i8"),), "f8")
CHEAP = SetElement("y", (var("i", "i8"),), X * X + const(1.0, "f8"))
DEAR = SetElement("y", (var("i", "i8"),), call("tanh", X))


@pytest.mark.parametrize(("steps", "body", "unrolled"), [
    (8, [CHEAP], True), (8, [DEAR], False), (8, [Loop("j", 0, 8, [DEAR])], False), (2, [DEAR], True),
    (3, [Loop("j", 0, 3, [CHEAP])], True), (1000, [Loop("j", 0, 20, [DEAR])], True)],
    ids=["short", "long", "nested", "tiny", "tiny nested", "many"])
def test_few_long_steps_are_not_copied(steps, body, unrolled):
    assert (NOT_UNROLLED not in loop_hints(Loop("i", 0, steps, body), inside=True)) == unrolled
