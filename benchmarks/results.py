"""Keeps what a benchmark found: raw values, with where, when and how they were measured.

Figures are computed from the values when they are shown.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Machine:
    """The properties of a machine on which figures depend. `load`: its load average just before. `disk`: the kind of
    the file system for temporary files, where runs and nodes write; "" in results that do not tell."""

    cores: int
    system: str
    python: str
    git: str
    load: float
    disk: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """One benchmark. `series` maps a key to its raw values, in the order they were measured."""

    name: str
    day: str
    machine: Machine
    settings: Mapping[str, float] = field(default_factory=dict)
    series: Mapping[str, Sequence[float]] = field(default_factory=dict)


def write(result: Result, folder: Path) -> Path:
    """Keep a result; the file appears whole or not at all."""
    path = folder / f"{result.name}.json"
    folder.mkdir(parents=True, exist_ok=True)
    transaction = path.with_name(f".{path.name}.{os.getpid()}")
    transaction.write_text(as_json(result) + "\n", encoding="utf-8")
    transaction.replace(path)
    return path


def as_json(result: Result) -> str:
    """Return a result as JSON with a line for each series, so that a change of one changes one line."""
    plain = asdict(result)
    series = plain.pop("series")
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in {"format": FORMAT, **plain}.items()]
    inner = [
        f"    {json.dumps(key)}: {json.dumps([round(figure, 10) for figure in each_of])}"
        for key, each_of in series.items()
    ]
    lines.append('  "series": {\n' + ",\n".join(inner) + "\n  }")
    return "{\n" + ",\n".join(lines) + "\n}"


def read(path: Path) -> Result:
    """Read a result that was kept; ValueError for another format."""
    plain = json.loads(path.read_text(encoding="utf-8"))
    if plain.pop("format", None) != FORMAT:
        raise ValueError(f"{path.name} is of another format; measure it again")
    return Result(**{**plain, "machine": Machine(**plain["machine"])})


def read_all(folder: Path) -> dict[str, Result]:
    """Read every result that is kept, by name."""
    return {path.stem: read(path) for path in sorted(folder.glob("[!.]*.json"))}
