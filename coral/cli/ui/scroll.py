"""A part of a list that grows at its end: the newest, or a place that stays when more come."""

from bisect import bisect_right
from collections.abc import Sequence

Position = tuple[int, int]  # of a line in its list, counted from the first there ever was; of a row in that line


class Scroll:
    """`keep`: the last row that is read; None for the newest. A row that tells how many are newer takes the place of
    one."""

    def __init__(self) -> None:
        self.keep: Position | None = None
        self._positions: Sequence[Position] = ()
        self._height = 1

    def window(self, positions: Sequence[Position], height: int) -> tuple[int, int]:
        """Which of these rows are shown, from the first to before the last, where so many fit; fewer by one where there
        are newer ones."""
        self._positions, self._height = positions, max(height, 1)
        end = self._end()
        return max(0, end - (self._height if end == len(positions) else self._fewer)), end

    def page(self, pages: int) -> None:
        """Move by so many pages towards the newest row, or if negative towards the oldest. One row stays visible."""
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
