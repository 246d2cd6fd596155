"""Templates: what a rule writes on the tape for operands of given types, kept and written again without running it.

A rule that recorded code calls many times, in a loop, does the same each time: the nodes depend on the shapes, dtypes
and options alone. When a call comes for the third time, the rule runs on placeholders in a recording of its own; from
then on its nodes are entered one after the other, by the numbers of the operands, and equal nodes are one node as ever.

Not every rule is such. One that asks for the number behind a value, makes a guard, or looks at what made an operand
decides by more than types: the placeholders notice, and there is no template. Views alone may be taken of operands,
and are composed with what the operand is each time.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jitad.primitives.linalg.failures import FAILS
from jitad.primitives.view import shown
from jitad.tape.builder import Builder, Value
from jitad.tape.types import CONST, INPUT, TABLE, Aval, Node, Where
from jitad.trace.recorder import Recorder
from jitad.trace.values.tracer import Tracer

__all__ = ["forget", "repeated"]

CALLS = 2                     # of one kind before a template is made
LARGEST = 1024                # elements of constants in one
VIEW = TABLE["view"]
KINDS = 4096                  # of calls that are remembered
REFUSED = None
_KNOWN: dict[Any, Any] = {}   # by key: the number of calls so far, a template, or REFUSED
_STATIC = frozenset({int, bool, str, type(None), type, np.int64, np.bool_})


class Written(NamedTuple):
    """A node to be written; `inputs` count the operands, then the nodes before it."""

    prim: Any
    inputs: tuple[int, ...]
    params: Mapping[str, Any]
    items: tuple[Any, ...]
    aval: Aval


class Template(NamedTuple):
    """The nodes, and of the result its numbers, weak and boxed flags; `kind` is the tuple that it is, if it is one."""

    steps: tuple[Written, ...]
    results: tuple[tuple[int, bool, bool], ...]
    kind: Any


def repeated(rule: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``run(*args, **kwargs)``, where `rule` and the types of the arguments say what that writes."""
    operands: list[Tracer] = []
    key: Any = _key(args, operands)
    if key is not None and kwargs:
        options = _key(tuple(kwargs.values()), operands)
        key = None if options is None else (key, tuple(kwargs), options)
    if key is None or not operands:
        return run(*args, **kwargs)
    builder: Any = operands[0].builder
    numbers = [x.number for x in operands]
    if builder.wrap is not Tracer or type(builder) is not Recorder or (len(numbers) > 1 and (
            len(set(numbers)) < len(numbers) or any([x.builder is not builder for x in operands]))):
        return run(*args, **kwargs)
    key = (rule, key)
    known = _KNOWN.get(key, 0)
    if type(known) is int:
        if len(_KNOWN) >= KINDS:
            _KNOWN.clear()
        if known < CALLS:
            _KNOWN[key] = known + 1
            return run(*args, **kwargs)
        known = _KNOWN[key] = _made(run, args, kwargs)
    return run(*args, **kwargs) if known is REFUSED else _written(known, builder, numbers)


def forget() -> None:
    """Forget the templates: what a new process has none of."""
    _KNOWN.clear()


def _key(things: Sequence[Any], operands: list[Tracer]) -> Any:
    """What rules may know of the arguments; None for those of which they may know more. Tracers go to `operands`."""
    parts: list[Any] = []
    for x in things:
        kind = type(x)
        if kind is Tracer:
            operands.append(x)
            aval = x.builder.nodes[x.number].aval
            parts += (Tracer, aval.shape, aval.dtype, x.weak and x.storage is None, x.boxed, x.frozen)
        elif kind in _STATIC:
            parts += (kind, x)
        elif kind is float or kind is np.float64:
            parts += (kind, x if x else repr(x))                     # zero has two signs
        elif kind is tuple or kind is list:
            inner = _key(x, operands)
            if inner is None:
                return None
            parts += (kind, inner)
        else:
            return None
    return tuple(parts)


def _written(template: Template, builder: Recorder, numbers: list[int]) -> Any:
    outer = builder.line
    builder.line = builder.where()
    try:
        for prim, inputs, params, items, aval in template.steps:
            if prim is VIEW:
                number = shown(builder, numbers[inputs[0]], params["shape"], params["index"])
            elif prim is CONST:
                known = builder.placed.get(id(params))
                if known is None:                             # with the params, which must live as long as their id
                    known = builder.placed[id(params)] = builder.constant(Node(prim, (), params, aval)), params
                number = known[0]
            elif prim in FAILS:
                number = builder.apply(prim, [numbers[i] for i in inputs], params)
            else:
                number = builder.enter(prim, tuple([numbers[i] for i in inputs]), params, items, aval)
            numbers.append(number)
    finally:
        builder.line = outer
    results = []
    for number, weak, boxed in template.results:
        result: Any = Tracer(builder, numbers[number])
        result.weak, result.boxed = weak, boxed
        results.append(result)
    if template.kind is None:
        return results[0]
    return template.kind(results) if template.kind in (tuple, list) else template.kind(*results)


# --- making one ------------------------------------------------------------------------------

class _Unseen(Node):
    """A placeholder, or a view of one: a rule that looks at what made it has no template."""

    def __init__(self, trial: _Trial, node: Node) -> None:
        self.trial, self.hidden, self.aval, self.where = trial, node, node.aval, None

    def _look(self) -> Node:
        self.trial.fine = False
        return self.hidden

    prim = property(lambda self: self._look().prim)          # type: ignore[assignment]
    inputs = property(lambda self: self._look().inputs)      # type: ignore[assignment]
    params = property(lambda self: self._look().params)      # type: ignore[assignment]


class _Trial(Recorder):
    """The recording of a rule on placeholders; `fine` while it does nothing that a template cannot do again."""

    def __init__(self) -> None:
        super().__init__("a template")
        self.fine = True

    def placeholder(self, like: Tracer) -> Tracer:
        aval = like.aval
        self.nodes.append(_Unseen(self, Node(INPUT, (), {}, aval)))
        made: Any = Tracer(self, len(self.nodes) - 1)
        made.weak, made.boxed, made.frozen = aval.weak, like.boxed, like.frozen
        return made

    def where(self, depth: int = 1) -> Where | None:
        return None

    def enter(self, prim: Any, inputs: tuple[int, ...], params: Mapping[str, Any], items: tuple[Any, ...],
              aval: Aval) -> int:
        return self._hidden(super().enter(prim, inputs, params, items, aval), prim, inputs)

    def apply(self, prim: Any, inputs: Sequence[int], params: Mapping[str, Any], where: Where | None = None) -> int:
        self.fine = self.fine and where is None
        return self._hidden(super().apply(prim, inputs, params, where), prim, inputs)

    def _hidden(self, number: int, prim: Any, inputs: Sequence[int]) -> int:
        if prim is VIEW and type(self.nodes[inputs[0]]) is _Unseen and type(self.nodes[number]) is Node:
            self.nodes[number] = _Unseen(self, self.nodes[number])
        return number

    def may_be_caught(self) -> bool:
        return False

    def guard(self, value: Value, expected: bool | int, where: Where | None = None) -> None:
        self.fine = False

    def concrete(self, number: int) -> Any:
        self.fine = False
        return super().concrete(number)

    def extend(self, number: int, params: Mapping[str, Any]) -> None:
        self.fine = False
        super().extend(number, params)


def _made(run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Template | None:
    trial = _Trial()

    def replaced(x: Any) -> Any:
        if type(x) is Tracer:
            return trial.placeholder(x)
        return type(x)(map(replaced, x)) if type(x) in (tuple, list) else x
    given, options = replaced(args), {name: replaced(x) for name, x in kwargs.items()}
    count = len(trial.nodes)
    try:
        result = run(*given, **options)
    except Exception:
        return REFUSED                                       # which the rule itself then says as it should
    kind = None if type(result) is Tracer else type(result)
    parts: list[Any] = [result] if kind is None else list(result) if isinstance(result, (tuple, list)) else [None]
    if not trial.fine or trial.refusals or trial.likely or not all(_is_new(trial, part) for part in parts):
        return REFUSED
    nodes = [n.hidden if type(n) is _Unseen else n for n in trial.nodes[count:]]
    if any(n.is_input for n in nodes) or sum(n.aval.size for n in nodes if n.constant is not None) > LARGEST:
        return REFUSED
    steps = tuple(Written(n.prim, n.inputs, n.params, tuple(sorted(n.params.items())), n.aval) for n in nodes)
    return Template(steps, tuple((p.number, p.weak, p.boxed) for p in parts), kind)


def _is_new(trial: Builder, part: Any) -> bool:
    """Whether a result is an array or number of its own, and no view of an operand."""
    return type(part) is Tracer and part.builder is trial and part.storage is None and not part.frozen and (
        type(trial.nodes[part.number]) is Node)
