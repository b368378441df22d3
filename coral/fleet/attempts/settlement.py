"""Settlement: an attempt gets its verdict and its place in the order of publication, once; heartbeats fire.

The attempt's record is a file that is written afterwards, and may be written again.
"""

from dataclasses import replace

from attempts.failures import counted
from attempts.progress import advance_fleet, advance_own
from attempts.record import IMPROVED, OPEN, Attempt, Kind, Submission, Verdict
from attempts.standing import Judgement, advance
from coral.fleet import actions as do, events as on
from coral.fleet.agents.stalls import restart_timer
from coral.fleet.attempts import confirmations, holdouts
from coral.fleet.messages import deliver_at_eval, fire_after_attempt, withdraw_overtaken
from coral.fleet.policy import MAX_VOIDS, MIN_FAILURES_WATCHED, QUEUE_PAUSE_SECONDS
from coral.fleet.run_state import AttemptStep, PendingAttempt
from coral.fleet.transaction import Transaction

ANOTHER_EPOCH = "the task has changed since it was asked for"


def settle(
    transaction: Transaction,
    pending: PendingAttempt,
    judgement: Judgement,
    *,
    score: float | None = None,
    reason: str = "",
    graded: on.Graded | None = None,
    channel: str = OPEN,
) -> None:
    """Give the attempt its verdict: count it, fire the heartbeats, publish it, and answer its `coral eval`. `channel`:
    of the grade whose score it has, if it has no grade of its own."""
    order = transaction.run.order + 1
    attempt = _record_of(transaction, pending, judgement, order, score=score, reason=reason, graded=graded)
    if graded is None:
        attempt = replace(attempt, channel=channel)
    transaction.set_run(order=order, waiting_since=transaction.clock)
    if graded is not None and score is not None:
        transaction.set_run(grade_seconds=graded.seconds)
    before = transaction.run.best
    transaction.set_standing(advance(transaction.standing, attempt, transaction.rules.scoring))
    if transaction.run.best != before:
        holdouts.queue(transaction, transaction.standing.best_measured)
    if attempt.epoch == transaction.run.epoch:
        _watch_voids(transaction, attempt)
    if pending.confirmation is not None:
        confirmations.count(transaction, attempt)
        transaction.set_pending(pending.number, step=AttemptStep.SETTLED, deadline=None, attempt=attempt)
        transaction.act(do.Publish(attempt=attempt))
        return
    _count(transaction, attempt, pending.answers + 1)
    _watch_failures(transaction, attempt)
    waits = transaction.clock < pending.waited_until
    names, inline = deliver_at_eval(transaction, attempt.agent, waits)
    if waits:
        restart_timer(transaction, attempt.agent)
    transaction.set_pending(
        pending.number, step=AttemptStep.SETTLED, deadline=None, waited_until=0.0, attempt=attempt, heartbeats=names
    )
    launch = transaction.agents[attempt.agent].launch
    transaction.act(do.Publish(attempt=attempt, launch=launch, heartbeats=names, inline=inline))


def restore(transaction: Transaction, attempt: Attempt) -> None:
    """Count an attempt that was published in the time that a damaged journal lost, with the verdict and order of its
    record."""
    pending = transaction.pending.get(attempt.number) or _forgotten(attempt)
    transaction.set_run(order=attempt.order)
    transaction.set_standing(advance(transaction.standing, attempt, transaction.rules.scoring))
    launch = 0
    if attempt.kind is Kind.CONFIRM:
        confirmations.count(transaction, attempt)
    elif attempt.agent in transaction.agents:
        _count(transaction, attempt, pending.answers + 1)
        _watch_failures(transaction, attempt)
        launch = transaction.agents[attempt.agent].launch
    transaction.pending[attempt.number] = replace(
        pending, step=AttemptStep.SETTLED, deadline=None, waited_until=0.0, attempt=attempt
    )
    transaction.act(do.Publish(attempt=attempt, launch=launch))


def _forgotten(attempt: Attempt) -> PendingAttempt:
    submission = Submission(
        id=attempt.submission, agent=attempt.agent, commit=attempt.commit, tree=attempt.tree, title=attempt.title,
        kind=attempt.kind, submitted_at=attempt.submitted_at,
        wait=0.0,  # mutants: equivalent, nobody waits for it
    )  # fmt: skip
    return PendingAttempt(number=attempt.number, submission=submission)


def _record_of(
    transaction: Transaction,
    pending: PendingAttempt,
    judgement: Judgement,
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
        verdict=judgement.verdict,
        score=score,
        reason=reason,
        of=pending.duplicate_of if pending.confirmation is None else pending.confirmation.of,
        against=judgement.against if pending.confirmation is None else pending.confirmation.against,
        delta=judgement.delta,
        seal=pending.seal,
        epoch=transaction.run.epoch if pending.is_submitted else pending.epoch,
    )
    if graded is None:
        return record
    if pending.suspicion:  # the seed was graded in its place
        return replace(record, seconds=graded.seconds)
    return replace(
        record, seconds=graded.seconds, feedback=graded.feedback, metrics=graded.metrics, channel=graded.channel
    )


def _count(transaction: Transaction, attempt: Attempt, depth: int) -> None:
    before = transaction.agents[attempt.agent].progress
    own = advance_own(before, attempt)
    transaction.set_agent(attempt.agent, progress=own, crashes=0, unproductive_turns=0)
    transaction.set_run(progress=advance_fleet(transaction.run.progress, attempt))
    if own.evals == before.evals:
        return
    improved, best_improved = attempt.verdict in IMPROVED, attempt.verdict is Verdict.NEW_BEST
    withdraw_overtaken(transaction, attempt.agent, improved=improved, best_improved=best_improved)
    fire_after_attempt(transaction, attempt.agent, attempt.number, depth)


def _watch_failures(transaction: Transaction, attempt: Attempt) -> None:
    """Alert the operator once for each kind of failure that more than half of this epoch's attempts have: hardly any
    task is meant to be like that, so the grader or the instructions may be wrong."""
    if attempt.verdict is not Verdict.FAILED or attempt.kind is not Kind.REAL:
        return
    run = transaction.run
    kind, failures = counted(run.failures, attempt.reason)
    transaction.set_run(failed=run.failed + 1, failures=failures)
    count, graded = failures[kind].count, run.progress.evals - run.earlier_evals
    if graded >= MIN_FAILURES_WATCHED and 2 * count > graded and kind not in run.alerted_failures:
        transaction.set_run(alerted_failures=(*run.alerted_failures, kind))
        transaction.alert(f"{count} of {graded} attempts failed for one reason: {attempt.reason or kind}")


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
