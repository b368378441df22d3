"""The search space: every spot of the editable files as one variable of one vector.

Only this module turns vectors into texts and texts into vectors. A text of the same form (another agent's version of
the same files) reads as a point of the same space.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path

from coral.native.search.numeric.find_variables import read
from coral.native.search.numeric.variables import Kind, Spot

LARGEST_FILE = 1_000_000  # characters; a larger file is data, not a candidate
MOST_VARIABLES = 3000
ALIKE = 0.05  # values that spread less, as a share of their size, say nothing about how much they may vary
LEFT_OUT = frozenset({".git", ".shared", "__pycache__"})

Vector = list[float]
Texts = dict[str, str]


class Page:
    """One editable file: its spots, and the text between them."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.spots = read(name, text)
        self.between: list[str] = []
        at = 0
        for spot in self.spots:
            self.between.append(text[at : spot.start])
            at = spot.end
        self.between.append(text[at:])
        # The pieces of the text last written, and the values they stand for: few change from one text to the next.
        self._values = [spot.value for spot in self.spots]
        self._pieces = [part for spot in self.spots for part in ("", text[spot.start : spot.end])] + [""]
        self._pieces[::2] = self.between
        self._original = list(self._values), list(self._pieces)

    def write(self, values: Sequence[float]) -> str:
        """The text for these values; spots at their original value keep their original characters."""
        held, pieces = self._values, self._pieces
        first_values, first_pieces = self._original
        for k, value in enumerate(values):
            if value != held[k]:
                held[k] = value
                same = value == first_values[k]
                pieces[2 * k + 1] = first_pieces[2 * k + 1] if same else self.spots[k].write(value)
        return "".join(pieces)

    def values(self, text: str) -> Vector | None:
        """The values in a text of the same form; none where the form differs."""
        other = Page(self.name, text)
        same = other.between == self.between and len(other.spots) == len(self.spots)
        return [spot.value for spot in other.spots] if same else None


@dataclass(frozen=True, slots=True)
class Column:
    """Variables that are alike."""

    members: tuple[int, ...]
    low: float
    high: float

    def range(self, points: Sequence[Sequence[float]]) -> tuple[float, float]:
        """Where its values lie in these points, with a margin, within its declared bounds."""
        seen = [point[k] for point in points for k in self.members]
        low, high = min(seen), max(seen)
        margin = 0.12 * (high - low) or 0.5 * max(abs(low), abs(high)) or 1.0
        return max(self.low, low - margin), min(self.high, high + margin)


class Space:
    def __init__(self, texts: Mapping[str, str]) -> None:
        self.pages = [page for name, text in sorted(texts.items()) if (page := Page(name, text)).spots]
        self.spots: list[Spot] = []
        self.names: list[str] = []  # one per variable, for people
        columns: dict[tuple[int, str], list[int]] = {}
        rows: dict[tuple[int, str], list[int]] = {}
        for index, page in enumerate(self.pages):
            for spot in page.spots:
                columns.setdefault((index, spot.column), []).append(len(self.spots))
                rows.setdefault((index, spot.row), []).append(len(self.spots))
                self.spots.append(spot)
                self.names.append(spot.name if len(self.pages) == 1 else f"{page.name}: {spot.name}")
        self.columns = [self._column(members) for members in columns.values()]
        self.column_of = {k: number for number, column in enumerate(self.columns) for k in column.members}
        self.tables = self._tables(list(rows.values()))
        self.reals = [k for k, spot in enumerate(self.spots) if spot.kind is Kind.REAL]
        self.others = [k for k, spot in enumerate(self.spots) if spot.kind is not Kind.REAL]

    def _column(self, members: list[int]) -> Column:
        low = max((self.spots[k].low for k in members), default=-inf)
        high = min((self.spots[k].high for k in members), default=inf)
        return Column(tuple(members), low, high)

    def _tables(self, rows: list[list[int]]) -> list[list[tuple[int, ...]]]:
        """Rows of the same columns, two or more of them."""
        tables: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        for row in rows:
            tables.setdefault(tuple(self.column_of[k] for k in row), []).append(tuple(row))
        return [table for table in tables.values() if len(table) > 1]

    def __len__(self) -> int:
        return len(self.spots)

    @property
    def start(self) -> Vector:
        return [spot.value for spot in self.spots]

    def texts(self, vector: Sequence[float]) -> dict[str, str]:
        """The files' texts at a point."""
        out, at = {}, 0
        for page in self.pages:
            out[page.name] = page.write(vector[at : at + len(page.spots)])
            at += len(page.spots)
        return out

    def vector(self, texts: Mapping[str, str]) -> Vector | None:
        """The point that other texts of the same files stand for, if they have the same form."""
        out: Vector = []
        for page in self.pages:
            values = page.values(texts[page.name]) if page.name in texts else None
            if values is None:
                return None
            out.extend(values)
        return out

    def clip(self, vector: Sequence[float]) -> Vector:
        """The nearest point within the declared bounds; integers and choices become whole."""
        out = []
        for spot, value in zip(self.spots, vector, strict=True):
            value = min(max(value, spot.low), spot.high)
            if spot.kind is not Kind.REAL:
                value = float(round(value))
            if spot.kind is Kind.CHOICE:
                value = min(max(value, 0.0), len(spot.words) - 1.0)
            out.append(value)
        return out

    def scales(self, points: Sequence[Sequence[float]]) -> Vector:
        """How much each variable typically varies: the spread of its column, or its size where all are much alike."""
        out = [1.0] * len(self)
        for column in self.columns:
            low, high = (
                min(p[k] for p in points for k in column.members),
                max(p[k] for p in points for k in column.members),
            )
            declared = column.high - column.low
            spread, size = high - low, max(abs(low), abs(high))
            scale = spread if spread > ALIKE * size else size or 1.0
            for k in column.members:
                out[k] = min(scale, declared) if declared > 0 else scale
        return out


def editable_texts(root: Path, globs: Sequence[str]) -> dict[str, str]:
    """The editable text files below `root`, by relative name. Links, what lies behind one, large and unreadable files
    are left alone."""
    out: dict[str, str] = {}
    for pattern in globs:
        for path in sorted(root.glob(pattern.lstrip("/"))):
            name = path.relative_to(root)
            linked = any((root / each).is_symlink() for each in (name, *name.parents)[:-1])
            if LEFT_OUT & set(name.parts) or linked or not path.is_file():
                continue
            try:
                text = path.read_bytes().decode("utf-8")
            except (OSError, UnicodeDecodeError):
                continue
            if len(text) <= LARGEST_FILE and "\0" not in text:
                out[name.as_posix()] = text
    return out
