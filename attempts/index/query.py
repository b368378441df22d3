"""The questions that an index answers: numbers of attempts in an order, and sums; each reads little of a long history.

Attempts with the same tree are one candidate. It is ranked by the median of its measurements, so that on a noisy task
no candidate leads for long by one lucky score.
"""

import heapq
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from operator import itemgetter

from attempts.failures import kind_of, shared_reason
from attempts.fields import printable
from attempts.index.file import folded, has_words
from attempts.noise import median
from attempts.record import Direction, Kind, Verdict
from attempts.standing import FAILURES

MAX_SORTED = 2000  # attempts found by a text search: up to so many are sorted, more are read in the order of an index
FEW = 500  # attempts: to look up each takes less time than to read all that was measured again
MAX_TRIGRAMS = 30  # of a text that is searched for
_COUNTING = (Kind.REAL, Kind.CONFIRM)
NOT_THE_SEED = "agent != ''"  # and no confirmation of the seed
THIS_EPOCH = "epoch = (SELECT max(epoch) FROM records)"
Rows = sqlite3.Connection
Point = tuple[float, int, int]  # a score as it is sorted, the order of publication, the number


@dataclass(frozen=True, slots=True)
class Wanted:
    """Selects attempts. `only_agent`: only this agent's and the seed, for an agent that may not see those of others."""

    agent: str = ""
    kind: Kind | None = None
    text: str = ""
    only_agent: str = ""


@dataclass(frozen=True, slots=True)
class Named:
    number: int


@dataclass(frozen=True, slots=True)
class Ranked:
    """One line of the ranking: the first attempt with this tree, and the scores of all grades of the tree."""

    number: int
    scores: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.scores)


@dataclass(frozen=True, slots=True)
class Totals:
    """How many attempts there are. `earlier`: those of earlier epochs; `unscored`: those of the present epoch without a
    score; `unreadable`: how many record files there are besides that cannot be read."""

    attempts: int
    unscored: int
    unreadable: int
    earlier: int = 0


def totals(rows: Rows, only_agent: str = "") -> Totals:
    where, values = conditions(Wanted(only_agent=only_agent))
    counts = f"SELECT count(*), count(score) FROM records WHERE {where} AND kind IN (?, ?)"
    values = (*values, Kind.REAL, Kind.TUNE)
    count, _ = rows.execute(counts, values).fetchone()
    (known,) = rows.execute("SELECT count(*) FROM known").fetchone()
    (readable,) = rows.execute("SELECT count(*) FROM records").fetchone()
    now, scored = rows.execute(f"{counts} AND {THIS_EPOCH}", values).fetchone()
    return Totals(int(count), int(now - scored), int(known - readable), int(count - now))


def evals(rows: Rows, only_agent: str = "", after: int = -1, *, of_all_epochs: bool = True) -> int:
    """Return how many attempts count, as `Progress.evals` does: the real ones with any verdict but void. `after`: only
    those with a higher number."""
    where, values = conditions(Wanted(kind=Kind.REAL, only_agent=only_agent))
    epochs = "" if of_all_epochs else f" AND {THIS_EPOCH}"
    statement = f"SELECT count(*) FROM records WHERE {where} AND verdict != ? AND number > ?{epochs}"
    (count,) = rows.execute(statement, (*values, Verdict.VOID, after)).fetchone()
    return int(count)


def failed(rows: Rows, only_agent: str = "") -> int:
    """Return how many of the attempts that count have failed."""
    where, values = conditions(Wanted(kind=Kind.REAL, only_agent=only_agent))
    statement = f"SELECT count(*) FROM records WHERE {where} AND verdict = ?"
    (count,) = rows.execute(statement, (*values, Verdict.FAILED)).fetchone()
    return int(count)


def last(rows: Rows) -> int:
    """Return the highest number of a record file, readable or not."""
    (number,) = rows.execute("SELECT max(number) FROM known").fetchone()
    return int(number or 0)


def recent(rows: Rows, wanted: Wanted) -> Iterator[int]:
    """Yield the numbers of the wanted attempts, the newest first."""
    where, values = conditions(wanted)
    found = _found(rows, wanted.text)
    if found is not None:
        numbers = _among(rows, found, f"SELECT number FROM records JOIN texts USING (number) WHERE {where}", values)
        yield from sorted((int(number) for (number,) in numbers), reverse=True)
        return
    for (number,) in rows.execute(f"SELECT number FROM {source(wanted)} WHERE {where} ORDER BY number DESC", values):
        yield int(number)


def ranked(rows: Rows, wanted: Wanted, direction: Direction, limit: int | None) -> list[Ranked]:
    """Return the best candidates of the present epoch among the wanted attempts, best first; of equals the earlier one
    is ahead.

    The median of a candidate is never better than its best score: attempts are read from the best score on, until no
    later one can belong to a candidate that is better than those found. If only some attempts are wanted, all are read:
    the best score of a candidate may belong to an attempt that is not wanted.
    """
    is_bounded = not (wanted.agent or wanted.kind or wanted.text)
    if wanted.kind not in (None, Kind.REAL):  # not ranked against others: each stands for itself
        points = islice(_best_first(rows, wanted, direction), limit)
        return [Ranked(number, (_sign(direction) * score,)) for score, _, number in points]
    seen: set[str] = set()
    found: list[tuple[Point, Ranked]] = []
    proven = _tree_of(rows, best(rows))
    for point in _best_first(rows, wanted, direction):
        if limit is not None and is_bounded and len(found) >= limit and found[limit - 1][0] <= point:
            break
        (tree,) = rows.execute("SELECT tree FROM records WHERE number = ?", (point[2],)).fetchone()
        if tree not in seen and not _is_refuted(rows, str(tree), proven):
            found.append(_candidate(rows, str(tree), wanted, direction))
            if limit is not None:
                found = sorted(found, key=itemgetter(0))[:limit]
        seen.add(tree)
    return [row for _, row in sorted(found, key=itemgetter(0))]


def lineage(rows: Rows, number: int, most: int, only_agent: str = "") -> list[int]:
    """Return an attempt and those that it was built on, oldest first; of a longer line the last `most`."""
    where, values = conditions(Wanted(only_agent=only_agent))
    line: list[int] = []
    seen: set[str] = set()
    column, value = "number", str(number)
    while len(line) < most:
        statement = f"SELECT number, commit_id, parent FROM records WHERE {column} = ? AND {where} ORDER BY ord, number"
        found = rows.execute(f"{statement} LIMIT 1", (value, *values)).fetchone()
        if found is None or found[1] in seen:
            break
        line.append(int(found[0]))
        seen.add(found[1])
        column, value = "commit_id", found[2]
    return line[::-1]


def curve(rows: Rows, only_agent: str = "") -> list[tuple[str, int, float]]:
    """Return how the best of the present epoch developed: for each record that proved a new best, when it was
    published, its number, and the median of that best."""
    where, values = conditions(Wanted(only_agent=only_agent))
    statement = "SELECT published_at, number, coalesce(again_of, number) FROM records"
    statement += f" WHERE {where} AND {THIS_EPOCH} AND verdict = ?"
    points: list[tuple[str, int, float]] = []
    for at, record, number in rows.execute(f"{statement} ORDER BY ord, number", (*values, Verdict.NEW_BEST)).fetchall():
        if found := measured(rows, int(number)):
            points.append((str(at), int(record), found.median))
    return points


def new_bests(rows: Rows) -> list[int]:
    """Return the numbers of the attempts of the present epoch that were proven to be the best, in ascending order."""
    statement = f"SELECT DISTINCT coalesce(again_of, number) FROM records WHERE verdict = ? AND {THIS_EPOCH}"
    return sorted(int(number) for (number,) in rows.execute(statement, (Verdict.NEW_BEST,)))


def measured(rows: Rows, number: int) -> Ranked | None:
    """Return all scores of an attempt and of its confirmations; None if it has no score."""
    statement = "SELECT score FROM records WHERE score IS NOT NULL AND kind != ? AND (number = ? OR again_of = ?)"
    found = rows.execute(f"{statement} ORDER BY ord, number", (Kind.TUNE, number, number)).fetchall()
    return Ranked(number, tuple(float(score) for (score,) in found)) if found else None


def measured_again(rows: Rows) -> dict[int, tuple[float, ...]]:
    """Return what `measured` gives for each attempt that was measured again, by number, in one pass."""
    again = "SELECT again_of FROM records WHERE again_of IS NOT NULL"
    which = "score IS NOT NULL AND kind != ?"
    statement = f"SELECT again_of AS of, ord, number, score FROM records WHERE again_of IS NOT NULL AND {which}"
    statement += f" UNION ALL SELECT number, ord, number, score FROM records WHERE number IN ({again}) AND {which}"
    found: dict[int, list[float]] = {}
    for of, _, _, score in rows.execute(f"{statement} ORDER BY of, ord, number", (Kind.TUNE, Kind.TUNE)):
        found.setdefault(int(of), []).append(float(score))
    return {number: tuple(scores) for number, scores in found.items()}


def median_score(rows: Rows) -> str:
    """Return an expression for the score of a row of `records`: the median of what `measured` gives. SQLite knows no
    median: it asks for those of the attempts that were measured again, which are known when this is called."""
    medians = {number: median(scores) for number, scores in measured_again(rows).items()}
    rows.create_function("median_of", 1, medians.get, deterministic=True)
    again = "score IS NOT NULL AND records.number IN (SELECT again_of FROM records WHERE again_of IS NOT NULL)"
    return f"CASE WHEN {again} THEN coalesce(median_of(records.number), score) ELSE score END"


def scores_of(rows: Rows, numbers: Sequence[int]) -> dict[int, tuple[float, ...]]:
    """Return what `measured` gives for some attempts, by number; those that were graded once may be left out."""
    if len(numbers) > FEW:
        return measured_again(rows)
    return {number: found.scores for number in numbers if (found := measured(rows, number))}


def repeated(rows: Rows) -> list[tuple[float, ...]]:
    """Return all scores of each attempt of the present epoch that was measured twice or more."""
    statement = "SELECT coalesce(again_of, number), score FROM records"
    statement += f" WHERE {THIS_EPOCH} AND kind != ? AND score IS NOT NULL ORDER BY ord, number"
    found: dict[int, list[float]] = {}
    for number, score in rows.execute(statement, (Kind.TUNE,)):
        found.setdefault(int(number), []).append(float(score))
    return [tuple(scores) for scores in found.values() if len(scores) > 1]


def best(rows: Rows) -> int | None:
    """Return the attempt that is proven to be the best of the present epoch: the one that the last verdict "new best"
    is about. None before the first, as where the seed has failed."""
    # Each epoch begins with a baseline, and these are few: to look for the latest among all records takes longer.
    latest = "coalesce((SELECT max(epoch) FROM records WHERE kind = ?), 0)"
    statement = f"SELECT coalesce(again_of, number) FROM records WHERE verdict = ? AND epoch >= {latest}"
    found = rows.execute(f"{statement} ORDER BY ord DESC LIMIT 1", (Verdict.NEW_BEST, Kind.BASELINE)).fetchone()
    return None if found is None else int(found[0])


def seed(rows: Rows, epoch: int | None = None) -> int | None:
    """Return the number of an epoch's baseline; without `epoch`, of the present one."""
    statement = "SELECT number FROM records WHERE kind = ? AND (epoch = ? OR ? IS NULL) ORDER BY ord DESC LIMIT 1"
    found = rows.execute(statement, (Kind.BASELINE, epoch, epoch)).fetchone()
    return None if found is None else int(found[0])


@dataclass(frozen=True, slots=True)
class Failures:
    """The attempts that failed for one kind of reason, by number. `reason`: see `FailureGroup`."""

    reason: str
    numbers: tuple[int, ...]


def failures(rows: Rows, wanted: Wanted) -> list[Failures]:
    """Return the failed attempts of the present epoch by the kind of their reason, the most frequent first. Unless a
    kind is wanted, only real attempts: neither confirmations nor trials of numbers."""
    where, values = conditions(wanted)
    if wanted.kind is None:
        where, values = f"{where} AND kind = ?", (*values, Kind.REAL)
    statement = (
        f"SELECT number, reason FROM {source(wanted)} WHERE {where} AND {THIS_EPOCH} AND verdict = ? ORDER BY number"
    )
    numbers: dict[str, list[int]] = {}
    reasons: dict[str, str] = {}
    for number, reason in rows.execute(statement, (*values, Verdict.FAILED)):
        kind = kind_of(str(reason))
        numbers.setdefault(kind, []).append(int(number))
        reasons[kind] = shared_reason(reasons.get(kind), str(reason))
    groups = [Failures(reasons[kind], tuple(failed_ones)) for kind, failed_ones in numbers.items()]
    return sorted(groups, key=lambda group: -len(group.numbers))


def with_tree(rows: Rows, tree: str) -> Iterator[int]:
    """Yield the attempts of the present epoch with this tree, the newest first."""
    statement = f"SELECT number FROM records WHERE tree = ? AND {THIS_EPOCH} ORDER BY number DESC"
    for (number,) in rows.execute(statement, (tree,)):
        yield int(number)


def with_commit(rows: Rows, start: str) -> list[int]:
    """Return the attempts whose commit id begins with `start`."""
    statement = "SELECT number FROM records WHERE commit_id >= ? AND commit_id < ?"
    return [int(number) for (number,) in rows.execute(statement, (start, f"{start}g"))]


def _best_first(rows: Rows, wanted: Wanted, direction: Direction) -> Iterator[Point]:
    """Return the wanted attempts that have a score, best first: each kind is read in the order of an index, and the
    kinds are merged."""
    order, index = ("score DESC", "high") if direction is Direction.MAXIMIZE else ("score", "low")
    found = _found(rows, wanted.text)
    where, values = conditions(wanted)
    where += f" AND {THIS_EPOCH}" + (f" AND {NOT_THE_SEED}" if wanted.kind in (None, Kind.REAL) else "")
    table = source(wanted)
    if found is None:
        table = table.replace("records", f"records INDEXED BY {'own_' if wanted.agent else ''}{index}")
    statement = f"SELECT score, ord, number FROM {table} WHERE {where} AND score IS NOT NULL AND kind = ?"
    kinds = (wanted.kind,) if wanted.kind else _COUNTING

    def points(kind: Kind) -> Iterator[Point]:
        if found is None:
            answers: Iterator[Sequence[float]] = rows.execute(
                f"{statement} ORDER BY {order}, ord, number", (*values, kind)
            )
        else:
            answers = _among(rows, found, statement, (*values, kind))
        return ((_sign(direction) * float(score), int(order), int(number)) for score, order, number in answers)

    if found is None:
        return heapq.merge(*map(points, kinds))
    return iter(sorted(chain.from_iterable(map(points, kinds))))


def source(wanted: Wanted) -> str:
    return "records JOIN texts USING (number)" if wanted.text else "records"


def _tree_of(rows: Rows, number: int | None) -> str:
    found = rows.execute("SELECT tree FROM records WHERE number = ?", (number,)).fetchone()
    return "" if found is None else str(found[0])


def _is_refuted(rows: Rows, tree: str, proven: str) -> bool:
    """Return whether confirmations of the tree failed so often that its score is not believed; never for the `proven`
    tree."""
    statement = f"SELECT count(*) FROM records WHERE tree = ? AND kind = ? AND verdict = ? AND {THIS_EPOCH}"
    (failures,) = rows.execute(statement, (tree, Kind.CONFIRM, Verdict.FAILED)).fetchone()
    return int(failures) >= FAILURES and tree != proven


def _candidate(rows: Rows, tree: str, wanted: Wanted, direction: Direction) -> tuple[Point, Ranked]:
    """Return the first wanted attempt with this tree, with all scores of the tree, also those of other agents'
    submissions."""

    def of_tree(columns: str, condition: Wanted) -> list[tuple[float | None, ...]]:
        where, values = conditions(condition)
        statement = f"SELECT {columns} FROM records INDEXED BY candidate JOIN texts USING (number)"
        statement += f" WHERE tree = ? AND score IS NOT NULL AND kind IN (?, ?) AND {NOT_THE_SEED} AND {THIS_EPOCH}"
        statement += f" AND {where}"
        statement += " ORDER BY ord, number"
        return rows.execute(statement, (tree, *_COUNTING, *values)).fetchall()

    order, number = of_tree("ord, number", wanted)[0]
    scores = of_tree("score, again_of", Wanted(only_agent=wanted.only_agent))
    # A copy on a task without noise takes the score of the first, and is no measurement.
    measured = tuple(float(score or 0.0) for place, (score, of) in enumerate(scores) if not place or of is not None)
    ranked = Ranked(int(number or 0), measured)
    return (_sign(direction) * ranked.median, int(order or 0), ranked.number), ranked


def _sign(direction: Direction) -> float:
    """Return the factor for scores with which the smallest product is the best."""
    return -1.0 if direction is Direction.MAXIMIZE else 1.0


def conditions(wanted: Wanted) -> tuple[str, tuple[str, ...]]:
    """Return the conditions of a WHERE, and the values of its placeholders."""
    parts, values = ["1"], list[str]()
    conditions = (("agent = ?", wanted.agent), ("kind = ?", wanted.kind or ""), ("agent IN (?, '')", wanted.only_agent))
    for part, value in (*conditions, ("instr(text, ?) > 0", folded(wanted.text))):
        if value:
            # No record holds characters that cannot be printed: such a condition is true of none.
            parts.append(part if printable(value) == value else "? IS NULL")
            values.append(printable(value))
    return " AND ".join(parts), tuple(values)


def _found(rows: Rows, text: str) -> list[int] | None:
    """Return numbers that include all attempts with the text in them, if there are few; None if all attempts must be
    read."""
    folded_text = folded(printable(text))
    if len(folded_text) < 3 or not has_words(rows):
        return None
    parts = list(dict.fromkeys(folded_text[at : at + 3] for at in range(len(folded_text) - 2)))[:MAX_TRIGRAMS]
    query = " AND ".join('"' + part.replace('"', '""') + '"' for part in parts)
    found = rows.execute("SELECT rowid FROM words WHERE words MATCH ? LIMIT ?", (query, MAX_SORTED + 1)).fetchall()
    return None if len(found) > MAX_SORTED else [int(number) for (number,) in found]


def _among(rows: Rows, numbers: list[int], statement: str, values: tuple[str, ...]) -> Iterator[Sequence[float]]:
    """Yield the rows of a statement for these attempts alone."""
    for number in numbers:
        yield from rows.execute(f"{statement} AND number = ?", (*values, number))
