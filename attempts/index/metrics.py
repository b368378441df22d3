"""The numbers that graders give besides the score, as the index holds them: their names, a range of one, and pairs of
two. Metrics that are texts or truth values are left out."""

from collections.abc import Mapping
from dataclasses import dataclass

from attempts.index.query import THIS_EPOCH, Rows, median_score
from attempts.record import Kind, Verdict

SCORE = ""  # stands for the score itself among the names of metrics


@dataclass(frozen=True, slots=True)
class MetricRange:
    """Selects the attempts that have a metric of this name, between `least` and `most`; None is no limit."""

    name: str
    least: float | None = None
    most: float | None = None

    @property
    def where(self) -> tuple[str, tuple[str | float, ...]]:
        """The conditions of a WHERE over the table of metrics, and the values of its placeholders."""
        parts = [("name = ?", self.name), ("value >= ?", self.least), ("value <= ?", self.most)]
        given = [(part, value) for part, value in parts if value is not None]
        return " AND ".join(part for part, _ in given), tuple(value for _, value in given)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two figures of one attempt."""

    number: int
    agent: str
    verdict: Verdict
    x: float
    y: float


def names(rows: Rows, most: int, only_agent: str = "") -> list[str]:
    """Return the first `most` names of metrics in alphabetical order; each costs one look-up in the index."""
    statement = "SELECT name FROM metrics JOIN records USING (number) WHERE name > ? AND (? = '' OR agent IN (?, ''))"
    found: list[str] = []
    while len(found) < most:
        after = found[-1] if found else ""
        row = rows.execute(f"{statement} ORDER BY name LIMIT 1", (after, only_agent, only_agent)).fetchone()
        if row is None:
            break
        found.append(str(row[0]))
    return found


def pairs(rows: Rows, x: str, y: str, most: int, only_agent: str = "") -> tuple[list[Pair], int]:
    """Return the attempts of the present epoch that have both figures (names of metrics, or SCORE), and how many there
    are. If there are more than `most`, every new best and an even choice of the others. Confirmations are left out."""
    columns, values = _figures(rows, {"x": x, "y": y})
    within = f"{THIS_EPOCH} AND kind != ? AND (? = '' OR agent IN (?, ''))"
    every = f"SELECT number, agent, verdict, {columns} FROM records WHERE {within}"
    counted = "SELECT *, row_number() OVER (ORDER BY number) AS place, count(*) OVER () AS total"
    counted = f"{counted} FROM ({every}) WHERE x IS NOT NULL AND y IS NOT NULL"
    statement = f"SELECT * FROM ({counted}) WHERE place % ((total - 1) / ? + 1) = 0 OR verdict = ? LIMIT ?"
    values = (*values, Kind.CONFIRM, only_agent, only_agent)
    found = rows.execute(statement, (*values, most, Verdict.NEW_BEST, 2 * most)).fetchall()
    points = [Pair(int(row[0]), str(row[1]), Verdict(row[2]), float(row[3]), float(row[4])) for row in found]
    return points, int(found[0][-1]) if found else 0


def _figures(rows: Rows, asked: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Return the columns for these figures, and the values of their placeholders. `asked`: the name of a metric, or
    SCORE, by column. The score is the median of the attempt's grades."""
    metric = "(SELECT value FROM metrics WHERE metrics.number = records.number AND name = ?)"
    score = median_score(rows) if SCORE in asked.values() else ""
    columns = [f"{score if name == SCORE else metric} AS {column}" for column, name in asked.items()]
    return ", ".join(columns), tuple(name for name in asked.values() if name != SCORE)
