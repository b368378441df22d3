"""What a grader returns: a Result, a Fail that says what is wrong with the candidate, or a Void that says what is wrong
with the machine.

Graders run in environments of their own, so this file imports nothing but the standard library.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

TYPE_CHECKING = False  # as in typing, which few graders need
if TYPE_CHECKING:
    from coral.grader.scores import Score, ScoreBundle, Task

__all__ = ["Fail", "Result", "Score", "ScoreBundle", "Task", "Void"]


def __getattr__(name: str) -> object:
    """Import the classes for graders of the other CORAL on demand, because that takes milliseconds."""
    if name in ("Score", "ScoreBundle", "Task"):
        from coral.grader import scores

        return getattr(scores, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@dataclass(frozen=True, slots=True)
class Result:
    """A score, and what explains it. `metrics`: named numbers, texts or booleans; `feedback`: a text. Agents read
    both."""

    score: float
    metrics: Mapping[str, object] = field(default_factory=dict)
    feedback: str = ""


class Fail(Exception):  # noqa: N818 - it is a verdict on the candidate, not an error of the grader
    """The candidate is at fault, and `reason` says why. A grader raises it, or returns it like a Result."""

    def __init__(self, reason: str, feedback: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.feedback = feedback


class Void(Exception):  # noqa: N818 - as Fail
    """The candidate cannot be graded, and is not at fault: a service is down, a graphics card is gone. The attempt does
    not count. If code of the candidate may have raised this, the seed is graded in its place, as after a crash."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
