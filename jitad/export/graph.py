"""Tapes as graphs: in the DOT language of Graphviz, and drawn as SVG, which notebooks show."""
from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from html import escape

from jitad.tape.display import COLOURS, inline, written
from jitad.tape.tape import Tape

STEP, LINE, LETTER, GAP = 58, 28, 6.6, 14       # distance of layers, height of a box, width of a letter, space between


class TapeGraph:
    """The graph of a tape. `dot` is its text for Graphviz, `svg` a drawing; notebooks show it.

    Nodes are the operations, in the colour of their group, outputs with a thick edge; edges go from operands to what
    reads them; small constants stand within the operation. Hovering over a node shows the user's line.
    """

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._shown = [n for n, node in enumerate(tape.nodes) if not inline(node) or n in tape.outputs]

    @property
    def dot(self) -> str:
        """The graph in the DOT language; ``dot -Tsvg`` draws it."""
        lines = ["digraph tape {", '  rankdir=TB; node [shape=box, style=filled, fontname="monospace", fontsize=10];']
        for n in self._shown:
            label = "\\n".join(text.replace("\\", "\\\\").replace('"', '\\"') for text in self._lines(n))
            lines.append(f'  n{n} [label="{label}", fillcolor="{COLOURS[self._tape.nodes[n].group]}"];')
        lines += [f"  n{i} -> n{n};" for n in self._shown for i in self._operands(n)]
        return "\n".join([*lines, "}"])

    @property
    def svg(self) -> str:
        """The graph drawn in layers, inputs at the top."""
        widths = {n: max(map(len, self._lines(n))) * LETTER + GAP for n in self._shown}
        left = self._columns(widths)
        middle = {n: left[n] + widths[n] / 2 for n in self._shown}
        top = {n: GAP + self._layers[n] * STEP for n in self._shown}
        right = max((left[n] + widths[n] for n in self._shown), default=0) + GAP
        bottom = max(top.values(), default=0) + LINE + GAP
        parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{right:.0f}" height="{bottom:.0f}" '
                 'font-family="monospace" font-size="10">']
        for n in self._shown:
            for i in self._operands(n):
                x, y, u, v = middle[i], top[i] + LINE, middle[n], top[n]
                parts.append(f'<path d="M{x:.1f} {y:.0f} C{x:.1f} {y + STEP / 3:.0f} {u:.1f} {v - STEP / 3:.0f} '
                             f'{u:.1f} {v:.0f}" fill="none" stroke="#8a8a8a"/>')
        for n in self._shown:
            edge = 2 if n in self._tape.outputs else 1
            parts.append(f'<g><title>{escape(written(self._tape.nodes[n]))}</title>'
                         f'<rect x="{left[n]:.1f}" y="{top[n]:.0f}" width="{widths[n]:.1f}" height="{LINE}" rx="3" '
                         f'fill="{COLOURS[self._tape.nodes[n].group]}" stroke="#555" stroke-width="{edge}"/>')
            for row, text in enumerate(self._lines(n)):
                parts.append(f'<text x="{middle[n]:.1f}" y="{top[n] + 11 + 12 * row:.0f}" text-anchor="middle">'
                             f"{escape(text)}</text>")
            parts.append("</g>")
        return "\n".join([*parts, "</svg>"])

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return self.dot

    # --- parts ---------------------------------------------------------------------------------
    def _operands(self, number: int) -> list[int]:
        return [i for i in dict.fromkeys(self._tape.nodes[number].inputs) if not inline(self._tape.nodes[i])]

    def _lines(self, number: int) -> list[str]:
        """What a box says: the operation, and its type with the user's line."""
        node = self._tape.nodes[number]
        text = self._tape.describe(number)
        labels = [label for o, label in zip(self._tape.outputs, self._tape.labels, strict=False) if o == number]
        where = f"  line {node.where.line}" if node.where else ""
        return [", ".join([*labels, ""])[:-2] + (": " if labels else "") + text, f"%{number} : {node.aval}{where}"]

    @cached_property
    def _layers(self) -> dict[int, int]:
        """How far each node is from the inputs."""
        layers: dict[int, int] = {}
        for n in self._shown:
            layers[n] = max((layers[i] + 1 for i in self._operands(n)), default=0)
        return layers

    def _columns(self, widths: dict[int, float]) -> dict[int, float]:
        """The left edge of each box: in each layer in the order of the mean place of what it reads."""
        rows: dict[int, list[int]] = {}
        for n in self._shown:
            rows.setdefault(self._layers[n], []).append(n)
        left: dict[int, float] = {}
        for _, row in sorted(rows.items()):
            wanted = {n: _mean([left[i] + widths[i] / 2 for i in self._operands(n)]) for n in row}
            edge = float(GAP)
            for n in sorted(row, key=wanted.__getitem__):
                left[n] = max(edge, wanted[n] - widths[n] / 2)
                edge = left[n] + widths[n] + GAP
        return left


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers) if numbers else 0.0
