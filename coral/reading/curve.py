"""Reads a run's curve: from the index what was graded, from the timeline when that was on the run's clock."""

from collections.abc import Iterable, Mapping

from attempts.index import history, query
from coral.reading.run_view import RunView
from coral.views import format
from coral.views.curve import Curve, curve_of


def read_curve(view: RunView, clocks: Mapping[int, float]) -> Curve:
    """`clocks`: see `timeline.TimelineFigures`."""
    records = view.index.ask(lambda rows: history.graded(rows, view.alone))
    bests = view.index.ask(lambda rows: query.curve(rows, view.alone))
    at = times(view, ((record.number, record.published_at) for record in records), clocks)
    end = view.status.number("clock") or 0.0
    return curve_of(view.direction, bests, records, lambda number: at.get(number, 0.0), end)


def times(view: RunView, records: Iterable[tuple[int, str]], clocks: Mapping[int, float]) -> dict[int, float]:
    """When records (number and time of day) were published, in seconds of the run's clock, which stops while nobody
    supervises. The wall clock serves for those that the timeline lacks. None is earlier than the one before it."""
    start = format.age(view.status.data.get("started_at"), now=0.0)
    found: dict[int, float] = {}
    latest = 0.0
    for number, published_at in records:
        seconds = 0.0 if number == 0 else clocks.get(number)
        if seconds is None and start is not None:
            seconds = start - (format.age(published_at, now=0.0) or start)
        latest = found[number] = max(latest, seconds or 0.0)
    return found
