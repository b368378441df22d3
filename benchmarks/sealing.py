"""Measures what a sandbox costs: for the start of a program, a candidate that a grader runs, and one `coral eval`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks import evals, machine, table
from benchmarks.arena import arena, ms
from benchmarks.benchmark import Ask, Full
from benchmarks.figure import Check, Target, check
from benchmarks.results import Result
from coral.grader import run_candidate
from coral.processes.call_filter import filtered
from coral.processes.process import Program
from coral.processes.seal import Sandbox, problem, seal
from workspace.owner import User
from workspace.plain_file import OWN_USERS
from workspace.seal import PRIVATE, Access, Level

NAME = "seal"
VALUES, QUICK_VALUES = 100, 4
ROUNDS, EACH = 10, 8  # of `coral eval`: EACH at every level in turn, in each of the ROUNDS
SETTINGS = {"values": VALUES, "evals": ROUNDS * EACH}
SEALED = (Level.BUBBLEWRAP, Level.LANDLOCK, Level.USER)  # the last needs root, and a Python outside of root's home
LEVELS = (*SEALED, Level.NONE)
ANY_USER = User(OWN_USERS[1000], (), 0o077)
LAUNCH, CANDIDATE, EVAL = "launch", "candidate", "eval"
TARGETS = {LAUNCH: Target(median=20), CANDIDATE: Target(median=15), EVAL: Target(median=10)}
WHAT = {
    LAUNCH: "the start of a program, more than without a sandbox",
    CANDIDATE: "`run_candidate`, more than a bare Python process",
    EVAL: "`coral eval` of a function, agent and grader sealed, more than unsealed",
}
_CALL = "import sys; sys.path.insert(0, sys.argv[1]); from solution import solve; print(solve(20))"


def measure(ask: Ask) -> Iterable[Result]:
    here, series = machine.here(), dict[str, list[float]]()
    count = QUICK_VALUES if ask.quick else VALUES
    works = [level for level in SEALED if not problem(level)]
    with arena() as place:
        (place.root / "solution.py").write_text("def solve(n):\n    return n * 2\n")
        for part, tries in ((LAUNCH, _launches(place.root, works)), (CANDIDATE, _candidates(place.root, works))):
            ask.say(f"{count} times each {part}")
            series |= _differences(part, _interleaved(tries, count))
    ask.say("`coral eval` at each level in turn")
    series |= _differences(EVAL, _evals(works, *((2, 2) if ask.quick else (ROUNDS, EACH))))
    yield Result(NAME, machine.today(), here, SETTINGS, series)


def full() -> Mapping[str, Full]:
    counts = {LAUNCH: VALUES, CANDIDATE: VALUES, EVAL: ROUNDS * EACH}
    return {NAME: Full(SETTINGS, {_key(part, level): count for part, count in counts.items() for level in LEVELS})}


def checks(results: Mapping[str, Result]) -> list[Check]:
    series = results[NAME].series
    return [
        check(f"{WHAT[part]}, {level}", values, TARGETS[part], "ms", _WHY)
        for part in WHAT
        for level in SEALED
        if (values := _more(series, part, level))
    ]


def section(results: Mapping[str, Result]) -> list[str]:
    result = results[NAME]
    lines = ["## What a sandbox costs", "", _ABOUT, ""]
    for part, text in WHAT.items():
        rows = [table.row(f"{part}, {level}", result.series[_key(part, level)]) for level in LEVELS]
        rows += [table.row(f"... more, {level}", _more(result.series, part, level)) for level in SEALED]
        lines += [f"{text[0].upper()}{text[1:]}:" if text[0] != "`" else f"{text}:", "", *table.head("ms"), *rows, ""]
    return [*lines, table.origin(result)]


def _launches(folder: Path, works: Iterable[Level]) -> dict[Level, Callable[[], None]]:
    nothing = Path(os.devnull)
    program = Program(("/bin/true",), dict(os.environ), folder, nothing, nothing, nothing, tag="")
    view = dict.fromkeys(PRIVATE, Access.PRIVATE) | {folder: Access.WRITE}

    def start(level: Level) -> Callable[[], None]:
        user = ANY_USER if level is Level.USER else None
        sealed = seal(program, Sandbox(level, view, network=True, user=user))

        def attempt() -> None:
            with filtered(sealed.argv, sealed.calls) as (argv, given):
                _run(argv, folder, given)

        return attempt

    return {level: start(level) for level in (Level.NONE, *works)}


def _candidates(folder: Path, works: Iterable[Level]) -> dict[Level, Callable[[], None]]:
    def call(level: Level) -> Callable[[], None]:
        return lambda: _expect(run_candidate(folder, "solution.py:solve", 20, seal=(str(level),)).value)

    bare = (sys.executable, "-I", "-B", "-c", _CALL, str(folder))
    return {Level.NONE: lambda: _run(bare, folder)} | {level: call(level) for level in works}


def _evals(works: Iterable[Level], rounds: int, each: int) -> dict[Level, list[float]]:
    levels = (Level.NONE, *works)
    found: dict[Level, list[float]] = {level: [] for level in levels}
    with ExitStack() as stack:
        places = {level: stack.enter_context(arena()) for level in levels}
        runs = {
            level: evals.begin(place, (f"workspace.seal={level}", *evals.GRADERS["function"][1]))
            for level, place in places.items()
        }
        for turn in range(rounds):
            for level in levels:
                rows = evals.measured(runs[level], places[level], 0, turn * each, each)
                found[level] += [row[evals.WHOLE] for row in rows]
    return found


def _interleaved(tries: Mapping[Level, Callable[[], None]], count: int) -> dict[Level, list[float]]:
    """Time the tries in turn, so that what slows the machine for a while slows all of them. In milliseconds."""
    found: dict[Level, list[float]] = {level: [] for level in tries}
    for _ in range(count + 1):
        for level, attempt in tries.items():
            began = time.perf_counter_ns()
            attempt()
            found[level].append(ms(time.perf_counter_ns() - began))
    return {level: values[1:] for level, values in found.items()}  # the first fills caches


def _differences(part: str, found: Mapping[Level, list[float]]) -> dict[str, list[float]]:
    return {_key(part, level): values for level, values in found.items()}


def _more(series: Mapping[str, Sequence[float]], part: str, level: Level) -> list[float]:
    """Return by how much each value was larger than that of the same turn without a sandbox."""
    sealed, without = series.get(_key(part, level), []), series[_key(part, Level.NONE)]
    return [round(one - other, 3) for one, other in zip(sealed, without, strict=False)]


def _key(part: str, level: Level) -> str:
    return f"{part}, {level}"


def _run(argv: Iterable[str], folder: Path, given: tuple[int, ...] = ()) -> None:
    null = subprocess.DEVNULL
    subprocess.run(list(argv), cwd=folder, stdin=null, stdout=null, pass_fds=given, check=True)


def _expect(value: object) -> None:
    assert value == 40, value


_ABOUT = """The same work at each level, in turn, so that what is slow for a while is slow for all of them; the figure
is the difference of the same turn. A launch is `/bin/true`. The bare process is a Python that imports the candidate's
module and calls its function; `run_candidate` also writes its request, reads the answer and removes its folder. The
evals are those of the section above, with a function as the grader."""

_WHY = "Compare its parts: the namespaces, an interpreter that restricts itself, the control group."
