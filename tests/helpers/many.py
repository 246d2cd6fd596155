"""Many small computations on one tape."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitad.passes.differentiate.modes import pullback
from jitad.tape.builder import Builder, Value
from jitad.tape.evaluate import evaluate
from jitad.tape.tape import Tape
from jitad.tape.types import Aval
from jitad.testing.rules import Case
from tests.helpers.programs import compare


class Many:
    """Many small computations on one tape: one compilation."""

    def __init__(self) -> None:
        self.builder = Builder()
        self.inputs: list[np.ndarray] = []
        self.outputs: list[Value] = []
        self.labels: list[str] = []

    def input(self, array: Any) -> Value:
        self.inputs.append(np.asarray(array))
        return self.builder.input(Aval(self.inputs[-1].shape, self.inputs[-1].dtype), f"x{len(self.inputs)}")

    def output(self, label: str, *values: Value) -> None:
        for i, value in enumerate(values):
            self.outputs.append(value)
            self.labels.append(f"{label}, output {i}")

    def add(self, case: Case) -> None:
        """The value of a case and its pullback."""
        xs = [self.input(a) for a in case.inputs]
        y = case.row(*xs, **case.params)
        self.output(str(case), y)
        if case.active and y.dtype.kind == "f":
            ct = self.input(case.rng().normal(size=y.shape).astype(y.dtype))
            self.output(f"pullback of {case}", *pullback(self.builder, [y], [ct], [xs[i] for i in case.active]))

    def tape(self) -> Tape:
        return self.builder.finish(self.outputs)

    def compare(self, outputs: Sequence[Any], inputs: Sequence[np.ndarray], rtol: float) -> None:
        for label, g, e in zip(self.labels, outputs, evaluate(self.tape(), *inputs), strict=True):
            compare(label, [g], [e], rtol, max(1.0, float(np.abs(e[np.isfinite(e)]).max(initial=0.0))))
