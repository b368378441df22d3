"""The runs of a folder, and two to ten of them side by side."""

from contextlib import ExitStack

from coral.views import format
from coral.web.reading import RunView, comparison, opened
from coral.web.runs import Runs

MOST = 200  # runs of the list
POINTS = 1000  # of one curve

Json = dict[str, object]


def listing(runs: Runs) -> Json:
    found = runs.all()
    return {"runs": [_line(RunView(run)) for run in found[:MOST]], "left_out": max(0, len(found) - MOST)}


def _line(view: RunView) -> Json:
    """One run, from its status alone: to open a hundred indexes would take long."""
    best = view.status.inner("best")
    return {
        "run": view.name,
        "task": view.task,
        "state": view.state,
        "best": format.score(best.number("median")),
        "attempts": view.status.integer("attempts"),
        "agents": len(view.status.objects("agents")),
        "used": format.spending(view.status.inner("spent").data),
        "clock": format.duration(view.status.number("clock") or 0.0),
        "started": view.status.text("started_at")[:16].replace("T", " "),
    }


def compared(runs: Runs, names: list[str]) -> Json:
    """Compare two to ten runs. Raises CoralError if the comparison would mean nothing."""
    with ExitStack() as stack:
        views = [stack.enter_context(opened(runs.readable(name))) for name in names]
        concerns = comparison.check_comparable(views)
        outcomes = [comparison.outcome_of(view) for view in views]
        labels = comparison.labels(views)
        return {
            "direction": views[0].direction,
            "concerns": concerns,
            "runs": [
                {
                    **one.data(),
                    "label": label,
                    "time": one.over_time()[-POINTS:],
                    "graded": one.over_attempts()[-POINTS:],
                }
                for one, label in zip(outcomes, labels, strict=True)
            ],
            "settings": [[key, values] for key, values in comparison.differing(outcomes)],
        }
