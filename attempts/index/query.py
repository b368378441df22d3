"""The questions an index answers: numbers of attempts in an order, and sums; each touches little of a long history.

Every answer is the one that `board` gives of all records; tests hold the two against each other.
"""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter

from attempts.board import mean
from attempts.fields import printable
from attempts.index.file import has_words
from attempts.index.row import folded
from attempts.record import Direction, Kind

FEW = 2000  # found by their words: so many are sorted, more are walked through in order
MAX_WORDS = 30  # three characters each, of what is searched for
_COUNTING = (Kind.REAL, Kind.CONFIRM)
Rows = sqlite3.Connection
Point = tuple[float, int, int]  # a score as it is sorted, the order of publication, the number


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which attempts. `alone`: an agent that may see no other's, except the seed."""

    agent: str = ""
    kind: Kind | None = None
    text: str = ""
    alone: str = ""


@dataclass(frozen=True, slots=True)
class Named:
    number: int


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate: the first attempt that had its tree, the mean of its scores, and how many there are."""

    number: int
    score: float
    measurements: int
    confirmed: bool


@dataclass(frozen=True, slots=True)
class Totals:
    """How many records there are to see; `unreadable` are more."""

    attempts: int
    unscored: int
    unreadable: int


def totals(rows: Rows, alone: str = "") -> Totals:
    where, values = _conditions(Wanted(alone=alone))
    count, scored = rows.execute(f"SELECT count(*), count(score) FROM records WHERE {where}", values).fetchone()
    (known,) = rows.execute("SELECT count(*) FROM known").fetchone()
    (readable,) = rows.execute("SELECT count(*) FROM records").fetchone()
    return Totals(int(count), int(count - scored), int(known - readable))


def last(rows: Rows) -> int:
    """The highest number there is a record of, readable or not."""
    (number,) = rows.execute("SELECT max(number) FROM known").fetchone()
    return int(number or 0)


def recent(rows: Rows, wanted: Wanted) -> Iterator[int]:
    """The newest first."""
    where, values = _conditions(wanted)
    found = _found(rows, wanted.text)
    if found is not None:
        numbers = _among(rows, found, f"SELECT number FROM records JOIN said USING (number) WHERE {where}", values)
        yield from sorted((int(number) for (number,) in numbers), reverse=True)
        return
    source = "records JOIN said USING (number)" if wanted.text else "records"
    for (number,) in rows.execute(f"SELECT number FROM {source} WHERE {where} ORDER BY number DESC", values):
        yield int(number)


def ranked(rows: Rows, wanted: Wanted, direction: Direction, limit: int | None) -> list[Ranked]:
    """The best candidates among those attempts, best first; of equals the earlier one is ahead.

    A candidate stands at the mean of its scores, which is no better than its best: attempts are walked through from
    the best on, until what is still to come can be no better than those that were found.
    """
    if wanted.kind in (Kind.TUNE, Kind.BASELINE):  # not ranked against others: each stands for itself
        points = islice(_best_first(rows, wanted, direction), limit)
        return [Ranked(number, _score(rows, number), 1, confirmed=False) for _, _, number in points]
    seen: set[str] = set()
    best: list[tuple[Point, Ranked]] = []
    for point in _best_first(rows, wanted, direction):
        if limit is not None and len(best) >= limit and best[limit - 1][0] <= point:
            break
        (tree,) = rows.execute("SELECT tree FROM records WHERE number = ?", (point[2],)).fetchone()
        if tree not in seen:
            seen.add(tree)
            best.append(_candidate(rows, str(tree), wanted, direction))
            if limit is not None:
                best = sorted(best, key=itemgetter(0))[:limit]
    return [row for _, row in sorted(best, key=itemgetter(0))]


def lineage(rows: Rows, number: int, most: int, alone: str = "") -> list[int]:
    """An attempt and those it was built on, oldest first; of a longer line the last `most`."""
    where, values = _conditions(Wanted(alone=alone))
    line: list[int] = []
    seen: set[str] = set()
    asked = f"SELECT number, commit_id, parent FROM records WHERE {{}} = ? AND {where}"
    found = rows.execute(asked.format("number"), (number, *values)).fetchone()
    while found is not None and len(line) < most and found[1] not in seen:
        line.append(int(found[0]))
        seen.add(found[1])
        asked_for = f"{asked.format('commit_id')} ORDER BY ord, number LIMIT 1"
        found = rows.execute(asked_for, (found[2], *values)).fetchone()
    return line[::-1]


def curve(rows: Rows, direction: Direction, alone: str = "") -> list[tuple[str, int, int, float]]:
    """The best score over time: (published_at, order, number, best) wherever it rises, from the baseline on."""
    where, values = _conditions(Wanted(alone=alone))
    points: list[tuple[str, int, int, float]] = []
    asked = f"SELECT published_at, ord, number, score FROM records WHERE {where} AND kind != ? AND score IS NOT NULL"
    for at, order, number, score in rows.execute(f"{asked} ORDER BY ord, number", (*values, Kind.TUNE)):
        if not points or direction.better(score, points[-1][3]):
            points.append((str(at), int(order), int(number), float(score)))
    return points


def with_tree(rows: Rows, tree: str) -> Iterator[int]:
    """The attempts with this tree, the newest first."""
    for (number,) in rows.execute("SELECT number FROM records WHERE tree = ? ORDER BY number DESC", (tree,)):
        yield int(number)


def with_commit(rows: Rows, start: str) -> list[int]:
    """The attempts whose commit begins like this."""
    asked = "SELECT number FROM records WHERE commit_id >= ? AND commit_id < ?"
    return [int(number) for (number,) in rows.execute(asked, (start, f"{start}g"))]


def _best_first(rows: Rows, wanted: Wanted, direction: Direction) -> Iterator[Point]:
    """Attempts that have a score, sorted like candidates: one walk for each kind, laid together."""
    sign, order, index = (-1.0, "score DESC", "high") if direction is Direction.MAXIMIZE else (1.0, "score", "low")
    found = _found(rows, wanted.text)
    where, values = _conditions(wanted)
    source = "records JOIN said USING (number)" if wanted.text else "records"
    if found is not None:
        asked = f"SELECT score, ord, number FROM {source} WHERE {where} AND score IS NOT NULL"
        kinds = (wanted.kind,) if wanted.kind else _COUNTING
        asked += f" AND kind IN ({', '.join('?' * len(kinds))})"
        yield from sorted(_points(_among(rows, found, asked, (*values, *kinds)), sign))
        return
    source = source.replace("records", f"records INDEXED BY {'own_' if wanted.agent else ''}{index}")
    walks = []
    for kind in (wanted.kind,) if wanted.kind else _COUNTING:
        asked = f"SELECT score, ord, number FROM {source} WHERE {where} AND score IS NOT NULL AND kind = ?"
        walks.append(_points(rows.execute(f"{asked} ORDER BY {order}, ord, number", (*values, kind)), sign))
    yield from heapq.merge(*walks)


def _points(found: Iterator[Sequence[float]], sign: float) -> Iterator[Point]:
    return ((sign * float(score), int(order), int(number)) for score, order, number in found)


def _candidate(rows: Rows, tree: str, wanted: Wanted, direction: Direction) -> tuple[Point, Ranked]:
    """All its measurements among those attempts."""
    where, values = _conditions(wanted)
    asked = "SELECT score, ord, number, kind FROM records INDEXED BY candidate JOIN said USING (number)"
    asked += f" WHERE tree = ? AND score IS NOT NULL AND kind IN (?, ?) AND {where} ORDER BY ord, number"
    found = rows.execute(asked, (tree, *_COUNTING, *values)).fetchall()
    score = mean([float(row[0]) for row in found])
    confirmed = any(row[3] == Kind.CONFIRM for row in found)
    sign = -1.0 if direction is Direction.MAXIMIZE else 1.0
    order, number = int(found[0][1]), int(found[0][2])
    return (sign * score, order, number), Ranked(number, score, len(found), confirmed)


def _score(rows: Rows, number: int) -> float:
    return float(rows.execute("SELECT score FROM records WHERE number = ?", (number,)).fetchone()[0])


def _conditions(wanted: Wanted) -> tuple[str, tuple[str, ...]]:
    """Of a WHERE, with the values of its marks."""
    parts, values = ["1"], list[str]()
    asked = (("agent = ?", wanted.agent), ("kind = ?", wanted.kind or ""), ("agent IN (?, '')", wanted.alone))
    for part, value in (*asked, ("instr(text, ?) > 0", folded(wanted.text))):
        if value:
            # No record holds what cannot be printed.
            parts.append(part if printable(value) == value else "? IS NULL")
            values.append(printable(value))
    return " AND ".join(parts), tuple(values)


def _found(rows: Rows, text: str) -> list[int] | None:
    """Numbers among which are all that hold the text, if they are few; None says that one must look at all."""
    looked = folded(printable(text))
    if len(looked) < 3 or not has_words(rows):
        return None
    parts = list(dict.fromkeys(looked[at : at + 3] for at in range(len(looked) - 2)))[:MAX_WORDS]
    query = " AND ".join('"' + part.replace('"', '""') + '"' for part in parts)
    found = rows.execute("SELECT rowid FROM words WHERE words MATCH ? LIMIT ?", (query, FEW + 1)).fetchall()
    return None if len(found) > FEW else [int(number) for (number,) in found]


def _among(rows: Rows, numbers: list[int], asked: str, values: tuple[str, ...]) -> Iterator[Sequence[float]]:
    """The answer as far as it is about these numbers."""
    for number in numbers:
        yield from rows.execute(f"{asked} AND number = ?", (*values, number))
