"""Confirmations: the supervisor measures attempts again, to learn how noisy the task is and to prove a new best.

One confirmation is graded at a time, before anything else that waits for a slot. Confirmations may use only a share of
the grading, so that they cannot use up a task whose grades are expensive; once the share is used, the lead stays
unproven.
"""

from collections.abc import Iterable

from attempts.record import Attempt, Kind, Submission, Verdict
from attempts.standing import Confirmation, next_confirmation, noise_of, without_half
from coral.fleet.messages import end_stagnation, withdraw_overtaken
from coral.fleet.policy import (
    FREE_CONFIRMATION_SECONDS,
    MAX_SEED_GRADES,
    MIN_SEED_GRADES,
    SEED_GRADES_SECONDS,
)
from coral.fleet.rules import Rules, in_force
from coral.fleet.run_state import AttemptStep, PendingAttempt, Run
from coral.fleet.transaction import Transaction

PAIR = 2  # grades


def queue_next(transaction: Transaction) -> None:
    """Queue the next confirmation, if one is wanted and none is pending. Returns at once unless the standing has
    changed since the last call."""
    if not transaction.standing_changed:
        return
    transaction.standing_changed = False  # mutants: equivalent, asked again it asks for nothing else
    if transaction.run.is_ending or is_under_way(transaction.pending.values()):
        return
    run, rules = transaction.run, transaction.rules
    asked = next_confirmation(transaction.standing, rules.scoring)
    if asked is not None and (transaction.standing.half is not None or is_affordable(run, rules, PAIR)):
        _queue(transaction, asked)
    elif _is_seed_wanted(transaction) and is_affordable(run, rules, PAIR + 1):  # a pair must stay affordable after it
        seed = transaction.standing.seed
        assert seed is not None, "it is wanted"
        _queue(transaction, Confirmation(seed.number))


def is_under_way(pending: Iterable[PendingAttempt]) -> bool:
    return any(attempt.confirmation and attempt.step is not AttemptStep.SETTLED for attempt in pending)


def drop_half(transaction: Transaction) -> None:
    """Drop a pair of which one half is measured, because a new supervisor has taken over: what happened in between may
    explain a difference of the halves. A second half that is queued becomes a single measurement, outside of any
    pair."""
    half = transaction.standing.half
    if half is None:
        return
    for attempt in list(transaction.pending.values()):
        if attempt.confirmation == Confirmation(half.against, half.of):
            transaction.set_pending(attempt.number, confirmation=Confirmation(half.against))
    transaction.set_standing(without_half(transaction.standing))


def count(transaction: Transaction, attempt: Attempt) -> None:
    """Count a confirmation that was graded. If it proves a new best, the stagnation of that attempt's author ends."""
    run = transaction.run
    transaction.set_run(confirmations=run.confirmations + 1, confirm_seconds=run.confirm_seconds + attempt.seconds)
    if attempt.verdict is Verdict.NEW_BEST:
        end_stagnation(transaction, attempt.agent)
        withdraw_overtaken(transaction, attempt.agent, improved=True, best_improved=True)


def _queue(transaction: Transaction, asked: Confirmation) -> None:
    number, measured = transaction.run.next_number, transaction.measured[asked.of]
    transaction.set_run(next_number=number + 1)
    beside = "" if asked.against is None else f" beside #{asked.against}"
    title = f"#{asked.of} measured again{beside}"
    submission = Submission(
        id="", agent=measured.agent, commit=measured.commit, tree=measured.tree, title=title, kind=Kind.CONFIRM,
        wait=0.0, submitted_at=transaction.wall,  # mutants: equivalent, nobody waits for it
    )  # fmt: skip
    transaction.pending[number] = PendingAttempt(
        number=number, submission=submission, step=AttemptStep.QUEUED, commit=measured.commit, tree=measured.tree,
        parent=measured.parent, confirmation=asked, epoch=transaction.run.epoch,
    )  # fmt: skip


def is_affordable(run: Run, rules: Rules, grades: int) -> bool:
    """Return whether the share of confirmations allows `grades` more of them. Sixty seconds of grading and one pair are
    always allowed, so that a short run can prove its best too."""
    if not rules.confirm_share:
        return False
    rules = in_force(rules, run)
    seconds = run.confirm_seconds + grades * run.grade_seconds
    graded, most = run.progress.graded, rules.budget_attempts
    whole = graded if most is None else max(most, graded)
    return seconds <= FREE_CONFIRMATION_SECONDS or run.confirmations + grades <= max(2, rules.confirm_share * whole)


def _is_seed_wanted(transaction: Transaction) -> bool:
    """Return whether another grade of the seed helps to estimate the noise: the task states no noise, and the seed has
    too few scores, or scores that differ while the run is young and no attempt waits."""
    scoring, seed = transaction.rules.scoring, transaction.standing.seed
    if scoring.noise.deviation is not None or seed is None or seed.is_refuted:
        return False
    most = transaction.rules.budget_attempts
    if most is not None and transaction.run.progress.graded >= most:
        return False  # the run ends as soon as its last gain is proven
    if len(seed.scores) < MIN_SEED_GRADES:
        return True
    is_noisy = noise_of(transaction.standing, scoring).deviation > 0
    waits = any(attempt.step is AttemptStep.QUEUED for attempt in transaction.pending.values())
    early = transaction.clock < SEED_GRADES_SECONDS
    return is_noisy and early and not waits and len(seed.scores) < MAX_SEED_GRADES
