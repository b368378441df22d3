"""Measures how long one `coral eval` takes an agent when grading itself costs nothing: in young, old and large runs.

The agent takes the time around the whole command; the submission, the grader and the record tell when each part ended.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from itertools import pairwise

from attempts.store import Store
from benchmarks import history, machine, table
from benchmarks.arena import Arena, BenchmarkError, Started, agents_run, agents_run_each, arena, ms, wait_until
from benchmarks.benchmark import Ask, Full
from benchmarks.figure import Check, Target, check, median
from benchmarks.results import Result

NAME = "eval"
TARGET = Target(median=80)
WHOLE = "whole"
PARTS = {
    "commit": "`coral eval` starts, commits, hands in",
    "start": "noticed, taken in, checked out, grader started",
    "grade": "the grader itself",
    "record": "its end noticed, decided, record written",
    "return": "`coral eval` sees the record, prints it, ends",
}
GRADERS = {
    "function": ("a Python function", ("grader.command=", "grader.entry=grade.py:grade")),
    "command": ("a command (a shell script)", ()),
}
WHY = "Compare its parts: most of it are processes - the interpreter twice, git a dozen times."
WHY_GROWN = "Compare the parts: what grew is what depends on the history."
# Attempts before those that are measured. What depends on them is the same for both graders: one has the longest.
PRIOR = {"function": (0, 1_000, 10_000, 100_000), "command": (0, 10_000)}
QUICK_PRIOR = (0, 50)
VALUES, QUICK_VALUES = 60, 8
# Agents in all, of which one submits. What depends on their number is the same for both graders.
FLEETS, QUICK_FLEETS = (16, 100, 500), (4,)
FLEET_VALUES, QUICK_FLEET_VALUES = 25, 4
SETTLING = 10.0  # seconds until the start of a fleet takes no more of the machine
SETTINGS = {"values": VALUES, "values in a fleet": FLEET_VALUES}
FLAT = Target(median=1.2)
RARE = "{name: reflect, every: 10}, {name: consolidate, every: 100}, {name: redirect, stagnant: 1000000}"


def measure(ask: Ask) -> Iterable[Result]:
    here, series = machine.here(), dict[str, list[float]]()
    count = QUICK_VALUES if ask.quick else VALUES
    for grader, (_, overrides) in GRADERS.items():
        with arena() as place:
            for prior, rows in _run(place, overrides, QUICK_PRIOR if ask.quick else PRIOR[grader], count, ask):
                series |= _series(f"{grader}, {prior}", rows)
    for agents in QUICK_FLEETS if ask.quick else FLEETS:
        with arena() as place:
            rows = _in_fleet(place, agents, QUICK_FLEET_VALUES if ask.quick else FLEET_VALUES, ask)
            series |= _series(_fleet(agents), rows)
    yield Result(NAME, machine.today(), here, SETTINGS, series)


def full() -> Mapping[str, Full]:
    keys = [f"{grader}, {prior}: {part}" for grader in GRADERS for prior in PRIOR[grader] for part in (WHOLE, *PARTS)]
    keys_in_fleet = [f"{_fleet(agents)}: {part}" for agents in FLEETS for part in (WHOLE, *PARTS)]
    series = dict.fromkeys(keys, VALUES) | dict.fromkeys(keys_in_fleet, FLEET_VALUES)
    return {NAME: Full(SETTINGS, series)}


def _series(kind: str, rows: list[dict[str, float]]) -> dict[str, list[float]]:
    return {f"{kind}: {part}": [row[part] for row in rows] for part in (WHOLE, *PARTS)}


def checks(results: Mapping[str, Result]) -> list[Check]:
    series = results[NAME].series
    found = [
        check(f"`coral eval`, {_label(grader, prior)}", series[key], TARGET, "ms", WHY)
        for grader in GRADERS
        for prior in (PRIOR[grader][0], PRIOR[grader][-1])
        if (key := f"{grader}, {prior}: {WHOLE}") in series
    ]
    for grader, (label, _) in GRADERS.items():
        first, last = (series.get(f"{grader}, {prior}: {WHOLE}") for prior in (PRIOR[grader][0], PRIOR[grader][-1]))
        if first and last:
            what = f"`coral eval`, {label}, {PRIOR[grader][-1]:,} attempts to none"
            grown = [round(seconds / median(first), 3) for seconds in last]
            found.append(check(what, grown, FLAT, "times as long", WHY_GROWN))
    return found


def section(results: Mapping[str, Result]) -> list[str]:
    result = results[NAME]
    kinds = {f"{grader}, {prior}": _label(grader, prior) for grader in GRADERS for prior in PRIOR[grader]}
    kinds |= {_fleet(agents): f"{_label('command', 0)}, {agents} agents" for agents in FLEETS}
    labels = {}
    for kind, label in kinds.items():
        labels[f"{kind}: {WHOLE}"] = f"**{label}**"
        labels |= {f"{kind}: {part}": f"... {text}" for part, text in PARTS.items()}
    return [
        *("## One `coral eval`", "", _ABOUT, "", *table.head("ms")),
        *table.rows(labels, result),
        *("", table.origin(result)),
    ]


def _label(grader: str, prior: int) -> str:
    return GRADERS[grader][0] + (f", after {prior:,} attempts" if prior else "")


def _fleet(agents: int) -> str:
    return f"command, {agents} agents"


_ABOUT = """One agent in a repository of thirty small files changes one of them and runs `coral eval -m ...`,
again and again. The figure is the wall time of the whole command, interpreter and all. Heartbeats are retimed
to come as rarely as the protected ones may (`reflect` every tenth attempt); evals that they interrupt are not
counted, for those end with the interrupt. The attempts before are made up, in every place where a run keeps one,
while it is stopped; then it is resumed. The graders take no time of their own. Where there
are more agents, the others sleep."""


def _run(
    place: Arena, overrides: tuple[str, ...], priors: tuple[int, ...], count: int, ask: Ask
) -> Iterable[tuple[int, list[dict[str, float]]]]:
    run = begin(place, overrides)
    for turn, prior in enumerate(priors):
        if prior:
            ask.say(f"making up {prior:,} attempts")
            place.stop(run)
            history.fill(run, prior, agents=1)
            history.index(run)
            place.call("resume", "--detach", "--run", str(run.layout.root))
        ask.say(f"{count} times `coral eval` after {prior:,} attempts")
        yield prior, measured(run, place, prior, turn * count, count)


def begin(place: Arena, overrides: tuple[str, ...]) -> Started:
    """Start a run of one agent, which submits as often as the file `goal` says."""
    task = place.small_task()
    if overrides:
        path = task / "task.yaml"
        path.write_text(path.read_text().replace("  command: sh $CORAL_PRIVATE/grade.sh\n", ""))
    (place.notes / "goal").write_text("0")
    runtime = ("agents.runtime=command", agents_run("evaluating.py"))
    return place.start(task, *runtime, f"heartbeats=[{RARE}]", *overrides)


def _in_fleet(place: Arena, agents: int, count: int, ask: Ask) -> list[dict[str, float]]:
    """Measure evals of one agent in a fleet; the others have printed one line and sleep."""
    ask.say(f"preparing {agents} agents")
    (place.notes / "goal").write_text("0")
    fleet = agents_run_each({"evaluating.py": 1, "up.sh": agents - 1})
    run = place.start(place.small_task(), fleet, f"heartbeats=[{RARE}]")
    wait_until(lambda: len(list(place.notes.glob("up-*"))) == agents - 1, 600, f"the first line of {agents} agents")
    time.sleep(SETTLING)
    ask.say(f"{count} times `coral eval` with {agents} agents")
    return measured(run, place, 0, 0, count)


def measured(run: Started, place: Arena, prior: int, done: int, count: int) -> list[dict[str, float]]:
    """Let the agent, which has submitted `done` times, submit `count` times more; return the times of these evals."""
    (place.notes / "goal").write_text(f"{done + count}")
    wait_until(lambda: len(_noted(place)) >= done + count, 60 + 2 * count, f"{count} evals")
    return _rows(run, place, prior, _noted(place)[done:])


def _noted(place: Arena) -> list[str]:
    path = place.notes / "evals"
    return path.read_text().splitlines() if path.exists() else []


def _rows(run: Started, place: Arena, prior: int, lines: list[str]) -> list[dict[str, float]]:
    """Return how long each eval and its parts took, in milliseconds."""
    store, rows = Store(run.layout.attempts), []
    late = (store.read(number) for number in store.numbers() if number > prior)
    attempts = {attempt.title: attempt for attempt in late}
    for line in lines:
        title, began, ended, code = line.split()
        if code != "0":
            raise BenchmarkError(f"coral eval ended with exit code {code}")
        attempt = attempts[title]
        moments = [
            int(began),
            int(attempt.submission),
            int((place.notes / f"began-{attempt.number}").read_text()),
            int((place.notes / f"ended-{attempt.number}").read_text()),
            run.record(attempt.number).stat().st_mtime_ns,
            int(ended),
        ]
        parts = [ms(after - before) for before, after in pairwise(moments)]
        rows.append({WHOLE: ms(moments[-1] - moments[0]), **dict(zip(PARTS, parts, strict=True))})
    return rows
