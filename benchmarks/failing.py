"""Measures how long a start that cannot work takes until it has said why and has removed what it made."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from benchmarks import machine, table
from benchmarks.arena import Arena, arena
from benchmarks.benchmark import Ask, Full
from benchmarks.figure import Check, Target, check
from benchmarks.results import Result

NAME = "failing"
TARGET = Target(median=2000, p99=2000)
REPEATS, QUICK_REPEATS = 20, 2
PROGRAM, GRADER, DISK = "program", "grader", "disk"
CAUSES = {
    PROGRAM: "the program of the agents is missing",
    GRADER: "what the grader imports is missing",
    DISK: "the disk is full",
}
SAID = {PROGRAM: "not on PATH", GRADER: "no_such_module", DISK: "the disk is full"}
# Mounts a disk that is gone with the command; the time begins when the disk is mounted and full.
ON_A_FULL_DISK = """
mount -t tmpfs -o size=1m tmpfs "$1" && disk=$1 times=$2 && shift 2 || exit 99
head -c 2000000 /dev/zero > "$disk/ballast" 2> /dev/null
date +%s%N > "$times"
"$@"
code=$?
date +%s%N >> "$times"
[ "$(ls "$disk")" = ballast ] || exit 98
exit $code
"""


def measure(ask: Ask) -> Iterable[Result]:
    here, series = machine.here(), dict[str, list[float]]()
    repeats = QUICK_REPEATS if ask.quick else REPEATS
    ways: dict[str, Callable[[Arena, Path], float]] = {PROGRAM: _program, GRADER: _grader}
    if _may_mount():
        ways[DISK] = _disk
    else:
        ask.say("no disk can be mounted here: a full one is not tried")
    ask.say(f"failing to start {repeats} times for each of {len(ways)} causes")
    with arena() as place:
        task = _broken_task(place)
        # In turn: what slows the machine for a while slows all of them.
        for _ in range(repeats):
            for cause, fail in ways.items():
                series.setdefault(cause, []).append(fail(place, task))
    yield Result(NAME, machine.today(), here, {"values": repeats}, series)


def full() -> Mapping[str, Full]:
    series = dict.fromkeys(CAUSES, REPEATS)
    return {NAME: Full({"values": REPEATS}, series)}


def checks(results: Mapping[str, Result]) -> list[Check]:
    series = results[NAME].series
    return [
        check(f"a start fails where {what}", series[cause], TARGET, "ms", _WHY)
        for cause, what in CAUSES.items()
        if cause in series
    ]


def section(results: Mapping[str, Result]) -> list[str]:
    result = results[NAME]
    lines = ["## A start that cannot work", "", _ABOUT, "", *table.head("ms")]
    return [*lines, *table.rows(CAUSES, result), "", table.origin(result)]


_ABOUT = """The wall time of the whole command `coral start --detach`, interpreter and all, until it has said why it
cannot start a run and has removed what it had made of one. The disk is one of one megabyte, mounted for that command
alone: nothing is begun on it."""

_WHY = "Most of it is the interpreter and its imports: compare the parts of a start that works."


def _broken_task(place: Arena) -> Path:
    """Make a task whose grader imports a module that is missing. A start that fails before does not notice."""
    task = place.small_task()
    path = task / "task.yaml"
    text = path.read_text().replace("command: sh $CORAL_PRIVATE/grade.sh", "entry: grade.py:grade")
    path.write_text(text.replace("private: [grade.sh, grade.py]", "private: []"))
    (task / "grade.py").write_text("import no_such_module\n\n\ndef grade(workspace):\n    return 1.0\n")
    return task


def _program(place: Arena, task: Path) -> float:
    missing = ("agents.runtime=command", "agents.options={start: [no-such-program]}")
    return place.fail(task, *missing, saying=SAID[PROGRAM])


def _grader(place: Arena, task: Path) -> float:
    return place.fail(task, saying=SAID[GRADER])


def _disk(place: Arena, task: Path) -> float:
    disk, times = place.root / "disk", place.notes / "times"
    disk.mkdir(exist_ok=True)
    prefix = ("unshare", "-m", "sh", "-c", ON_A_FULL_DISK, "sh", str(disk), str(times))
    place.fail(task, f"workspace.runs={disk}/runs", saying=SAID[DISK], prefix=prefix)
    began, ended = map(int, times.read_text().split())
    return round((ended - began) / 1e6, 3)


def _may_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    tried = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False)
    return tried.returncode == 0
