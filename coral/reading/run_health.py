"""How well a run is, from its status.json, and from whether somebody supervises it now."""

from typing import Any

from coral.fleet.health import HealthLevel, Trouble, level_of
from coral.reading.run_view import RunView
from coral.views import format
from coral.views.health import reason_of, summed

OLD_SECONDS = 180.0  # a supervisor writes status.json every minute even if nothing happens


def run_health(view: RunView) -> dict[str, Any]:
    """As `coral.views.health` has it: level, seconds, reasons."""
    age = format.age(view.status.data.get("wall"))
    if view.state in ("dead", "left"):
        return _one(Trouble.SUPERVISOR_GONE, age)
    if view.state == "stopped":
        return _one(Trouble.NOT_RUNNING, age)
    shown = view.status.inner("health")
    if age is None or age > OLD_SECONDS or shown.text("level") not in set(HealthLevel):
        return _one(Trouble.STATUS_OLD, age)
    return shown.data


def _one(trouble: Trouble, age: float | None) -> dict[str, Any]:
    return summed(level_of(trouble), [reason_of(trouble, seconds=None if age is None else max(age, 0.0))])
