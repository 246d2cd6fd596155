"""An ONNX graph in the making, and the export of a tape into one.

Every value of the tape is a tensor of its own dtype, float64 as a rule; both sweeps are in the graph. Rules by kind
of row are in `rules`, those of elementwise rows in `elementwise`.
"""
from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from jitad.errors import UnsupportedOperationError
from jitad.tape.tape import Tape
from jitad.tape.types import Aval, Node
from jitad.version import __version__

OPSET = 20
IR = 9                                          # the oldest format of files with that operator set


class Tensor(NamedTuple):
    """A tensor of the graph, by name, and the type of the value on the tape."""

    name: str
    aval: Aval


Rule = Callable[["Graph", Node, Sequence[Tensor]], Any]
KINDS: dict[str, Rule] = {}                     # by kind of row
ROWS: dict[str, Rule] = {}                      # by name of row


def kind(name: str) -> Callable[[Rule], Rule]:
    """Register the rule of a kind of row."""
    return lambda rule: KINDS.setdefault(name, rule)


def row(*names: str) -> Callable[[Rule], Rule]:
    """Register the rule of rows."""
    def register(rule: Rule) -> Rule:
        ROWS.update(dict.fromkeys(names, rule))
        return rule
    return register


class Graph:
    """Nodes and constants of an ONNX graph. Methods return names of tensors; equal applications are one node.

    A graph within a loop has the graph around it as `outer`: it sees that one's tensors, and keeps its constants there.
    """

    def __init__(self, outer: Graph | None = None) -> None:
        self.nodes: list[Any] = []
        self.outer = outer
        self.top: Graph = outer.top if outer is not None else self
        self.constants: dict[Any, Any] = {}
        self.known: dict[Any, str] = {}
        self.count = 0

    def name(self) -> str:
        self.top.count += 1
        return f"t{self.top.count}"

    def const(self, value: Any, dtype: Any = None) -> str:
        """A constant; equal ones are one."""
        from onnx import numpy_helper

        array = np.array(value, dtype, order="C")
        key = (array.dtype.str, array.shape, array.tobytes())
        known = self.top.constants.get(key)
        if known is None:
            known = self.top.constants[key] = numpy_helper.from_array(array, self.name())
        return known.name

    def ints(self, *values: int) -> str:
        return self.const(values, np.int64)

    def op(self, op: str, *inputs: str, **attributes: Any) -> str:
        """One application of an ONNX operator with one output."""
        key = (op, inputs, tuple(sorted((k, str(v)) for k, v in attributes.items())))
        if key not in self.known:
            self.known[key] = self.apply(op, inputs, 1, attributes)[0]
        return self.known[key]

    def apply(self, op: str, inputs: Sequence[str], outputs: int, attributes: dict[str, Any]) -> list[str]:
        from onnx import helper

        names = [self.name() for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, **attributes))
        return names

    def like(self, number: float, dtype: Any) -> str:
        """A number of no dimensions; it broadcasts."""
        return self.const(number, dtype)

    def shaped(self, x: str, shape: Sequence[int]) -> str:
        return self.op("Reshape", x, self.ints(*shape))

    def where(self, condition: str, a: str, b: str) -> str:
        return self.op("Where", condition, a, b)

    def cast(self, x: str, dtype: Any) -> str:
        return self.op("Cast", x, to=element_type(dtype))


def element_type(dtype: Any) -> int:
    from onnx import helper

    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def refused(node: Node) -> UnsupportedOperationError:
    """The error for a row that has no rule."""
    return UnsupportedOperationError(f"`{node.prim.name}` at {node.where} has no counterpart in ONNX; leave it out of "
                                     "what is exported, or save the tape with CompiledTape.save")


def replay(graph: Graph, tape: Tape, inputs: Sequence[Any]) -> list[Any]:
    """Append the tape; returns the tensors of all of its nodes. A scan has the tuple of its outputs."""
    from jitad.export.onnx import elementwise, linalg, rules  # noqa: F401  (fill the tables)

    names: list[Any] = [None] * len(tape.nodes)
    for number, name in zip(tape.inputs, inputs, strict=True):
        names[number] = name
    for number, node in enumerate(tape.nodes):
        if node.prim.kind == "input":
            continue
        rule = ROWS.get(node.prim.name) or KINDS.get(node.prim.kind)
        if rule is None:
            raise refused(node)
        names[number] = rule(graph, node, [Tensor(names[i], tape.nodes[i].aval) for i in node.inputs])
    return names


def loop(graph: Graph, length: int, first: Sequence[Tensor], state: Sequence[Tensor],
         body: Callable[[Graph, str], Sequence[Tensor]], until: bool = False) -> list[str]:
    """A Loop of ONNX of at most `length` steps. `body(graph, step)` reads `state` and gives the next one, then what is
    to be stacked; with `until` the loop goes on while the first of the state is True."""
    from onnx import helper

    inner, step, going = Graph(outer=graph), Tensor(graph.name(), Aval((), np.dtype(np.int64))), graph.name()
    made = body(inner, step.name)
    goes_on = Tensor(made[0].name if until else inner.const(True), Aval((), np.dtype(bool)))
    # an output is a node's own, and comes once
    outputs = [Tensor(inner.apply("Identity", [x.name], 1, {})[0], x.aval) for x in (goes_on, *made)]
    inputs = [_info(x) for x in (step, Tensor(going, goes_on.aval), *state)]
    subgraph = helper.make_graph(inner.nodes, f"{step.name}_body", inputs, list(map(_info, outputs)))
    start = first[0].name if until else graph.const(True)
    operands = [graph.const(length, np.int64), start, *(x.name for x in first)]
    return graph.apply("Loop", operands, len(made), {"body": subgraph})


def _info(x: Tensor) -> Any:
    from onnx import helper

    return helper.make_tensor_value_info(x.name, element_type(x.aval.dtype), x.aval.shape)


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
            inputs.append(_info(Tensor(given[-1], aval)))
    names = replay(graph, tape, given)
    guard = _all_hold(graph, tape, names)
    outputs = []
    for number, label in zip(tape.outputs, _labels(tape), strict=True):
        aval = tape.nodes[number].aval
        x = names[number]
        if guard is not None and aval.dtype.kind == "f":
            x = graph.where(guard, x, graph.like(np.nan, aval.dtype))
        graph.nodes.append(helper.make_node("Identity", [x], [label]))
        outputs.append(_info(Tensor(label, aval)))
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
