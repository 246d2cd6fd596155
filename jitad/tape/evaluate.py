"""The reference interpreter: a tape, one NumPy call for each node.

It is the oracle for every faster path and the meaning of a tape.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitad.tape.tape import Tape
from jitad.tape.types import Guard, Node


def evaluate_node(node: Node, operands: Sequence[Any]) -> Any:
    """The node's value as an array (or NumPy scalar) of exactly its dtype and shape."""
    with np.errstate(all="ignore"):
        value = node.prim.evaluate(*operands, **node.params)
    return np.asarray(value, dtype=node.aval.dtype)


class GuardMiss(Exception):
    """The inputs take another path through the user's code than the tape: at `guard`."""

    def __init__(self, guard: Guard):
        super().__init__(guard)
        self.guard = guard


def evaluate(tape: Tape, *inputs: Any) -> list[np.ndarray]:
    """The outputs of `tape` for `inputs`, which have the shapes and dtypes of its inputs.

    >>> import jitad, numpy as np
    >>> compiled = jitad.jit(lambda x: np.exp(x).sum()).compile(np.zeros(3))
    >>> float(evaluate(compiled.tape, np.zeros(3))[0])
    3.0
    """
    values: list[Any] = [None] * len(tape.nodes)
    for number, value in zip(tape.inputs, inputs, strict=True):
        values[number] = np.asarray(value, dtype=tape.nodes[number].aval.dtype)
    guards = {g.node: g for g in tape.guards}
    released = tape.released
    with np.errstate(all="ignore"):
        for number, node in enumerate(tape.nodes):
            if not node.is_input:
                try:
                    value = node.prim.evaluate(*[values[i] for i in node.inputs], **node.params)
                except Exception as error:
                    error.add_note(f"in {node.prim} at {node.where}")
                    raise
                values[number] = np.asarray(value, dtype=node.aval.dtype)
            if number in guards and values[number] != guards[number].expected:
                raise GuardMiss(guards[number])
            for i in released[number]:
                values[i] = None
    return [values[o] for o in tape.outputs]
