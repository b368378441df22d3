"""Watches over the disk of the run: what it lacks, and that it has lacked nothing for a while.

What failed for want of space is heard of a moment later: so it is over only when it has been so for some seconds. Where
the disk says nothing of itself, what fails tells, and is tried again after ever longer pauses.
"""

from pathlib import Path

from workspace.disk import ENOUGH, LEAST, disk_problem_of

EASED_SECONDS = 2.0
PAUSES = (15.0, 600.0)  # after the first failure that the disk did not announce, and at most


class DiskCheck:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lack = ""
        self._until = float("-inf")
        self._pause = PAUSES[0]

    def look(self, clock: float, failed: str = "") -> str | None:
        """What is lacking from now on, empty if nothing is any more; None if that is as it was at the last look.

        `clock`: the run's, in seconds. `failed`: what could not be written since then, for want of space.
        """
        found = disk_problem_of(self._folder, ENOUGH if self._lack else LEAST) or failed
        if found and self._lack:
            self._until = max(self._until, clock + EASED_SECONDS)
        elif found == failed != "":
            self._pause = PAUSES[0] if clock > self._until + PAUSES[1] else min(2 * self._pause, PAUSES[1])
            self._until = clock + self._pause
        elif found:
            self._until = clock + EASED_SECONDS
        if bool(found) == bool(self._lack) or (not found and clock < self._until):
            return None
        self._lack = found
        return found

    @property
    def next_look(self) -> float | None:
        """When to look again though nothing happens, on the run's clock; None while nothing is lacking."""
        return self._until if self._lack else None
