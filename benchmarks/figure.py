"""What a benchmark found: series of raw values, with where, when and how they were measured.

Everything that is said about them (medians, spreads, verdicts) is worked out from the raw values when it is shown.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Machine:
    """What a figure depends on, and nothing that names a machine. `load`: its load average just before."""

    cores: int
    system: str
    python: str
    git: str
    load: float


@dataclass(frozen=True, slots=True)
class Result:
    """One benchmark. `series` maps a key to its raw values, in the order they were measured."""

    name: str
    day: str
    machine: Machine
    settings: Mapping[str, float] = field(default_factory=dict)
    series: Mapping[str, Sequence[float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Summary:
    count: int
    median: float
    p10: float
    p90: float
    p99: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Target:
    """What a figure should be at most, in its own unit."""

    median: float
    p99: float | None = None


def percentile(values: Sequence[float], percent: float) -> float:
    """The nearest rank: the smallest measured value that `percent` of all values do not exceed. Never interpolated,
    so that the 99th of fewer than a hundred values is the largest."""
    if not values:
        raise ValueError("there is no percentile of nothing")
    rank = max(1, math.ceil(len(values) * percent / 100))
    return sorted(values)[rank - 1]


def median(values: Sequence[float]) -> float:
    ordered, middle = sorted(values), len(values) // 2
    if not ordered:
        raise ValueError("there is no median of nothing")
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def summarize(values: Sequence[float]) -> Summary:
    return Summary(
        count=len(values),
        median=median(values),
        p10=percentile(values, 10),
        p90=percentile(values, 90),
        p99=percentile(values, 99),
        least=min(values),
        most=max(values),
    )


def verdict(found: Summary, target: Target, unit: str) -> str:
    """Whether a target is met, or by how much it is missed."""
    checks = [("median", found.median, target.median)]
    if target.p99 is not None:
        checks.append(("p99", found.p99, target.p99))
    return "; ".join(_verdict(*each, unit) for each in checks)


def _verdict(name: str, value: float, most: float, unit: str) -> str:
    if value <= most:
        return f"{name} {most:g} {unit}: met"
    return f"{name} {most:g} {unit}: **missed by {value - most:.3g} {unit}** ({value / most:.2g} times the target)"


def write(result: Result, folder: Path) -> Path:
    """Keep a result; the file appears whole or not at all."""
    path = folder / f"{result.name}.json"
    folder.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(as_json(result) + "\n", encoding="utf-8")
    draft.replace(path)
    return path


def as_json(result: Result) -> str:
    """One line per series, so that a change of one is a change of one line."""
    plain = asdict(result)
    series = plain.pop("series")
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in {"format": FORMAT, **plain}.items()]
    inner = [
        f"    {json.dumps(key)}: {json.dumps([round(each, 6) for each in each_of])}" for key, each_of in series.items()
    ]
    lines.append('  "series": {\n' + ",\n".join(inner) + "\n  }")
    return "{\n" + ",\n".join(lines) + "\n}"


def read(path: Path) -> Result:
    """A result that was kept; ValueError for another format."""
    plain = json.loads(path.read_text(encoding="utf-8"))
    if plain.pop("format", None) != FORMAT:
        raise ValueError(f"{path.name} is of another format; measure it again")
    return Result(**{**plain, "machine": Machine(**plain["machine"])})


def read_all(folder: Path) -> dict[str, Result]:
    """Every result that is kept, by name."""
    return {path.stem: read(path) for path in sorted(folder.glob("[!.]*.json"))}
