"""What a supervisor costs while nothing happens: a hundred agents that say nothing, and a history of attempts."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

import psutil

from benchmarks import history, machine, table
from benchmarks.arena import Arena, BenchmarkError, Started, agents_run, arena, wait_until
from benchmarks.benchmark import Ask, Full
from benchmarks.figure import Check, Target, check
from benchmarks.results import Result
from coral.launch import holder

NAME = "idle"
TARGET = Target(median=1)
AGENTS, ATTEMPTS = 100, 10_000
WINDOW, WINDOWS = 10.0, 6  # seconds of one value; values
CPU, MEMORY = "cpu", "memory"


def measure(ask: Ask) -> Iterable[Result]:
    here = machine.here()
    agents, attempts, windows = (5, 100, 2) if ask.quick else (AGENTS, ATTEMPTS, WINDOWS)
    with arena() as place:
        ask.say(f"preparing {agents} agents and {attempts:,} attempts")
        run = place.start(place.small_task(), "agents.runtime=command", agents_run("up.sh"), f"agents.count={agents}")
        place.stop(run)
        history.fill(run, attempts, agents)
        history.index(run)
        supervisor = _resume(place, run, agents)
        ask.say(f"watching the supervisor for {windows * WINDOW:g} s")
        cpu = [share(supervisor, WINDOW) for _ in range(windows)]
        memory = supervisor.memory_info().rss / 1e6
    yield Result(NAME, machine.today(), here, {"agents": agents, "attempts": attempts}, {CPU: cpu, MEMORY: [memory]})


def full() -> Mapping[str, Full]:
    series = {CPU: WINDOWS, MEMORY: 1}
    return {NAME: Full({"agents": AGENTS, "attempts": ATTEMPTS}, series)}


def checks(results: Mapping[str, Result]) -> list[Check]:
    values = results[NAME].series[CPU]
    return [check(f"supervisor, {AGENTS} idle agents, {ATTEMPTS:,} attempts", values, TARGET, "% of a core", _WHY)]


def section(results: Mapping[str, Result]) -> list[str]:
    result = results[NAME]
    lines = ["## A supervisor while nothing happens", "", _ABOUT, "", *table.head("")]
    lines.append(table.row("% of a core", result.series[CPU]))
    lines.append(table.row("memory, MB", result.series[MEMORY]))
    return [*lines, "", table.origin(result)]


_ABOUT = f"""A run with {AGENTS} agents that have printed one line and sleep, and {ATTEMPTS:,} attempts that were made
up, resumed. A value is the time that the supervisor's process computed in {WINDOW:g} seconds, its threads included."""

_WHY = (
    "Every two seconds the supervisor looks whether silent agents have printed something, every five into two folders "
    "of each: most of it are lookups of paths."
)


def _resume(place: Arena, run: Started, agents: int) -> psutil.Process:
    for path in place.notes.glob("up-*"):
        path.unlink()
    place.call("resume", "--detach", "--run", str(run.layout.root))
    wait_until(lambda: len(list(place.notes.glob("up-*"))) == agents, 120, f"the first line of {agents} agents")
    time.sleep(WINDOW)  # until the start itself costs nothing any more
    pid = holder(run.layout)
    if pid is None:
        raise BenchmarkError("the run has ended")
    return psutil.Process(pid)


def share(supervisor: psutil.Process, seconds: float) -> float:
    """How much of a core a process uses during so many seconds, in percent; its children apart."""
    before, began = supervisor.cpu_times(), time.monotonic()
    time.sleep(seconds)
    after, passed = supervisor.cpu_times(), time.monotonic() - began
    used = after.user + after.system - before.user - before.system
    return round(100 * used / passed, 3)
