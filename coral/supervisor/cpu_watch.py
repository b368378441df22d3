"""Finds out whether the programs of a silent agent compute or write beats, which is a sign of life as its output is.

A launch is measured once half of its ttl is over, and then several times until the end of its ttl: so a program that
stopped, waits for ever or was suspended is found when it has been silent for the whole ttl, and not later.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from pathlib import Path

from attempts.files import witness
from coral.agent_setup.remote import is_placed
from coral.fleet import events as on
from coral.fleet.agents.stalls import silences
from coral.fleet.run_state import Fleet
from coral.processes.launches import Launch, Launches
from coral.processes.process_tree import Identity, ProcessTable
from coral.processes.usage import cpu_seconds
from coral.supervisor.context import RunContext
from coral.supervisor.grade_watch import GradeWatch

PARTS = 8  # two measurements of a launch are this part of its ttl apart
BUSY = 0.05  # of a core: an agent program that only waits for its model uses less

Key = tuple[str, int]  # of a launch: the agent's name and the number
# With its tag, and the file of the agent's pulses. No identity: its process of this machine only waits for its node,
# which says by that file that the program is alive.
MeasuredLaunch = tuple[Identity | None, str, Path]


@dataclass(frozen=True, slots=True)
class CpuMeasured:
    """A measurement of one launch. `at`: when, on the run's clock; `seconds`: the processor time on all cores of its
    processes, those that have ended included, None if that is not known; `pulses`: the kernel's time of the last change
    of the agent's pulse file, in nanoseconds; 0 where there is none."""

    at: float
    seconds: float | None
    pulses: int

    def is_alive_since(self, before: "CpuMeasured") -> bool:
        if self.pulses != before.pulses:
            return True
        if self.seconds is None or before.seconds is None:
            return False
        return self.seconds - before.seconds >= BUSY * (self.at - before.at)


class CpuWatch:
    """Measures the launches of silent agents in a worker thread, all that are due at once."""

    def __init__(self, run_context: RunContext, launches: Launches, pool: Executor, wake: Callable[[], object]) -> None:
        """`wake`: wakes the loop, from any thread."""
        self._context, self._layout, self._rules = run_context, run_context.layout, run_context.rules
        self._launches = launches
        self._pool = pool
        self._wake = wake
        self._measured: dict[Key, CpuMeasured] = {}
        self._running: Future[dict[Key, CpuMeasured]] | None = None

    def read(self, fleet: Fleet, clock: float) -> Iterator[on.Event]:
        """Yield `LifeSeen` for each launch that the last measurement found at work. Begins another measurement if one
        is due."""
        if self._running is not None and self._running.done():
            done, self._running = self._running, None
            for key, now in done.result().items():
                before, self._measured[key] = self._measured.get(key), now
                if before is not None and now.is_alive_since(before):
                    yield on.LifeSeen(agent=key[0], launch=key[1])
        if self._running is None and (wanted := self._wanted(fleet, clock)):
            self._running = self._pool.submit(_measure, wanted, clock)
            self._running.add_done_callback(lambda _: self._wake())

    def next_reading(self, fleet: Fleet) -> float | None:
        """Return when to read again, on the run's clock; None while no agent is at work, or a measurement runs, whose
        end wakes the loop."""
        if self._running is not None:
            return None  # its end wakes the loop
        return min(self._due(fleet).values(), default=None)

    def _wanted(self, fleet: Fleet, clock: float) -> dict[Key, MeasuredLaunch]:
        """Return the launches to measure now. Forgets the measurements of launches that are over."""
        due = self._due(fleet)
        self._measured = {key: measurement for key, measurement in self._measured.items() if key in due}
        launches = {key: self._launches.find(*key) for key, at in due.items() if clock >= at}
        return {key: self._measured_launch(key[0], launch) for key, launch in launches.items() if launch is not None}

    def _measured_launch(self, agent: str, launch: Launch) -> MeasuredLaunch:
        identity = None if is_placed(self._context, agent) else launch.identity
        return identity, launch.tag, self._layout.pulses(agent)

    def _due(self, fleet: Fleet) -> dict[Key, float]:
        """Return the next time to measure each launch at work, on the run's clock."""
        due = {}
        for key, (deadline, ttl) in silences(fleet, self._rules).items():
            due[key] = deadline - ttl / 2
            if key in self._measured:
                due[key] = max(due[key], self._measured[key].at + ttl / PARTS)
        return due


class ProcessWatch:
    """Watches the running processes: grades for the use of too much of the machine, agents for signs of life."""

    def __init__(self, run_context: RunContext, launches: Launches, pool: Executor, wake: Callable[[], object]) -> None:
        self._grades = GradeWatch(run_context, launches, pool, wake)
        self._agents = CpuWatch(run_context, launches, pool, wake)

    def read(self, fleet: Fleet, clock: float) -> Iterator[on.Event]:
        yield from self._grades.read(fleet, clock)
        yield from self._agents.read(fleet, clock)

    def next_reading(self, fleet: Fleet) -> float | None:
        times = (self._grades.next_reading(fleet), self._agents.next_reading(fleet))
        return min((time for time in times if time is not None), default=None)


def _measure(launches: dict[Key, MeasuredLaunch], clock: float) -> dict[Key, CpuMeasured]:
    table = ProcessTable()
    table.scan()
    found = {}
    for key, (identity, tag, pulses) in launches.items():
        members = [] if identity is None else table.members(identity, tag)
        seconds = None if identity is None else cpu_seconds(member.pid for member in members)
        changed = witness(pulses)
        found[key] = CpuMeasured(clock, seconds, 0 if changed is None else changed[2])
    return found
