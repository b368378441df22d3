"""How long an agent waits for one `coral eval` when grading itself costs nothing, in a young run and in old ones.

The agent takes the time around the whole command; submission, grader and record say when each part of it ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

from attempts.store import Store
from benchmarks import history, machine, table
from benchmarks.arena import Arena, BenchmarkError, Started, agents_run, arena, ms, wait_until
from benchmarks.benchmark import Ask, Full
from benchmarks.figure import Check, Target, check, median
from benchmarks.results import Result

NAME = "eval"
TARGET = Target(median=150)
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
# Attempts before those that are measured. What depends on them is the same for both: one goes all the way.
PRIOR = {"function": (0, 1_000, 10_000, 100_000), "command": (0, 10_000)}
QUICK_PRIOR = (0, 50)
VALUES, QUICK_VALUES = 60, 8
FLAT = Target(median=1.2)


def measure(ask: Ask) -> Iterable[Result]:
    here, series = machine.here(), dict[str, list[float]]()
    count = QUICK_VALUES if ask.quick else VALUES
    for grader, (_, overrides) in GRADERS.items():
        with arena() as place:
            for prior, rows in _run(place, overrides, QUICK_PRIOR if ask.quick else PRIOR[grader], count, ask):
                series |= {f"{grader}, {prior}: {part}": [row[part] for row in rows] for part in (WHOLE, *PARTS)}
    yield Result(NAME, machine.today(), here, {"values": count}, series)


def full() -> Mapping[str, Full]:
    keys = [f"{grader}, {prior}: {part}" for grader in GRADERS for prior in PRIOR[grader] for part in (WHOLE, *PARTS)]
    series = dict.fromkeys(keys, VALUES)
    return {NAME: Full({"values": VALUES}, series)}


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
            grown = [round(each / median(first), 3) for each in last]
            found.append(check(what, grown, FLAT, "times as long", WHY_GROWN))
    return found


def section(results: Mapping[str, Result]) -> list[str]:
    result = results[NAME]
    labels = {}
    for grader in GRADERS:
        for prior in PRIOR[grader]:
            labels[f"{grader}, {prior}: {WHOLE}"] = f"**{_label(grader, prior)}**"
            labels |= {f"{grader}, {prior}: {part}": f"... {text}" for part, text in PARTS.items()}
    return [
        *("## One `coral eval`", "", _ABOUT, "", *table.head("ms")),
        *table.rows(labels, result),
        *("", table.origin(result)),
    ]


def _label(grader: str, prior: int) -> str:
    return GRADERS[grader][0] + (f", after {prior:,} attempts" if prior else "")


_ABOUT = """One agent in a repository of thirty small files changes one of them and runs `coral eval -m ...`,
again and again. The figure is the wall time of the whole command, interpreter and all. Heartbeats are retimed
to come as rarely as the protected ones may (`reflect` every tenth attempt); evals that they interrupt are not
counted, for those end with the interrupt. The attempts before are made up, in every place where a run keeps one,
while it is stopped; then it is resumed. A function is called in the same moment that it is at an end in."""


def _run(
    place: Arena, overrides: tuple[str, ...], priors: tuple[int, ...], count: int, ask: Ask
) -> Iterable[tuple[int, list[dict[str, float]]]]:
    task = place.small_task()
    if overrides:
        path = task / "task.yaml"
        path.write_text(path.read_text().replace("  command: sh $CORAL_PRIVATE/grade.sh\n", ""))
    rare = "{name: reflect, every: 10}, {name: consolidate, every: 100}, {name: redirect, stagnant: 1000000}"
    (place.notes / "goal").write_text("0")
    runtime = ("agents.runtime=command", agents_run("evaluating.py"))
    run = place.start(task, *runtime, f"heartbeats=[{rare}]", *overrides)
    for turn, prior in enumerate(priors):
        if prior:
            ask.say(f"making up {prior:,} attempts")
            place.stop(run)
            history.fill(run, prior, agents=1)
            history.index(run)
            place.call("resume", "--detach", "--run", str(run.layout.root))
        ask.say(f"{count} times `coral eval` after {prior:,} attempts")
        (place.notes / "goal").write_text(f"{(turn + 1) * count}")
        wait_until(lambda: len(_noted(place)) >= (turn + 1) * count, 60 + 2 * count, f"{count} evals")  # noqa: B023
        yield prior, _rows(run, place, prior, _noted(place)[turn * count :])


def _noted(place: Arena) -> list[str]:
    path = place.notes / "evals"
    return path.read_text().splitlines() if path.exists() else []


def _rows(run: Started, place: Arena, prior: int, lines: list[str]) -> list[dict[str, float]]:
    """What each eval and its parts took, in milliseconds."""
    store, rows = Store(run.layout.attempts), []
    late = (store.read(number) for number in store.numbers() if number > prior)
    attempts = {each.title: each for each in late}
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
