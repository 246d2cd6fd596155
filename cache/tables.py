"""The cache in words: tables that read well at a prompt and in a notebook."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

from .contents import owner_name
from .records import Miss, OwnerReport

__all__ = ["Explanation", "FunctionReport", "Report", "explain", "html_table", "in_bytes", "in_seconds", "rich_table",
           "show", "show_facts", "text_table"]


class FunctionReport(NamedTuple):
    """One line of a `Report`: what the cache holds for one function."""

    function: str
    entries: int
    hits: int
    misses: int
    seconds: float
    nbytes: int


class Report:
    """What the cache holds, function by function, the largest first; `rows` has the figures.

    A table at a prompt, under ``rich.print`` and in a notebook.
    """

    def __init__(self, owners: Sequence[OwnerReport]) -> None:
        names = _names([row.owner for row in owners])
        rows = [FunctionReport(name, *row[1:]) for name, row in zip(names, owners, strict=True)]
        self.rows = tuple(sorted(rows, key=lambda row: (-row.nbytes, -row.seconds, row.function)))

    @property
    def total(self) -> FunctionReport:
        """The sums over all functions."""
        columns = list(zip(*self.rows, strict=True))[1:] or [()] * 5
        return FunctionReport("total", *map(sum, columns))

    def _cells(self) -> list[list[str]]:
        return [
            [row.function, *map(str, row[1:4]), in_seconds(row.seconds), in_bytes(row.nbytes)]
            for row in [*self.rows, self.total]
        ]

    def __repr__(self) -> str:
        return text_table(_COLUMNS, self._cells()) if self.rows else "The cache is empty."

    def __rich__(self) -> Any:
        if not self.rows:
            return repr(self)
        table = rich_table(_COLUMNS, self._cells())
        table.rows[-2].end_section = True
        return table

    def _repr_html_(self) -> str:
        return html_table(_COLUMNS, self._cells()) if self.rows else "<p>The cache is empty.</p>"


_COLUMNS = ["function", "entries", "hits", "misses", "compile time", "size"]


def _names(owners: Sequence[Hashable]) -> list[str]:
    """Names to show; functions of one name are told apart by a piece of their code's digest."""
    names = [owner_name(owner) for owner in owners]
    count = Counter(names)
    return [n if count[n] == 1 else _with_digest(n, owner) for n, owner in zip(names, owners, strict=True)]


def _with_digest(name: str, owner: Hashable) -> str:
    return f"{name} (code {str(owner).rpartition('-')[2][:6]})"


class Explanation(str):
    """Text that shows itself as it is, also at a prompt, and as a table in a notebook and under ``rich.print``.
    `misses`, the latest last."""

    misses: tuple[Miss, ...] = ()

    def __repr__(self) -> str:
        return str(self)

    def __rich__(self) -> Any:
        if not self.misses:
            from rich.text import Text

            return Text(str(self))
        return rich_table(_MISSES, [_cells(miss) for miss in reversed(self.misses)])

    def _repr_html_(self) -> str:
        if not self.misses:
            return f"<p>{self}</p>"
        return html_table(_MISSES, [_cells(miss) for miss in reversed(self.misses)])


_MISSES = ["miss", "cause", "compile time", "hits since"]


def explain(misses: Sequence[Miss]) -> Explanation:
    """Put the misses of one function into words, the latest first.

    >>> explain([Miss(1, ()), Miss(2, ("argument `X`: shape (3,) -> (4,)",), 0.25, 7, True)])
    miss 2 (the last): argument `X`: shape (3,) -> (4,) [compiled in 0.25 s, 7 hits since]
    miss 1: first call
    """
    if not misses:
        return Explanation("No call has missed the cache.")
    lines: list[str] = []
    for miss in reversed(misses):
        title = f"miss {miss.number}" + (" (the last)" if miss is misses[-1] else "")
        lines.append(f"{title}: {'; '.join(_causes(miss))}{_outcome(miss)}")
    text = Explanation("\n".join(lines))
    text.misses = tuple(misses)
    return text


def _causes(miss: Miss) -> Sequence[str]:
    return miss.reasons or ("first call",)


def _outcome(miss: Miss) -> str:
    if miss.seconds is None:
        return ""
    hits = f"{miss.hits} hit{'s' if miss.hits != 1 else ''} since"
    return f" [compiled in {in_seconds(miss.seconds)}, {hits}{'' if miss.cached else ', dropped'}]"


def _cells(miss: Miss) -> list[str]:
    cells = [str(miss.number), "\n".join(_causes(miss))]
    if miss.seconds is None:
        return [*cells, "", ""]
    return [*cells, in_seconds(miss.seconds), f"{miss.hits}{'' if miss.cached else ' (dropped)'}"]


# --- tables and units -----------------------------------------------------------------------------------------------


def text_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns of text: the first to the left, the others to the right.

    >>> print(text_table(["name", "n"], [["a", "10"], ["bcdef", "2"]]))
    name    n
    a      10
    bcdef   2
    """
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    lines = []
    for row in [columns, *rows]:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def rich_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Any:
    """The same as a table of the library rich: columns of figures to the right."""
    from rich.box import ROUNDED
    from rich.table import Table
    from rich.text import Text

    table = Table(box=ROUNDED, header_style="bold")
    for number, name in enumerate(columns):
        figures = number > 0 and all(row[number][:1].isdigit() or not row[number] for row in rows)
        table.add_column(name, justify="right" if figures else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def show(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: of rich, where that is installed and a terminal shows it, else as text for programs to read."""
    if _watched():
        from rich import print as rich_print

        rich_print(rich_table(columns, rows))
    else:
        print(text_table(columns, rows))


def show_facts(facts: Iterable[tuple[str, str]], width: int) -> None:
    """Print names, of at most so many characters, and what is said of each, a line as soon as it is known."""
    if not _watched():
        for name, text in facts:
            print(f"{name:<{width}}  {text}", flush=True)
        return
    from rich.box import ROUNDED
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text

    table = Table(box=ROUNDED, show_header=False)
    table.add_column(style="bold", min_width=width, no_wrap=True)
    table.add_column(overflow="fold")
    with Live(table, auto_refresh=False, vertical_overflow="visible") as live:
        for name, text in facts:
            table.add_row(Text(name), Text(text, "red" if text.startswith("FAILED") else ""))
            live.refresh()


def _watched() -> bool:
    if not sys.stdout.isatty():
        return False
    try:
        import rich  # noqa: F401
    except ImportError:
        return False
    return True


def html_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same as HTML; line ends within a cell stay."""
    from html import escape

    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    cells = [[f"<td>{escape(cell)}</td>".replace("\n", "<br>") for cell in row] for row in rows]
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in cells)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def in_bytes(n: int) -> str:
    """A size to read.

    >>> in_bytes(0), in_bytes(999), in_bytes(12_345), in_bytes(5_000_000)
    ('0 B', '999 B', '12.3 kB', '5.0 MB')
    """
    size = float(n)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.95 or unit == "GB":
            break
        size /= 1000
    return f"{n} B" if unit == "B" else f"{size:.1f} {unit}"


def in_seconds(seconds: float) -> str:
    """A time to read.

    >>> in_seconds(0.00123), in_seconds(0.25), in_seconds(12.34)
    ('1.2 ms', '0.25 s', '12.3 s')
    """
    if seconds < 0.1:
        return f"{1000 * seconds:.1f} ms"
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
