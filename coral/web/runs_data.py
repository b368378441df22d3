"""The data of the list of runs, and of the comparison of two to ten runs."""

from collections.abc import Sequence
from contextlib import ExitStack
from itertools import pairwise
from operator import itemgetter

from attempts.record import Direction
from coral.views import format
from coral.views.curve import reach, with_margin
from coral.web.reading import RunOutcome, RunView, comparison, is_seed, opened, used
from coral.web.runs import Runs
from workspace.layout import Layout

MOST = 200  # runs of the list
POINTS = 1000  # of one curve
CHANGES = 5  # of one run

Json = dict[str, object]


def listing(runs: Runs) -> Json:
    found = runs.all()
    return {"runs": [_row(run) for run in found[:MOST]], "left_out": max(0, len(found) - MOST)}


def _row(run: Layout) -> Json:
    with opened(run) as view:
        return _line(view)


def _line(view: RunView) -> Json:
    """Return one row of the list. It is read from status.json, and from the records only if there is none: opening the
    indexes of a hundred runs would take long. The best is the seed while nobody has beaten it, as in `coral runs`."""
    best, clock = view.best_and_lead[0], view.status.number("clock")
    return {
        "run": view.name,
        "task": view.task,
        "state": view.state,
        "best": "the seed" if is_seed(best) else format.score(best.number("median")),
        "attempts": view.attempts,
        "agents": len(view.agents()),
        "used": used(view),
        "clock": "" if clock is None else format.duration(clock),
        "started": view.status.text("started_at")[:16].replace("T", " "),
    }


def compared(runs: Runs, names: list[str]) -> Json:
    """Compare two to ten runs. CoralError if the comparison would mean nothing."""
    with ExitStack() as stack:
        views = [stack.enter_context(opened(runs.readable(name))) for name in names]
        concerns = comparison.check_comparable(views)
        outcomes = [comparison.outcome_of(view) for view in views]
        labels = comparison.labels(views)
        return {
            "direction": views[0].direction,
            "edge": _edge(views[0].direction, outcomes),
            "concerns": concerns,
            "runs": [
                {
                    **outcome.data(),
                    "label": label,
                    "used": used(outcome.view),
                    "clock": outcome.took,
                    "to_best": "" if outcome.curve.to_best is None else format.duration(outcome.curve.to_best),
                    "changes": _changes(outcome),
                    "time": outcome.over_time()[-POINTS:],
                    "graded": outcome.over_attempts()[-POINTS:],
                }
                for outcome, label in zip(outcomes, labels, strict=True)
            ],
            "settings": [[key, values] for key, values in comparison.differing(outcomes)],
        }


def _edge(direction: Direction, outcomes: Sequence[RunOutcome]) -> float | None:
    """Return the worse end of a linear axis for all runs; scores that are still worse are drawn there. None if there is
    nothing to draw."""
    found = reach([[step.value for step in outcome.curve.steps] for outcome in outcomes])
    return None if found is None else with_margin(*found)[0 if direction is Direction.MAXIMIZE else 1]


def _changes(one: RunOutcome) -> list[Json]:
    """Return the attempts that improved the best most, the largest gain first. The seed as best again is none."""
    steps = one.curve.steps
    up = [(before, step) for before, step in pairwise(steps) if not one.curve.is_seed(step)]
    steps_up = ((one.curve.gain(step.value, before.value), step) for before, step in up)
    # A proven best is worse than the one before it where later grades of it were.
    gains = sorted(((gain, step) for gain, step in steps_up if gain > 0), key=itemgetter(0), reverse=True)
    found = [(gain, record) for gain, step in gains if (record := one.view.attempt_or_none(step.number))]
    return [
        {"number": record.number, "gain": gain, "agent": record.agent, "title": format.line(record.title)}
        for gain, record in found[:CHANGES]
    ]
