"""Draws scores over time or over attempts with the dots of braille characters: the best so far as lines, attempts as
points.

A character has one colour: that of a line through it, else that of its first point. The axis shows the range of
`curve.reach`. What lies outside is drawn at the edge, whose label then begins with ≤ or ≥.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from coral.views.curve import reach
from coral.views.format import scores

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # [row][column] of one braille character
AGENT_STYLES = ("cyan", "magenta", "yellow", "blue", "red", "bright_cyan", "bright_magenta", "bright_yellow")
RUN_STYLES = ("green", *AGENT_STYLES)


@dataclass(frozen=True, slots=True)
class BestLine:
    """A line of the best so far. `points`: (x, the best from there on), in order."""

    points: Sequence[tuple[float, float]]
    style: str = "green"


@dataclass(frozen=True, slots=True)
class Dot:
    x: float
    y: float
    style: str


def draw(
    lines: Sequence[BestLine], dots: Sequence[Dot], width: int, height: int, end: float, end_text: str
) -> list[Text]:
    """Return the picture: `height` lines of at most `width` characters, and below them the axis from 0 to `end`. Empty
    if there is nothing to draw or the picture would not fit."""
    lines = [line for line in lines if line.points]
    held = [[y for _, y in line.points] for line in lines]
    shown = reach(held, (dot.y for dot in dots))
    if shown is None or height < 2:
        return []
    low, high = shown
    labels = _labels(low, high, [y for values in held for y in values] + [dot.y for dot in dots])
    margin = max(len(label) for label in labels) + 2
    columns = width - margin
    if columns < 8:
        return []
    grid = _Grid(columns, height, low, high, end)
    for line in lines:
        grid.staircase(line)
    for dot in dots:
        grid.dot(dot)
    names = {0: labels[0], height - 1: labels[1] if high > low else ""}
    drawn = [
        Text.assemble(f"{names.get(row, ''):>{margin - 2}} {'┤' if names.get(row) else '│'}", *cells, no_wrap=True)
        for row, cells in enumerate(grid.rows())
    ]
    return [*drawn, Text(" " * (margin - 1) + "└0" + end_text.rjust(columns - 1, "─"), no_wrap=True)]


def _labels(low: float, high: float, drawn: Sequence[float]) -> tuple[str, str]:
    """Return the labels of the top and the bottom. A label begins with ≥ or ≤ if something that lies outside is drawn
    at that edge."""
    top, bottom = scores([high, low])
    return f"≥{top}" if max(drawn) > high else top, f"≤{bottom}" if min(drawn) < low else bottom


class _Grid:
    """A grid of dots, two wide and four high in each character, with the style of each character."""

    def __init__(self, columns: int, height: int, low: float, high: float, end: float) -> None:
        self._bits = [[0] * columns for _ in range(height)]
        self._styles = [[""] * columns for _ in range(height)]
        self._across, self._down = columns * 2, height * 4
        self._low, self._high, self._end = low, high, end

    def rows(self) -> list[list[tuple[str, str]]]:
        return [
            [(chr(0x2800 + bits), style) for bits, style in zip(line, styles, strict=True)]
            for line, styles in zip(self._bits, self._styles, strict=True)
        ]

    def staircase(self, line: BestLine) -> None:
        before, at = None, 0
        for column in range(self._column(line.points[0][0]), self._column(line.points[-1][0]) + 1):
            now = self._end * (column + 1) / self._across
            while at + 1 < len(line.points) and line.points[at + 1][0] <= now:
                at += 1
            row = self._row(line.points[at][1])
            for dot_row in range(
                min(row, row if before is None else before), max(row, row if before is None else before) + 1
            ):
                self._set(column, dot_row, line.style, over=True)
            before = row

    def dot(self, dot: Dot) -> None:
        self._set(self._column(dot.x), self._row(dot.y), dot.style)

    def _column(self, x: float) -> int:
        share = min(max(x / self._end, 0.0), 1.0) if self._end > 0 else 0.0
        return min(int(share * self._across), self._across - 1)

    def _row(self, y: float) -> int:
        # Divided by four: a range of floats may be larger than the largest float.
        whole = self._high / 4 - self._low / 4
        share = (self._high / 4 - min(max(y, self._low), self._high) / 4) / whole if whole > 0 else 0.5
        return round(share * (self._down - 1))

    def _set(self, column: int, row: int, style: str, *, over: bool = False) -> None:
        self._bits[row // 4][column // 2] |= _DOTS[row % 4][column % 2]
        if over or not self._styles[row // 4][column // 2]:
            self._styles[row // 4][column // 2] = style
