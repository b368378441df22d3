"""Tables without lines that always fit: some columns keep their width, some give way, some are left out when narrow.

rich alone would shorten every column at once, the numbers too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

from coral.cli.words import NONE

GAP = 2
LEAST = 16  # characters that a column which gives way keeps
SCANT = 8  # below which it shows nothing


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], width: int) -> Table:
    """A table at most `width` wide.

    A column is its name with marks: `>n` aligned right, `.n` aligned at the decimal point, `n*` gives way when space
    is short, `n?` is left out when it is shorter still, and `n??` when so little is left that it would show nothing.
    """
    cells = [[cell if isinstance(cell, Text) else Text(str(cell or NONE)) for cell in row] for row in rows]
    for index, column in enumerate(columns):
        if column.startswith("."):
            for row, text in zip(cells, _aligned([row[index] for row in cells]), strict=True):
                row[index] = text
    kept = _kept(columns, cells, width)
    widths = _widths([columns[index] for index in kept], [[row[index] for index in kept] for row in cells], width)
    made = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim", show_edge=False)
    for index, space in zip(kept, widths, strict=True):
        right = columns[index].startswith(">")
        made.add_column(
            _name(columns[index]),
            justify="right" if right else "left",
            width=space,
            no_wrap=True,
            overflow="ellipsis",
        )
    for row in cells:
        made.add_row(*(row[index] for index in kept))
    return made


def _kept(columns: Sequence[str], cells: list[list[Text]], width: int) -> list[int]:
    """The columns that there is room for; of those that may be left out, the last goes first."""
    kept = list(range(len(columns)))
    for index in reversed(range(len(columns))):
        least = sum(_least(columns[each], [row[each] for row in cells]) + GAP for each in kept) - GAP
        if least <= width:
            break
        if columns[index].endswith("?") and not columns[index].endswith("??"):
            kept.remove(index)
    for index in [each for each in reversed(kept) if columns[each].endswith("??")]:
        if sum(_least(columns[each], [row[each] for row in cells], SCANT) + GAP for each in kept) - GAP > width:
            kept.remove(index)
    return kept


def _widths(columns: list[str], cells: list[list[Text]], width: int) -> list[int]:
    """What each column gets: those that give way share what the others leave, and none more than it needs."""
    needs = [_natural(column, [row[index] for row in cells]) for index, column in enumerate(columns)]
    yielding = sorted((index for index, column in enumerate(columns) if "*" in column), key=lambda index: needs[index])
    room = width - GAP * (len(columns) - 1) - sum(need for index, need in enumerate(needs) if index not in yielding)
    for place, index in enumerate(yielding):
        needs[index] = max(1, min(needs[index], room // (len(yielding) - place)))
        room -= needs[index]
    return needs


def _natural(column: str, cells: list[Text]) -> int:
    return max([len(_name(column)), *(cell.cell_len for cell in cells)])


def _least(column: str, cells: list[Text], least: int = LEAST) -> int:
    natural = _natural(column, cells)
    return min(natural, least) if "*" in column else natural


def _name(column: str) -> str:
    return column.strip(">.*?")


def _aligned(cells: list[Text]) -> list[Text]:
    """Numbers with their decimal points below each other, which shows the larger at a glance."""
    heads = [(cell.plain + ".").index(".") for cell in cells]
    return [Text(" " * (max(heads) - head)).append_text(cell) for cell, head in zip(cells, heads, strict=True)]
