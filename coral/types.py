"""What a grader gives back: a Result, or a Fail that says what is wrong with the candidate.

Graders run in environments of their own, so this file imports nothing but the standard library.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Result:
    """A score with what explains it. `metrics` are named numbers, texts or booleans; agents read both."""

    score: float
    metrics: Mapping[str, object] = field(default_factory=dict)
    feedback: str = ""


class Fail(Exception):  # noqa: N818 - it is a verdict on the candidate, not an error of the grader
    """The candidate is at fault, and `reason` says why. A grader raises it, or returns it like a Result."""

    def __init__(self, reason: str, feedback: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.feedback = feedback
