"""Intake: a submission gets a number, and its commit is brought into the hub; if that fails by our fault, it is tried
again.

An attempt that cannot be graded settles here; the others are queued for a grading slot.
"""

from attempts.record import Kind, Submission, Verdict
from attempts.standing import Judgement, is_exact, noise_of
from coral.fleet import actions as do, chains, events as on
from coral.fleet.agents import research
from coral.fleet.agents.budgets import no_attempt_left
from coral.fleet.agents.stalls import record_progress
from coral.fleet.attempts.settlement import settle
from coral.fleet.policy import INTAKE_RETRY_SECONDS, MAX_INTAKE_RETRIES, is_repeat, remember
from coral.fleet.run_state import AttemptStep, PendingAttempt
from coral.fleet.transaction import Transaction


def on_submitted(transaction: Transaction, submission: Submission) -> None:
    agent = transaction.agents.get(submission.agent)
    if agent is None or transaction.run.stopping or transaction.run.detached_reason or transaction.run.disk_problem:
        return  # the submission stays in the inbox, and comes again with the next turn
    if is_repeat(agent.recent_submissions, submission.id):
        transaction.act(do.Discard(agent=agent.name, submission=submission.id))
        return
    if reason := research.refusal(transaction, agent) or no_attempt_left(transaction.fleet(), agent, transaction.rules):
        transaction.act(do.Refuse(agent=agent.name, submission=submission.id, reason=reason))
        return
    number = transaction.run.next_number
    transaction.set_run(next_number=number + 1)
    # A refusal is not remembered: if a crash loses it, the submission is refused again, which does no harm.
    transaction.set_agent(
        agent.name, submitted=agent.submitted + 1, recent_submissions=remember(agent.recent_submissions, submission.id)
    )
    record_progress(transaction, agent.name)
    transaction.pending[number] = PendingAttempt(
        number=number,
        submission=submission,
        waited_until=transaction.clock + submission.wait,
        answers=agent.chain.depth,
    )
    transaction.act(do.TakeIn(number=number, agent=agent.name, commit=submission.commit, kind=submission.kind))
    transaction.act(do.Accept(agent=agent.name, submission=submission.id, number=number))


def on_taken_in(transaction: Transaction, event: on.TakenIn) -> None:
    pending = transaction.pending.get(event.number)
    if pending is None or pending.step is not AttemptStep.TAKING:
        return
    pending = transaction.set_pending(
        event.number,
        commit=event.commit,
        tree=event.tree,
        parent=event.parent,
        seal=event.seal,
        built_on=event.built_on,
    )
    pending = chains.on_taken_in(transaction, pending, event)
    duplicate = event.duplicate
    if duplicate is not None and _scores_the_same(transaction):
        reason = f"the same tree as #{duplicate.number}"
        judgement = Judgement(Verdict.TIED, duplicate.number)
        settle(transaction, pending, judgement, score=duplicate.score, reason=reason, channel=event.channel)
    else:
        number = None if duplicate is None or pending.submission.kind is Kind.TUNE else duplicate.number
        transaction.set_pending(event.number, step=AttemptStep.QUEUED, deadline=None, duplicate_of=number)


def _scores_the_same(transaction: Transaction) -> bool:
    """Return whether every grade of one tree gives the same score, so that a duplicate need not be graded."""
    standing, scoring = transaction.standing, transaction.rules.scoring
    return is_exact(standing, noise_of(standing, scoring), scoring)


def on_intake_failed(transaction: Transaction, event: on.IntakeFailed) -> None:
    pending = transaction.pending.get(event.number)
    if pending is None or pending.step is not AttemptStep.TAKING:
        return
    if not event.our_fault:
        settle(transaction, pending, Judgement(Verdict.FAILED), reason=event.reason)
    elif transaction.run.disk_problem or transaction.run.stopping:
        transaction.set_pending(event.number, deadline=transaction.clock)
    elif pending.failed_intakes < MAX_INTAKE_RETRIES:
        transaction.set_pending(
            event.number, failed_intakes=pending.failed_intakes + 1, deadline=transaction.clock + INTAKE_RETRY_SECONDS
        )
    else:
        settle(transaction, pending, Judgement(Verdict.VOID), reason=event.reason)


def take_again(transaction: Transaction, pending: PendingAttempt) -> None:
    submission = transaction.set_pending(pending.number, deadline=None).submission
    transaction.act(
        do.TakeIn(number=pending.number, agent=submission.agent, commit=submission.commit, kind=submission.kind)
    )
