"""Names in generated code: arguments may be called what the kernel calls its own, and loops do not run out of names."""
from __future__ import annotations

import numpy as np
import pytest

from jitad import jit


@pytest.mark.parametrize("name", ["part_1", "within_2", "work_f8", "work_hours", "x_at", "step_1_", "exp", "select",
                                  "accumulate", "block", "i_8", "c1", *(f"exp_{n}" for n in range(8)),
                                  *(f"mul_{n}" for n in range(8))])
def test_arguments_may_be_called_what_the_kernel_calls_its_own(name: str) -> None:
    """The first three made the compiler wait for ever."""
    made: dict = {}
    exec(f"def f({name}, other):\n    a = np.cumsum(np.exp({name}) * other) * {name}\n"
         "    return np.sum(np.maximum(a * a, other))", {"np": np}, made)
    x, y = np.linspace(-1, 1, 6), np.linspace(0.5, 2, 6)
    assert jit(made["f"])(x, y) == pytest.approx(made["f"](x, y), rel=1e-13)
    module: dict = {}
    exec(jit(made["f"]).compile(x, y).source, module)
    assert module["sweep"](x, y)[1] == pytest.approx(made["f"](x, y), rel=1e-13)


def test_more_than_eight_loops() -> None:
    x = np.arange(512.0).reshape((2,) * 9)
    np.testing.assert_array_equal(jit(lambda x: x * 2 + x.T)(x), x * 2 + x.T)
