"""Sets up rich once: colours for people, plain columns for pipes, foreign text never taken for markup, and tables that
always fit.

Some columns of a table keep their width, some shrink, and some are left out of a narrow table. rich alone would shorten
all columns, even those of numbers, and would take a fifth of a second for a table of five hundred agents.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions
from rich.rule import Rule
from rich.segment import Segment
from rich.text import Text

from attempts.record import Attempt, Kind, Verdict
from coral.views.format import NONE

PIPE_WIDTH = 160  # a pipe has no width; rich would fold everything at 80
TONES = dict.fromkeys(("new best", "running"), "green") | dict.fromkeys(
    ("tied", "stopping", "left", "parked"), "yellow"
)
TONES |= {"failed": "red", "dead": "red", "void": "magenta", "retired": "dim"}
GAP = 2
LEAST = 16  # characters that a column which shrinks keeps
SCANT = 8  # characters below which such a column is of no use


class _Screen(Console):
    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError, which `main` handles: rich would exit with 1, but it is no failure if the reader left,
        as in `coral log | head`."""
        raise BrokenPipeError


def console() -> Console:
    """Return the console of standard output. Its width is the terminal's or $COLUMNS, and PIPE_WIDTH for a pipe."""
    width = None if sys.stdout.isatty() or os.environ.get("COLUMNS") else PIPE_WIDTH
    return _Screen(highlight=False, markup=False, emoji=False, soft_wrap=False, width=width)


def tone(word: str) -> Text:
    """Return a verdict or a state in its colour."""
    return Text(word, style=TONES.get(word, "default"))


def verdict_text(attempt: Attempt) -> Text:
    """Return the verdict in its colour. For a confirmation, return which attempt it grades again, and whether the grade
    failed or proved that attempt to be the best."""
    if attempt.kind is not Kind.CONFIRM:
        return tone(attempt.verdict)
    if attempt.verdict is Verdict.NEW_BEST:
        return Text(f"proves #{attempt.of}", style="green")
    outcome = f"{attempt.verdict} " if attempt.score is None else ""
    return dim(f"{outcome}confirm of #{attempt.of}")


def dim(text: str) -> Text:
    return Text(text, style="dim")


def print_title(out: Console, text: str) -> None:
    out.print()
    out.print(Rule(Text(text, style="bold"), align="left", style="dim"))


@dataclass(frozen=True, slots=True)
class Table:
    """A table that rich can print. Each cell is one line, cut or filled to the width of its column."""

    widths: Sequence[int]
    rights: Sequence[bool]
    lines: list[Sequence[Text]]

    def add_row(self, *cells: Text) -> None:
        """Add a line at the end. Columns without a cell stay empty."""
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
    """Make a table that is at most `width` wide.

    A column is given by its name with marks: `>n` is aligned right, `.n` is aligned at the decimal point, `n*` shrinks
    if the table is too wide, `n?` is left out if that is not enough, and `n??` is left out last, if shrunk columns
    would be too narrow to read.
    """
    rows = list(rows)
    kept = _kept([_Column(column, [row[index] for row in rows]) for index, column in enumerate(columns)], width)
    widths = []
    for wanted in _widths(kept, width):
        if width > 0:  # a column beyond the right edge is left out
            widths.append(min(wanted, width))
        width -= wanted + GAP
    lines: list[Sequence[Text]] = list(zip(*(column.cells for column in kept), strict=True))
    return Table(widths, [column.right for column in kept], lines)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    out = console()
    out.print(table(columns, rows, out.width))


class _Column:
    """A column of a table: the meaning of its marks, and its cells, the first of which is its name."""

    def __init__(self, marked: str, cells: Sequence[object]) -> None:
        self.right, self.shrinks = marked.startswith(">"), "*" in marked
        self.optional = marked.count("?")
        texts = [cell if isinstance(cell, Text) else Text(str(cell or NONE)) for cell in cells]
        name = Text(marked.strip(">.*?"), style="dim")
        self.cells = [name, *(_aligned(texts) if marked.startswith(".") else texts)]
        self.width = max(cell.cell_len for cell in self.cells)

    def least(self, kept: int) -> int:
        """Return the least width of the column. `kept`: how many characters a column that shrinks must keep."""
        return min(self.width, kept) if self.shrinks else self.width


def _kept(columns: Sequence[_Column], width: int) -> list[_Column]:
    """Return the columns that fit. Of those that may be left out, the last ones are left out first."""
    kept = list(columns)

    def needed(least: int) -> int:
        return sum(column.least(least) + GAP for column in kept) - GAP

    for column in reversed(columns):
        if needed(LEAST) <= width:
            break
        if column.optional == 1:
            kept.remove(column)
    for column in [column for column in reversed(kept) if column.optional > 1]:
        if needed(SCANT) > width:
            kept.remove(column)
    return kept


def _widths(columns: Sequence[_Column], width: int) -> list[int]:
    """Return the width of each column: those that shrink share what the others leave, and none gets more than it
    needs."""
    widths = [column.width for column in columns]
    shrinking = [place for place, column in enumerate(columns) if column.shrinks]
    left = width - GAP * (len(columns) - 1) - sum(column.width for column in columns if not column.shrinks)
    for place, index in enumerate(sorted(shrinking, key=widths.__getitem__)):
        widths[index] = max(1, min(widths[index], left // (len(shrinking) - place)))
        left -= widths[index]
    return widths


def _aligned(cells: list[Text]) -> list[Text]:
    """Align numbers at their decimal points, so that the larger one is seen at a glance."""
    heads = [(cell.plain + ".").index(".") for cell in cells]
    return [Text(" " * (max(heads) - head)).append_text(cell) for cell, head in zip(cells, heads, strict=True)]
