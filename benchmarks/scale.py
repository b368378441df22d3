"""Measures how large a fleet one supervisor can decide for: the decisions and the journal, without real agents.

Agents and graders are made up: agents act at once, and a grade takes a second. Decisions and the journal are the real
ones. The fleet's clock advances by the CPU time that each turn takes, and jumps while nothing happens, so that a
supervisor that is too slow falls behind as a real one would. Records, index and git are left out.
"""

from __future__ import annotations

import gzip
import heapq
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import psutil

from attempts.noise import NoiseSetting
from attempts.progress import Progress
from attempts.record import Attempt, Kind, Submission, Verdict
from attempts.standing import KEPT, Measured, Scoring
from benchmarks import fleet, history, machine, table
from benchmarks.arena import arena
from benchmarks.benchmark import Ask, Full
from benchmarks.figure import Check, Target, check
from benchmarks.results import Result
from coral.fleet import actions as do, events as on
from coral.fleet.agent_state import OutputCounts
from coral.fleet.decide import decide, next_deadline
from coral.fleet.events import Ending, Outcome
from coral.fleet.rules import Rules
from coral.fleet.run_state import Fleet
from coral.journal import Journal

NAME = "scale"
PACE = 600.0  # seconds between two attempts of an agent
GRADE = 1.0  # seconds
SLOTS = 4_000  # for grades, as of a cluster of a thousand nodes with four each
AGENTS, QUICK_AGENTS = (100, 1_000, 10_000), (100,)
HISTORIES, QUICK_HISTORIES = (0, 10_000_000), (10_000_000,)
ATTEMPTS, QUICK_ATTEMPTS = 1_000, 100
SETTINGS = {"pace": PACE, "grade": GRADE, "slots": SLOTS, "attempts": ATTEMPTS}
CORE, EACH, LATENCY, MEMORY = "core", "each", "latency", "memory"
BYTES, PACKED, HEAD = "bytes", "packed", "head"
UNITS = {
    CORE: "share of a core (%)",
    EACH: "CPU for an attempt (ms)",
    LATENCY: "grader ended to SIGINT (ms)",
    BYTES: "journal for an attempt (bytes)",
    PACKED: "the same once its file is packed (bytes)",
    HEAD: "the fleet as a journal's first line (kB)",
    MEMORY: "memory (MB)",
}
FILLED, QUICK_FILLED = 20_000, 1_000  # attempts of a run on a disk
DISK = {  # what one attempt takes on the disk, in bytes
    "disk records": "its record (whole blocks of the file system)",
    "disk index": "its row in the index",
    "disk ledger": "its row in the ledger",
    "disk references": "its reference in the hub",
}
SEED = "5eed" * 10
FLAT = Target(median=2.0)


def measure(ask: Ask) -> Iterable[Result]:
    here, series = machine.here(), dict[str, list[float]]()
    for agents in QUICK_AGENTS if ask.quick else AGENTS:
        for earlier in QUICK_HISTORIES if ask.quick else HISTORIES:
            ask.say(f"{agents:,} agents after {earlier:,} attempts")
            attempts = QUICK_ATTEMPTS if ask.quick else ATTEMPTS
            # In a process of its own, whose memory is this fleet's alone.
            command = [sys.executable, "-m", "benchmarks.scale", *map(str, (agents, earlier, attempts))]
            printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            for line in printed.splitlines():
                name, _, values = line.partition(" ")
                series[f"{agents} {earlier} {name}"] = [float(value) for value in values.split()]
    ask.say("the files of a run")
    series |= _on_disk(QUICK_FILLED if ask.quick else FILLED)
    yield Result(NAME, machine.today(), here, SETTINGS, series)


def full() -> Mapping[str, Full]:
    settings = [f"{agents} {earlier}" for agents in AGENTS for earlier in HISTORIES]
    return {
        NAME: Full(SETTINGS, {f"{one} {name}": None for one in settings for name in UNITS} | dict.fromkeys(DISK, 1))
    }


def checks(results: Mapping[str, Result]) -> list[Check]:
    series = results[NAME].series
    first, last = (series[f"1000 {earlier} {EACH}"][0] for earlier in HISTORIES)
    return [check("decisions for an attempt of 1,000 agents, after ten million", [last / first], FLAT, "times", _WHY)]


def section(results: Mapping[str, Result]) -> list[str]:
    result = results[NAME]
    lines = ["## Fleets that nobody has run yet", "", _ABOUT, ""]
    for name, unit in UNITS.items():
        lines += table.head(unit, "agents, after attempts")
        labels = {
            f"{agents} {earlier} {name}": f"{agents:,}, {earlier:,}" for agents in AGENTS for earlier in HISTORIES
        }
        lines += [*table.rows(labels, result), ""]
    lines += [*table.head("bytes on the disk", "of one attempt"), *table.rows(DISK, result), ""]
    return [*lines, table.origin(result)]


_ABOUT = f"""Decisions and journal alone, with made-up agents that each submit every {PACE:g} seconds and are
interrupted after every attempt; a grade takes {GRADE:g} s, {SLOTS:,} at once. [How far one run goes](scale.md) says
what follows."""

_WHY = "Of all attempts the fleet keeps the ten highest of each agent: whatever else grows with a run is too much."


def _on_disk(attempts: int) -> dict[str, list[float]]:
    """Measure the bytes that an attempt takes on the disk, in a run with `attempts` of them, without its commit."""
    with arena() as place:
        run = fleet.start(place, 4)
        place.stop(run)
        history.fill(run, attempts, 4)
        history.index(run)
        records = sum(file.stat().st_blocks * 512 for file in run.layout.attempts.glob("*.json"))
        index, references = run.layout.attempts / "index.sqlite", run.layout.hub / "packed-refs"
        sizes = (records, index.stat().st_size, run.layout.ledger.stat().st_size, references.stat().st_size)
    return {name: [size / attempts] for name, size in zip(DISK, sizes, strict=True)}


@dataclass
class _World:
    """Carries out every action of the fleet at once. `coming`: a heap of future events, as (time, number, event)."""

    rules: Rules
    journal: Journal
    fleet: Fleet = field(default_factory=Fleet)
    clock: float = 0.0
    computed: float = 0.0  # seconds of CPU
    published: int = 0
    coming: list[tuple[float, int, on.Event]] = field(default_factory=list)
    places: Iterator[int] = field(default_factory=count)
    ended_at: dict[str, float] = field(default_factory=dict)  # by author: when the grader of its attempt ended
    latencies: list[float] = field(default_factory=list)  # milliseconds

    def expect(self, event: on.Event, at: float) -> None:
        heapq.heappush(self.coming, (at, next(self.places), event))

    def turn(self) -> None:
        """Make one turn of the loop at the next event or deadline. The clock advances by the CPU time that it takes."""
        due = next_deadline(self.fleet, self.clock, self.rules)
        times = [time for time in (due, self.coming[0][0] if self.coming else None) if time is not None]
        self.clock = max(self.clock, min(times, default=self.clock))
        events, ended = list[on.Event](), dict[int, float]()
        while self.coming and self.coming[0][0] <= self.clock:
            at, _, event = heapq.heappop(self.coming)
            events.append(event)
            if isinstance(event, on.Graded):
                ended[event.number] = at
        now, began = on.Moment(run_time=self.clock, wall_time="2030-01-01T00:00:00Z"), time.process_time()
        before, (self.fleet, actions) = self.fleet, decide(self.fleet, events, now, self.rules)
        if events or actions:
            self.journal.record(now, events, actions, before, self.fleet)
        next_deadline(self.fleet, self.clock, self.rules)
        spent = time.process_time() - began
        self.computed += spent
        self.clock += spent
        for action in actions:
            if isinstance(action, do.Publish) and action.attempt.number in ended:
                self.ended_at[action.attempt.agent] = ended[action.attempt.number]
        for action in actions:
            self._perform(action)

    def _perform(self, action: do.Action) -> None:
        match action:
            case do.TakeIn(number=number):
                commit = f"{number:040x}"
                self.expect(on.TakenIn(number=number, commit=commit, tree=commit, parent=""), self.clock)
            case do.CheckOut(number=number, launch=launch):
                self.expect(on.CheckedOut(number=number, launch=launch), self.clock)
            case do.StartGrader(number=number, launch=launch):
                score = float(number * 7919 % 1000)
                graded = on.Graded(number=number, launch=launch, outcome=Outcome.SCORED, score=score)
                self.expect(graded, self.clock + GRADE)
            case do.Publish(attempt=attempt):
                self.published += 1
                self.expect(on.Published(number=attempt.number), self.clock)
            case do.Interrupt(who=agent, launch=launch):
                if (at := self.ended_at.pop(agent, None)) is not None:
                    self.latencies.append(1000 * (self.clock - at))
                self.expect(on.Exited(agent=agent, launch=launch, ending=Ending.INTERRUPTED), self.clock)
            case do.Spawn(agent=agent, launch=launch):
                self.expect(_first_output(agent, launch), self.clock)
            case do.Notify(id=id):
                self.expect(on.Notified(id=id), self.clock)
            case do.ScanEdits(agent=agent, launch=launch):
                self.expect(on.EditsScanned(agent=agent, launch=launch, edited=0.0), self.clock)
            case _:
                pass


def _first_output(agent: str, launch: int) -> on.OutputSeen:
    said = OutputCounts()
    return on.OutputSeen(
        agent=agent, launch=launch, has_prompt=True, session=agent, activity="", reply="", place=1, count=said
    )


def _baseline() -> Attempt:
    return Attempt(
        number=0, agent="", kind=Kind.BASELINE, commit=SEED, tree=SEED, parent="", title="the seed", submission="",
        submitted_at="", published_at="", order=0, verdict=Verdict.NEW_BEST, score=0.0,
    )  # fmt: skip


def _submission(number: int, agent: str) -> Submission:
    commit = f"{number:040x}"
    return Submission(
        id=f"{number:020d}", agent=agent, commit=commit, tree=commit, title="one more", kind=Kind.REAL, wait=0.0,
        submitted_at="",
    )  # fmt: skip


def _with_history(fleet: Fleet, attempts: int) -> Fleet:
    """Return the fleet as it is after `attempts` attempts: it counts all of them, and keeps the best of each agent."""
    names, each = list(fleet.agents), attempts // len(fleet.agents)
    numbers = range(attempts - KEPT * len(names) + 1, attempts + 1)
    measured = dict(fleet.measured)
    for number in numbers:
        commit, score = f"{number:040x}", 1000.0 - number / attempts
        measured[number] = Measured(
            number=number, agent=names[number % len(names)], commit=commit, tree=commit, parent=SEED,
            title=f"attempt {number}", scores=(score,),
        )  # fmt: skip
    own = Progress(evals=each, stagnant=3, graded=each)
    whole = Progress(evals=attempts, stagnant=len(numbers), graded=attempts)
    agents = {
        name: replace(agent, progress=own, submitted=each, targets=_later(agent.targets, each))
        for name, agent in fleet.agents.items()
    }
    run = replace(fleet.run, next_number=attempts + 1, order=attempts, progress=whole, best=numbers[0])
    return replace(fleet, run=replace(run, targets=_later(run.targets, attempts)), agents=agents, measured=measured)


def _later(targets: Mapping[str, float], attempts: int) -> dict[str, float]:
    return {name: target + attempts for name, target in targets.items()}


def drive(agents: int, earlier: int, attempts: int) -> dict[str, list[float]]:
    """Measure a fleet of `agents` that has made `earlier` attempts, while it makes `attempts` more; return the
    figures."""
    rules = Rules(seed_commit=SEED, slots=SLOTS, stagger=0.0, scoring=Scoring(noise=NoiseSetting(deviation=0.0)))
    names = tuple(f"agent-{number}" for number in range(1, agents + 1))
    with tempfile.TemporaryDirectory() as folder:
        path, moment = Path(folder) / "journal", on.Moment(run_time=0.0, wall_time="")
        world = _World(rules, Journal(path, long=1 << 40))
        world.journal.open_supervision(rules, moment, (1, 1))
        world.expect(on.Opened(run="run", agents=names, baseline=_baseline()), 0.0)
        while world.coming:
            world.turn()
        if earlier:
            before, world.fleet = world.fleet, _with_history(world.fleet, earlier)
            world.journal.record(replace(moment, run_time=world.clock), (), (), before, world.fleet)
        world.published, world.computed, began, written = 0, 0.0, world.clock, max(path.iterdir()).stat().st_size
        for number in range(attempts):
            submitted = on.Submitted(submission=_submission(number, names[number % agents]))
            world.expect(submitted, began + (number + 1) * PACE / agents)
        while world.published < attempts:
            world.turn()
        figures = {
            CORE: [100 * world.computed / (world.clock - began)],
            EACH: [1000 * world.computed / attempts],
            LATENCY: world.latencies,
            MEMORY: [psutil.Process().memory_info().rss / 1e6],
        }
        (file,) = path.iterdir()
        added = file.read_bytes()[written:]
        figures |= {BYTES: [len(added) / attempts], PACKED: [len(gzip.compress(added)) / attempts]}
        world.journal.begin_next()
        figures[HEAD] = [max(path.iterdir()).stat().st_size / 1000]
        world.journal.close()
    return figures


if __name__ == "__main__":
    for name, values in drive(*map(int, sys.argv[1:])).items():
        print(name, *values)
