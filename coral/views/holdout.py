"""Compares the scores of attempts with their scores on the hold-out, and says where the two disagree.

Both scores are single grades or medians of a few, so a disagreement is a reason to look and no proof.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from attempts.record import Direction


class Divergence(StrEnum):
    """How the hold-out contradicts what the score of an attempt says."""

    FAILED = "failed"  # the attempt has a score, and none on the hold-out
    NO_GAIN = "no_gain"  # the attempt is better than the seed, but not on the hold-out
    OVERTAKEN = "overtaken"  # an earlier attempt with a worse score is better on the hold-out


@dataclass(frozen=True, slots=True)
class HeldOut:
    """An attempt with its score and its score on the hold-out. `holdout`: None if it has none there; `reason` then says
    why."""

    number: int
    score: float
    holdout: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Compared:
    """An attempt and how its two scores disagree, None if they do not. `by`: the earlier attempt that is better on the
    hold-out."""

    row: HeldOut
    divergence: Divergence | None = None
    by: int | None = None


def compare(rows: Sequence[HeldOut], direction: Direction) -> list[Compared]:
    """Compare the scores of each attempt. `rows`: first the seed, then the attempts in the order in which they were
    graded."""
    return [Compared(row, *_divergence(row, rows[0], rows[1:place], direction)) for place, row in enumerate(rows)]


def _divergence(
    row: HeldOut, seed: HeldOut, earlier: Iterable[HeldOut], direction: Direction
) -> tuple[Divergence | None, int | None]:
    if row.holdout is None:
        return Divergence.FAILED, None
    if row is seed or seed.holdout is None:
        return None, None
    if direction.better(row.score, seed.score) and not direction.better(row.holdout, seed.holdout):
        return Divergence.NO_GAIN, None
    for other in earlier:
        is_higher = other.holdout is not None and direction.better(other.holdout, row.holdout)
        if is_higher and direction.better(row.score, other.score):
            return Divergence.OVERTAKEN, other.number
    return None, None


def divergence_text(compared: Compared) -> str:
    match compared.divergence:
        case Divergence.FAILED:
            return f"no score on the hold-out: {compared.row.reason}"
        case Divergence.NO_GAIN:
            return "no gain over the seed on the hold-out"
        case Divergence.OVERTAKEN:
            return f"#{compared.by} is better on the hold-out"
    return ""
