"""Finds the grades that use more of the machine than they may, see `coral.grading.limits`."""

from collections.abc import Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from pathlib import Path

from coral.fleet import events as on
from coral.fleet.expected_processes import grades_to_find
from coral.fleet.run_state import Fleet
from coral.grading.limits import CHECK_SECONDS, GradeLimits, pause_after
from coral.processes.launches import Launch, Launches
from coral.supervisor.context import RunContext

CHECKING_SECONDS = 0.1  # how soon to look whether a check is done


@dataclass(frozen=True, slots=True)
class _Grade:
    number: int
    launch: Launch
    folder: Path

    def over(self, limits: GradeLimits) -> on.GradeOverLimit | None:
        reason = limits.exceeded(self.launch.identity, self.launch.tag, self.folder)
        return on.GradeOverLimit(number=self.number, launch=self.launch.number, reason=reason) if reason else None


class GradeWatch:
    """Checks the running grades, all at once, in a worker thread. A grade that has just begun is left alone."""

    def __init__(self, run_context: RunContext, launches: Launches, pool: Executor) -> None:
        self._layout = run_context.layout
        self._limits = GradeLimits.of(run_context.config.grader)
        self._launches = launches
        self._pool = pool
        self._running: Future[list[on.GradeOverLimit]] | None = None
        self._began_at = self._rests_until = float("-inf")

    def read(self, fleet: Fleet, clock: float) -> Iterator[on.Event]:
        """What the last check found. Begins another if one is due."""
        if self._running is not None and self._running.done():
            done, self._running = self._running, None
            self._rests_until = clock + pause_after(clock - self._began_at)
            yield from done.result()
        due = self.next_reading(fleet)
        if self._running is None and due is not None and clock >= due:
            self._began_at = clock
            self._running = self._pool.submit(_check, self._grades(fleet), self._limits)

    def next_reading(self, fleet: Fleet) -> float | None:
        """When to read again, on the run's clock; None while nothing is graded."""
        if self._running is not None:
            return self._began_at + CHECKING_SECONDS
        began = [grade.launch.started for grade in self._grades(fleet)]
        return max(min(began) + CHECK_SECONDS, self._rests_until) if began else None

    def _grades(self, fleet: Fleet) -> list[_Grade]:
        found = [(grade.number, self._launches.find(grade.who, grade.launch)) for grade in grades_to_find(fleet)]
        return [_Grade(number, launch, self._layout.grading(number)) for number, launch in found if launch is not None]


def _check(grades: list[_Grade], limits: GradeLimits) -> list[on.GradeOverLimit]:
    return [found for grade in grades if (found := grade.over(limits)) is not None]
