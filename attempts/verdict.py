"""Whether a score is better than the best before it, tied with it, or worse."""

from attempts.record import Direction, Verdict


def judge(best: float | None, score: float | None, direction: Direction, noise: float) -> Verdict:
    """The verdict on a score, given the best score before it. An attempt without a score has failed."""
    if score is None:
        return Verdict.FAILED
    if best is None:
        return Verdict.IMPROVED
    if abs(score - best) <= noise:
        return Verdict.TIED
    return Verdict.IMPROVED if direction.better(score, best) else Verdict.REGRESSED
