"""A table of attempts, page by page: filtered and sorted by the index, at any number of attempts."""

from dataclasses import dataclass
from enum import StrEnum

from attempts.index.metrics import MetricRange
from attempts.index.query import Named, Rows, Wanted, conditions, median_score, source
from attempts.record import Kind, Verdict


class ListOrder(StrEnum):
    """The column by which a list of attempts is sorted. METRIC: the metric of `Sought.metric`."""

    NUMBER = "number"
    SCORE = "score"
    AGENT = "agent"
    VERDICT = "verdict"
    KIND = "kind"
    METRIC = "metric"


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of a list. `total`: how many attempts match, on all pages."""

    numbers: list[Named]
    total: int


@dataclass(frozen=True, slots=True)
class Sought:
    """Which attempts a list has. Grades on the hold-out are never among them."""

    wanted: Wanted
    verdict: Verdict | None = None
    metric: MetricRange | None = None


def page(rows: Rows, sought: Sought, order: ListOrder, *, down: bool, offset: int, most: int) -> ListPage:
    """Return the `most` attempts from `offset` on; those without a score come last. Of an attempt that was graded
    several times the median is its score. ValueError to sort by a metric if none is sought."""
    if order is ListOrder.METRIC and sought.metric is None:
        raise ValueError("no metric is asked for")
    table, where, values = _chosen(sought)
    (total,) = rows.execute(f"SELECT count(*) FROM {table} WHERE {where}", values).fetchone()
    way = "DESC" if down else "ASC"
    column = "value" if order is ListOrder.METRIC else order.value
    if order is ListOrder.SCORE:
        column = median_score(rows)
    sort = f"number {way}" if order is ListOrder.NUMBER else f"{column} {way} NULLS LAST, number DESC"
    statement = f"SELECT number FROM {table} WHERE {where} ORDER BY {sort} LIMIT ? OFFSET ?"
    found = rows.execute(statement, (*values, most, offset)).fetchall()
    return ListPage([Named(int(number)) for (number,) in found], int(total))


def _chosen(sought: Sought) -> tuple[str, str, tuple[str | float, ...]]:
    """Return the tables, the conditions of a WHERE, and the values of its placeholders."""
    table, (where, values) = source(sought.wanted), conditions(sought.wanted)
    where, values = f"{where} AND kind != ?", (*values, Kind.HOLDOUT)
    if sought.verdict is not None:
        where, values = f"{where} AND verdict = ?", (*values, sought.verdict)
    if sought.metric is None:
        return table, where, values
    within, limits = sought.metric.where
    return f"{table} JOIN metrics USING (number)", f"{where} AND {within}", (*values, *limits)
