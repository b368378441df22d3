"""Reads how the machine is: its memory, its load, and whether its clocks or the supervisor stood still or were set.

Every figure is compared on the run's clock, which nobody can set and which does not count a time in which nobody
supervised: a machine that was suspended, or a supervisor that was stopped, shows by clocks that counted on.
"""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from coral.fleet import events as on
from coral.processes.cores import usable_cores
from coral.processes.usage import free_memory, machine_memory

CHECK_SECONDS = 15.0  # of the run's clock, between two readings
LITTLE, ENOUGH = 0.04, 0.08  # free parts of the memory: below the first it is short, from the second on no more
CROWDED, EASED = 8.0, 6.0  # processes for each core that want to run, over five minutes: likewise
LEAST_SECONDS = 30.0  # by which clocks must differ to be told: a busy machine may starve the supervisor for some


@dataclass(frozen=True, slots=True)
class Reading:
    """`counted`: seconds by a clock that counts while the machine is suspended; `wall`: of the time of day; both from
    any beginning. `free`: the part of the memory that is free. `load`: for each core."""

    counted: float
    wall: float
    free: float
    load: float


def read() -> Reading:
    """As it is now. Where the system has no such clock, a suspension is seen as a jump of the time of day."""
    # Of macOS, the raw clock counts while it is suspended; Linux has another for that.
    number = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC_RAW", time.CLOCK_MONOTONIC))
    free = free_memory() / max(machine_memory(), 1)
    return Reading(time.clock_gettime(number), time.time(), free, os.getloadavg()[1] / usable_cores())


class MachineWatch:
    def __init__(self, read: Callable[[], Reading] = read) -> None:
        self._read = read
        self._before: tuple[float, Reading] | None = None
        self._short: tuple[on.Shortage, ...] = ()
        self._due: float | None = None

    def check(self, clock: float) -> Iterator[on.Event]:
        """What has changed since the last reading. `clock`: the run's, in seconds. A start does not wait for the first
        reading, which comes later."""
        if self._due is None:
            self._due = clock + CHECK_SECONDS
        if clock < self._due:
            return
        self._due = clock + CHECK_SECONDS
        now = self._read()
        short = tuple(self._shortages(now))
        if short != self._short:
            self._short = short
            yield on.MachineChecked(short=short, free=now.free, load=now.load)
        if self._before is not None:
            earlier, before = self._before
            passed = now.counted - before.counted
            if (slept := passed - (clock - earlier)) >= LEAST_SECONDS:
                yield on.Slept(seconds=slept)
            if abs(jump := now.wall - before.wall - passed) >= LEAST_SECONDS:
                yield on.ClockSet(seconds=jump)
        self._before = clock, now

    def _shortages(self, now: Reading) -> Iterator[on.Shortage]:
        if now.free < (ENOUGH if on.Shortage.MEMORY in self._short else LITTLE):
            yield on.Shortage.MEMORY
        if now.load > (EASED if on.Shortage.LOAD in self._short else CROWDED):
            yield on.Shortage.LOAD
