"""The record of an attempt that settles: what was submitted, what became of it, and what its grader told."""

from dataclasses import replace

from attempts.record import Attempt, Kind, Verdict
from coral.fleet import events as on
from coral.fleet.run_state import PendingAttempt
from coral.fleet.transaction import Transaction


def record_of(
    transaction: Transaction,
    pending: PendingAttempt,
    verdict: Verdict,
    order: int,
    *,
    score: float | None,
    reason: str,
    graded: on.Graded | None,
) -> Attempt:
    submission = pending.submission
    record = Attempt(
        number=pending.number,
        agent=submission.agent,
        kind=submission.kind,
        commit=pending.commit or submission.commit,
        tree=pending.tree or submission.tree,
        parent=pending.parent,
        title=submission.title,
        submission=submission.id,
        submitted_at=submission.submitted_at,
        published_at=transaction.wall,
        order=order,
        verdict=verdict,
        score=score,
        reason=reason,
        of=submission.of if submission.kind is Kind.CONFIRM else None,
    )
    if graded is None:
        return record
    told = {} if pending.suspicion else {"feedback": graded.feedback, "metrics": graded.metrics}
    return replace(record, seconds=graded.seconds, **told)  # type: ignore[arg-type]
