"""A score curve in braille dots: the best score so far over time, drawn in steps."""

from collections.abc import Sequence

from coral.views.format import duration, score

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # [row][column] of one braille character


def curve(points: Sequence[tuple[float, float]], width: int, height: int) -> list[str]:
    """`height` lines of at most `width` characters, and one for the axis; `points` are (seconds, best so far) in order.
    An empty list without points, or where it would not fit."""
    low, high = min((y for _, y in points), default=0.0), max((y for _, y in points), default=0.0)
    labels = [score(_short(high)), score(_short(low))]
    margin = max(len(label) for label in labels) + 2
    columns = width - margin
    if not points or columns < 8 or height < 2:
        return []
    grid = _staircase(points, columns * 2, height * 4, low, high)
    names = {0: labels[0], height - 1: labels[1] if high > low else ""}
    lines = []
    for row, line in enumerate(grid):
        name = names.get(row, "")
        dots = "".join(chr(0x2800 + bits) for bits in line)
        lines.append(f"{name:>{margin - 2}} {'┤' if name else '│'}{dots}")
    end = duration(points[-1][0])
    return [*lines, " " * (margin - 1) + "└0" + end.rjust(columns - 1, "─")]


def _staircase(
    points: Sequence[tuple[float, float]], across: int, down: int, low: float, high: float
) -> list[list[int]]:
    """The dots, as braille bits [line][character]; `across` and `down` count dots."""
    grid = [[0] * (across // 2) for _ in range(down // 4)]
    first, last = points[0][0], points[-1][0]
    before = None
    at = 0
    for x in range(across):
        now = first + (last - first) * (x + 1) / across
        while at + 1 < len(points) and points[at + 1][0] <= now:
            at += 1
        # In quarters: the whole range of floats is more than a float can hold.
        share = (high / 4 - points[at][1] / 4) / (high / 4 - low / 4) if high / 4 > low / 4 else 0.5
        y = round(share * (down - 1))
        for dot in range(min(y, y if before is None else before), max(y, y if before is None else before) + 1):
            grid[dot // 4][x // 2] |= _DOTS[dot % 4][x % 2]
        before = y
    return grid


def _short(value: float) -> float:
    """Six significant digits are enough beside an axis."""
    return float(f"{value:.6g}")
