"""`Builder`, a tape in the making (equal nodes are one node), and `Value`, a handle on a node of a builder, with
arithmetic, in which the rules are written.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from jitad.errors import JitadError, LeakedTracerError, TapeError
from jitad.tape.tape import Tape, needed
from jitad.tape.types import CONST, INPUT, TABLE, Aval, Constant, Guard, Handle, Node, Primitive, Where

NO_PARAMS: dict[str, Any] = {}


class Builder:
    """A tape in the making. Applying the same primitive to the same nodes gives the same node."""

    active = True                                        # whether there may be more on the tape

    def __init__(self, wrap: Callable[[Builder, int], Value] | None = None):
        self.nodes: list[Node] = []
        self.inputs: list[int] = []
        self.names: list[str] = []
        self.guards: dict[int, Guard] = {}
        self.wrap = wrap or Value
        self._memo: dict[Any, int] = {}
        self._results: dict[Primitive, Aval] = {}        # of rows of numbers
        self._numbers: dict[float, int] = {}             # constants
        self.supports: dict[int, Any] = {}               # of nodes, as far as differentiation has looked
        self.line: Where | None = None

    def where(self, depth: int = 1) -> Where | None:
        """The user's line for the next node: `line`, unless a recording knows better, and looks for it from `depth`
        frames above this method."""
        return self.line

    def value(self, number: int) -> Value:
        return self.wrap(self, number)

    def input(self, aval: Aval, name: str) -> Value:
        self.nodes.append(Node(INPUT, (), {}, aval, self.where()))
        self.inputs.append(len(self.nodes) - 1)
        self.names.append(name)
        return self.value(self.inputs[-1])

    def const(self, value: Any, weak: bool = False) -> Value:
        constant = Constant(value)
        aval = Aval(constant.value.shape, constant.value.dtype, weak)
        return self.value(self._add(CONST, (), {"value": constant}, aval, None))

    def constant(self, node: Node) -> int:
        """The constant of another tape; returns the node's number."""
        return self._add(node.prim, (), node.params, node.aval, None)

    def again(self, node: Node, inputs: Sequence[int]) -> Value:
        """A node of another tape, of these operands here."""
        return self.value(self.constant(node) if node.constant is not None else
                          self.apply(node.prim, inputs, node.params, node.where))

    def lift(self, operand: Any) -> Value:
        """`operand` as a value of this builder; numbers and arrays become constants."""
        if isinstance(operand, Value):
            if operand.builder is not self:
                raise self.foreign(operand)
            return operand
        return self.const(operand, weak=type(operand) in (int, float))

    def foreign(self, value: Value) -> JitadError:
        """The error for a value of another builder."""
        return TapeError("values of two tapes have met")

    def guard(self, value: Value, expected: bool | int, where: Where | None = None) -> None:
        """Make the tape depend on `value` being `expected`; what a constant is needs no guard."""
        if value.node.constant is None:
            self.guards.setdefault(value.number, Guard(value.number, expected, where or self.where()))

    def apply(self, prim: Primitive, inputs: Sequence[int], params: Mapping[str, Any],
              where: Where | None = None) -> int:
        """Append (or find) the application of `prim`; returns the node's number."""
        key = (prim, tuple(inputs), tuple(sorted(params.items())) if params else ())
        known = self._memo.get(key)
        if known is not None:
            return known
        aval = prim.infer(*(self.nodes[i].aval for i in inputs), **params)
        return self._add(prim, tuple(inputs), params, aval, where or self.where(), key)

    def _add(self, prim: Primitive, inputs: tuple[int, ...], params: Mapping[str, Any], aval: Aval,
             where: Where | None, key: Any = None) -> int:
        key = key or (prim, inputs, tuple(sorted(params.items())), aval.weak)
        known = self._memo.get(key)
        if known is None:
            self.nodes.append(Node(prim, inputs, dict(params), aval, where))
            known = self._memo[key] = len(self.nodes) - 1
        return known

    def enter(self, prim: Primitive, inputs: tuple[int, ...], params: Mapping[str, Any], items: tuple[Any, ...],
              aval: Aval) -> int:
        """As `apply`, where the sorted `items` of the params and the result's `aval` are known."""
        key = (prim, inputs, items)
        number = self._memo.get(key)
        if number is None:
            if not self.active:
                self.check_active()
            number = self._memo[key] = len(self.nodes)
            self.nodes.append(Node(prim, inputs, params, aval, self.where()))
        return number

    def on_numbers(self, prim: Primitive, inputs: tuple[int, ...]) -> Value:
        """As `apply` and `value` for a row without params and float64 numbers, the short way."""
        key = (prim, inputs, ())
        number = self._memo.get(key)
        if number is None:
            if not self.active:
                self.check_active()
            nodes = self.nodes
            aval = self._results.get(prim)
            if aval is None:
                aval = self._results[prim] = prim.infer(*(nodes[i].aval for i in inputs))
            number = self._memo[key] = len(nodes)
            nodes.append(Node(prim, inputs, NO_PARAMS, aval, self.where(3)))
        return self.wrap(self, number)

    def number(self, x: float) -> int:
        """The node of a constant."""
        known = self._numbers.get(x) if x else None      # zero has two signs
        if known is None:
            known = self.const(x).number
            self._numbers[x] = known
        return known

    def check_active(self) -> None:
        """Raise if there is to be nothing more on the tape."""

    def extend(self, number: int, params: Mapping[str, Any]) -> None:
        """Give node `number` params with which it computes more (a scan that stacks more outputs); what reads
        it stays as it is."""
        node = self.nodes[number]
        aval = node.prim.infer(*(self.nodes[i].aval for i in node.inputs), **params)
        self.nodes[number] = Node(node.prim, node.inputs, dict(params), aval, node.where)
        self._memo[node.prim, node.inputs, tuple(sorted(params.items()))] = number

    def replay(self, tape: Tape, values: Sequence[Value]) -> list[Value]:
        """Append `tape` with its inputs replaced by `values`; returns its outputs. Its guards come along."""
        numbers: dict[int, int] = {i: v.number for i, v in zip(tape.inputs, values, strict=True)}
        for number, node in enumerate(tape.nodes):
            if number in numbers:
                continue
            if node.constant is not None:
                numbers[number] = self.constant(node)
            else:
                numbers[number] = self.apply(node.prim, [numbers[i] for i in node.inputs], node.params, node.where)
        for guard in tape.guards:
            self.guard(self.value(numbers[guard.node]), guard.expected, guard.where)
        return [self.value(numbers[o]) for o in tape.outputs]

    def _leaked(self, number: int) -> LeakedTracerError:
        """The error for a placeholder of a loop's body that has got out."""
        reader = next((n.where for n in self.nodes if number in n.inputs), None)
        return LeakedTracerError(
            f"a value that is known only inside of the body of a scan or loop (computed at {reader}) was used outside: "
            "it was kept in a list, an array or a variable of the enclosing code; return it from the body instead")

    def live(self, outputs: Iterable[int]) -> list[int]:
        """The nodes that these and the guards need, and the inputs, in order."""
        found = needed(self.nodes, [*outputs, *self.guards])
        given = bytearray(len(found))
        for number in self.inputs:
            found[number] = given[number] = 1
        order = [number for number, wanted in enumerate(found) if wanted]
        for number in order:
            if self.nodes[number].is_input and not given[number]:
                raise self._leaked(number)
        return order

    def finish(self, outputs: Iterable[Value], labels: Iterable[str] = ()) -> Tape:
        """The tape of what `outputs` need (inputs stay), checked."""
        return self.tape([o.number for o in outputs], labels).check()

    def tape(self, outputs: Sequence[int], labels: Iterable[str] = ()) -> Tape:
        """The same for nodes that were all made by `apply`, which has checked them."""
        order, nodes = self.live(outputs), self.nodes
        new = dict(zip(order, range(len(order)), strict=True))
        kept = []
        for place, number in enumerate(order):
            node = nodes[number]
            kept.append(node if place == number else Node(
                node.prim, tuple([new[i] for i in node.inputs]), node.params, node.aval, node.where))
        return Tape(tuple(kept), tuple([new[i] for i in self.inputs]), tuple([new[i] for i in outputs]),
                    tuple(self.names), tuple(labels),
                    tuple([g._replace(node=new[g.node]) for g in self.guards.values()]))


class Value(Handle):
    """A node of a builder, with arithmetic. Rules are ordinary expressions on values."""

    __slots__ = ()
    builder: Builder
    __array_ufunc__: Any = None

    def __init__(self, builder: Builder, number: int):
        self.builder, self.number = builder, number

    @property
    def node(self) -> Node:
        return self.builder.nodes[self.number]

    @property
    def aval(self) -> Aval:
        return self.builder.nodes[self.number].aval

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __add__(self, o: Any) -> Any: return TABLE["add"](self, o)
    def __radd__(self, o: Any) -> Any: return TABLE["add"](o, self)
    def __sub__(self, o: Any) -> Any: return TABLE["sub"](self, o)
    def __rsub__(self, o: Any) -> Any: return TABLE["sub"](o, self)
    def __mul__(self, o: Any) -> Any: return TABLE["mul"](self, o)
    def __rmul__(self, o: Any) -> Any: return TABLE["mul"](o, self)
    def __truediv__(self, o: Any) -> Any: return TABLE["div"](self, o)
    def __rtruediv__(self, o: Any) -> Any: return TABLE["div"](o, self)
    def __pow__(self, o: Any) -> Any: return TABLE["pow"](self, o)
    def __rpow__(self, o: Any) -> Any: return TABLE["pow"](o, self)
    def __neg__(self) -> Any: return TABLE["neg"](self)
    def __lt__(self, o: Any) -> Any: return TABLE["lt"](self, o)
    def __le__(self, o: Any) -> Any: return TABLE["le"](self, o)
    def __gt__(self, o: Any) -> Any: return TABLE["gt"](self, o)
    def __ge__(self, o: Any) -> Any: return TABLE["ge"](self, o)
