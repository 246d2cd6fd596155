"""A tape as plain data, JSON and arrays, and back. Nothing that is read runs code.

What is read is checked before anything is compiled from it: every row of the table is known, every shape and dtype
is what the row says, no index map leaves its array, and each node is tried on a few zeros by the interpreter.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitad.errors import JitadError, TapeFileError
from jitad.export.checks import Trial, check
from jitad.primitives.core import SUPPORTED
from jitad.tape.tape import Tape
from jitad.tape.types import CONST, INPUT, TABLE, Aval, Constant, Guard, Node, Primitive, Where

Arrays = list[np.ndarray]
LARGEST = 1 << 48                                       # of the numbers among the params, and of the elements of a node


# --- writing -----------------------------------------------------------------------------------

def tape_data(tape: Tape, arrays: Arrays) -> dict[str, Any]:
    """The tape as what `json` can write; its constants are appended to `arrays`.

    Raises `TapeFileError` for a node with Python code of its own (a callback).
    """
    return {
        "nodes": [_node_data(node, arrays) for node in tape.nodes],
        "inputs": list(tape.inputs), "names": list(tape.names),
        "outputs": list(tape.outputs), "labels": list(tape.labels),
        "guards": [[g.node, g.expected, _where_data(g.where)] for g in tape.guards],
    }


def _node_data(node: Node, arrays: Arrays) -> dict[str, Any]:
    _check_trust(node.prim, node.where)
    data: dict[str, Any] = {"op": str(node.prim)}
    if node.inputs:
        data["in"] = list(node.inputs)
    if node.is_input:
        data["type"] = [node.aval.dtype.name, list(node.aval.shape)]
    if node.constant is not None:
        data["array"] = len(arrays)
        arrays.append(node.constant)
    elif node.params:
        data["params"] = {name: _param_data(value, node, arrays) for name, value in node.params.items()}
    if node.aval.weak:
        data["weak"] = True
    if node.where is not None:
        data["at"] = _where_data(node.where)
    return data


def _param_data(value: Any, node: Node, arrays: Arrays) -> Any:
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, tuple):
        return [_param_data(part, node, arrays) for part in value]
    if isinstance(value, Tape):
        return {"tape": tape_data(value, arrays)}
    raise TapeFileError(f"`{node.prim}` at {node.where} calls Python code, which cannot be in a file; write it in "
                        "NumPy, so that it is recorded")


def _where_data(where: Where | None) -> list[Any] | None:
    return list(where) if where is not None else None


def _check_trust(prim: Primitive, where: Where | None) -> None:
    """Raise for a row that reads wherever its indices point: a file could make it read anything."""
    if prim.trusts:
        raise TapeFileError(f"`{prim}`{f' at {where}' if where else ''} is {prim.trusts}, which "
                            "cannot be in a file; keep the function instead")


# --- reading -----------------------------------------------------------------------------------

def tape_of(data: Any, arrays: Sequence[np.ndarray]) -> Tape:
    """The tape that `tape_data` was given.

    Raises `TapeFileError` for anything that is not a tape whose every node is right.
    """
    try:
        return _tape(data, arrays, Trial())
    except TapeFileError:
        raise
    except (JitadError, ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as error:
        raise TapeFileError(f"not a tape: {type(error).__name__}: {error}") from None


def _tape(data: Mapping[str, Any], arrays: Sequence[np.ndarray], trial: Trial) -> Tape:
    nodes: list[Node] = []
    for number, entry in enumerate(data["nodes"]):
        _check_trust(TABLE[entry["op"]], None)
        if any(not 0 <= _number(i) < number for i in entry.get("in", ())):
            raise TapeFileError(f"node %{number} reads a node that does not come before it")
        node = _node(entry, nodes, arrays, trial)
        check(node, [nodes[i] for i in node.inputs], trial)
        nodes.append(node)
    inputs = tuple(i for i, node in enumerate(nodes) if node.is_input)
    names, labels = tuple(map(_text, data["names"])), tuple(map(_text, data["labels"]))
    outputs = tuple(map(_number, data["outputs"]))
    guards = tuple(_guard(entry, nodes) for entry in data["guards"])
    if tuple(data["inputs"]) != inputs or len(names) != len(inputs) or (labels and len(labels) != len(outputs)):
        raise TapeFileError("the inputs or outputs of the tape are not those that it lists")
    if any(not 0 <= o < len(nodes) or nodes[o].aval.dtype == object for o in outputs):
        raise TapeFileError("an output is not a value of the tape")
    return Tape(tuple(nodes), inputs, outputs, names, labels, guards).check()


def _node(entry: Mapping[str, Any], nodes: Sequence[Node], arrays: Sequence[np.ndarray], trial: Trial) -> Node:
    prim = TABLE[entry["op"]]
    at = None if entry.get("at") is None else _where(entry["at"])
    weak = entry.get("weak", False) is True
    if prim.leaf:
        params, dtype, shape = LEAVES[prim](entry, arrays)
        return Node(prim, (), params, _supported(dtype, shape, weak), at)
    inputs = tuple(map(_number, entry.get("in", ())))
    params = {_text(name): _param(value, arrays, trial) for name, value in entry.get("params", {}).items()}
    if prim.ufunc is not None and params:
        raise TapeFileError(f"`{prim}` has no params, not {sorted(params)}")
    aval = prim.infer(*(nodes[i].aval for i in inputs), **params)
    return Node(prim, inputs, params, Aval(aval.shape, aval.dtype, weak), at)


Leaf = tuple[dict[str, Any], np.dtype[Any], tuple[int, ...]]


def _constant(entry: Mapping[str, Any], arrays: Sequence[np.ndarray]) -> Leaf:
    constant = Constant(arrays[_number(entry["array"])])
    return {"value": constant}, constant.value.dtype, constant.value.shape


def _input(entry: Mapping[str, Any], arrays: Sequence[np.ndarray]) -> Leaf:
    dtype, shape = entry["type"]
    return {}, np.dtype(_text(dtype)), tuple(map(_number, shape))


LEAVES: dict[Primitive, Callable[[Mapping[str, Any], Sequence[np.ndarray]], Leaf]] = {CONST: _constant, INPUT: _input}
"""How the params, the dtype and the shape of what computes nothing are read."""


def _param(value: Any, arrays: Sequence[np.ndarray], trial: Trial) -> Any:
    if isinstance(value, list):
        return tuple(_param(part, arrays, trial) for part in value)
    if isinstance(value, dict):
        (kind, content), = value.items()
        return float.fromhex(content) if kind == "float" else _tape(content, arrays, trial)
    if type(value) is int and abs(value) > LARGEST:
        raise TapeFileError(f"{value} is no number of elements")
    return value


def _guard(entry: Any, nodes: Sequence[Node]) -> Guard:
    number, expected, where = entry
    if nodes[_number(number)].aval.shape or not isinstance(expected, (bool, int)):
        raise TapeFileError(f"the guard {entry} is not one of a number")
    return Guard(number, expected, None if where is None else _where(where))


def _where(data: Any) -> Where:
    filename, line, function = data
    return Where(_text(filename), _number(line), _text(function))


def _supported(dtype: np.dtype[Any], shape: tuple[int, ...], weak: bool) -> Aval:
    if dtype.name not in SUPPORTED or not dtype.isnative or any(n < 0 for n in shape) or math.prod(
            shape) > LARGEST:
        raise TapeFileError(f"an array of dtype {dtype} and shape {shape} cannot be on a tape")
    return Aval(shape, dtype, weak)


def _number(value: Any) -> int:
    if type(value) is not int:
        raise TapeFileError(f"{value!r} stands where a number should")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TapeFileError(f"{value!r} stands where a name should")
    return value
