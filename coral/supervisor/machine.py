"""Reads the state of the machine: its memory, its load, whether it or the supervisor stood still, and whether its time
of day was set.

Each clock is compared with the run's clock, which nobody can set and which does not count time in which nobody
supervised: after the machine was suspended or the supervisor stopped, the other clocks are ahead.
"""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from coral.fleet import events as on
from coral.processes.cores import usable_cores
from coral.processes.usage import free_memory, machine_memory

CHECK_SECONDS = 15.0  # of the run's clock, between two readings
LITTLE, ENOUGH = 0.04, 0.08  # free parts of the memory: below the first it is short, until it reaches the second
CROWDED, EASED = 8.0, 6.0  # processes for each core, over five minutes: above the first it is short, until the second
LEAST_SECONDS = 30.0  # differences of clocks below this are not reported: a busy machine causes some


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of the machine. `counted`: seconds by a clock that counts while the machine is suspended; `wall`:
    seconds of the time of day; only differences of either mean something. `free`: the free part of the memory, from 0
    to 1. `load`: processes that want to run, for each core."""

    counted: float
    wall: float
    free: float
    load: float


def read() -> Reading:
    """Read the machine's state now. Where the system has no clock that counts during a suspension, a suspension looks
    like a change of the time of day."""
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
        """Yield what has changed since the last reading. `clock`: the run's, in seconds. The first reading comes
        CHECK_SECONDS after the first call, so that no start waits for it."""
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
