"""How well a run is, from its status.json, and from whether somebody supervises it now."""

from typing import Any

from coral.reading.run_view import RunView
from coral.views import format
from coral.views.health import SUPERVISOR_TTL, not_running, status_old, supervisor_gone


def run_health(view: RunView) -> dict[str, Any]:
    """As `coral.views.health` has it: level, seconds, reasons."""
    age = format.age(view.status.data.get("wall"))
    seconds = None if age is None else max(age, 0.0)
    if view.state in ("dead", "left"):
        return supervisor_gone(seconds)
    if view.state == "stopped":
        return not_running(seconds)
    shown = view.status.inner("health")
    is_old = age is None or age > SUPERVISOR_TTL or not shown.text("level")
    return status_old(seconds) if is_old else shown.data
