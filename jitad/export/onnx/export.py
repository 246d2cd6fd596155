"""The export of a tape as an ONNX model.

Every value of the tape is a tensor of its own dtype, float64 as a rule; both sweeps are in the graph. Rules by kind
of row are in `rules`, those of elementwise rows in `elementwise`, those of routines for matrices in `linalg`.
"""
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitad.errors import UnsupportedOperationError
from jitad.export.onnx import elementwise, linalg, rules  # noqa: F401  (fill the table of rules)
from jitad.export.onnx.graph import Graph, Tensor, info_of, replay
from jitad.tape.tape import Tape
from jitad.version import __version__

OPSET = 20
IR = 9                                          # the oldest format of files with that operator set


def export(tape: Tape, name: str, bound: dict[int, Any], path: str | os.PathLike[str]) -> None:
    """Write the tape as an ONNX model to `path`. `bound` has the values of captured inputs, by place.

    Where a guard of the tape fails, the outputs are NaN: the model knows one way through the branches.

    Raises `UnsupportedOperationError` for rows that ONNX has no counterpart of, and where the package onnx is missing.
    """
    try:
        import onnx
        from onnx import helper
    except ImportError:
        raise UnsupportedOperationError("export needs the package onnx; install it with `pip install onnx`") from None
    graph = Graph()
    given: list[str] = []
    inputs: list[Any] = []
    for place, number in enumerate(tape.inputs):
        aval = tape.nodes[number].aval
        if place in bound:
            given.append(graph.const(bound[place], aval.dtype))
        else:
            given.append(_identifier(tape.names[place], [i.name for i in inputs]))
            inputs.append(info_of(Tensor(given[-1], aval)))
    names = replay(graph, tape, given)
    guard = _all_hold(graph, tape, names)
    outputs = []
    for number, label in zip(tape.outputs, _labels(tape), strict=True):
        aval = tape.nodes[number].aval
        x = names[number]
        if guard is not None and aval.dtype.kind == "f":
            x = graph.where(guard, x, graph.like(np.nan, aval.dtype))
        graph.nodes.append(helper.make_node("Identity", [x], [label]))
        outputs.append(info_of(Tensor(label, aval)))
    model = helper.make_model(
        helper.make_graph(graph.nodes, "".join(c if c.isalnum() else "_" for c in name), inputs, outputs,
                          list(graph.constants.values())),
        opset_imports=[helper.make_opsetid("", OPSET)], producer_name="jitad", producer_version=__version__)
    model.ir_version = IR
    onnx.save(model, os.fspath(path))


def _identifier(name: str, taken: Sequence[str]) -> str:
    """A name as one word: ``p['beta'][0]`` is ``p_beta_0``."""
    word = "_".join("".join(c if c.isalnum() else " " for c in name).split()) or "x"
    while word in taken or word in ("value", "gradient"):
        word += "_"
    return word


def _labels(tape: Tape) -> list[str]:
    """The names of the outputs."""
    gradients = [label for label in tape.labels if label.startswith("grad_")]
    found: list[str] = []
    for label in tape.labels:
        if label.startswith("grad_"):
            word = "gradient" if len(gradients) == 1 else f"gradient_{_identifier(label[5:], ())}"
        else:
            word = label if label == "value" else _identifier(label, found)
        found.append(word)
    return found


def _all_hold(graph: Graph, tape: Tape, names: Sequence[Any]) -> str | None:
    """Whether every guard holds, as a tensor; None if there is no guard."""
    held = None
    for guard in tape.guards:
        dtype = tape.nodes[guard.node].aval.dtype
        x = names[guard.node]
        if dtype.kind == "b":
            holds = x if guard.expected else graph.op("Not", x)
        else:
            holds = graph.op("Equal", x, graph.like(guard.expected, dtype))
        held = holds if held is None else graph.op("And", held, holds)
    return held
