"""A function run by plain Python, and its compiled kernel, for the tests of loops."""
from __future__ import annotations

import numpy as np

from jitad.compile.entry.arguments import argument_type
from jitad.compile.entry.kernel import Kernel
from tests.helpers.source_backend import load_python


def close(a, b, rtol=1e-10):
    np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)


def compiled(tape, inputs):
    result = Kernel(tape, tuple(map(argument_type, inputs))).call(*inputs)
    return result if len(tape.outputs) > 1 else [result]


def plain(tape, inputs):
    """The generated source as plain Python."""
    kernel = Kernel(tape, tuple(map(argument_type, inputs)))
    arrays = [np.empty(tape.nodes[o].aval.shape, tape.nodes[o].aval.dtype) for o in tape.outputs
              if tape.nodes[o].aval.ndim]
    with np.errstate(all="ignore"):
        status, *numbers = load_python(kernel.program)(*inputs, *(a.reshape(a.shape) for a in arrays))
    assert status == 0
    made, numbers = iter(arrays), iter(numbers)
    return [next(made) if tape.nodes[o].aval.ndim else next(numbers) for o in tape.outputs]
