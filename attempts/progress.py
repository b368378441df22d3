"""Progress is computed from the published attempts, in their order; it is never stored.

An attempt does not improve unless it is better by more than the task's noise; `best` follows any strictly better score,
so that small gains add up without counting as improvements.
"""

from dataclasses import dataclass, replace

from attempts.record import Attempt, Direction, Kind, Verdict
from attempts.verdict import judge


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of one agent, or of the fleet.

    `evals` counts real attempts with any verdict but void, `stagnant` those since the last improvement, and
    `graded` everything graded but void (what budgets count).
    """

    evals: int = 0
    best: float | None = None
    best_attempt: int | None = None
    stagnant: int = 0
    graded: int = 0


def advance(progress: Progress, attempt: Attempt, direction: Direction, noise: float) -> Progress:
    """Progress after one more attempt.

    The score is compared with `progress.best`, and not taken from the record's verdict, so that this function serves
    an agent's own progress and the fleet's. But an attempt tied with the fleet's best improves nobody's progress: a
    copy of another agent's work may be better than all its agent had, without being a step forward.
    """
    if attempt.verdict is Verdict.VOID:
        return progress
    match attempt.kind:
        case Kind.BASELINE:
            return _with_best(progress, attempt, direction)
        case Kind.TUNE:
            return replace(progress, graded=progress.graded + 1)
        case Kind.CONFIRM:
            return replace(_with_best(progress, attempt, direction), graded=progress.graded + 1)
        case Kind.REAL:
            improved = judge(progress.best, attempt.score, direction, noise) is Verdict.IMPROVED
            improved = improved and attempt.verdict is not Verdict.TIED
            return replace(
                _with_best(progress, attempt, direction),
                evals=progress.evals + 1,
                stagnant=0 if improved else progress.stagnant + 1,
                graded=progress.graded + 1,
            )


def _with_best(progress: Progress, attempt: Attempt, direction: Direction) -> Progress:
    if attempt.score is None:
        return progress
    if progress.best is not None and not direction.better(attempt.score, progress.best):
        return progress
    return replace(progress, best=attempt.score, best_attempt=attempt.number)
