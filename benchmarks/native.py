"""Measures whether two native agents reach what a plain scipy, cma or annealing script reaches in the same time with
as many processes: on eight problems of four kinds, with three seeds.

Agents and scripts take turns, so that what slows the machine for a while slows both.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from attempts.record import Direction
from benchmarks import machine, table
from benchmarks.arena import HERE, BenchmarkError, arena
from benchmarks.benchmark import Ask, Full
from benchmarks.figure import Check, Target, check, median
from benchmarks.packing import SEEDS, SETTLE, curve
from benchmarks.problems.problems import PROBLEMS, Data
from benchmarks.results import Result

NAME = "native"
FILES = HERE / "problems"
PROCESSES = 2
MOMENTS, QUICK_MOMENTS = (30.0, 60.0), (15.0,)
SAME = 1e-6  # relative: values closer than this are equal
WANTED, WANTED_BETTER = 7, 4  # of the eight problems
FLEET, SCRIPT, WORDS = "fleet", "script", "words per attempt"
MOST_WORDS = 25.0  # for each attempt: more is too much to read
Curve = Sequence[tuple[float, float]]  # seconds and the best score until then


def measure(ask: Ask) -> Iterable[Result]:
    moments = QUICK_MOMENTS if ask.quick else MOMENTS
    for name in PROBLEMS:
        if ask.only not in ("", name) or f"{NAME}-{name}" in ask.kept:
            continue
        here, series = machine.here(), dict[str, list[float]]()
        for seed in SEEDS[:1] if ask.quick else SEEDS:
            ask.say(f"{name} for {moments[-1]:g} s by agents and for {moments[-1]:g} s by a script, seed {seed}")
            found, words = _fleet(name, seed, moments[-1])
            series.setdefault(WORDS, []).append(words)
            curves = {FLEET: found, SCRIPT: _script(name, seed, moments[-1])}
            for who, points in curves.items():
                for moment in moments:
                    reached = at(points, moment, _direction(name))
                    series.setdefault(f"{who} {moment:g}", []).append(reached)
        yield Result(f"{NAME}-{name}", machine.today(), here, {"processes": PROCESSES, "seconds": moments[-1]}, series)


def full() -> Mapping[str, Full]:
    settings = {"processes": PROCESSES, "seconds": MOMENTS[-1]}
    series = {f"{who} {moment:g}": len(SEEDS) for who in (FLEET, SCRIPT) for moment in MOMENTS}
    return {f"{NAME}-{name}": Full(settings, {**series, WORDS: len(SEEDS)}) for name in PROBLEMS}


def checks(results: Mapping[str, Result]) -> list[Check]:
    there = _there(results)
    found = []
    for moment in MOMENTS:
        outcomes = [compare(there[name], name, moment) for name in there]
        held, better = sum(outcome >= 0 for outcome in outcomes), sum(outcome > 0 for outcome in outcomes)
        met = held >= WANTED and better >= WANTED_BETTER
        targets = (f"at least as good on {WANTED} of 8, better on {WANTED_BETTER}: {'met' if met else '**missed**'}",)
        measured = f"at least as good on {held} of {len(outcomes)}, better on {better}"
        found.append(Check(f"two native agents against a plain script, {moment:g} s", measured, targets, met, _WHY))
    words = [number for result in there.values() for number in result.series[WORDS]]
    return [*found, check("native agents, words per attempt", words, Target(median=MOST_WORDS), "words", _WHY_WORDS)]


def compare(result: Result, name: str, moment: float) -> int:
    """Compare the median of the fleet with the script's: 1 if it is better, -1 if it is worse, 0 if they are equal."""
    fleet, script = (median(result.series[f"{who} {moment:g}"]) for who in (FLEET, SCRIPT))
    if abs(fleet - script) <= SAME * max(1.0, abs(script)):
        return 0
    return 1 if _direction(name).better(fleet, script) else -1


def section(results: Mapping[str, Result]) -> list[str]:
    there = _there(results)
    heads = [f"{who}, {moment:g} s" for moment in MOMENTS for who in ("two agents", "script")]
    lines = ["## Native agents and plain scripts", "", _ABOUT, ""]
    lines += [
        f"| problem | kind | measured | best is | {' | '.join(heads)} |",
        "|---|---|---|---|" + "---:|" * len(heads),
    ]
    for name, result in there.items():
        problem = PROBLEMS[name]
        cells = [f"{median(result.series[f'{who} {moment:g}']):.8g}" for moment in MOMENTS for who in (FLEET, SCRIPT)]
        wanted = "most" if problem.maximize else "least"
        lines.append(f"| {name} | {problem.kind} | {result.day} | {wanted} | {' | '.join(cells)} |")
    busiest = max(there.values(), key=lambda result: result.machine.load)
    return [*lines, "", table.origin(busiest, NAME)]


def at(points: Curve, moment: float, direction: Direction) -> float:
    """Return the best score until a moment; the first score of all if there was none until then."""
    scores = [score for second, score in points if second <= moment] or [points[0][1]]
    return max(scores) if direction is Direction.MAXIMIZE else min(scores)


_ABOUT = f"""Medians of three seeds, after the same seconds with {PROCESSES} processes each, from the start of
the supervisor and of the scripts. [The problems](../benchmarks/problems/problems.py) are small, and their functions
plain Python; [the scripts](../benchmarks/problems/script.py) call them directly, agents through the task's check."""

_WHY = "The table shows on which problems."
_WHY_WORDS = "A synthesis and a skill are rewritten in place; in a run of few attempts they weigh more."


def _there(results: Mapping[str, Result]) -> dict[str, Result]:
    return {name: results[f"{NAME}-{name}"] for name in PROBLEMS if f"{NAME}-{name}" in results}


def _direction(name: str) -> Direction:
    return Direction.MAXIMIZE if PROBLEMS[name].maximize else Direction.MINIMIZE


def _fleet(name: str, seed: int, seconds: float) -> tuple[Curve, float]:
    """Run agents. Return their curve, and how many words of notes and skills there are for each attempt in the end."""
    with arena() as place:
        run = place.start(write_task(place.root / name, name, seed), f"budget.hours={seconds / 3600}")
        place.wait_for_end(run, seconds + SETTLE)
        # Not Coral's own checklist, which lies beside them.
        files = sorted(path for kind in ("notes", "skills") for path in (run.layout.shared / kind).rglob("*.md"))
        texts = (path.read_text(encoding="utf-8") for path in files)
        words = sum(len(text.split()) for text in texts)
        return curve(run, seconds, _direction(name)), words / max(1, len(run.attempts()))


def write_task(folder: Path, name: str, seed: int) -> Path:
    """Write a task for a problem, whose candidate is the start that the random number `seed` draws."""
    (folder / "seed").mkdir(parents=True)
    start: Data = PROBLEMS[name].start(random.Random(seed))
    (folder / "seed" / "candidate.json").write_text(json.dumps(start, indent=1) + "\n", encoding="utf-8")
    for source, target in (("problems.py", "seed"), ("check.py", "seed"), ("problems.py", "."), ("grade.py", ".")):
        text = (FILES / source).read_text(encoding="utf-8").replace('NAME = "NAME"', f'NAME = "{name}"')
        (folder / target / source).write_text(text, encoding="utf-8")
    lines = [
        f"task: {{name: {name}, description: Find the best candidate., seed: seed, editable: [candidate.json],",
        "  check: check.py:check}",
        f"grader: {{entry: grade.py:grade, private: [problems.py], direction: {_direction(name)}, noise: 0}}",
        f"agents: {{runtime: native, count: {PROCESSES}}}",
    ]
    (folder / "task.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def _script(name: str, seed: int, seconds: float) -> Curve:
    """Run the script in PROCESSES processes until their time is over; return what they print as one curve."""
    began = time.monotonic()
    words = [sys.executable, str(FILES / "script.py"), name]
    children = [
        subprocess.Popen(
            [*words, str(PROCESSES * seed + number), str(began), str(seconds)], stdout=subprocess.PIPE, text=True
        )
        for number in range(PROCESSES)
    ]
    points: list[tuple[float, float]] = []
    try:
        for child in children:
            printed, _ = child.communicate(timeout=seconds + SETTLE)
            if child.returncode:
                raise BenchmarkError(f"the script for {name} ended with {child.returncode}")
            lines = (line.split() for line in printed.splitlines())
            points += [(float(second), float(score)) for second, score in lines]
    finally:
        for child in children:
            child.kill()
            child.wait()
    if not points:
        raise BenchmarkError(f"the script for {name} found nothing in {seconds:g} s: this machine is too busy")
    return sorted(points)
