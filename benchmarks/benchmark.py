"""Defines a benchmark: it measures, and says what its results mean. It does not know where results are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from benchmarks.figure import Check
from benchmarks.results import Result


@dataclass(frozen=True, slots=True)
class Ask:
    """What to measure. `quick`: a try with few values, which is not kept. `only`: a part of the benchmark. `tabs`,
    `minutes`: other numbers than the benchmark's own, which makes it a try as well. `kept`: names of results that need
    not be measured again. `say`: takes lines about the progress."""

    quick: bool = False
    only: str = ""
    tabs: int | None = None
    minutes: float | None = None
    kept: frozenset[str] = frozenset()
    say: Callable[[str], None] = field(default=lambda _: None)


@dataclass(frozen=True, slots=True)
class Full:
    """The form of a result that was measured in full: its settings, and how many values each of its series has; None
    for any number. A kept result of another form was measured by an older version of the benchmark."""

    settings: Mapping[str, float]
    series: Mapping[str, int | None]


class Benchmark(Protocol):
    """A module of this package."""

    NAME: str

    def measure(self, ask: Ask) -> Iterable[Result]:
        """Measure, and yield each result when it is complete."""
        ...

    def full(self) -> Mapping[str, Full]:
        """Return the form of each result, by name."""
        ...

    def checks(self, results: Mapping[str, Result]) -> list[Check]:
        """Compare the figures of the results with their targets."""
        ...

    def section(self, results: Mapping[str, Result]) -> list[str]:
        """Return the benchmark's section of the page, as lines of Markdown, from the results that there are."""
        ...
