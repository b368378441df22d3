"""`Rows`: a sequence of records of one kind, which can be converted to plain data for JSON and to a pandas
DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from coral.errors import CoralError
from coral.extras import installs
from coral.views.format import plural

if TYPE_CHECKING:
    import pandas

T = TypeVar("T")
TIMES = ("submitted_at", "published_at", "created")  # texts in ISO 8601, which become times in a table


class Rows(Sequence[T], Generic[T]):
    """A sequence that never changes. `data()` gives plain data as `--json` prints it, `to_pandas()` a DataFrame."""

    def __init__(
        self,
        items: Sequence[T],
        columns: Sequence[str],
        flat: Callable[[T], Mapping[str, object]],
        nested: Callable[[T], Mapping[str, object]] | None = None,
    ) -> None:
        """`columns`: the first columns of the table, present even if there are no rows. `flat`: makes of an item a row
        of the table; keys that are not in `columns` become further columns, sorted by name. `nested`: makes of an item
        an object for JSON; by default `flat`."""
        self._items, self._columns = tuple(items), tuple(columns)
        self._flat, self._nested = flat, nested or flat

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Rows[T]: ...
    def __getitem__(self, index: int | slice) -> T | Rows[T]:
        if isinstance(index, slice):
            return Rows(self._items[index], self._columns, self._flat, self._nested)
        return self._items[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows) and self._items == other._items

    def __hash__(self) -> int:
        return hash(self._items)

    def __repr__(self) -> str:
        kinds = sorted({type(item).__name__ for item in self._items})
        return f"<{plural(len(self), 'row')}{' of ' if kinds else ''}{', '.join(kinds)}>"

    def data(self) -> list[dict[str, object]]:
        """Return the items as a list of plain objects, as `--json` prints them."""
        return [dict(self._nested(item)) for item in self._items]

    def to_pandas(self) -> pandas.DataFrame:
        """Return a table with one row for each item. A column of numbers of which some are missing is of floats, with
        NaN; times are UTC. CoralError if pandas is not installed."""
        frames = _pandas()
        rows = [self._flat(item) for item in self._items]
        more = sorted({name for row in rows for name in row}.difference(self._columns))
        frame = frames.DataFrame([dict(row) for row in rows], columns=[*self._columns, *more])
        for name in frame.columns:
            values = [row.get(name) for row in rows]
            if name in TIMES:
                frame[name] = frames.to_datetime(frame[name], format="ISO8601", utc=True, errors="coerce")
            elif any(value is None for value in values) and all(map(_is_number, values)):
                frame[name] = frame[name].astype(float)
        return frame


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _pandas() -> Any:
    try:
        import pandas
    except ModuleNotFoundError:
        raise CoralError("cannot make a DataFrame: pandas is not installed", installs("pandas")) from None
    return pandas
