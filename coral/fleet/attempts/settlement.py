"""Settlement: an attempt gets its verdict and its place in the order of publication, once; heartbeats fire.

Its record is a file that is written afterwards, and may be written again.
"""

from dataclasses import replace

from attempts.progress import advance
from attempts.record import Attempt, Kind, Verdict
from coral.fleet import actions as do
from coral.fleet import events as on
from coral.fleet.agents.stalls import restart_timer
from coral.fleet.messages import deliver_at_eval, fire_after_attempt, withdraw_overtaken
from coral.fleet.policy import MAX_VOIDS, QUEUE_PAUSE_SECONDS
from coral.fleet.run_state import AttemptStep, PendingAttempt
from coral.fleet.transaction import Transaction


def settle(
    transaction: Transaction,
    pending: PendingAttempt,
    verdict: Verdict,
    *,
    score: float | None = None,
    reason: str = "",
    graded: on.Graded | None = None,
) -> None:
    """Give the attempt its verdict: count it, fire the heartbeats, publish it, and answer its `coral eval`."""
    order = transaction.run.order + 1
    attempt = _record_of(transaction, pending, verdict, order, score=score, reason=reason, graded=graded)
    transaction.set_run(order=order)
    _count(transaction, attempt)
    _watch_voids(transaction, attempt)
    waits = transaction.clock < pending.waited_until
    names, inline = deliver_at_eval(transaction, attempt.agent, waits)
    if waits:
        restart_timer(transaction, attempt.agent)
    transaction.set_pending(
        pending.number, step=AttemptStep.SETTLED, deadline=None, waited_until=0.0, attempt=attempt, heartbeats=names
    )
    launch = transaction.agents[attempt.agent].launch
    transaction.act(do.Publish(attempt=attempt, launch=launch, heartbeats=names, inline=inline))


def _record_of(
    transaction: Transaction,
    pending: PendingAttempt,
    verdict: Verdict,
    order: int,
    *,
    score: float | None,
    reason: str,
    graded: on.Graded | None,
) -> Attempt:
    """Make the attempt's record from its submission, its verdict and what its grader reported."""
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
    if pending.suspicion:  # the seed was graded in its place
        return replace(record, seconds=graded.seconds)
    return replace(record, seconds=graded.seconds, feedback=graded.feedback, metrics=graded.metrics)


def _count(transaction: Transaction, attempt: Attempt) -> None:
    rules = transaction.rules
    before, whole_before = transaction.agents[attempt.agent].progress, transaction.run.progress
    own = advance(before, attempt, rules.direction, rules.noise)
    whole = advance(whole_before, attempt, rules.direction, rules.noise)
    transaction.set_agent(attempt.agent, progress=own, crashes=0, unproductive_turns=0)
    transaction.set_run(progress=whole)
    if own.evals == before.evals:
        return
    withdraw_overtaken(transaction, attempt.agent, improved=own.stagnant == 0, best_improved=whole.stagnant == 0)
    fire_after_attempt(transaction, attempt.agent, attempt.number)


def _watch_voids(transaction: Transaction, attempt: Attempt) -> None:
    """Pause the queue after three void attempts in a row: breaking the grader must not be a way to try for free."""
    voids = transaction.run.voids_in_a_row + 1 if attempt.verdict is Verdict.VOID else 0
    transaction.set_run(voids_in_a_row=voids)
    if voids >= MAX_VOIDS:
        transaction.set_run(queue_paused_until=transaction.clock + QUEUE_PAUSE_SECONDS)
        transaction.alert(
            f"{voids} attempts in a row are void; "
            f"grading is held up for {QUEUE_PAUSE_SECONDS:g} seconds: {attempt.reason}"
        )
