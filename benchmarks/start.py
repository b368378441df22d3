"""Measures the time from `coral start --detach` to the first lines of its agents.

`coral start` prints each of its steps as it begins; the supervisor and the agents note when they began.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from benchmarks import machine, table
from benchmarks.arena import Arena, BenchmarkError, Started, agents_run, arena, ms, wait_until
from benchmarks.benchmark import Ask, Full
from benchmarks.figure import Check, Target, check
from benchmarks.results import Result
from coral.journal import read_lines

NAME = "start"
AGENTS, REPEATS = (1, 16), 20
FIRST, LAST = "first", "last"
PARTS = {
    "load": "interpreter, task read and checked",
    "seed": "hub made from the seed",
    "grade": "seed graded, while clones are made",
    "prepare": "workspaces of the agents finished",
    "supervise": "supervisor forked, its folder and journal opened",
    "agents": "agents started, until the first one's first line",
}
TARGETS = {1: (FIRST, Target(median=500)), 16: (LAST, Target(median=900))}
WHAT = {1: "start: first line of the first agent", 16: "start: first line of the last of 16 agents"}
WHY = "Compare its parts: four fifths are imports, and git and the grader are waited for meanwhile."


def measure(ask: Ask) -> Iterable[Result]:
    here, series = machine.here(), dict[str, list[float]]()
    repeats = 1 if ask.quick else REPEATS
    # In turn: what slows the machine for a while slows both.
    for turn in range(1, repeats + 1):
        ask.say(f"starting {' and '.join(map(str, AGENTS))} agents, {turn} of {repeats} times")
        for agents in AGENTS:
            with arena() as place:
                for part, value in _run(place, agents).items():
                    series.setdefault(f"{agents}: {part}", []).append(value)
    yield Result(NAME, machine.today(), here, {}, series)


def full() -> Mapping[str, Full]:
    series = {f"{agents}: {part}": REPEATS for agents in AGENTS for part in (FIRST, LAST, *PARTS)}
    return {NAME: Full({}, series)}


def checks(results: Mapping[str, Result]) -> list[Check]:
    series = results[NAME].series
    return [
        check(WHAT[agents], series[f"{agents}: {moment}"], target, "ms", WHY)
        for agents, (moment, target) in TARGETS.items()
    ]


def section(results: Mapping[str, Result]) -> list[str]:
    result = results[NAME]
    lines = ["## Starting a run", "", _ABOUT, "", *table.head("ms")]
    for agents in AGENTS:
        label = "1 agent" if agents == 1 else f"{agents} agents"
        lines.append(table.row(f"**{label}, first line of the first**", result.series[f"{agents}: {FIRST}"]))
        lines += [table.row(f"... {text}", result.series[f"{agents}: {part}"]) for part, text in PARTS.items()]
        if agents > 1:
            lines.append(table.row(f"**{label}, first line of the last**", result.series[f"{agents}: {LAST}"]))
    return [*lines, "", table.origin(result)]


_ABOUT = """From the start of the command `coral start --detach` until agents have printed their first line. The
agents are shell scripts that print it at once, all started in the same moment (`agents.stagger: 0`); the repository has
thirty small files and the grader is instant."""


def _run(place: Arena, agents: int) -> dict[str, float]:
    fleet = ("agents.runtime=command", agents_run("up.sh"), f"agents.count={agents}", "agents.stagger=0")
    run = place.start(place.small_task(), *fleet)
    wait_until(lambda: len(_noted(place.notes)) == agents, 60, f"the first line of {agents} agents")
    moments = _moments(run, place.notes)
    parts = [ms(after - before) for before, after in pairwise(moments)]
    first, last = ms(moments[-1] - run.began), ms(max(_noted(place.notes)) - run.began)
    return {FIRST: first, LAST: last, **dict(zip(PARTS, parts, strict=True))}


def _moments(run: Started, notes: Path) -> list[int]:
    """Return when each part began, and when the last one ended, in nanoseconds of the wall clock."""
    opened = next(read_lines(run.layout.journal))["wall"]
    return [
        run.began,
        _said(run, "taking in the seed"),
        _said(run, "grading the seed"),
        _said(run, "preparing agent-1"),
        # The last thing that is made for an agent; standard output says the rest too late, being buffered.
        max((clone / "AGENTS.md").stat().st_mtime_ns for clone in run.layout.agents.iterdir()),
        int(datetime.fromisoformat(opened).timestamp() * 1e9),
        min(_noted(notes)),
    ]


def _noted(notes: Path) -> list[int]:
    """Return the times that agents have noted, without files that are still empty."""
    return [int(text) for path in notes.glob("up-*") if (text := path.read_text().strip())]


def _said(run: Started, start: str) -> int:
    for moment, line in run.lines:
        if line.startswith(start):
            return moment
    raise BenchmarkError(f"coral start did not say {start!r}")
