"""How long `coral log` and `coral status` take, with no history and with a long one."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterable, Mapping

from benchmarks import history, machine, table
from benchmarks.arena import CORAL, agents_run, arena
from benchmarks.benchmark import Ask
from benchmarks.figure import Check, Target, check
from benchmarks.results import Result

NAME = "looking"
TARGET = Target(median=150)
COUNTS, QUICK_COUNTS = (0, 1_000, 100_000), (0, 100, 1_000)
COMMANDS = {
    "coral status": ("status",),
    "coral log --recent": ("log", "--recent"),
    "coral log": ("log",),
}
WHY = {
    "coral status": "It reads a view that the supervisor keeps; what takes time is the interpreter and its imports.",
    "coral log --recent": "Records are found by the names of all files in their folder.",
    "coral log": "The best are found by reading every record; an index that spares it that is still to come.",
}


def measure(ask: Ask) -> Iterable[Result]:
    here, series = machine.here(), dict[str, list[float]]()
    # At the longest history a few: where every record is read, one takes many seconds.
    repeats = dict.fromkeys(QUICK_COUNTS, 3) if ask.quick else {count: 5 if count > 10_000 else 15 for count in COUNTS}
    with arena() as place:
        run = place.start(place.small_task(), "agents.runtime=command", agents_run("up.sh"))
        time.sleep(1)  # until the supervisor has written its view
        place.stop(run)
        for count, times in repeats.items():
            ask.say(f"looking at {count:,} attempts")
            history.fill(run, count, agents=4)
            for name, words in COMMANDS.items():
                command = [*CORAL, *words, "--run", str(run.layout.root)]
                series[f"{count}: {name}"] = [_time(command) for _ in range(times)]
    yield Result(NAME, machine.today(), here, {}, series)


def checks(results: Mapping[str, Result]) -> list[Check]:
    series, longest = results[NAME].series, COUNTS[-1]
    return [
        check(f"`{name}` at {longest:,} attempts", series[f"{longest}: {name}"], TARGET, "ms", WHY[name])
        for name in COMMANDS
    ]


def section(results: Mapping[str, Result]) -> list[str]:
    result = results[NAME]
    lines = ["## Looking at a run", "", _ABOUT, "", *table.head("ms")]
    for name in COMMANDS:
        for count in COUNTS:
            lines.append(table.row(f"`{name}`, {count:,} attempts", result.series[f"{count}: {name}"]))
    return [*lines, "", table.origin(result)]


_ABOUT = """The wall time of the whole command in a run that has stopped. The records are made up, one file each like
real ones, and have been read once before."""


def _time(command: list[str]) -> float:
    began = time.perf_counter_ns()
    subprocess.run(command, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=True)
    return round((time.perf_counter_ns() - began) / 1e6, 3)
