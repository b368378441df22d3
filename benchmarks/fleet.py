"""What a supervisor costs, and how soon it acts, while a fleet works: one pace for each agent, more and more agents.

The pace is the real one. Agents sleep in a shell between their attempts, so that hundreds of them fit one machine.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping

import psutil

from benchmarks import machine, table
from benchmarks.arena import Arena, BenchmarkError, Started, agents_run, arena, wait_until
from benchmarks.benchmark import Ask
from benchmarks.figure import Check, Target, check
from benchmarks.idle import share
from benchmarks.interrupt import WHOLE, paired
from benchmarks.results import Result
from coral.launch import holder

NAME = "fleet"
SIZES = (1, 16, 100, 500)
PERIOD = 600  # seconds between two attempts of an agent
WINDOW, WINDOWS = 10.0, 24  # seconds of one value; values
SLOTS = 2
CPU, MEMORY, THREADS = "cpu", "memory", "threads"
CPU_TARGET, MEMORY_TARGET, SOON_TARGET = Target(median=10), Target(median=150), Target(median=20, p99=100)


def measure(ask: Ask) -> Iterable[Result]:
    here, series = machine.here(), dict[str, list[float]]()
    sizes, windows, period = ((1, 4), 2, 20) if ask.quick else (SIZES, WINDOWS, PERIOD)
    for agents in sizes:
        with arena() as place:
            found = _run(place, agents, windows, period, ask)
        series |= {f"{agents}: {part}": values for part, values in found.items()}
    settings = {"period": period, "window": WINDOW, "slots": SLOTS}
    yield Result(NAME, machine.today(), here, settings, series)


def checks(results: Mapping[str, Result]) -> list[Check]:
    series, most = results[NAME].series, SIZES[-1]
    return [
        check(f"supervisor, {most} agents at work", series[f"{most}: {CPU}"], CPU_TARGET, "% of a core", _WHY),
        check(f"its memory, {most} agents", series[f"{most}: {MEMORY}"], MEMORY_TARGET, "MB", _WHY),
        check(f"grade to interrupt, {most} agents", series[f"{most}: {WHOLE}"], SOON_TARGET, "ms", _WHY_LATE),
    ]


def section(results: Mapping[str, Result]) -> list[str]:
    result = results[NAME]
    lines = ["## A supervisor while a fleet works", "", _ABOUT, "", *table.head("% of a core", "agents")]
    lines += [table.row(f"{agents}", result.series[f"{agents}: {CPU}"]) for agents in SIZES]
    lines += ["", *table.head("memory, MB", "agents")]
    lines += [table.row(f"{agents}", result.series[f"{agents}: {MEMORY}"]) for agents in SIZES]
    lines += ["", *table.head("grader ended to SIGINT, ms", "agents")]
    lines += [table.row(f"{agents}", result.series[f"{agents}: {WHOLE}"]) for agents in SIZES]
    lines += ["", *table.head("threads", "agents")]
    lines += [table.row(f"{agents}", result.series[f"{agents}: {THREADS}"]) for agents in SIZES]
    return [*lines, "", table.origin(result)]


_ABOUT = f"""Each agent submits once in {PERIOD // 60} minutes, all of them evenly spread; `reflect` interrupts
it at each of its attempts and `consolidate` at every tenth of the fleet, as they do by default, and it is launched
again. The grader costs nothing and has {SLOTS} slots. A value is the time that the supervisor's process computed in
{WINDOW:g} seconds, its threads included and the git it starts not. The fewer agents, the fewer attempts there are to
measure in {WINDOW * WINDOWS / 60:g} minutes; [the interrupt alone](#from-a-grade-to-the-interrupt) is measured with
more."""

_WHY = "Every agent's output is looked at twice a second, and every attempt starts and ends two launches."
_WHY_LATE = "Agents, their git and the supervisor share the cores, and the figure is what the clock on the wall says."


def _run(place: Arena, agents: int, windows: int, period: int, ask: Ask) -> dict[str, list[float]]:
    lead = 5 + agents // 4
    ask.say(f"preparing {agents} agents")
    run = place.start(
        place.small_task(),
        "agents.runtime=command",
        agents_run("paced.sh", str(period), str(agents), str(lead), sys.executable),
        f"agents.count={agents}",
        f"grader.slots={SLOTS}",
    )
    wait_until(lambda: len(list(place.notes.glob("up-*"))) == agents, 600, f"the first line of {agents} agents")
    wait_until(lambda: any(place.notes.glob("due-*")), lead + 60, "the first attempt")
    ask.say(f"watching {agents} agents for {windows * WINDOW:g} s")
    supervisor = _supervisor(run)
    found: dict[str, list[float]] = {CPU: [], MEMORY: []}
    for _ in range(windows):
        found[CPU].append(share(supervisor, WINDOW))
        found[MEMORY].append(supervisor.memory_info().rss / 1e6)
    found[THREADS] = [supervisor.num_threads()]
    return found | _soon(place, run)


def _soon(place: Arena, run: Started) -> dict[str, list[float]]:
    """From grades to interrupts; every attempt but those of the last moment must have come to one."""
    began = time.time_ns()
    soon = paired(run, place.notes)
    attempts = run.attempts()
    late = [each for each in attempts if began - run.record(each.number).stat().st_mtime_ns < 5e9]
    if len(soon[WHOLE]) < len(attempts) - len(late) or not soon[WHOLE]:
        raise BenchmarkError(f"only {len(soon[WHOLE])} of {len(attempts)} attempts were interrupted")
    return {WHOLE: soon[WHOLE]}


def _supervisor(run: Started) -> psutil.Process:
    pid = holder(run.layout)
    if pid is None:
        raise BenchmarkError("the run has ended")
    return psutil.Process(pid)
