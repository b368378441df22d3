"""Measures what the same work costs a supervisor after longer and longer histories: it should depend on new attempts
alone."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from benchmarks import fleet, history, machine, table
from benchmarks.arena import arena
from benchmarks.benchmark import Ask, Full
from benchmarks.figure import Check, Target, check, median
from benchmarks.fleet import CPU, MEMORY, PACE, WINDOW
from benchmarks.interrupt import WHOLE
from benchmarks.results import Result

NAME = "tick"
AGENTS, WINDOWS = 16, 6
SETTINGS = {"agents": AGENTS, "pace": PACE, "window": WINDOW}
COUNTS, QUICK_COUNTS = (0, 1_000, 10_000, 100_000), (0, 1_000)
TARGET = Target(median=1.2)


def measure(ask: Ask) -> Iterable[Result]:
    here, series = machine.here(), dict[str, list[float]]()
    counts, windows = (QUICK_COUNTS, 1) if ask.quick else (COUNTS, WINDOWS)
    with arena() as place:
        run = fleet.start(place, AGENTS)
        for count in counts:
            if count:
                ask.say(f"preparing {count:,} attempts")
                place.stop(run)
                history.fill(run, count, AGENTS)
                history.index(run)
                os.sync()  # otherwise the disk would still write the made-up attempts while it is measured
                fleet.resume(place, run, AGENTS)
            ask.say(f"watching the supervisor for {windows * WINDOW:g} s")
            found = fleet.watch(place, run, windows)
            series |= {f"{count}: {part}": found[part] for part in (CPU, WHOLE, MEMORY)}
    yield Result(NAME, machine.today(), here, SETTINGS, series)


def full() -> Mapping[str, Full]:
    parts = {CPU: WINDOWS, MEMORY: WINDOWS, WHOLE: None}
    series = {f"{count}: {part}": values for count in COUNTS for part, values in parts.items()}
    return {NAME: Full(SETTINGS, series)}


def checks(results: Mapping[str, Result]) -> list[Check]:
    series, last = results[NAME].series, COUNTS[-1]
    first = median(series[f"{COUNTS[0]}: {CPU}"])
    grown = [round(sery / first, 3) for sery in series[f"{last}: {CPU}"]]
    what = f"supervisor at work, {last:,} attempts to none"
    return [check(what, grown, TARGET, "times as much", _WHY)]


def section(results: Mapping[str, Result]) -> list[str]:
    result = results[NAME]
    lines = ["## A supervisor after a long history", "", _ABOUT, ""]
    for part, unit in ((CPU, "% of a core"), (WHOLE, "ms from grader ended to SIGINT"), (MEMORY, "MB")):
        rows = [table.row(f"{count:,}", result.series[f"{count}: {part}"]) for count in COUNTS]
        lines += [*table.head(unit, "attempts"), *rows, ""]
    return [*lines, table.origin(result)]


_ABOUT = f"""{AGENTS} agents that submit in turn, one every {PACE:g} seconds, under a supervisor that was resumed after
so many attempts; they are made up, but everywhere where a run keeps them. The share of a core is the time that the
supervisor's process computed in {WINDOW:g} seconds, git apart."""

_WHY = "Something is gone through that grows: compare what it does at each length with a profiler."
