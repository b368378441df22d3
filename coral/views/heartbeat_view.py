"""The heartbeats in force, as files for agents and people, and when each is due. A view: never read back."""

from enum import StrEnum
from pathlib import Path
from typing import Any, assert_never

from attempts.files import Witness
from attempts.progress import Progress
from coral.fleet.run_state import FLEET, Fleet
from coral.views.format import duration
from heartbeats.folder import Folder
from heartbeats.heartbeat import Heartbeat
from heartbeats.trigger import Elapsed, Every, Stagnant

BATCH = 20  # files per check


class HeartbeatFiles:
    """The files of a run's heartbeats folder, each with its witness as we wrote it."""

    def __init__(self, root: Path) -> None:
        self._folder = Folder(root)
        self._witnesses: dict[str, Witness | None] = {}
        self._next: list[str] = []

    def write(self, fleet: Fleet, owner: str, clock: float) -> None:
        """Writes the file of an owner: an agent, or the fleet."""
        holder = fleet.run if owner == FLEET else fleet.agents[owner]
        rows = [
            (heartbeat, due(heartbeat, holder.targets[heartbeat.name], holder.progress, clock)["in"])
            for heartbeat in fleet.heartbeats[owner]
        ]
        self._folder.write(owner, rows)
        self._witnesses[owner] = self._folder.witness(owner)

    def altered(self) -> list[str]:
        """Checks the next few files, and returns the owners of those that somebody changed."""
        self._next = self._next or list(self._witnesses)
        batch, self._next = self._next[:BATCH], self._next[BATCH:]
        return [owner for owner in batch if self._folder.witness(owner) != self._witnesses[owner]]


class Unit(StrEnum):
    """What is counted until a heartbeat is due."""

    SECONDS = "seconds"
    ATTEMPTS = "attempts"
    STAGNANT = "stagnant"  # attempts in a row without improvement


def due(heartbeat: Heartbeat, target: float, progress: Progress, clock: float) -> dict[str, Any]:
    """When a heartbeat is due, as status.json shows it: the amount left, its unit, and both in words."""
    match heartbeat.trigger:
        case Elapsed():
            return due_data(heartbeat.name, target - clock, Unit.SECONDS)
        case Every():
            return due_data(heartbeat.name, round(target) - progress.evals, Unit.ATTEMPTS)
        case Stagnant():
            return due_data(heartbeat.name, round(target) - progress.stagnant, Unit.STAGNANT)
        case _:
            assert_never(heartbeat.trigger)


def due_data(name: str, left: float, unit: Unit) -> dict[str, Any]:
    left = max(left, 0)
    match unit:
        case Unit.SECONDS:
            text, left = duration(left), round(left, 1)
        case Unit.ATTEMPTS:
            text = "next attempt" if left <= 1 else f"{left} attempts"
        case Unit.STAGNANT:
            text = f"{left} without improvement"
        case _:
            assert_never(unit)
    return {"name": name, "left": left, "unit": unit.value, "in": text}
