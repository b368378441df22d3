"""Epochs: a run that goes on with another task, grader or seed begins a new epoch. Scores of two epochs are not
compared.

Counts go on over an epoch's end: numbers, budgets, heartbeats. Whatever compares scores starts again with the seed's
new score, and so do the groups of failures, because their reasons came from another grader.
"""

from dataclasses import replace

from attempts.record import Attempt, Submission
from attempts.standing import advance
from coral.fleet import actions as do, events as on
from coral.fleet.attempts import holdouts
from coral.fleet.attempts.grading import end_earlier, stop_grading
from coral.fleet.messages import CHANGED, end_stagnation, put_in_force, withdraw_stagnation
from coral.fleet.run_state import FLEET, AttemptStep, PendingAttempt
from coral.fleet.transaction import Transaction
from heartbeats.heartbeat import Scope


def on_task_changed(transaction: Transaction, event: on.TaskChanged) -> None:
    if event.baseline is not None:
        _begin(transaction, event.baseline)
    if event.holdout:
        holdouts.begin_anew(transaction)
        stop_grading(transaction, only_holdouts=True)
    if event.heartbeats:
        put_in_force(transaction, FLEET, transaction.rules.defaults(Scope.FLEET))
        for name in list(transaction.agents):
            put_in_force(transaction, name, transaction.rules.defaults(Scope.OWN))


def _begin(transaction: Transaction, baseline: Attempt) -> None:
    """Begin a new epoch: publish the new baseline, queue again what is being graded, and tell every agent."""
    if baseline.epoch <= transaction.run.epoch:
        return  # the last supervisor died before it had removed what it had taken in
    stop_grading(transaction)
    _forget_old_scores(transaction)
    run = transaction.run
    record = replace(baseline, number=run.next_number, order=run.order + 1, published_at=transaction.wall)
    transaction.set_run(
        epoch=record.epoch, next_number=record.number + 1, order=record.order, grade_seconds=record.seconds,
        failures={}, alerted_failures=(), earlier_evals=run.progress.evals,
    )  # fmt: skip
    transaction.set_standing(advance(transaction.standing, record, transaction.rules.scoring))
    holdouts.queue(transaction, transaction.standing.seed)
    transaction.pending[record.number] = _published(record)
    transaction.act(do.Publish(attempt=record))
    withdraw_stagnation(transaction)
    for name in list(transaction.agents):
        end_stagnation(transaction, name)
        transaction.queue_notice(name, CHANGED, transaction.clock)


def _forget_old_scores(transaction: Transaction) -> None:
    """Clear what ties pending attempts to scores of the earlier epoch, and end the supervisor's own grades that still
    wait."""
    for number, pending in list(transaction.pending.items()):
        if pending.step is AttemptStep.SETTLED:
            continue
        pending = transaction.set_pending(number, built_on=None, duplicate_of=None, suspicion="")
        if not pending.is_submitted and pending.step is AttemptStep.QUEUED:
            end_earlier(transaction, pending)


def _published(record: Attempt) -> PendingAttempt:
    """Return the pending entry of a baseline that has its verdict and whose record is being written."""
    submission = Submission(
        id="", agent="", commit=record.commit, tree=record.tree, title=record.title, kind=record.kind,
        submitted_at=record.submitted_at, wait=0.0,  # mutants: equivalent, nobody waits for it
    )  # fmt: skip
    return PendingAttempt(number=record.number, submission=submission, step=AttemptStep.SETTLED, attempt=record)
