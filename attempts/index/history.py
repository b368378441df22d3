"""The present epoch as a whole, in one pass: every grade for curves, every commit for the family tree."""

from collections.abc import Sequence
from dataclasses import dataclass

from attempts.index.query import THIS_EPOCH, Rows
from attempts.record import Kind, Verdict


@dataclass(frozen=True, slots=True)
class GradedRecord:
    """One record. `of`: the attempt that it measures again."""

    number: int
    agent: str
    kind: Kind
    verdict: Verdict
    score: float | None
    published_at: str
    of: int | None


@dataclass(frozen=True, slots=True)
class Child:
    """An attempt, and the attempt whose commit it was built on: None of the seed, and where nobody had that commit
    graded."""

    number: int
    parent: int | None
    agent: str
    verdict: Verdict
    score: float | None


def graded(rows: Rows, alone: str = "", most: int | None = None) -> list[GradedRecord]:
    """The records of the present epoch in the order of publication; the last `most` of them. `alone`: only those of
    this agent, and the seed."""
    statement = "SELECT number, agent, kind, verdict, score, published_at, again_of FROM records"
    statement += f" WHERE {THIS_EPOCH} AND (? = '' OR agent IN (?, '')) ORDER BY ord DESC, number DESC LIMIT ?"
    found = rows.execute(statement, (alone, alone, -1 if most is None else most)).fetchall()
    return [_graded(row) for row in reversed(found)]


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


def family(rows: Rows, alone: str = "") -> list[Child]:
    """Every attempt of the present epoch by number, each with the attempt that it was built on; what was only measured
    again is left out. Of several attempts with one commit the first is the parent, as in `query.lineage`."""
    statement = "SELECT number, agent, verdict, score, commit_id, parent FROM records"
    statement += f" WHERE {THIS_EPOCH} AND kind != ? AND (? = '' OR agent IN (?, '')) ORDER BY ord, number"
    found = rows.execute(statement, (Kind.CONFIRM, alone, alone)).fetchall()
    first: dict[str, int] = {}
    for number, *_, commit, _parent in found:
        first.setdefault(str(commit), int(number))
    children = [
        Child(int(number), _earlier(first.get(str(parent)), int(number)), str(agent), Verdict(verdict), score)
        for number, agent, verdict, score, _, parent in found
    ]
    return sorted(children, key=lambda child: child.number)


def _earlier(parent: int | None, number: int) -> int | None:
    """The parent, if its number is lower: what closes a circle of equal commits has none."""
    return parent if parent is not None and parent < number else None
