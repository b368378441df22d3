"""Scores and lists of attempts as text, with as many digits as scores that are compared may need."""

from collections.abc import Sequence


def score_text(value: float | None) -> str:
    return "no score" if value is None else f"{value:.10g}"


def attempt_list(numbers: Sequence[int]) -> str:
    """Write numbers of attempts as `#3, #5 and #7`."""
    named = [f"#{number}" for number in numbers]
    return " and ".join((", ".join(named[:-1]), named[-1])) if len(named) > 1 else "".join(named)
