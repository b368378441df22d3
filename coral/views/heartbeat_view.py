"""The heartbeats in force, written down where agents and people look them up. A view: never read back."""

from pathlib import Path

from attempts.files import Witness
from attempts.progress import Progress
from coral.fleet.run_state import FLEET, Fleet
from heartbeats.folder import Folder
from heartbeats.heartbeat import Heartbeat
from heartbeats.trigger import Elapsed, Every

AT_ONCE = 20  # files per look


class Shown:
    """The files of a run's heartbeats folder, and how each was left."""

    def __init__(self, root: Path) -> None:
        self._folder = Folder(root)
        self._left: dict[str, Witness | None] = {}
        self._next: list[str] = []

    def show(self, fleet: Fleet, owner: str, clock: float) -> None:
        """Write the file of an owner: an agent, or the fleet."""
        holder = fleet.run if owner == FLEET else fleet.agents[owner]
        rows = [
            (heartbeat, distance(heartbeat, holder.targets[heartbeat.name], holder.progress, clock))
            for heartbeat in fleet.heartbeats[owner]
        ]
        self._folder.write(owner, rows)
        self._left[owner] = self._folder.witness(owner)

    def altered(self) -> list[str]:
        """The owners, of the next few, whose file is not as it was left."""
        self._next = self._next or list(self._left)
        looking, self._next = self._next[:AT_ONCE], self._next[AT_ONCE:]
        return [owner for owner in looking if self._folder.witness(owner) != self._left[owner]]


def span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def distance(heartbeat: Heartbeat, target: float, progress: Progress, clock: float) -> str:
    """How far away it is, in the unit of its trigger: `3 attempts`, `2 more without improvement`, `12 min`."""
    if isinstance(heartbeat.trigger, Elapsed):
        return span(max(target - clock, 0.0))
    if isinstance(heartbeat.trigger, Every):
        more = max(round(target) - progress.evals, 0)
        return "next attempt" if more <= 1 else f"{more} attempts"
    return f"{max(round(target) - progress.stagnant, 0)} without improvement"
