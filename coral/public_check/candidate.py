"""What a public check is asked about a candidate, which is its files, and what it says of it: a score, constraints."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

Texts = dict[str, str]  # of files, by their names


@dataclass(frozen=True)
class Measurement:
    """The result of the check for one candidate: its score, and how far it is inside each constraint (negative:
    broken).

    `error` is not empty if the check gave no usable result.
    """

    score: float = 0.0
    slack: Sequence[float] = ()
    error: str = ""

    @cached_property
    def worst(self) -> float:
        return min(self.slack, default=0.0)

    @property
    def feasible(self) -> bool:
        return not self.error and self.worst >= 0.0
