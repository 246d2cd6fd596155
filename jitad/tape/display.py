"""Nodes as text: what a tape looks like when it is printed."""
from __future__ import annotations

import linecache
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from jitad.tape.types import Guard, Node

Nodes = Sequence[Node]
Names = Mapping[int, str]                        # of the inputs, by their numbers

# The background of what computes each group of rows, in pages and drawings: from pale for what costs little.
COLOURS = {"given": "#dbe9f6", "elements": "#e5f3df", "order": "#f2f2f2", "sums": "#fdf0d0", "routine": "#f9d9cf",
           "loop": "#e6dcf3"}


def format_nodes(nodes: Nodes, names: Names, numbers: Sequence[int]) -> list[str]:
    """One node a line: number, type, what it computes, the user's line; below a loop the lines of its body."""
    rows = [(f"%{n}", str(nodes[n].aval), _right(nodes, n, names), _where(nodes[n])) for n in numbers]
    widths = [max((len(r[c]) for n, r in zip(numbers, rows, strict=True) if nodes[n].body is None), default=0)
              for c in range(3)]
    lines = []
    for n, r in zip(numbers, rows, strict=True):
        lines.append(f"{r[0]:>{widths[0]}} : {r[1]:<{widths[1]}} = {r[2]:<{widths[2]}}  {r[3]}".rstrip())
        if nodes[n].body is not None:
            lines += [" " * widths[0] + " | " + line for line in _steps(nodes[n].body)]
    return lines


def format_ends(nodes: Nodes, names: Names, outputs: Sequence[int], labels: Sequence[str],
                guards: Sequence[Guard]) -> list[str]:
    """The guards, and what is returned."""
    operands = [_operand(nodes, o, names) for o in outputs]
    returned = ", ".join(f"{label}={operand}" if label else operand
                         for operand, label in zip(operands, labels or ("",) * len(outputs), strict=True))
    return [*(f"guard {_operand(nodes, g.node, names)} == {g.expected}  # {g.where}" for g in guards),
            f"return {returned}"]


def format_page(nodes: Nodes, text: str) -> str:
    """The text of a tape as HTML: each node in the colour of its group, with the user's line to hover over."""
    lines = []
    for line in text.split("\n"):
        found = re.match(r" *%(\d+) :", line)
        style, title = "", ""
        if found:
            node = nodes[int(found[1])]
            style, title = f' style="background:{COLOURS[node.group]};color:#111"', f' title="{escape(written(node))}"'
        lines.append(f"<span{style}{title}>{escape(line)}</span>")
    names = " ".join(f'<span style="background:{colour};color:#111"> {group} </span>'
                     for group, colour in COLOURS.items())
    return f'<pre style="line-height:1.35">{names}\n' + "\n".join(lines) + "</pre>"


def written(node: Node) -> str:
    """The user's line that made a node, with its place; empty where it is not known."""
    if node.where is None:
        return ""
    place = f"{node.where.filename}:{node.where.line}"
    return f"{place}: {linecache.getline(node.where.filename, node.where.line).strip()}".rstrip(": ")


def inline(node: Node) -> bool:
    """Whether a node is written within those that read it: a constant of one number."""
    return node.constant is not None and node.aval.size == 1


def _where(node: Node) -> str:
    return f"# {node.where.filename.rsplit('/', 1)[-1]}:{node.where.line}" if node.where else ""


def _operand(nodes: Nodes, number: int, names: Names) -> str:
    node = nodes[number]
    return repr(node.params["value"]) if inline(node) else names.get(number, f"%{number}")


def describe(nodes: Nodes, names: Names, number: int) -> str:
    """What a node computes, shortened, on one line."""
    text = _right(nodes, number, names)
    return text if len(text) <= 40 else text[:37] + "..."


def _right(nodes: Nodes, number: int, names: Names) -> str:
    node = nodes[number]
    if node.is_input:
        return f"input {names[number]}"
    operands = [_operand(nodes, i, names) for i in node.inputs]
    if node.prim.mapped:
        return f"{node.prim} {operands[0]}[{_subscript(node.params['index'])}]"
    if node.body is not None:
        return _head(node, operands)
    if node.picks is not None:
        return f"{operands[0]}.{node.picks}"
    params = [f"{k}={v!r}" for k, v in node.params.items()]
    return f"{node.prim}({', '.join(operands + params)})"


def _head(node: Node, operands: list[str]) -> str:
    """``for t in 0 .. 9 carry h = h0; y = obs[1 + t]; a = alpha``."""
    body, carries, scanned = (node.params[k] for k in ("body", "carries", "scanned"))
    walk = [f"{operand}[{_subscript([(offset, ((0, step),))]).replace('i', 't')}]"
            for operand, (offset, step) in zip(operands[carries:], scanned, strict=False)]
    operands = [*operands[:carries], *walk, *operands[carries + len(walk):]]
    bound = [f"{name} = {operand}" for name, operand in zip(body.names, operands, strict=False)]
    parts = [bound[:carries], bound[carries:carries + len(walk)], bound[carries + len(walk):]]
    last = "steps - 1" if node.params["counted"] else node.params["length"] - 1
    steps = f"{last} .. 0" if node.params["reverse"] else f"0 .. {last}"
    kind = "while" if node.params["until"] else "scan"
    return f"{kind} t = {steps}: " + "; ".join(", ".join(part) for part in parts if part)


def _steps(body: Any) -> list[str]:
    """The lines of the body of a loop, a tape, without those of its inputs."""
    return [line for line in body.format().split("\n") if " = input " not in line]


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


class Page(Text):
    """The text of a tape, which a notebook shows in colours."""

    html: str

    def __new__(cls, text: str, nodes: Nodes) -> Page:
        page = super().__new__(cls, text)
        page.html = format_page(nodes, text)
        return page

    def _repr_html_(self) -> str:
        return self.html
