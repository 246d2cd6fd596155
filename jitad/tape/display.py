"""Tapes as text."""
from __future__ import annotations

from typing import Any

from jitad.tape.core import Node, Tape


def format_tape(tape: Tape, around: int | None = None) -> str:
    """One node a line: number, type, what it computes, the user's line."""
    near = range(len(tape.nodes)) if around is None else range(max(around - 5, 0), min(around + 6, len(tape.nodes)))
    names = dict(zip(tape.inputs, tape.names, strict=True))
    shown = [n for n in near if not inline(tape.nodes[n]) or n in tape.outputs]
    rows = [(f"%{n}", str(tape.nodes[n].aval), _right(tape, n, names), _where(tape.nodes[n])) for n in shown]
    widths = [max((len(r[c]) for n, r in zip(shown, rows, strict=True) if tape.nodes[n].prim.kind != "scan"), default=0)
              for c in range(3)]
    lines = []
    for n, r in zip(shown, rows, strict=True):
        lines.append(f"{r[0]:>{widths[0]}} : {r[1]:<{widths[1]}} = {r[2]:<{widths[2]}}  {r[3]}".rstrip())
        if tape.nodes[n].prim.kind == "scan":
            lines += [" " * widths[0] + " | " + line for line in _body(tape.nodes[n].params["body"])]
    labels = tape.labels or ("",) * len(tape.outputs)
    returned = ", ".join(f"{label}={_operand(tape, o, names)}" if label else _operand(tape, o, names)
                         for o, label in zip(tape.outputs, labels, strict=True))
    guards = [f"guard {_operand(tape, g.node, names)} == {g.expected}  # {g.where}" for g in tape.guards]
    return "\n".join([*lines, *(guards if around is None else []), f"return {returned}"])


def inline(node: Node) -> bool:
    """Whether a node is written within those that read it: a constant of one number."""
    return node.prim.name == "const" and node.aval.size == 1


def _where(node: Node) -> str:
    return f"# {node.where.filename.rsplit('/', 1)[-1]}:{node.where.line}" if node.where else ""


def _operand(tape: Tape, number: int, names: dict[int, str]) -> str:
    node = tape.nodes[number]
    return repr(node.params["value"]) if inline(node) else names.get(number, f"%{number}")


def describe(tape: Tape, number: int) -> str:
    """What a node computes, shortened, on one line."""
    text = _right(tape, number, dict(zip(tape.inputs, tape.names, strict=True)))
    return text if len(text) <= 40 else text[:37] + "..."


def _right(tape: Tape, number: int, names: dict[int, str]) -> str:
    node = tape.nodes[number]
    if node.prim.kind == "input":
        return f"input {names[number]}"
    operands = [_operand(tape, i, names) for i in node.inputs]
    if node.prim.kind in ("view", "spread"):
        return f"{node.prim.name} {operands[0]}[{_subscript(node.params['index'])}]"
    if node.prim.kind == "scan":
        return _head(node, operands)
    if node.prim.kind == "pick":
        return f"{operands[0]}.{node.params['index']}"
    params = [f"{k}={v!r}" for k, v in node.params.items()]
    return f"{node.prim.name}({', '.join(operands + params)})"


def _head(node: Node, operands: list[str]) -> str:
    """``for t in 0 .. 9 carry h = h0; y = obs[1 + t]; a = alpha``."""
    body, carries, scanned = (node.params[k] for k in ("body", "carries", "scanned"))
    walk = [f"{operand}[{_subscript([(offset, ((0, step),))]).replace('i', 't')}]"
            for operand, (offset, step) in zip(operands[carries:], scanned, strict=False)]
    operands = [*operands[:carries], *walk, *operands[carries + len(walk):]]
    bound = [f"{name} = {operand}" for name, operand in zip(body.names, operands, strict=False)]
    parts = [bound[:carries], bound[carries:carries + len(walk)], bound[carries + len(walk):]]
    last = node.params["length"] - 1
    steps = f"{last} .. 0" if node.params["reverse"] else f"0 .. {last}"
    kind = "while" if node.params["until"] else "scan"
    return f"{kind} t = {steps}: " + "; ".join(", ".join(part) for part in parts if part)


def _body(body: Tape) -> list[str]:
    """The body of a scan, without the lines of its inputs."""
    return [line for line in format_tape(body).split("\n") if " = input " not in line]


def _subscript(index: Any) -> str:
    """``source[k] = offset + step * i`` with the result's dimensions named i, j, k, ..."""
    names = "ijklmnopqrstuvwxyz"
    parts = []
    for offset, terms in index:
        text = " + ".join(names[d] if step == 1 else f"{step}*{names[d]}" for d, step in terms)
        parts.append(text if text and not offset else f"{offset} + {text}" if text else str(offset))
    return ", ".join(parts)


class Text(str):
    """Text that shows itself as it is, also at the prompt."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)
