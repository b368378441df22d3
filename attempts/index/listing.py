"""A table of attempts, page by page: narrowed and sorted by the index, whatever their number."""

from dataclasses import dataclass
from enum import StrEnum

from attempts.index.query import Named, Rows, Wanted, conditions, source
from attempts.record import Kind, Verdict


class ListOrder(StrEnum):
    """The column by which a list of attempts is sorted."""

    NUMBER = "number"
    SCORE = "score"
    AGENT = "agent"
    VERDICT = "verdict"
    KIND = "kind"


@dataclass(frozen=True, slots=True)
class ListPage:
    """`total`: how many attempts match, on all pages."""

    numbers: list[Named]
    total: int


def page(
    rows: Rows, wanted: Wanted, verdict: Verdict | None, order: ListOrder, *, down: bool, offset: int, most: int
) -> ListPage:
    """`most` attempts from `offset` on; what has no score comes last. The grades on the hold-out are left out."""
    where, values = conditions(wanted)
    where, values = f"{where} AND kind != ?", (*values, Kind.HOLDOUT)
    if verdict is not None:
        where, values = f"{where} AND verdict = ?", (*values, verdict)
    table = source(wanted)
    (total,) = rows.execute(f"SELECT count(*) FROM {table} WHERE {where}", values).fetchone()
    way = "DESC" if down else "ASC"
    sort = f"number {way}" if order is ListOrder.NUMBER else f"{order.value} {way} NULLS LAST, number DESC"
    statement = f"SELECT number FROM {table} WHERE {where} ORDER BY {sort} LIMIT ? OFFSET ?"
    found = rows.execute(statement, (*values, most, offset)).fetchall()
    return ListPage([Named(int(number)) for (number,) in found], int(total))
