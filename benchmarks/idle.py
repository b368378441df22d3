"""Measures what a supervisor uses while nothing happens: with more and more silent agents, and longer histories."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping

import psutil

from benchmarks import history, machine, table
from benchmarks.arena import Arena, BenchmarkError, Started, agents_run, arena, wait_until
from benchmarks.benchmark import Ask, Full
from benchmarks.figure import Check, Target, check
from benchmarks.results import Result
from coral.supervisor.lock import holder

NAME = "idle"
TARGET = Target(median=1)
AGENTS, ATTEMPTS = 100, 10_000  # for which the target holds; one stays the same while the other grows
FLEETS, QUICK_FLEETS = (1, 16, 100, 500), (1, 5)
COUNTS, QUICK_COUNTS = (0, 1_000, 10_000, 100_000), (0, 100)
WINDOW, WINDOWS = 10.0, 6  # seconds of one value; values
SETTLING = 30.0  # seconds until the start takes no more of the machine, and silent agents count as silent
SETTINGS = {"agents": AGENTS, "attempts": ATTEMPTS, "window": WINDOW}
CPU, MEMORY = "cpu", "memory"
UNITS = {CPU: "% of a core", MEMORY: "MB"}


def measure(ask: Ask) -> Iterable[Result]:
    here, series = machine.here(), dict[str, list[float]]()
    windows = 2 if ask.quick else WINDOWS
    for agents, counts in _sizes(ask.quick).items():
        with arena() as place:
            ask.say(f"preparing {agents} agents")
            run = start(place, agents)
            for attempts in counts:
                ask.say(f"preparing {attempts:,} attempts")
                supervisor = resume(place, run, agents, attempts)
                ask.say(f"watching the supervisor for {windows * WINDOW:g} s")
                found = _watch(supervisor, windows)
                series |= {_key(agents, attempts, part): values for part, values in found.items()}
                place.stop(run)
    yield Result(NAME, machine.today(), here, SETTINGS, series)


def full() -> Mapping[str, Full]:
    sizes = ((agents, attempts) for agents, counts in _sizes().items() for attempts in counts)
    return {NAME: Full(SETTINGS, {_key(*size, part): WINDOWS for size in sizes for part in UNITS})}


def checks(results: Mapping[str, Result]) -> list[Check]:
    values = results[NAME].series[_key(AGENTS, ATTEMPTS, CPU)]
    return [check(f"supervisor, {AGENTS} idle agents, {ATTEMPTS:,} attempts", values, TARGET, "% of a core", _WHY)]


def section(results: Mapping[str, Result]) -> list[str]:
    result = results[NAME]
    lines = ["## A supervisor while nothing happens", "", _ABOUT, ""]
    for part, unit in UNITS.items():
        rows = {_key(agents, ATTEMPTS, part): f"{agents}" for agents in FLEETS}
        lines += [*table.head(unit, f"agents, {ATTEMPTS:,} attempts"), *table.rows(rows, result), ""]
    for part, unit in UNITS.items():
        rows = {_key(AGENTS, attempts, part): f"{attempts:,}" for attempts in COUNTS}
        lines += [*table.head(unit, f"attempts, {AGENTS} agents"), *table.rows(rows, result), ""]
    return [*lines, table.origin(result)]


_ABOUT = f"""Agents that have printed one line and sleep, in a run that was resumed after attempts that were made up: at
{ATTEMPTS:,} attempts with more and more agents, with {AGENTS} agents after more and more attempts. The share of a core
is the time that the supervisor's process computed in {WINDOW:g} seconds, its threads included."""

_WHY = (
    "Every two seconds the supervisor looks whether silent agents have printed something, every five whether two "
    "folders of each have changed: most of it are lookups of paths."
)


def _sizes(quick: bool = False) -> dict[int, tuple[int, ...]]:
    """Return, by the number of agents, the numbers of attempts that are measured one after the other."""
    fleets, counts = (QUICK_FLEETS, QUICK_COUNTS) if quick else (FLEETS, COUNTS)
    agents, attempts = (fleets[-1], counts[-1]) if quick else (AGENTS, ATTEMPTS)
    return {fleet: counts if fleet == agents else (attempts,) for fleet in fleets}


def _key(agents: int, attempts: int, part: str) -> str:
    return f"{agents} agents, {attempts} attempts: {part}"


def start(place: Arena, agents: int) -> Started:
    """Make a run and stop it. When it is resumed, its agents print one line and sleep."""
    run = place.start(place.small_task(), "agents.runtime=command", agents_run("up.sh"), f"agents.count={agents}")
    place.stop(run)
    return run


def resume(place: Arena, run: Started, agents: int, attempts: int) -> psutil.Process:
    """Resume a run that was stopped, after making up attempts until it has `attempts`. Return its supervisor once all
    agents have printed a line."""
    history.fill(run, attempts, agents)
    history.index(run)
    os.sync()  # a disk that still writes what was made up would be measured
    for path in place.notes.glob("up-*"):
        path.unlink()
    place.call("resume", "--detach", "--run", str(run.layout.root))
    wait_until(lambda: len(list(place.notes.glob("up-*"))) == agents, 120, f"the first line of {agents} agents")
    time.sleep(SETTLING)
    pid = holder(run.layout.lock)
    if pid is None:
        raise BenchmarkError("the run has ended")
    return psutil.Process(pid)


def _watch(supervisor: psutil.Process, windows: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {part: [] for part in UNITS}
    for _ in range(windows):
        found[CPU].append(share(supervisor, WINDOW))
        found[MEMORY].append(supervisor.memory_info().rss / 1e6)
    return found


def share(supervisor: psutil.Process, seconds: float) -> float:
    """Return how much of a core a process uses during `seconds`, in percent, without its children."""
    before, began = supervisor.cpu_times(), time.monotonic()
    time.sleep(seconds)
    after, passed = supervisor.cpu_times(), time.monotonic() - began
    used = after.user + after.system - before.user - before.system
    return round(100 * used / passed, 3)
