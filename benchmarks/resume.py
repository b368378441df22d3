"""Measures how long it takes to open a run with a long history, which a supervisor reads before its first decision."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import replace

from benchmarks import history, machine, table
from benchmarks.arena import Started, agents_run, arena
from benchmarks.benchmark import Ask, Full
from benchmarks.figure import Check, Target, check
from benchmarks.results import Result
from coral.fleet.events import Moment, OutputSeen
from coral.journal import Journal
from coral.supervisor.loop import Supervisor

NAME = "resume"
TARGET = Target(median=1000)
COUNTS, QUICK_COUNTS = (10_000, 100_000, 1_000_000), (1_000, 5_000)
PER_ATTEMPT = 20  # events; nearly all of them say that an agent printed something
AGENTS = 4
REPEATS, QUICK_REPEATS = 20, 3
SETTINGS = {"agents": AGENTS, "per attempt": PER_ATTEMPT}


def measure(ask: Ask) -> Iterable[Result]:
    here, series = machine.here(), dict[str, list[float]]()
    counts, repeats = (QUICK_COUNTS, QUICK_REPEATS) if ask.quick else (COUNTS, REPEATS)
    with arena() as place:
        run = place.start(place.small_task(), "agents.runtime=command", agents_run("up.sh"), f"agents.count={AGENTS}")
        place.stop(run)
        before = 0
        for count in counts:
            ask.say(f"opening a run of {count:,} events")
            history.fill(run, count // PER_ATTEMPT, AGENTS)
            _hear(run, count - before)
            before = count
            series[str(count)] = [_open(run) for _ in range(repeats)]
    yield Result(NAME, machine.today(), here, SETTINGS, series)


def full() -> Mapping[str, Full]:
    series = {str(count): REPEATS for count in COUNTS}
    return {NAME: Full(SETTINGS, series)}


def checks(results: Mapping[str, Result]) -> list[Check]:
    longest = COUNTS[-1]
    return [check(f"opening a run of {longest:,} events", results[NAME].series[str(longest)], TARGET, "ms", _WHY)]


def section(results: Mapping[str, Result]) -> list[str]:
    result = results[NAME]
    lines = ["## Resuming a run", "", _ABOUT, "", *table.head("ms")]
    lines += [table.row(f"{count:,} events", result.series[str(count)]) for count in COUNTS]
    return [*lines, "", table.origin(result)]


_ABOUT = f"""Journal, ledger and standings read, threads and watches made: all that a supervisor does before it looks
at what still runs. The history is made up, one attempt for {PER_ATTEMPT} events; the interpreter and its imports
are not counted."""

_WHY = "Only the newest file of the journal is read, 8 MB after its head, and as few records as tell the standings."


def _hear(run: Started, count: int) -> None:
    """Add `count` lines to the journal, each about an agent that printed something."""
    with closing(Journal(run.layout.journal)) as journal:
        fleet, now = journal.recovered.fleet, Moment(run_time=journal.recovered.clock, wall_time=journal.recovered.wall)
        names = list(fleet.agents)
        for number in range(count):
            agent = fleet.agents[names[number % AGENTS]]
            busy = f"tool {number}"
            after = replace(fleet, agents={**fleet.agents, agent.name: replace(agent, activity=busy)})
            journal.record(
                now,
                [OutputSeen(agent=agent.name, launch=agent.launch, has_prompt=True, activity=busy)],
                (),
                fleet,
                after,
            )
            fleet = after


def _open(run: Started) -> float:
    seed = (run.layout.private / "seed").read_text().strip()
    began = time.perf_counter_ns()
    manager = Supervisor(run.layout, seed)
    took = round((time.perf_counter_ns() - began) / 1e6, 3)
    manager.close()
    return took
