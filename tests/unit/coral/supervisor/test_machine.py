"""What is noticed of the machine, by readings of its clocks, memory and load as they would be."""

import time
from dataclasses import replace

import pytest

from coral.fleet import events as on
from coral.processes.usage import free_memory, machine_memory
from coral.supervisor.clock import LONGEST, Clock
from coral.supervisor.machine import (
    CHECK_SECONDS,
    CROWDED,
    EASED,
    ENOUGH,
    LEAST_SECONDS,
    LITTLE,
    MachineWatch,
    Reading,
    read,
)

WELL = Reading(counted=1000.0, wall=5e8, free=0.5, load=0.5)


class Machine:
    """Readings that pass with the run's clock, but for what a test says."""

    def __init__(self) -> None:
        self.now, self.clock = WELL, 0.0
        self.watch = MachineWatch(lambda: self.now)
        assert self.after() == self.after() == []

    def after(self, *, slept: float = 0.0, set_by: float = 0.0, **found: float) -> list:
        """Check again CHECK_SECONDS later. `slept`: seconds that only counting clocks know."""
        self.clock += CHECK_SECONDS
        passed = CHECK_SECONDS + slept
        self.now = replace(self.now, counted=self.now.counted + passed, wall=self.now.wall + passed + set_by, **found)
        return list(self.watch.check(self.clock))


def test_a_start_does_not_wait_for_it_and_it_is_read_only_so_often() -> None:
    asked: list[float] = []

    def count() -> Reading:
        asked.append(clock)
        return WELL

    watch = MachineWatch(count)
    for clock in (0.0, 1.0, CHECK_SECONDS, CHECK_SECONDS + 1, 2 * CHECK_SECONDS):
        list(watch.check(clock))
    assert asked == [CHECK_SECONDS, 2 * CHECK_SECONDS]


def test_what_it_lacks_is_said_once_and_is_over_only_when_there_is_clearly_more() -> None:
    machine = Machine()
    (said,) = machine.after(free=LITTLE - 0.01)
    assert said == on.MachineChecked(short=(on.Shortage.MEMORY,), free=LITTLE - 0.01, load=0.5)
    assert machine.after(free=ENOUGH - 0.01) == []
    (said,) = machine.after(free=ENOUGH, load=CROWDED + 1)
    assert said.short == (on.Shortage.LOAD,)
    assert machine.after(load=EASED + 1) == []
    (said,) = machine.after(load=EASED)
    assert said.short == ()


@pytest.mark.parametrize("seconds", [LEAST_SECONDS, 8 * 3600.0])
def test_a_suspended_machine_is_noticed_and_the_runs_clock_has_not_moved(seconds: float) -> None:
    machine = Machine()
    assert machine.after(slept=LEAST_SECONDS - 1) == []
    assert machine.after(slept=seconds) == [on.Slept(seconds=seconds)]
    assert machine.after() == []


@pytest.mark.parametrize("seconds", [LEAST_SECONDS, -LEAST_SECONDS, 86400.0, -86400.0])
def test_a_time_of_day_that_somebody_sets_is_noticed_once(seconds: float) -> None:
    machine = Machine()
    assert machine.after(set_by=seconds / abs(seconds) * (LEAST_SECONDS - 1)) == []
    assert machine.after(set_by=seconds) == [on.ClockSet(seconds=seconds)]
    assert machine.after() == []
    assert machine.after(set_by=seconds, slept=100.0) == [on.Slept(seconds=100.0), on.ClockSet(seconds=seconds)]


def test_whatever_the_clocks_do_a_deadline_comes_after_its_seconds_of_supervision(monkeypatch) -> None:
    """Of an hour of suspension, whether the monotonic clock counts it or not, a deadline sees two seconds at most."""
    shown = [100.0]
    monkeypatch.setattr("coral.supervisor.clock.time.monotonic", lambda: shown[0])
    for counts in (0.0, 3600.0):
        clock = Clock(50.0)
        begun = clock.now().run_time
        clock.sleep(5.0)
        shown[0] += 5.0 + counts
        passed = clock.now().run_time - begun
        assert 5.0 <= passed <= 5.0 + LONGEST
        monkeypatch.setattr("coral.supervisor.clock.wall", lambda: "1970-01-01T00:00:00.000Z")
        shown[0] += 1.0
        assert clock.now().run_time - begun == passed + 1.0


def test_this_machine_can_be_read() -> None:
    before, found, after = time.time(), read(), time.time()
    assert before <= found.wall <= after
    assert 0 < found.free <= 1
    assert found.load >= 0
    assert 0 < free_memory() <= machine_memory()
    again = read()
    assert again.counted >= found.counted
    assert list(MachineWatch().check(0.0)) == []
