"""Measures how soon an agent is interrupted after the grader of its attempt has ended.

The grader's last act is to note the time and end; the agent notes when its SIGINT arrives. They are paired by attempt.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from attempts.store import Missing, Store
from benchmarks import machine, table
from benchmarks.arena import Arena, BenchmarkError, Started, agents_run, arena, ms
from benchmarks.benchmark import Ask, Full
from benchmarks.figure import Check, Target, check
from benchmarks.results import Result

NAME = "interrupt"
TARGET = Target(median=20, p99=100)
AGENTS = 4
ATTEMPTS, QUICK_ATTEMPTS = 200, 12
# Seconds before each attempt. Four agents without a pause keep two cores busy with starting programs.
PAUSES = {"calm": 1.0, "busy": 0.0}
ROWS = {
    "calm": f"{AGENTS} agents that think for {PAUSES['calm']:g} s before each attempt",
    "busy": f"{AGENTS} agents that never think",
}
WHY = {
    "calm": "Three times something is made durable before the signal (the journal, the record, its folder): a slow "
    "disk shows here.",
    "busy": "Agents that never think start programs without a pause, more than the machine can run at once: the "
    "supervisor waits for its turn like everybody else.",
}
WHOLE, WRITTEN, SENT = "grader ended to SIGINT", "grader ended to record written", "record written to SIGINT"


def measure(ask: Ask) -> Iterable[Result]:
    here, series = machine.here(), dict[str, list[float]]()
    count = QUICK_ATTEMPTS if ask.quick else ATTEMPTS
    for name, pause in PAUSES.items():
        with arena() as place:
            series |= {f"{name}: {part}": values for part, values in _run(place, count, pause, ask).items()}
    yield Result(NAME, machine.today(), here, _settings(count), series)


def full() -> Mapping[str, Full]:
    series = {f"{name}: {part}": None for name in PAUSES for part in (WHOLE, WRITTEN, SENT)}
    return {NAME: Full(_settings(ATTEMPTS), series)}


def checks(results: Mapping[str, Result]) -> list[Check]:
    series = results[NAME].series
    return [
        check(f"grade to interrupt, {label}", series[f"{name}: {WHOLE}"], TARGET, "ms", WHY[name])
        for name, label in ROWS.items()
    ]


def section(results: Mapping[str, Result]) -> list[str]:
    result = results[NAME]
    lines = ["## From a grade to the interrupt", "", _ABOUT, "", *table.head("ms")]
    for name, label in ROWS.items():
        lines.append(table.row(f"**{label}**", result.series[f"{name}: {WHOLE}"]))
        lines.append(table.row("... until the record is written", result.series[f"{name}: {WRITTEN}"]))
        lines.append(table.row("... from there to the signal", result.series[f"{name}: {SENT}"]))
    return [*lines, "", table.origin(result)]


_ABOUT = """The grader is a shell script whose last act is `exec date`, so that the time it notes is the time of
its end. The agent notes the time in its handler of SIGINT. In between the supervisor sees the exit, reads the
result, decides, writes the journal and the record to disk, renders the reply, and sends the signal."""


def _settings(attempts: int) -> dict[str, float]:
    return {"agents": AGENTS, "attempts": attempts, "pause": PAUSES["calm"]}


def _run(place: Arena, count: int, pause: float, ask: Ask) -> dict[str, list[float]]:
    run = place.start(
        place.small_task(),
        "agents.runtime=command",
        agents_run("interrupted.py", f"{pause:g}"),
        f"agents.count={AGENTS}",
        f"grader.slots={AGENTS}",
        f"budget.attempts={count}",
    )
    ask.say(f"interrupting {AGENTS} agents that pause for {pause:g} s, {count} times")
    place.wait_for_end(run, 60 + count * (1 + pause))
    found = paired(run, place.notes)
    if len(found[WHOLE]) < count - AGENTS:  # the last attempts may have ended together with the run
        said = (
            "; ".join(sorted({attempt.reason for attempt in run.attempts() if attempt.reason})) or "no reason is known"
        )
        raise BenchmarkError(f"only {len(found[WHOLE])} of {count} attempts were interrupted ({said})")
    return found


def paired(run: Started, notes: Path, since: int = 0) -> dict[str, list[float]]:
    """Return the times, in milliseconds, of every attempt that a heartbeat's interrupt followed. `since`: attempts
    whose grader ended before are left out, in nanoseconds of the wall clock."""
    found: dict[str, list[float]] = {WHOLE: [], WRITTEN: [], SENT: []}
    store = Store(run.layout.attempts)
    for number, end in ends(notes, since).items():
        try:
            interrupted = notes / f"interrupted-{store.read(number).title}"
            signal = int(interrupted.read_text() or 0)
        except (Missing, FileNotFoundError):
            continue
        if signal < end:
            continue
        written = run.record(number).stat().st_mtime_ns
        found[WHOLE].append(ms(signal - end))
        found[WRITTEN].append(ms(written - end))
        found[SENT].append(ms(signal - written))
    return found


def ends(notes: Path, since: int) -> dict[int, int]:
    """Return when the grader of each attempt ended, as the grader noted, in nanoseconds of the wall clock."""
    moments = {int(path.name.rpartition("-")[2]): int(path.read_text() or 0) for path in notes.glob("ended-*")}
    return {number: end for number, end in sorted(moments.items()) if number > 0 and end > since}
