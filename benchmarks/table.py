"""Shows figures on the page: one row for each series, always with the same columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.figure import number, summarize
from benchmarks.results import Result


def head(unit: str, what: str = "") -> list[str]:
    return [
        f"| {what} ({unit}) | median | p10 to p90 | p99 | range | count |",
        "|---|---:|---:|---:|---:|---:|",
    ]


def row(label: str, values: Sequence[float]) -> str:
    found = summarize(values)
    spread = f"{number(found.p10)} to {number(found.p90)}"
    whole = f"{number(found.least)} to {number(found.most)}"
    return f"| {label} | {number(found.median)} | {spread} | {number(found.p99)} | {whole} | {found.count} |"


def rows(labels: Mapping[str, str], result: Result) -> list[str]:
    """Return a row for each series that the result has: an older result may lack some."""
    return [row(label, result.series[key]) for key, label in labels.items() if key in result.series]


def origin(result: Result, command: str = "") -> str:
    """Return a line with the command that gives these figures, and what they were measured on."""
    found = result.machine
    programs = f"{found.system}, Python {found.python}, git {found.git}{f', {found.disk}' if found.disk else ''}"
    measured = f"{result.day}, {found.cores} cores, load average {found.load:g} before, {programs}"
    return f"`python -m benchmarks {command or result.name}`: {measured}."
