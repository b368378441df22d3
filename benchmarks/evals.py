"""How long an agent waits for one `coral eval` when grading itself costs nothing.

The agent takes the time around the whole command; submission, grader and record say when each part of it ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path

from benchmarks import machine, table
from benchmarks.arena import Arena, BenchmarkError, Started, agents_run, arena, ms, wait_until
from benchmarks.benchmark import Ask
from benchmarks.figure import Check, Target, check
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
    "command": ("a command (a shell script)", ()),
    "function": ("a Python function", ("grader.command=", "grader.entry=grade.py:grade")),
}
WHY = {
    "command": "Half of it comes before the submission: an interpreter, what it imports, git five times. The rest is "
    "git again, which takes the commit in and checks it out, and the grader's own process.",
    "late": "Compare its parts with those of the first attempts: what grew is what depends on the history.",
    "function": "What it takes longer than a command is the interpreter that calls the function, and what it imports.",
}
FIRST, PRIOR = 100, 1000  # values per row; attempts before the late ones


def measure(ask: Ask) -> Iterable[Result]:
    here, series = machine.here(), dict[str, list[float]]()
    first, prior = (10, 10) if ask.quick else (FIRST, PRIOR)
    for grader, (_, overrides) in GRADERS.items():
        count = prior + first if grader == "command" else first
        with arena() as place:
            rows = _run(place, overrides, count, ask)
        series |= _columns(grader, rows[:first])
        if grader == "command":
            series |= _columns("late", rows[-first:])
    yield Result(NAME, machine.today(), here, {"values": first, "prior": prior}, series)


def checks(results: Mapping[str, Result]) -> list[Check]:
    result = results[NAME]
    return [
        check(f"`coral eval`, {label}", result.series[f"{name}: {WHOLE}"], TARGET, "ms", WHY[name])
        for name, label in _labels(result).items()
    ]


def section(results: Mapping[str, Result]) -> list[str]:
    result = results[NAME]
    lines = ["## One `coral eval`", "", _ABOUT, "", *table.head("ms")]
    for name, label in _labels(result).items():
        lines.append(table.row(f"**{label}**", result.series[f"{name}: {WHOLE}"]))
        lines += [table.row(f"... {text}", result.series[f"{name}: {part}"]) for part, text in PARTS.items()]
    return [*lines, "", table.origin(result)]


def _labels(result: Result) -> dict[str, str]:
    labels = {grader: label for grader, (label, _) in GRADERS.items()}
    return {**labels, "late": f"a command, after {int(result.settings['prior']):,} attempts"}


def _columns(name: str, rows: list[dict[str, float]]) -> dict[str, list[float]]:
    return {f"{name}: {part}": [row[part] for row in rows] for part in (WHOLE, *PARTS)}


_ABOUT = """One agent in a repository of thirty small files changes one of them and runs `coral eval -m ...`,
again and again. The figure is the wall time of the whole command, interpreter and all. Heartbeats are retimed
to come as rarely as the protected ones may (`reflect` every tenth attempt); evals that they interrupt are not
counted, for those end with the interrupt.
Every attempt scores the same, so that none of a thousand improves on the first."""


def _run(place: Arena, overrides: tuple[str, ...], count: int, ask: Ask) -> list[dict[str, float]]:
    task = place.small_task()
    if overrides:
        path = task / "task.yaml"
        path.write_text(path.read_text().replace("  command: sh $CORAL_PRIVATE/grade.sh\n", ""))
    rare = "{name: reflect, every: 10}, {name: consolidate, every: 100}, {name: redirect, stagnant: 1000000}"
    runtime = ("agents.runtime=command", agents_run("evaluating.py", str(count)))
    run = place.start(task, *runtime, f"heartbeats=[{rare}]", *overrides)
    ask.say(f"{count} times `coral eval`")
    wait_until((place.notes / "done").exists, 60 + count, f"{count} evals")
    return _rows(run, place.notes, count)


def _rows(run: Started, notes: Path, count: int) -> list[dict[str, float]]:
    """What each eval and its parts took, in milliseconds."""
    attempts = {each.title: each for each in run.attempts()}
    rows = []
    for line in (notes / "evals").read_text().splitlines():
        title, began, ended, code = line.split()
        if code != "0":
            raise BenchmarkError(f"coral eval ended with exit code {code}")
        attempt = attempts[title]
        moments = [
            int(began),
            int(attempt.submission),
            int((notes / f"began-{attempt.number}").read_text()),
            int((notes / f"ended-{attempt.number}").read_text()),
            run.record(attempt.number).stat().st_mtime_ns,
            int(ended),
        ]
        parts = [ms(after - before) for before, after in pairwise(moments)]
        rows.append({WHOLE: ms(moments[-1] - moments[0]), **dict(zip(PARTS, parts, strict=True))})
    if len(rows) < count:
        raise BenchmarkError(f"only {len(rows)} of {count} evals were measured")
    return rows
