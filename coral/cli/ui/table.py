"""Tables without lines that always fit: some columns keep their width, some shrink, some are left out when narrow.

rich alone would shorten every column at once, the numbers too; and it would take a fifth of a second to lay out a table
of five hundred agents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions
from rich.segment import Segment
from rich.text import Text

from coral.cli.ui.console import console
from coral.views.format import NONE

GAP = 2
LEAST = 16  # characters that a column which shrinks keeps
SCANT = 8  # characters below which it shows nothing


@dataclass(frozen=True, slots=True)
class Table:
    """Lines of cells, as rich prints them; each cell is one line, and cut or filled to the width of its column."""

    widths: Sequence[int]
    rights: Sequence[bool]
    lines: list[Sequence[Text]]

    def add_row(self, *cells: Text) -> None:
        """Add a line at the end; columns without a cell stay empty."""
        self.lines.append(cells)

    def __rich_console__(self, console: Console, _: ConsoleOptions) -> Iterator[Segment]:
        for cells in self.lines:
            for place, (cell, width, right) in enumerate(zip(cells, self.widths, self.rights, strict=False)):
                yield Segment(" " * GAP if place else "")
                yield from _filled(cell, width, right, console)
            yield Segment.line()


def _filled(cell: Text, width: int, right: bool, console: Console) -> Iterator[Segment]:
    if cell.cell_len > width:
        cell = cell.copy()
        cell.truncate(width, overflow="ellipsis")
    space = Segment(" " * (width - cell.cell_len))
    if right:
        yield space
    if cell.spans:
        yield from cell.render(console)
    else:
        yield Segment(cell.plain, console.get_style(cell.style))
    if not right:
        yield space


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], width: int) -> Table:
    """A table at most `width` wide.

    A column is its name with marks: `>n` aligned right, `.n` aligned at the decimal point, `n*` shrinks when space is
    short, `n?` is left out when it is shorter still, and `n??` when so little is left that it would show nothing.
    """
    cells = [[cell if isinstance(cell, Text) else Text(str(cell or NONE)) for cell in row] for row in rows]
    for index, column in enumerate(columns):
        if column.startswith("."):
            for row, text in zip(cells, _aligned([row[index] for row in cells]), strict=True):
                row[index] = text
    kept = _kept(columns, cells, width)
    widths = _widths([columns[index] for index in kept], [[row[index] for index in kept] for row in cells], width)
    header = [Text(_name(columns[index]), style="dim") for index in kept]
    lines: list[Sequence[Text]] = [header, *([row[index] for index in kept] for row in cells)]
    return Table(list(_within(widths, width)), [columns[index].startswith(">") for index in kept], lines)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table as wide as the terminal."""
    out = console()
    out.print(table(columns, rows, out.width))


def _kept(columns: Sequence[str], cells: list[list[Text]], width: int) -> list[int]:
    """The columns that fit; of those that may be left out, the last goes first."""
    kept = list(range(len(columns)))

    def needed(least: int) -> int:
        return sum(_least(columns[index], [row[index] for row in cells], least) + GAP for index in kept) - GAP

    for index in reversed(range(len(columns))):
        if needed(LEAST) <= width:
            break
        if columns[index].endswith("?") and not columns[index].endswith("??"):
            kept.remove(index)
    for index in [index for index in reversed(kept) if columns[index].endswith("??")]:
        if needed(SCANT) > width:
            kept.remove(index)
    return kept


def _widths(columns: list[str], cells: list[list[Text]], width: int) -> list[int]:
    """The width of each column: those that shrink share what the others leave, and none gets more than it needs."""
    needs = [_natural(column, [row[index] for row in cells]) for index, column in enumerate(columns)]
    shrinking = sorted((index for index, column in enumerate(columns) if "*" in column), key=lambda index: needs[index])
    left = width - GAP * (len(columns) - 1) - sum(need for index, need in enumerate(needs) if index not in shrinking)
    for place, index in enumerate(shrinking):
        needs[index] = max(1, min(needs[index], left // (len(shrinking) - place)))
        left -= needs[index]
    return needs


def _within(widths: Iterable[int], width: int) -> Iterator[int]:
    """The widths cut at the right edge, where even the least is too much."""
    for column in widths:
        if width > 0:
            yield min(column, width)
        width -= column + GAP


def _natural(column: str, cells: list[Text]) -> int:
    return max([len(_name(column)), *(cell.cell_len for cell in cells)])


def _least(column: str, cells: list[Text], least: int) -> int:
    natural = _natural(column, cells)
    return min(natural, least) if "*" in column else natural


def _name(column: str) -> str:
    return column.strip(">.*?")


def _aligned(cells: list[Text]) -> list[Text]:
    """Numbers with their decimal points below each other, so that the larger one is seen at a glance."""
    heads = [(cell.plain + ".").index(".") for cell in cells]
    return [Text(" " * (max(heads) - head)).append_text(cell) for cell, head in zip(cells, heads, strict=True)]
