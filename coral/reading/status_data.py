"""Where a run stands, for programs: status.json with what only a reader can know."""

from dataclasses import asdict

from coral.reading.run_health import run_health
from coral.reading.run_view import RunView


def status_data(view: RunView) -> dict[str, object]:
    """status.json, who supervises the run, how well it is, and for the operator the scores on the hold-out."""
    own: dict[str, object] = {"folder": str(view.layout.root), "state": view.state, "supervisor": view.supervisor}
    own["health"] = run_health(view)
    held_out = holdout_data(view)
    return {**view.status.data, **own, **({"holdout": held_out} if held_out else {})}


def holdout_data(view: RunView) -> list[dict[str, object]]:
    """The attempts that were graded on the hold-out, the seed first; none without one."""
    return [{**asdict(one.row), "divergence": one.divergence, "by": one.by} for one in view.holdouts]
