"""Scrolls in a list that grows at its end: shows the newest rows, or stays at a place while more rows come."""

from bisect import bisect_right
from collections.abc import Sequence

Position = tuple[int, int]  # (number of the line, from the first that there ever was; place of the row in that line)


class Scroll:
    """The place in the list. `keep`: the position of the last row shown; None to show the newest. A row that says how
    many rows are newer takes the place of one row."""

    def __init__(self) -> None:
        self.keep: Position | None = None
        self._positions: Sequence[Position] = ()
        self._height = 1

    def window(self, positions: Sequence[Position], height: int) -> tuple[int, int]:
        """Return which of these rows are shown, as (first, end), if `height` rows fit. If there are newer rows, one
        less is shown."""
        self._positions, self._height = positions, max(height, 1)
        end = self._end()
        return max(0, end - (self._height if end == len(positions) else self._fewer)), end

    def page(self, pages: int) -> None:
        """Move by `pages` pages towards the newest row or, if negative, towards the oldest. One row stays visible."""
        self._show_until(self._end() + pages * max(1, self._fewer - 1))

    def to_oldest(self) -> None:
        self._show_until(0)

    def to_newest(self) -> None:
        self.keep = None

    @property
    def _fewer(self) -> int:
        return max(1, self._height - 1)

    def _end(self) -> int:
        if self.keep is None or len(self._positions) <= self._height:
            return len(self._positions)
        return max(bisect_right(self._positions, self.keep), self._fewer)

    def _show_until(self, end: int) -> None:
        count = len(self._positions)
        end = max(end, self._fewer)
        self.keep = None if end >= count or count <= self._height else self._positions[end - 1]
