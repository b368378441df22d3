"""The data of the fleet page for a past moment, read from the journal as `coral replay --at` does."""

import re
from collections.abc import Mapping

from coral.errors import CoralError
from coral.journal.replay import fold_until
from coral.views import format
from coral.web import fleet_data
from coral.web.reading import PastRun, RunView


def past(view: RunView, asked: Mapping[str, str]) -> dict[str, object]:
    """Return the fleet page as it was at `at`, in seconds of the run's clock. CoralError if the run began later."""
    at = _seconds(asked.get("at", ""))
    memory = fold_until(view.layout.journal, lambda line: line.get("at", 0.0) > at)
    if memory is None:
        when = format.run_clock(at)
        raise CoralError(f"cannot show {view.name} at {when}: it began later", "choose a later moment")
    then = fleet_data.fleet(PastRun(view.layout, memory))
    return {**then, "warnings": [], "wall": memory.wall}


def _seconds(given: str) -> float:
    if not re.fullmatch(r"\d{1,9}(\.\d{1,20})?", given, re.ASCII):
        raise CoralError(f"cannot read {given[:40]!r} as a moment", "give the seconds since the run began")
    return float(given)
