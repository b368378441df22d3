"""From `coral start --detach` to the first line of the last agent.

`coral start` says each of its steps as it begins; the supervisor and the agents note when they began.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from benchmarks import machine, table
from benchmarks.arena import Arena, BenchmarkError, Started, agents_run, arena, ms, wait_until
from benchmarks.benchmark import Ask, Full
from benchmarks.figure import Check
from benchmarks.results import Result
from coral.fleet.rules import Rules
from coral.journal import read_lines

NAME = "startup"
AGENTS, REPEATS = (1, 4, 16), 10
WHOLE = "whole"
PARTS = {
    "load": "interpreter, task read and checked",
    "seed": "hub made from the seed",
    "grade": "seed graded",
    "clones": "workspaces of the agents made",
    "supervise": "supervisor started",
    "agents": "agents started, until the last one's first line",
}


def measure(ask: Ask) -> Iterable[Result]:
    here, series = machine.here(), dict[str, list[float]]()
    repeats = 1 if ask.quick else REPEATS
    # In turn: what slows the machine for a while slows all three.
    for turn in range(1, repeats + 1):
        ask.say(f"starting {', '.join(map(str, AGENTS))} agents, {turn} of {repeats} times")
        for agents in AGENTS:
            with arena() as place:
                for part, value in _run(place, agents).items():
                    series.setdefault(f"{agents}: {part}", []).append(value)
    yield Result(NAME, machine.today(), here, {}, series)


def full() -> Mapping[str, Full]:
    series = {f"{agents}: {part}": REPEATS for agents in AGENTS for part in (WHOLE, *PARTS)}
    return {NAME: Full({}, series)}


def checks(_: Mapping[str, Result]) -> list[Check]:
    return []  # no target is set


def section(results: Mapping[str, Result]) -> list[str]:
    result = results[NAME]
    lines = ["## Starting a run", "", _ABOUT, "", *table.head("ms")]
    for agents in AGENTS:
        label = "1 agent" if agents == 1 else f"{agents} agents"
        lines.append(table.row(f"**{label}**", result.series[f"{agents}: {WHOLE}"]))
        lines += [table.row(f"... {text}", result.series[f"{agents}: {part}"]) for part, text in PARTS.items()]
    return [*lines, "", table.origin(result)]


_ABOUT = f"""From the start of the command `coral start --detach` until every agent has printed its first line.
The agents are shell scripts that print it at once; the repository has thirty small files and the grader is
instant. Agents are started {1000 * Rules().stagger:g} ms apart on purpose, so that a large fleet does not start
its programs all at once: the last of 16 waits {1000 * Rules().stagger * 15:g} ms for its turn."""


def _run(place: Arena, agents: int) -> dict[str, float]:
    run = place.start(place.small_task(), "agents.runtime=command", agents_run("up.sh"), f"agents.count={agents}")
    wait_until(lambda: len(_noted(place.notes)) == agents, 60, f"the first line of {agents} agents")
    moments = _moments(run, place.notes)
    parts = [ms(after - before) for before, after in pairwise(moments)]
    return {WHOLE: ms(moments[-1] - moments[0]), **dict(zip(PARTS, parts, strict=True))}


def _moments(run: Started, notes: Path) -> list[int]:
    """When each part began, and when the last one ended, in nanoseconds."""
    opened = next(read_lines(run.layout.journal))["wall"]
    return [
        run.began,
        _said(run, "taking in the seed"),
        _said(run, "grading the seed"),
        _said(run, "preparing agent-1"),
        # The last thing that is made for an agent; standard output says the rest too late, being buffered.
        max((clone / "AGENTS.md").stat().st_mtime_ns for clone in run.layout.agents.iterdir()),
        int(datetime.fromisoformat(opened).timestamp() * 1e9),
        max(_noted(notes)),
    ]


def _noted(notes: Path) -> list[int]:
    """The times that agents have noted; a file that is still empty is one to come."""
    return [int(text) for path in notes.glob("up-*") if (text := path.read_text().strip())]


def _said(run: Started, start: str) -> int:
    for moment, line in run.lines:
        if line.startswith(start):
            return moment
    raise BenchmarkError(f"coral start did not say {start!r}")
