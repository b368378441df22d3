"""Measures what signs of life cost the work that reports them: updates of a `Pulse` in a tight loop, and its beats."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmarks import machine, table
from benchmarks.benchmark import Ask, Full
from benchmarks.figure import Check, Target, check, summarize
from benchmarks.results import Result
from heartbeats import Pulse

NAME = "pulse"
UPDATES, RATE = 100_000, 100_000  # in each value of the first series; in a second, in the other
UPDATE, BEATS = "one update, microseconds", "beats in a second of 100,000 updates"
FULL, QUICK = 20, 2
WHY = "An update must only note what is new; everything else belongs to the thread of the pulse."


def measure(ask: Ask) -> Iterable[Result]:
    count = QUICK if ask.quick else FULL
    series: dict[str, list[float]] = {UPDATE: [], BEATS: []}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            ask.say(f"pulse {number + 1} of {count}")
            series[UPDATE].append(_microseconds(Path(folder)))
            series[BEATS].append(_beats_of_a_second(Path(folder) / f"{number}.beats"))
    yield Result(NAME, machine.today(), machine.here(), {"updates": UPDATES}, series)


def full() -> Mapping[str, Full]:
    return {NAME: Full({"updates": UPDATES}, {UPDATE: FULL, BEATS: FULL})}


def checks(results: Mapping[str, Result]) -> list[Check]:
    series = results[NAME].series
    return [
        check("pulse, one update", series[UPDATE], Target(median=1.0), "µs", WHY),
        check("pulse, beats of 100,000 updates a second", series[BEATS], Target(median=6), "beats", WHY),
    ]


def section(results: Mapping[str, Result]) -> list[str]:
    result = results[NAME]
    lines = ["## Signs of life", "", _ABOUT, "", "| | median | p90 |", "|---|---:|---:|"]
    for name, values in result.series.items():
        found = summarize(values)
        lines.append(f"| {name} | {found.median:.2g} | {found.p90:.2g} |")
    return [*lines, "", table.origin(result)]


_ABOUT = """The work calls `Pulse.update` with a step and a message; a thread of the pulse's own writes to a file. The
time is that of the work's own thread: at 100,000 updates a second it is a hundredth of a core for each tenth of a
microsecond. The beats are those that the file has after one second, the first and the last included."""


def _microseconds(folder: Path) -> float:
    with Pulse("bench", total=UPDATES, to=folder / "beats", checkpoint=folder / "kept") as pulse:
        began = time.thread_time()
        for step in range(UPDATES):
            pulse.update(step, message="at work")
        return (time.thread_time() - began) * 1e6 / UPDATES


def _beats_of_a_second(path: Path) -> float:
    with Pulse("bench", total=RATE, to=path, checkpoint=path.with_suffix(".kept")) as pulse:
        began = time.monotonic()
        for step in range(RATE):
            pulse.update(step, message="at work")
            if step % 100 == 0:
                time.sleep(max(began + step / RATE - time.monotonic(), 0.0))
    return float(len(path.read_bytes().splitlines()))
