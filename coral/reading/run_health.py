"""Reads the health of a run from its status.json and from whether a supervisor is alive."""

from typing import Any

from coral.reading.run_view import RunView
from coral.views import format
from coral.views.health import SUPERVISOR_TTL, not_known, not_made, not_running, status_old, supervisor_gone


def run_health(view: RunView) -> dict[str, Any]:
    """Return level, seconds and reasons as `coral.views.health` defines them. A dead supervisor or an old status.json
    takes precedence over the health that status.json holds."""
    age = format.age(view.status.data.get("wall"))
    seconds = None if age is None else max(age, 0.0)
    if view.supervisor is None and not view.is_made:
        return not_made()
    if view.state in ("dead", "left"):
        return supervisor_gone(seconds)
    if view.state == "stopped":
        return not_running(seconds)
    if not view.status and not view.is_open:  # a sealed agent cannot read status.json, which tells nothing of the run
        return not_known()
    shown = view.status.inner("health")
    is_old = age is None or age > SUPERVISOR_TTL or not shown.text("level")
    return status_old(seconds) if is_old else shown.data
