"""What `g.profile` gives: tables as text, in a terminal with rich in colours, in a notebook with the user's lines."""
from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable, Sequence
from html import escape
from pathlib import PurePath
from typing import Any, NamedTuple

from jitad.cache.tables import html_table, in_bytes, text_table
from jitad.call.profile.measure import KernelPart, Measured, Work
from jitad.tape.types import Where

ROWS = 20                   # parts that are shown
SHOWN = 12                  # operations and lines that are named in one cell
LINES = ["line", "time", "%", "forward", "reverse", "arrays", ""]
PARTS = ["part", "time", "%", "lanes", "moved", "lines", "what is done in it"]
FORWARD, REVERSE = "70,130,220", "225,120,40"        # their colours


class LineTime(NamedTuple):
    """A line of the user's code: seconds in the function itself and in its derivative, bytes of the arrays that are
    made there for either, and the text. `file` is empty for what no line is known of."""

    file: str
    line: int
    forward: float
    reverse: float
    forward_bytes: int
    reverse_bytes: int
    text: str

    @property
    def seconds(self) -> float:
        return self.forward + self.reverse


class Profile:
    """Where the time of one call goes; made by ``g.profile(*args)``.

    `lines` has a `LineTime` for each line of your code that computes something, in the order of the files; `parts` what
    was measured: the loops, calls of routines and rest of the kernel in the order in which they run; `seconds` is the
    time of the kernel, `call_seconds` that of a call from Python, `runs` how often the kernel was run, `hints` what is
    known to be cheaper. Times of parts are measured. A part that several lines share is divided among them by the costs
    of their operations.

    Printed it is two tables; ``rich.print`` shows them in colours, and a notebook shows the code.
    """

    def __init__(self, name: str, function: Callable[..., Any], found: Measured, places: Sequence[Where],
                 call_seconds: float) -> None:
        self.name, self.runs, self.hints, self.call_seconds = name, found.runs, tuple(found.hints), call_seconds
        self.parts: tuple[KernelPart, ...] = tuple(found.parts)
        self.seconds = sum(part.seconds for part in self.parts)
        self.lines = tuple(_lines(found, places))
        self._span = _span(function)

    # --- as text ---------------------------------------------------------------------------------
    def __repr__(self) -> str:
        return "\n\n".join([self._head(), text_table(LINES, self._line_cells()), text_table(PARTS, self._part_cells()),
                            *([self._hints()] if self.hints else [])])

    def _head(self) -> str:
        return (f"{self.name}: {_time(self.seconds)} in the kernel, {_time(self.call_seconds)} a call from Python "
                f"({self.runs} runs on one core)")

    def _hints(self) -> str:
        return "\n".join(f"hint: {hint}" for hint in self.hints)

    def _percent(self, seconds: float) -> str:
        return f"{100 * seconds / self.seconds:.0f}" if self.seconds else ""

    def _line_cells(self) -> list[list[str]]:
        return [[f"{PurePath(row.file).name}:{row.line}" if row.file else "(no line)", _time(row.seconds),
                 self._percent(row.seconds), _time(row.forward), _time(row.reverse),
                 in_bytes(row.forward_bytes + row.reverse_bytes), row.text] for row in self.lines]

    def _part_cells(self) -> list[list[str]]:
        cells = []
        for part in self._shown():
            called = "" if part.kind == "call" or not part.routines else f"; calls {', '.join(part.routines)}"
            cells.append([f"{part.kind} {part.steps}" if part.steps else part.kind, _time(part.seconds),
                          self._percent(part.seconds), str(part.lanes), in_bytes(part.nbytes),
                          _some([str(where.line) for where in part.places]), _some(part.operations) + called])
        if rest := len(self.parts) - len(cells):
            seconds = self.seconds - sum(part.seconds for part in self._shown())
            cells.append([f"{rest} others", _time(seconds), self._percent(seconds), *[""] * (len(PARTS) - 3)])
        return cells

    def _shown(self) -> list[KernelPart]:
        """The parts that take longest, in the order in which they run."""
        least = sorted((part.seconds for part in self.parts), reverse=True)[:ROWS][-1]
        return [part for part in self.parts if part.seconds >= least][:ROWS]

    # --- with rich, and in a notebook --------------------------------------------------------------
    def __rich__(self) -> Any:
        from rich.console import Group
        from rich.table import Column, Table
        from rich.text import Text

        tables = []
        for columns, cells, times in ((LINES, self._line_cells(), [row.seconds for row in self.lines]),
                                      (PARTS, self._part_cells(), [*(part.seconds for part in self._shown()), 0.0])):
            table = Table(*(Column(name, no_wrap=True) for name in columns[:-1]), columns[-1])
            for row, seconds in zip(cells, times, strict=False):
                share = seconds / self.seconds if self.seconds else 0.0
                table.add_row(*map(Text, row), style="bold red" if share > 0.3 else "yellow" if share > 0.1 else None)
            tables.append(table)
        return Group(Text(self._head()), *tables, Text(self._hints()))

    def _repr_html_(self) -> str:
        most = max((row.seconds for row in self.lines), default=0.0) or 1.0
        most_bytes = max((row.forward_bytes + row.reverse_bytes for row in self.lines), default=0) or 1
        rows = []
        for number, text, row in self._listing():
            cells = ["", "", ""] if row is None else [
                _cell(_time(row.forward), row.forward / most, FORWARD),
                _cell(_time(row.reverse), row.reverse / most, REVERSE),
                _cell(in_bytes(row.forward_bytes + row.reverse_bytes),
                      (row.forward_bytes + row.reverse_bytes) / most_bytes, "120,120,120")]
            code = f'<td style="text-align:left;white-space:pre;font-family:monospace">{escape(text)}</td>'
            rows.append(f"<tr><td>{number}</td>{''.join(c or '<td></td>' for c in cells)}{code}</tr>")
        head = "".join(f"<th>{word}</th>" for word in ("line", "forward", "reverse", "arrays"))
        hints = "".join(f"<li>{escape(hint)}</li>" for hint in self.hints)
        return (f"<p>{escape(self._head())}</p><div style=\"overflow-x:auto\"><table><thead><tr>{head}"
                f'<th style="text-align:left">code</th></tr></thead><tbody>{"".join(rows)}</tbody></table>'
                f"{html_table(PARTS, self._part_cells())}</div>" + (f"<ul>{hints}</ul>" if hints else ""))

    def _listing(self) -> list[tuple[str, str, LineTime | None]]:
        """The function line by line, and the lines of other code that computes."""
        file, start, texts = self._span
        known = {(row.file, row.line): row for row in self.lines}
        listed = [(str(number), text.rstrip("\n"), known.pop((file, number), None))
                  for number, text in enumerate(texts, start)]
        rest = [(f"{PurePath(row.file).name}:{row.line}" if row.file else "", row.text or "sums of derivatives", row)
                for row in known.values()]
        return [*listed, *rest]


def _lines(found: Measured, places: Sequence[Where]) -> list[LineTime]:
    """Of each line, also of those whose work is within others', what it takes."""
    times: dict[tuple[str, int], list[float]] = {(where.filename, where.line): [0.0, 0.0, 0, 0] for where in places}

    def line(work: Work) -> list[float]:
        key = (work.where.filename, work.where.line) if work.where is not None else ("", 0)
        return times.setdefault(key, [0.0, 0.0, 0, 0])
    for part in found.parts:
        for work, share in part.shares.items():
            line(work)[work.derivative] += share * part.seconds
    for work, nbytes in found.memory.items():
        line(work)[2 + work.derivative] += nbytes
    ordered = sorted(times.items(), key=lambda item: (not item[0][0], item[0]))
    return [LineTime(file, number, values[0], values[1], int(values[2]), int(values[3]),
                     linecache.getline(file, number).strip() if file else "")
            for (file, number), values in ordered]


def _span(function: Callable[..., Any]) -> tuple[str, int, list[str]]:
    """The file of a function, its first line and its lines; nothing where the source is not at hand."""
    try:
        texts, start = inspect.getsourcelines(function)
        return inspect.getfile(inspect.unwrap(function)), start, texts
    except (OSError, TypeError):
        return "", 0, []


def _cell(text: str, share: float, colour: str) -> str:
    return f'<td style="background:rgba({colour},{0.85 * min(share, 1.0):.2f})">{escape(text)}</td>'


def _some(words: Sequence[str]) -> str:
    return ", ".join(words[:SHOWN]) + (", ..." if len(words) > SHOWN else "")


def _time(seconds: float) -> str:
    """A time to read, of which most are less than a millisecond."""
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds * 1e9:.0f} ns" if seconds else "0"
