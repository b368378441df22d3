"""The present epoch as a whole, in one pass: every grade for curves, every commit for the family tree."""

from collections.abc import Sequence
from dataclasses import dataclass

from attempts.index.query import NOT_THE_SEED, THIS_EPOCH, Rows, measured_again, median_score
from attempts.noise import median
from attempts.record import Direction, Kind, Verdict

_COLUMNS = "number, agent, kind, verdict, score, published_at, again_of"
# This factor spreads numbers evenly over the range: a sample has attempts of all agents that submit in turn.
_SPREAD, _RANGE = 2654435761, 2**32


@dataclass(frozen=True, slots=True)
class GradedRecord:
    """One record of the index. `of`: the attempt that it measures again."""

    number: int
    agent: str
    kind: Kind
    verdict: Verdict
    score: float | None
    published_at: str
    of: int | None


@dataclass(frozen=True, slots=True)
class Child:
    """An attempt, and the attempt whose commit it was built on: None for the seed, and if that commit was never
    graded. `score`: the median of its grades."""

    number: int
    parent: int | None
    agent: str
    verdict: Verdict
    score: float | None


def graded(rows: Rows, only_agent: str = "", most: int | None = None) -> list[GradedRecord]:
    """Return the records of the present epoch in the order of publication; with `most`, only the last so many.
    `only_agent`: only those of this agent, and the seed."""
    statement = f"SELECT {_COLUMNS} FROM records"
    statement += f" WHERE {THIS_EPOCH} AND (? = '' OR agent IN (?, '')) ORDER BY ord DESC, number DESC LIMIT ?"
    found = rows.execute(statement, (only_agent, only_agent, -1 if most is None else most)).fetchall()
    return [_graded(row) for row in reversed(found)]


@dataclass(frozen=True, slots=True)
class Sample:
    """Some of the attempts of a history; `total`: how many there are to choose from."""

    records: list[GradedRecord]
    total: int


def sampled(rows: Rows, most: int, agent: str = "", only_agent: str = "") -> Sample:
    """Return a sample of the attempts of the present epoch, without void ones: every new best, and an even choice of
    the others, about `most` in all. `agent`, `only_agent`: only those of this agent."""
    # The plus keeps SQLite from an index: to look up nearly every row by it takes five times as long as to read all.
    where = f"{THIS_EPOCH} AND +kind IN (?, ?) AND +verdict != ? AND agent != ''"
    where += "".join(" AND agent = ?" for name in (agent, only_agent) if name)
    values = (Kind.REAL, Kind.TUNE, Verdict.VOID, *(name for name in (agent, only_agent) if name))
    (total,) = rows.execute(f"SELECT count(*) FROM records WHERE {where}", values).fetchone()
    chosen = f"(verdict = ? OR number * {_SPREAD} % {_RANGE} < ?)"
    share = min(most / max(int(total), 1), 1.0)
    statement = f"SELECT {_COLUMNS} FROM records WHERE {where} AND {chosen} ORDER BY ord, number"
    found = rows.execute(statement, (*values, Verdict.NEW_BEST, int(share * _RANGE)))
    return Sample(list(map(_graded, found)), int(total))


def new_bests(rows: Rows, only_agent: str = "") -> list[GradedRecord]:
    """Return the records of the present epoch that proved a new best, in the order of publication. `only_agent`: as for
    `graded`."""
    statement = f"SELECT {_COLUMNS} FROM records WHERE {THIS_EPOCH} AND verdict = ? AND (? = '' OR agent IN (?, ''))"
    values = (Verdict.NEW_BEST, only_agent, only_agent)
    return list(map(_graded, rows.execute(f"{statement} ORDER BY ord, number", values)))


def deciding_own_best(rows: Rows, agent: str) -> list[GradedRecord]:
    """Return the records of the present epoch that decide what the agent's own best is: its own, those that it measured
    again, those that measured its own again, the seed's, and each new best of the fleet, because the best of all is
    never dropped."""
    again = "again_of IN (SELECT number FROM records WHERE agent = ?)"
    before = "number IN (SELECT again_of FROM records WHERE agent = ?)"
    own = f"agent IN (?, '') OR verdict = ? OR {again} OR {before}"
    statement = f"SELECT {_COLUMNS} FROM records WHERE {THIS_EPOCH} AND ({own}) ORDER BY ord, number"
    return list(map(_graded, rows.execute(statement, (agent, Verdict.NEW_BEST, agent, agent))))


def own_bests(rows: Rows, direction: Direction, only_agent: str = "") -> list[tuple[str, int]]:
    """Return (agent, number) of the real attempt of the present epoch with the best median of each agent, the best
    first; of equals the earlier one. What another agent had handed in before does not count. `only_agent`: of this
    agent alone."""
    way = "DESC" if direction is Direction.MAXIMIZE else "ASC"
    where = f"{THIS_EPOCH} AND kind = ? AND {NOT_THE_SEED} AND score IS NOT NULL AND again_of IS NULL"
    where += " AND (? = '' OR agent = ?)"
    statement = f"SELECT agent, number FROM records WHERE {where} ORDER BY {median_score(rows)} {way}, ord, number"
    found: dict[str, int] = {}
    for agent, number in rows.execute(statement, (Kind.REAL, only_agent, only_agent)):
        found.setdefault(str(agent), int(number))
    return list(found.items())


def _graded(row: Sequence[object]) -> GradedRecord:
    number, agent, kind, verdict, score, published_at, of = row
    return GradedRecord(
        int(str(number)),
        str(agent),
        Kind(str(kind)),
        Verdict(str(verdict)),
        None if score is None else float(str(score)),
        str(published_at),
        None if of is None else int(str(of)),
    )


def family(rows: Rows, only_agent: str = "") -> list[Child]:
    """Return every attempt of the present epoch by number, each with the attempt that it was built on; confirmations
    are left out. If several attempts have one commit, the first is the parent, as in `query.lineage`."""
    statement = "SELECT number, agent, verdict, score, commit_id, parent FROM records"
    statement += f" WHERE {THIS_EPOCH} AND kind != ? AND (? = '' OR agent IN (?, '')) ORDER BY ord, number"
    found = rows.execute(statement, (Kind.CONFIRM, only_agent, only_agent)).fetchall()
    first: dict[str, int] = {}
    for number, *_, commit, _parent in found:
        first.setdefault(str(commit), int(number))
    medians = {number: median(scores) for number, scores in measured_again(rows).items()}
    children = [
        Child(
            number=int(number),
            parent=_earlier(first.get(str(parent)), int(number)),
            agent=str(agent),
            verdict=Verdict(verdict),
            score=None if score is None else medians.get(int(number), score),
        )
        for number, agent, verdict, score, _, parent in found
    ]
    return sorted(children, key=lambda child: child.number)


def _earlier(parent: int | None, number: int) -> int | None:
    """Return the parent if its number is lower, else None: equal commits could make a circle of parents."""
    return parent if parent is not None and parent < number else None
