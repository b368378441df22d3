"""Progress is computed from the published attempts, in their order; it is never stored.

Whether an attempt is an improvement is said by its verdict: a new best is one for the fleet and its author, an own best
for the author alone.
"""

from dataclasses import dataclass, replace

from attempts.record import IMPROVED, Attempt, Kind, Verdict


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of one agent, or of the fleet.

    `evals`: real attempts with any verdict but void. `stagnant`: how many of these came since the last improvement.
    `graded`: all attempts that agents submitted, but void ones: what budgets count.
    """

    evals: int = 0
    stagnant: int = 0
    graded: int = 0


def advance_own(progress: Progress, attempt: Attempt) -> Progress:
    """Return an agent's progress after one more attempt of its own."""
    return _advance(progress, attempt, attempt.verdict in IMPROVED)


def advance_fleet(progress: Progress, attempt: Attempt) -> Progress:
    """Return the fleet's progress after one more attempt of any agent."""
    return _advance(progress, attempt, attempt.verdict is Verdict.NEW_BEST)


def end_stagnation(progress: Progress) -> Progress:
    """Return progress without stagnation, after a confirmation proved a new best: the confirmation itself counts as no
    attempt."""
    return replace(progress, stagnant=0)


def _advance(progress: Progress, attempt: Attempt, improved: bool) -> Progress:
    if attempt.verdict is Verdict.VOID or attempt.kind not in (Kind.REAL, Kind.TUNE):
        return progress
    if attempt.kind is Kind.TUNE:
        return replace(progress, graded=progress.graded + 1)
    return Progress(progress.evals + 1, 0 if improved else progress.stagnant + 1, progress.graded + 1)
