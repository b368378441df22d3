"""Finds the grades that use more of the machine than they may, see `coral.grading.limits`."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future

from coral.fleet import events as on
from coral.fleet.expected_processes import grades_to_find
from coral.fleet.run_state import Fleet
from coral.grading.limits import CHECK_SECONDS, GradeCheck, GradeLimits, pause_after
from coral.processes.launches import Launches
from coral.supervisor.context import RunContext


class GradeWatch:
    """Checks all running grades at once in a worker thread; a new grade is checked CHECK_SECONDS after its start at the
    earliest."""

    def __init__(self, run_context: RunContext, launches: Launches, pool: Executor, wake: Callable[[], object]) -> None:
        """`wake`: wakes the loop, from any thread."""
        self._layout = run_context.layout
        self._limits = GradeLimits.of(run_context.config.grader)
        self._launches = launches
        self._pool = pool
        self._wake = wake
        self._checks: dict[tuple[int, int], tuple[float, GradeCheck]] = {}  # by number and launch: since when
        self._running: Future[list[on.GradeOverLimit]] | None = None
        self._began_at = self._rests_until = float("-inf")

    def read(self, fleet: Fleet, clock: float) -> Iterator[on.Event]:
        """Yield `GradeOverLimit` for each grade that the last check found over a limit. Begins another check if one is
        due."""
        if self._running is not None and self._running.done():
            done, self._running = self._running, None
            self._rests_until = clock + pause_after(clock - self._began_at)
            yield from done.result()
        due = self.next_reading(fleet)
        if self._running is None and due is not None and clock >= due:
            self._began_at = clock
            checks = {key: check for key, (_, check) in self._checks.items()}
            self._running = self._pool.submit(_check_all, checks)
            self._running.add_done_callback(lambda _: self._wake())

    def next_reading(self, fleet: Fleet) -> float | None:
        """Return when to read again, on the run's clock; None while nothing is graded, or a check runs, whose end wakes
        the loop."""
        self._update_checks(fleet)
        if self._running is not None:
            return None  # its end wakes the loop
        first = min((since for since, _ in self._checks.values()), default=None)
        return None if first is None else max(first + CHECK_SECONDS, self._rests_until)

    def _update_checks(self, fleet: Fleet) -> None:
        before, self._checks = self._checks, {}
        for grade in grades_to_find(fleet):
            key = grade.number, grade.launch
            if key in before:
                self._checks[key] = before[key]
            elif (launch := self._launches.find(grade.who, grade.launch)) is not None:
                folder = self._layout.grading(grade.number)
                self._checks[key] = launch.started, GradeCheck(self._limits, launch.identity, launch.tag, folder)


def _check_all(checks: Mapping[tuple[int, int], GradeCheck]) -> list[on.GradeOverLimit]:
    found = {key: check.exceeded() for key, check in checks.items()}
    return [on.GradeOverLimit(number=key[0], launch=key[1], reason=reason) for key, reason in found.items() if reason]
