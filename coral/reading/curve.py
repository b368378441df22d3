"""Reads a run's curve: scores from the index of records, and from the timeline when each record was published."""

from collections.abc import Callable, Iterable, Mapping

from attempts.index import history, query
from attempts.index.history import GradedRecord
from coral.reading.run_view import RunView
from coral.views import format
from coral.views.curve import Curve, curve_of, has_seed, last_of, own_steps, point_of, steps_of

Clock = Callable[[int], float | None]  # when an attempt was published, on the run's clock


def read_curve(view: RunView, clocks: Mapping[int, float]) -> Curve:
    """Read the whole curve. `clocks`: when each attempt was published, in seconds of the run's clock, as in
    `timeline.TimelineFigures`."""
    records = view.index.ask(lambda rows: history.graded(rows, view.only_agent))
    bests = view.index.ask(lambda rows: query.curve(rows, view.only_agent))
    at = times(view, _published(records), clocks.get)
    end = view.status.number("clock") or 0.0
    return curve_of(view.direction, bests, records, lambda number: at.get(number, 0.0), end)


def read_sample(view: RunView, clock: Clock, most: int, agent: str = "") -> tuple[Curve, int]:
    """Read a curve with about `most` points, at a cost that hardly grows with the run. Return it and the number of
    attempts that it leaves out. `clock`: when an attempt was published. `agent`: if given, the points are this agent's
    attempts alone, and the curve has this agent's own best; otherwise nobody's own best."""
    bests = view.index.ask(lambda rows: query.curve(rows, view.only_agent))
    proofs = view.index.ask(lambda rows: history.new_bests(rows, view.only_agent))
    chosen = view.index.ask(lambda rows: history.sampled(rows, most, agent, view.only_agent))
    own_shown = agent and view.only_agent in ("", agent)
    deciding = view.index.ask(lambda rows: history.deciding_own_best(rows, agent)) if own_shown else []
    of_steps, of_points = (times(view, _published(some), clock) for some in (proofs, chosen.records))
    of_own = times(view, _published(deciding), clock)
    steps = steps_of(bests, proofs, lambda number: of_steps.get(number, 0.0))
    points = [point_of(record, of_points[record.number]) for record in chosen.records]
    own = own_steps(view.direction, deciding, lambda number: of_own[number])
    end = last_of(view.status.number("clock") or 0.0, steps, points)
    shown = {name: steps_of_agent for name, steps_of_agent in own.items() if name == agent}
    curve = Curve(view.direction, steps, shown, points, end, has_seed(proofs))
    return curve, chosen.total - len(points)


def _published(records: Iterable[GradedRecord]) -> list[tuple[int, str]]:
    return [(record.number, record.published_at) for record in records]


def times(view: RunView, records: Iterable[tuple[int, str]], clock: Clock) -> dict[int, float]:
    """Return for each number when its record was published, in seconds of the run's clock. `records`: (number, time of
    day in ISO 8601), in the order of publication. `clock`: the time from the timeline; where that is None, the seconds
    since the run started by the time of day are taken. The times never decrease."""
    start = format.age(view.status.data.get("started_at"), now=0.0)
    found: dict[int, float] = {}
    latest = 0.0
    for number, published_at in records:
        seconds = 0.0 if number == 0 else clock(number)
        if seconds is None and start is not None:
            seconds = start - (format.age(published_at, now=0.0) or start)
        latest = found[number] = max(latest, seconds or 0.0)
    return found
