"""Measures what a supervisor uses, and how soon it acts, while a fleet works: the same work, by more and more agents.

For 500 agents the pace is realistic: an attempt of each agent in ten minutes. Agents sleep in a shell between their
attempts, so that hundreds of them fit one machine.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping

import psutil

from benchmarks import machine, table
from benchmarks.arena import Arena, BenchmarkError, Started, agents_run, arena, wait_until
from benchmarks.benchmark import Ask, Full
from benchmarks.figure import Check, Target, check
from benchmarks.idle import share
from benchmarks.interrupt import WHOLE, ends, paired
from benchmarks.results import Result
from coral.supervisor.lock import holder

NAME = "fleet"
PACE = 1.2  # seconds between two attempts of the fleet
WINDOW = 5.0  # seconds of one value
WINDOWS = {1: 4, 16: 4, 100: 4, 500: 18}  # values for so many agents
SETTLING = 10.0  # seconds until the start itself takes no more of the machine
SLOTS = 2
SETTINGS = {"pace": PACE, "window": WINDOW, "slots": SLOTS}
CPU, MEMORY, THREADS = "cpu", "memory", "threads"
MOST = max(WINDOWS)
CPU_TARGET, MEMORY_TARGET, SOON_TARGET = Target(median=10), Target(median=150), Target(median=20, p99=100)


def measure(ask: Ask) -> Iterable[Result]:
    here, series = machine.here(), dict[str, list[float]]()
    for agents, windows in ({1: 1, 4: 1} if ask.quick else WINDOWS).items():
        with arena() as place:
            ask.say(f"preparing {agents} agents")
            run = start(place, agents)
            ask.say(f"watching {agents} agents for {windows * WINDOW:g} s")
            series |= {f"{agents}: {part}": values for part, values in watch(place, run, windows).items()}
    yield Result(NAME, machine.today(), here, SETTINGS, series)


def full() -> Mapping[str, Full]:
    series: dict[str, int | None] = {}
    for agents, windows in WINDOWS.items():
        parts = {CPU: windows, MEMORY: windows, THREADS: 1, WHOLE: None}
        series |= {f"{agents}: {part}": count for part, count in parts.items()}
    return {NAME: Full(SETTINGS, series)}


def checks(results: Mapping[str, Result]) -> list[Check]:
    series = results[NAME].series
    return [
        check(f"supervisor, {MOST} agents at work", series[f"{MOST}: {CPU}"], CPU_TARGET, "% of a core", _WHY),
        check(f"its memory, {MOST} agents", series[f"{MOST}: {MEMORY}"], MEMORY_TARGET, "MB", _WHY),
        check(f"grade to interrupt, {MOST} agents", series[f"{MOST}: {WHOLE}"], SOON_TARGET, "ms", _WHY_LATE),
    ]


def section(results: Mapping[str, Result]) -> list[str]:
    result = results[NAME]
    lines = ["## A supervisor while a fleet works", "", _ABOUT, ""]
    for part, unit in ((CPU, "% of a core"), (WHOLE, "ms from grader ended to SIGINT"), (MEMORY, "MB")):
        lines += [*table.head(unit, "agents"), *_rows(result, part), ""]
    threads = max(result.series[f"{MOST}: {THREADS}"])
    return [*lines, f"With {MOST} agents the supervisor has {threads:g} threads.", "", table.origin(result)]


def _rows(result: Result, part: str) -> list[str]:
    return [table.row(f"{agents}", result.series[f"{agents}: {part}"]) for agents in WINDOWS]


_ABOUT = f"""The fleet submits every {PACE:g} seconds, its agents one after the other: {MOST} agents once each in
{PACE * MOST / 60:g} minutes. `reflect` interrupts an agent at each of its attempts and `consolidate` at every tenth
of the fleet, as they do by default, and it is launched again. The grader costs nothing and has {SLOTS} slots. The share
of a core is the time that the supervisor's process computed in {WINDOW:g} seconds, its threads included and the git
it starts not."""

_WHY = "Every agent's output is looked at up to twice a second, and every attempt starts and ends two launches."
_WHY_LATE = (
    "Agents, their git and the supervisor share the cores, and the end of a launch is looked for among all processes."
)


def start(place: Arena, agents: int) -> Started:
    """Start a run whose agents submit in turn, one every PACE seconds, and wait until all of them have printed a
    line."""
    program = agents_run("paced.sh", f"{1000 * PACE * agents:.0f}", str(agents), sys.executable)
    work = ("agents.runtime=command", program, f"agents.count={agents}", f"grader.slots={SLOTS}")
    run = place.start(place.small_task(), *work)
    wait_for_all(place, agents)
    return run


def resume(place: Arena, run: Started, agents: int) -> None:
    """Resume a run that was stopped, and wait for its agents, which begin to take turns again."""
    for pattern in ("up-*", "due-*", "first-*", "began"):
        for path in place.notes.glob(pattern):
            path.unlink()
    place.call("resume", "--detach", "--run", str(run.layout.root))
    wait_for_all(place, agents)


def wait_for_all(place: Arena, agents: int) -> None:
    wait_until(lambda: len(list(place.notes.glob("up-*"))) == agents, 600, f"the first line of {agents} agents")
    time.sleep(SETTLING)


def watch(
    place: Arena, run: Started, windows: int, also: Callable[[], object] = lambda: None
) -> dict[str, list[float]]:
    """Measure the CPU and memory of the supervisor in each of `windows` windows, and how soon it interrupted agents
    meanwhile. Calls `also` after each window."""
    supervisor, began = _supervisor(run), time.time_ns()
    found: dict[str, list[float]] = {CPU: [], MEMORY: []}
    for _ in range(windows):
        found[CPU].append(share(supervisor, WINDOW))
        found[MEMORY].append(supervisor.memory_info().rss / 1e6)
        also()
    found[THREADS] = [supervisor.num_threads()]
    return found | {WHOLE: _soon(place, run, began)}


def _soon(place: Arena, run: Started, began: int) -> list[float]:
    """Return the times from grades to interrupts, once every attempt has led to one."""
    wanted = ends(place.notes, began)

    def all_came() -> bool:
        return len(paired(run, place.notes, began)[WHOLE]) >= len(wanted)

    wait_until(all_came, 60, f"the interrupt of {len(wanted)} attempts")
    if not wanted:
        raise BenchmarkError("nothing was graded meanwhile")
    return paired(run, place.notes, began)[WHOLE]


def _supervisor(run: Started) -> psutil.Process:
    pid = holder(run.layout.lock)
    if pid is None:
        raise BenchmarkError("the run has ended")
    return psutil.Process(pid)
