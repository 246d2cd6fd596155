"""The reference interpreter: a tape, one NumPy call for each node.

It is the oracle for every faster path and the meaning of a tape.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitad.tape import Node, Tape


def evaluate_node(node: Node, operands: Sequence[Any]) -> Any:
    """The node's value as an array (or NumPy scalar) of exactly its dtype and shape."""
    with np.errstate(all="ignore"):
        value = node.prim.evaluate(*operands, **node.params)
    return np.asarray(value, dtype=node.aval.dtype)


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
    last_use = {i: n for n, node in enumerate(tape.nodes) for i in node.inputs}
    keep = set(tape.outputs)
    for number, node in enumerate(tape.nodes):
        if node.prim.kind == "input":
            continue
        try:
            values[number] = evaluate_node(node, [values[i] for i in node.inputs])
        except Exception as error:
            error.add_note(f"in {node.prim.name} at {node.where}")
            raise
        for i in set(node.inputs):
            if last_use[i] == number and i not in keep:
                values[i] = None
    return [values[o] for o in tape.outputs]
