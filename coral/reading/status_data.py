"""What `coral status --json` prints: status.json, and what only the reader of a run can find out."""

from dataclasses import asdict

from coral.reading.run_health import run_health
from coral.reading.run_view import RunView


def status_data(view: RunView) -> dict[str, object]:
    """Return status.json together with the run's folder, its state, the supervisor's pid, the run's health and, for the
    operator, the scores on the hold-out."""
    own: dict[str, object] = {"folder": str(view.layout.root), "state": view.state, "supervisor": view.supervisor}
    own["health"] = run_health(view)
    held_out = holdout_data(view)
    return {**view.status.data, **own, **({"holdout": held_out} if held_out else {})}


def holdout_data(view: RunView) -> list[dict[str, object]]:
    """Return the attempts that were graded on the hold-out, the seed first, as objects for JSON; empty if the task has
    no hold-out."""
    return [{**asdict(graded.row), "divergence": graded.divergence, "by": graded.by} for graded in view.holdouts]
