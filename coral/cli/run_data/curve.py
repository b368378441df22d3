"""Reads a run's curve: from the index what was graded, from the timeline when that was on the run's clock."""

from collections.abc import Mapping, Sequence

from attempts.index import history, query
from attempts.index.history import Graded
from coral.cli.run_data.run_view import RunView
from coral.views import format
from coral.views.curve import Curve, curve_of


def read_curve(view: RunView, clocks: Mapping[int, float]) -> Curve:
    """`clocks`: see `timeline.Told`."""
    records = view.index.ask(lambda rows: history.graded(rows, view.alone))
    bests = view.index.ask(lambda rows: query.curve(rows, view.alone))
    at = times(view, records, clocks)
    end = view.status.number("clock") or 0.0
    return curve_of(view.direction, bests, records, lambda number: at.get(number, 0.0), end)


def times(view: RunView, records: Sequence[Graded], clocks: Mapping[int, float]) -> dict[int, float]:
    """When each record was published, in seconds of the run's clock, which stops while nobody supervises. The wall
    clock serves for those that the timeline lacks. None is earlier than the one before it."""
    start = format.age(view.status.data.get("started_at"), now=0.0)
    found: dict[int, float] = {}
    latest = 0.0
    for record in records:
        seconds = 0.0 if record.number == 0 else clocks.get(record.number)
        if seconds is None and start is not None:
            seconds = start - (format.age(record.published_at, now=0.0) or start)
        latest = found[record.number] = max(latest, seconds or 0.0)
    return found
