"""An ONNX graph in the making, and how the nodes of a tape come into it: by the rules in `rule`."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from jitad.errors import UnsupportedOperationError
from jitad.primitives.rules import Rules
from jitad.tape.tape import Tape
from jitad.tape.types import Aval, Node


class Tensor(NamedTuple):
    """A tensor of the graph, by name, and the type of the value on the tape."""

    name: str
    aval: Aval


Rule = Callable[["Graph", Node, Sequence[Tensor]], Any]
rule: Rules[Rule] = Rules()


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
    return UnsupportedOperationError(f"`{node.prim}` at {node.where} has no counterpart in ONNX; leave it out of "
                                     "what is exported, or save the tape with CompiledTape.save")


def replay(graph: Graph, tape: Tape, inputs: Sequence[Any]) -> list[Any]:
    """Append the tape; returns the tensors of all of its nodes. A scan has the tuple of its outputs."""
    names: list[Any] = [None] * len(tape.nodes)
    for number, name in zip(tape.inputs, inputs, strict=True):
        names[number] = name
    for number, node in enumerate(tape.nodes):
        if node.is_input:
            continue
        found = rule.of(node.prim)
        if found is None:
            raise refused(node)
        names[number] = found(graph, node, [Tensor(names[i], tape.nodes[i].aval) for i in node.inputs])
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
    inputs = [info_of(x) for x in (step, Tensor(going, goes_on.aval), *state)]
    subgraph = helper.make_graph(inner.nodes, f"{step.name}_body", inputs, list(map(info_of, outputs)))
    start = first[0].name if until else graph.const(True)
    operands = [graph.const(length, np.int64), start, *(x.name for x in first)]
    return graph.apply("Loop", operands, len(made), {"body": subgraph})


def info_of(x: Tensor) -> Any:
    """How an input or output of a graph is declared."""
    from onnx import helper

    return helper.make_tensor_value_info(x.name, element_type(x.aval.dtype), x.aval.shape)
