"""How long `coral log` and `coral status` take, with no history and with a long one."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmarks import history, machine, table
from benchmarks.arena import CORAL, agents_run, arena
from benchmarks.benchmark import Ask
from benchmarks.figure import Check, Target, check
from benchmarks.results import Result

NAME = "looking"
TARGET = Target(median=150)
COUNTS, QUICK_COUNTS = (0, 1_000, 10_000, 100_000), (0, 100, 1_000)
COMMANDS = {
    "coral status": ("status",),
    "coral runs": ("runs",),
    "coral log": ("log",),
    "coral log --recent": ("log", "--recent"),
    "coral log --search boundary": ("log", "--search", "boundary"),
    "coral show 0": ("show", "0"),
}
IN_SIGHT = ("runs",)  # commands that take no run
IMPORTS = "What takes time is the interpreter and its imports."


def measure(ask: Ask) -> Iterable[Result]:
    here, series = machine.here(), dict[str, list[float]]()
    repeats = dict.fromkeys(QUICK_COUNTS, 3) if ask.quick else dict.fromkeys(COUNTS, 15)
    with arena() as place:
        run = place.start(place.small_task(), "agents.runtime=command", agents_run("up.sh"))
        time.sleep(1)  # until the supervisor has written its view
        place.stop(run)
        for count, times in repeats.items():
            ask.say(f"looking at {count:,} attempts")
            history.fill(run, count, agents=4)
            # Records that no supervisor told the index of are read by the first who asks; here they come all at once.
            series[f"{count}: index made anew"] = [_time([*CORAL, "log", "--run", str(run.layout.root)])]
            for name, words in COMMANDS.items():
                command = [*CORAL, *words, *([] if words == IN_SIGHT else ["--run", str(run.layout.root)])]
                series[f"{count}: {name}"] = [_time(command, run.layout.root) for _ in range(times)]
    yield Result(NAME, machine.today(), here, {}, series)


def checks(results: Mapping[str, Result]) -> list[Check]:
    series, longest = results[NAME].series, COUNTS[-1]
    return [
        check(f"`{name}` at {longest:,} attempts", series[f"{longest}: {name}"], TARGET, "ms", IMPORTS)
        for name in COMMANDS
    ]


def section(results: Mapping[str, Result]) -> list[str]:
    result = results[NAME]
    lines = ["## Looking at a run", "", _ABOUT, "", *table.head("ms")]
    for name in COMMANDS:
        for count in COUNTS:
            lines.append(table.row(f"`{name}`, {count:,} attempts", result.series[f"{count}: {name}"]))
    lines += [table.row(f"the first look, {n:,} attempts", result.series[f"{n}: index made anew"]) for n in COUNTS]
    return [*lines, "", table.origin(result)]


_ABOUT = """The wall time of the whole command in a run that has stopped. The records are made up, one file each like
real ones. A run that was supervised all along has its index up to date; the first look at records that are new to it
reads them all."""


def _time(command: list[str], cwd: Path | None = None) -> float:
    began = time.perf_counter_ns()
    subprocess.run(command, cwd=cwd, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=True)
    return round((time.perf_counter_ns() - began) / 1e6, 3)
