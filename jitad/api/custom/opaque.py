"""Opaque Python on a tape: called when it is recorded, to see what it gives, and then at every run."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitad.api.custom.calls import CustomCall, copied, handed
from jitad.api.custom.rules import split
from jitad.errors import ConcretizationError, OutputError
from jitad.primitives.core import SUPPORTED
from jitad.primitives.custom import Code, opaque
from jitad.primitives.index import reshape
from jitad.tape.builder import Value
from jitad.tape.evaluate import evaluate_node
from jitad.tape.types import Aval, Where
from jitad.trace.leaves import altered, is_dynamic, refusal
from jitad.trace.pytree import leaves_of, unflatten
from jitad.trace.recorder import Recorder, outside
from jitad.trace.where import user_line

__all__ = ["call_opaque"]

EXACT = 1 << 53      # integers that a float holds


def call_opaque(call: CustomCall, function: Callable[..., Any], stop: bool) -> Any:
    """The result of `function` on the inputs of a call, as a node. With `stop`, no derivatives flow into it."""
    recorder, where = call.recorder, user_line()
    given = call.stopped() if stop else {}
    operands = [given.get(i, call.leaves[i]) for i in call.places]
    kinds = [_kind(x) for x in operands]
    inputs = _Inputs(call, kinds)
    sample, certain = _samples(recorder, [call.leaves[i].number for i in call.places])
    try:
        rebuilt = inputs.rebuilt(sample)
        first = _run(function, rebuilt)
    except Exception as error:
        if certain:
            raise
        raise ConcretizationError(
            f"`{call.name}` at {where} is opaque Python in the body of a loop or in a rule, where there are no numbers "
            f"yet; it was called with ones, to see what it returns, and raised {type(error).__name__}: {error}. Let "
            "it return something of the right shape for ones") from error
    expected = _Expected(call.name, where, first)
    with recorder.plain():
        flat = [reshape(Value(recorder, x.number), x.shape or (1,)) for x in operands]
        code = Code(call.name, function, lambda arrays: expected.packed(_run(function, inputs.rebuilt(arrays))),
                    tuple(Aval(v.shape, v.dtype) for v in flat), expected.size, expected.dtype)
        number = recorder.apply(opaque, [v.number for v in flat], {"code": code}, where)
        if certain:
            recorder.know(number, expected.packed(first))
        parts = split(Value(recorder, number), expected.avals)
    shared = [_shared(x, leaves_of(rebuilt)[0]) for x in leaves_of(first)[0]]
    return unflatten(expected.tree, [copied(recorder, v) if s else handed(recorder, v, a.weak)
                                     for v, a, s in zip(parts, expected.avals, shared, strict=True)])


def _shared(x: Any, inputs: Sequence[Any]) -> bool:
    """Whether a result lies in the memory of an input, and may be written no more than that."""
    return isinstance(x, np.ndarray) and any(isinstance(i, np.ndarray) and np.may_share_memory(x, i) for i in inputs)


def _kind(x: Any) -> str:
    """What an operand is to the function: a Python number, a number of NumPy, an array."""
    if x.ndim or getattr(x, "boxed", False):
        return "array"
    return "number" if getattr(x, "weak", False) else "scalar"


class _Inputs:
    """What becomes of arrays as inputs of the function again: nobody may write to them."""

    def __init__(self, call: CustomCall, kinds: Sequence[str]) -> None:
        self.trees, self.counts, self.places, self.kinds = call.trees, call.counts, call.places, kinds
        self.shapes = [call.leaves[i].shape for i in call.places]
        self.flat = all(t.spec.is_leaf() and not t.inner for t in self.trees)
        traced = set(call.places)
        self.leaves = [None if i in traced else x for i, x in enumerate(call.leaves)]

    def rebuilt(self, arrays: Sequence[np.ndarray]) -> list[Any]:
        leaves = list(self.leaves)
        for place, kind, shape, array in zip(self.places, self.kinds, self.shapes, arrays, strict=True):
            if kind == "array":
                array = array.reshape(shape)
                if array.flags.writeable:
                    array = array.copy()
                    array.flags.writeable = False
                leaves[place] = array
            else:
                leaves[place] = array.item() if kind == "number" else array.reshape(())[()]
        if self.flat:
            return leaves
        result, start = [], 0
        for tree, count in zip(self.trees, self.counts, strict=True):
            result.append(unflatten(tree, leaves[start:start + count]))
            start += count
        return result


def _run(function: Callable[..., Any], inputs: Sequence[Any]) -> Any:
    with outside():
        return function(*inputs)


class _Expected:
    """The structure, shapes and dtypes of a result, and the result as one vector."""

    def __init__(self, name: str, where: Where | None, result: Any) -> None:
        self.name, self.where = name, where
        leaves, self.tree = leaves_of(result)
        for leaf in leaves:
            if not is_dynamic(leaf) or altered(type(leaf)) or np.asarray(leaf).dtype.name not in SUPPORTED:
                raise OutputError(f"`{name}` at {where} is opaque Python and returned a {type(leaf).__name__}"
                                  f"{_dtype(leaf)}; it must return real numbers and arrays, or tuples of them")
        self.avals = [Aval(np.shape(x), np.asarray(x).dtype, type(x) in (int, float, bool)) for x in leaves]
        dtypes = {a.dtype for a in self.avals}
        self.dtype = np.result_type(*dtypes) if dtypes else np.dtype(np.float64)
        self.size = sum(a.size for a in self.avals)
        self.lone = self.avals[0] if leaves and leaves[0] is result else None

    def packed(self, result: Any) -> np.ndarray:
        """The result as a vector; `OutputError` if it is not as the first one was."""
        if self.lone is not None and type(result) in (np.ndarray, float, np.float64):     # the short way
            array = np.asarray(result)
            if array.shape == self.lone.shape and array.dtype == self.lone.dtype:
                return array.ravel()
        leaves, tree = leaves_of(result)
        if tree != self.tree:
            raise OutputError(f"`{self.name}`, called at {self.where}, returned another structure than when it was "
                              f"recorded: {len(leaves)} values for {len(self.avals)}, or in other containers")
        out, start = np.empty(self.size, self.dtype), 0
        for leaf, aval in zip(leaves, self.avals, strict=True):
            if altered(type(leaf)):
                raise OutputError(f"`{self.name}`, called at {self.where}, returned something that {refusal(leaf)}")
            array = np.asarray(leaf)
            if array.shape != aval.shape or not np.can_cast(array.dtype, aval.dtype, "safe"):
                raise OutputError(f"`{self.name}`, called at {self.where}, returned {array.dtype} of shape "
                                  f"{array.shape}; when it was recorded it returned {aval.dtype} of shape "
                                  f"{aval.shape}, and compiled code relies on that")
            if self.dtype.kind == "f" and aval.dtype.kind == "i" and (np.abs(array) > EXACT).any():
                raise OutputError(f"`{self.name}`, called at {self.where}, returned an integer beyond 2**53 together "
                                  "with floats, in one vector of which it has no place; return it on its own")
            out[start:start + aval.size] = array.ravel()
            start += aval.size
        return out


def _dtype(leaf: Any) -> str:
    dtype = getattr(leaf, "dtype", None)
    return f" of dtype {dtype}" if dtype is not None else ""


def _samples(recorder: Recorder, numbers: Sequence[int]) -> tuple[list[np.ndarray], bool]:
    """The values of nodes, and True; or, where those are not known, values that they might have, and False."""
    try:
        return [recorder.concrete(n) for n in numbers], True
    except ConcretizationError:
        pass
    known: dict[int, Any] = {}
    pending = list(numbers)
    while pending:
        n = pending[-1]
        node = recorder.nodes[n]
        needed = [recorder.likely[n]] if n in recorder.likely else node.inputs
        missing = [i for i in needed if i not in known]
        if n in known or not missing:
            pending.pop()
        if n in known:
            continue
        if missing:
            pending += missing
        elif n in recorder.likely:
            known[n] = known[recorder.likely[n]]
        elif node.is_input:
            known[n] = _input(recorder, n, node.aval)
        else:
            with np.errstate(all="ignore"):
                known[n] = evaluate_node(node, [known[i] for i in node.inputs])
    return [np.asarray(known[n]) for n in numbers], False


def _input(recorder: Recorder, number: int, aval: Aval) -> Any:
    try:
        return recorder.concrete(number)
    except ConcretizationError:
        return np.ones(aval.shape, aval.dtype)
