"""Reads whether the run's disk can be written to.

A write that failed on a full disk is known a moment later, so the disk is usable again only when it has been so for
some seconds. A disk may seem to have space and fail all the same, at a quota for example: then the failure says so, or
a try to set space aside. That is made now and then, for agents that can write nothing give the supervisor nothing to
write. Work goes on when space could be set aside, after longer and longer pauses where it fails again and again.
"""

from pathlib import Path

from workspace.disk import ENOUGH, LEAST, MEGABYTE, disk_problem_of, space_problem_of

USABLE_SECONDS = 2.0
ASK_SECONDS = 10.0  # between two tries to set space aside while the disk cannot be written to ...
TRY_SECONDS = 30.0  # ... and while it can
TRY_BYTES = 2 * MEGABYTE  # then so much is set aside: some network file systems write it
PAUSES = (2.0, 600.0)  # after the first failure on a disk that seems to have space, and at most


class DiskCheck:
    def __init__(self, folder: Path) -> None:
        """`folder`: one of the run's that no agent can write."""
        self._folder = folder
        self._problem = ""
        self._until = self._tried_at = float("-inf")
        self._pause = PAUSES[0]

    def check(self, clock: float, failed: str = "") -> str | None:
        """Return why the disk cannot be written to from now on; "" where it can again; None where nothing has changed.

        `clock`: the run's, in seconds. `failed`: the error of a write that failed on a full disk since the last check.
        """
        seen = disk_problem_of(self._folder, ENOUGH if self._problem else LEAST)
        if not (seen or failed or self._problem) and clock >= self._tried_at + TRY_SECONDS:
            self._tried_at, failed = clock, space_problem_of(self._folder, TRY_BYTES)
        problem = seen or failed
        if problem and self._problem:
            self._until = max(self._until, clock + USABLE_SECONDS)
        elif failed and not seen:
            self._pause = PAUSES[0] if clock > self._until + PAUSES[1] else min(2 * self._pause, PAUSES[1])
            self._until = clock + self._pause
        elif problem:
            self._until = clock + USABLE_SECONDS
        if bool(problem) == bool(self._problem) or (not problem and clock < self._until):
            return None
        if not problem and space_problem_of(self._folder, ENOUGH):
            self._until = clock + ASK_SECONDS
            return None
        self._problem = problem
        return problem

    @property
    def next_check(self) -> float | None:
        """The time of the next check, on the run's clock; None while the disk can be written to."""
        return self._until if self._problem else None
