"""Measures how long commands that look at a run take, with longer and longer histories and more and more agents.

The time is that of the whole command.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks import history, idle, machine, table
from benchmarks.arena import CORAL, Started, agents_run, arena
from benchmarks.benchmark import Ask, Full
from benchmarks.figure import Check, Target, check
from benchmarks.results import Result
from workspace.frontmatter import Value
from workspace.knowledge import write_note

NAME = "looking"
TARGET = Target(median=150)
COUNTS, QUICK_COUNTS = (0, 1_000, 10_000, 100_000), (0, 100, 1_000)
NOTES, QUICK_NOTES = (100, 1_000, 5_000), (100,)
MANY = 1_000  # notes, for which the target of a search holds
FLEETS, QUICK_FLEETS = (1, 16, 100, 500), (1, 4)
IN_FLEET, QUICK_IN_FLEET = 10_000, 100  # attempts of such a fleet
REPEATS, QUICK_REPEATS = 15, 3
LAST = "LAST"  # stands for the number of the last attempt
COMMANDS = {
    "coral status": ("status",),
    "coral runs": ("runs",),
    "coral log": ("log",),
    "coral log --recent": ("log", "--recent"),
    "coral log --search boundary": ("log", "--search", "boundary"),
    "coral show N": ("show", LAST),
}
OF_FLEET = ("coral status", "coral log")  # commands that are also measured with more and more agents
SEARCH = ("notes", "--search", "half 77.")
IN_SIGHT = ("runs",)  # commands that take no run
FIRST = "the first look"
WHY = "Most of it is the interpreter and its imports: compare the times at 0 attempts."


def measure(ask: Ask) -> Iterable[Result]:
    here, series = machine.here(), dict[str, list[float]]()
    repeats = QUICK_REPEATS if ask.quick else REPEATS
    with arena() as place:
        run = place.start(place.small_task(), "agents.runtime=command", agents_run("up.sh"))
        time.sleep(1)  # until the supervisor has written its view
        place.stop(run)
        for count in QUICK_COUNTS if ask.quick else COUNTS:
            ask.say(f"looking at {count:,} attempts")
            history.fill(run, count, agents=4)
            # Records that no supervisor added to the index are read by the first command: here, all of them at once.
            series[f"{count}: {FIRST}"] = [_time(("log",), run, count)]
            # In turn: what slows the machine down for a while slows all commands.
            for _ in range(repeats):
                for name, words in COMMANDS.items():
                    series.setdefault(f"{count}: {name}", []).append(_time(words, run, count))
        for notes in QUICK_NOTES if ask.quick else NOTES:
            ask.say(f"searching {notes:,} notes")
            write_notes(run, notes)
            series[_notes(notes)] = [_time(SEARCH, run, count) for _ in range(repeats)]
    for agents in QUICK_FLEETS if ask.quick else FLEETS:
        ask.say(f"looking at {agents} agents")
        series |= _of_fleet(agents, QUICK_IN_FLEET if ask.quick else IN_FLEET, repeats)
    yield Result(NAME, machine.today(), here, {}, series)


def full() -> Mapping[str, Full]:
    series = {f"{count}: {name}": REPEATS for count in COUNTS for name in COMMANDS}
    series |= {f"{count}: {FIRST}": 1 for count in COUNTS} | {_notes(count): REPEATS for count in NOTES}
    series |= {_fleet(agents, name): REPEATS for agents in FLEETS for name in OF_FLEET}
    return {NAME: Full({}, series)}


def checks(results: Mapping[str, Result]) -> list[Check]:
    series, longest = results[NAME].series, COUNTS[-1]
    aims = {f"`{name}` at {longest:,} attempts": f"{longest}: {name}" for name in COMMANDS}
    aims |= {f"`{name}` with {FLEETS[-1]} agents": _fleet(FLEETS[-1], name) for name in OF_FLEET}
    aims[f"`coral notes --search` at {longest:,} attempts and {MANY:,} notes"] = _notes(MANY)
    return [check(what, series[key], TARGET, "ms", WHY) for what, key in aims.items() if key in series]


def section(results: Mapping[str, Result]) -> list[str]:
    result = results[NAME]
    rows = {f"{n}: {name}": f"`{name}`, {n:,} attempts" for name in COMMANDS for n in COUNTS}
    rows |= {f"{n}: {FIRST}": f"{FIRST}, {n:,} attempts" for n in COUNTS}
    rows |= {_fleet(n, name): f"`{name}`, {n} agent{'s' if n > 1 else ''}" for name in OF_FLEET for n in FLEETS}
    rows |= {_notes(n): f"`coral notes --search`, {n:,} notes, {COUNTS[-1]:,} attempts" for n in NOTES}
    return [
        *("## Looking at a run", "", _ABOUT, "", *table.head("ms")),
        *table.rows(rows, result),
        *("", table.origin(result)),
    ]


_ABOUT = f"""The wall time of the whole command in a run that has stopped. The records are made up, one file each like
real ones. A supervised run has its index up to date at all times; the first look at records that are all new to it
reads every one. A note has some two hundred words, and a search finds one in a hundred. It has no index, so that its
time grows with the notes, unlike with the attempts: what it should take is said for a thousand notes. Where the number
of agents is named, the run is live and has had {IN_FLEET:,} attempts, and its agents sleep after their first line."""


def _notes(count: int) -> str:
    return f"{count} notes: search"


def _fleet(agents: int, name: str) -> str:
    return f"{agents} agents: {name}"


def _of_fleet(agents: int, attempts: int, repeats: int) -> dict[str, list[float]]:
    """Measure commands on a run that goes on: they show more of an agent that runs than of one that has stopped."""
    series: dict[str, list[float]] = {}
    with arena() as place:
        run = idle.start(place, agents)
        idle.resume(place, run, agents, attempts)
        for _ in range(repeats):
            for name in OF_FLEET:
                series.setdefault(_fleet(agents, name), []).append(_time(COMMANDS[name], run, attempts))
    return series


def write_notes(run: Started, count: int) -> None:
    start = datetime(2030, 1, 1, tzinfo=UTC)
    for number in range(count):
        front: dict[str, Value] = {
            "title": f"What attempt {number} says of the boundary",
            "author": f"agent-{number % 4 + 1}",
            "created": (start + timedelta(seconds=number)).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "attempts": [number],
        }
        body = "The second half is worse than the first.\n" * 20 + f"It has lost {number}."
        write_note(run.layout.shared, f"reflection-{number}", front, body)


def _time(words: tuple[str, ...], run: Started, last: int) -> float:
    given = [str(last) if word == LAST else word for word in words]
    folder: Path = run.layout.root
    command = [*CORAL, *given, *([] if words == IN_SIGHT else ["--run", str(folder)])]
    began = time.perf_counter_ns()
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=True)
    return round((time.perf_counter_ns() - began) / 1e6, 3)
