"""Measures what native agents reach on examples/circle_packing over time: four that share what they learn, four that do
not, and one alone.

Each run starts from the example's own seed with every circle moved a little, so that three runs are three searches. The
settings take turns, so that what slows the machine for a while slows all of them.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from attempts.record import Direction, Kind
from benchmarks import machine, packing_page
from benchmarks.arena import HERE, Arena, Started, arena
from benchmarks.benchmark import Ask, Full
from benchmarks.figure import Check
from benchmarks.results import Result
from workspace.knowledge import list_skills
from workspace.notes import find_notes

NAME = "packing"
EXAMPLE = HERE.parent / "examples" / "circle_packing"
SECONDS, QUICK_SECONDS = 120.0, 10.0
SEEDS = (1, 2, 3)
MOVED = 0.005  # how far a circle is moved at most; the gaps of the example's seed are twice as wide
SETTLE = 60.0  # seconds beyond its budget that a run may take to end


@dataclass(frozen=True, slots=True)
class Setting:
    agents: int
    share: bool


SETTINGS = {"shared": Setting(4, True), "apart": Setting(4, False), "alone": Setting(1, True)}


def measure(ask: Ask) -> Iterable[Result]:
    seconds = QUICK_SECONDS if ask.quick else SECONDS
    for seed in SEEDS[:1] if ask.quick else SEEDS:
        for name, setting in SETTINGS.items():
            full = f"{NAME}-{name}-{seed}"
            if ask.only not in ("", name, f"{name}-{seed}") or full in ask.kept:
                continue
            ask.say(f"packing circles for {seconds:g} s: {name}, seed {seed}")
            here = machine.here()
            with arena() as place:
                settings, series = _run(place, setting, seed, seconds)
            yield Result(full, machine.today(), here, settings, series)


def full() -> Mapping[str, Full]:
    """Return the form of each result. Kept results also have the number of attempts, notes and skills in their
    settings."""
    return {
        f"{NAME}-{name}-{seed}": Full(_settings(setting, seed, SECONDS), {"seconds": None, "best": None})
        for name, setting in SETTINGS.items()
        for seed in SEEDS
    }


def checks(results: Mapping[str, Result]) -> list[Check]:
    return packing_page.checks(_by_setting(results))


def section(results: Mapping[str, Result]) -> list[str]:
    return packing_page.section(_by_setting(results))


def _by_setting(results: Mapping[str, Result]) -> dict[str, list[Result]]:
    """Return the results of each setting; settings without one are left out."""
    runs = {
        name: [results[full] for seed in SEEDS if (full := f"{NAME}-{name}-{seed}") in results] for name in SETTINGS
    }
    return {name: found for name, found in runs.items() if found}


def _settings(setting: Setting, seed: int, seconds: float) -> dict[str, float]:
    return {"agents": setting.agents, "share": float(setting.share), "seed": seed, "seconds": seconds}


def _run(place: Arena, setting: Setting, seed: int, seconds: float) -> tuple[dict[str, float], dict[str, list[float]]]:
    run = place.start(
        _task(place, seed),
        f"agents.count={setting.agents}",
        f"workspace.share={str(setting.share).lower()}",
        f"budget.hours={seconds / 3600}",
    )
    place.wait_for_end(run, seconds + SETTLE)
    points = curve(run, seconds)
    folders = {run.layout.shared_of(f"agent-{number}", setting.share) for number in range(1, setting.agents + 1)}
    settings = {
        **_settings(setting, seed, seconds),
        "attempts": len(run.attempts()),
        "notes": sum(len(find_notes([folder])) for folder in folders),
        "skills": sum(len(list_skills(folder)) for folder in folders),
    }
    return settings, {"seconds": [round(at, 3) for at, _ in points], "best": [score for _, score in points]}


def _task(place: Arena, seed: int) -> Path:
    task = place.root / "circle_packing"
    shutil.copytree(EXAMPLE, task, ignore=shutil.ignore_patterns("runs", "__pycache__"))
    path = task / "seed" / "circles.json"
    chance = random.Random(seed)
    rows = [
        {"x": row["x"] + chance.uniform(-MOVED, MOVED), "y": row["y"] + chance.uniform(-MOVED, MOVED), "r": row["r"]}
        for row in json.loads(path.read_text(encoding="utf-8"))["circles"]
    ]
    lines = ",\n".join("  " + json.dumps(row) for row in rows)
    path.write_text('{"circles": [\n' + lines + "\n]}\n", encoding="utf-8")
    return task


def curve(run: Started, seconds: float, direction: Direction = Direction.MAXIMIZE) -> list[tuple[float, float]]:
    """Return the best score over the run's own clock, in seconds: the seed's first, then a point for each
    improvement."""
    baseline = json.loads(run.record(0).read_text(encoding="utf-8"))["score"]
    points = [(0.0, float(baseline))]
    attempts = {attempt.number: attempt for attempt in run.attempts()}
    for line in run.layout.events.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        attempt = attempts.get(event.get("attempt", -1)) if event["type"] == "published" else None
        if attempt is None or attempt.score is None or attempt.kind is Kind.TUNE or event["clock"] > seconds:
            continue
        if direction.better(attempt.score, points[-1][1]):
            points.append((float(event["clock"]), attempt.score))
    return points
