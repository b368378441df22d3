"""What a benchmark is: it measures when asked, and says what its results mean. It knows where no result is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from benchmarks.figure import Check
from benchmarks.results import Result


@dataclass(frozen=True, slots=True)
class Ask:
    """What is wanted. `quick`: a try, not a figure. `kept`: results that need not be measured again. `tabs`, `minutes`:
    other numbers than the benchmark's own, which is a try as well."""

    quick: bool = False
    only: str = ""
    tabs: int | None = None
    minutes: float | None = None
    kept: frozenset[str] = frozenset()
    say: Callable[[str], None] = field(default=lambda _: None)


@dataclass(frozen=True, slots=True)
class Full:
    """What a measurement in full is kept as: its settings, and how many values each of its series has; None is as many
    as came. A result that is kept and is not like that was measured by an older benchmark."""

    settings: Mapping[str, float]
    series: Mapping[str, int | None]


class Benchmark(Protocol):
    """A module of this package."""

    NAME: str

    def measure(self, ask: Ask) -> Iterable[Result]:
        """One result at a time, each complete when it comes."""
        ...

    def full(self) -> Mapping[str, Full]:
        """Its results, by name, as they are to be kept."""
        ...

    def checks(self, results: Mapping[str, Result]) -> list[Check]:
        """Its figures against their targets."""
        ...

    def section(self, results: Mapping[str, Result]) -> list[str]:
        """What the page says, as lines of Markdown, from the results that there are."""
        ...
