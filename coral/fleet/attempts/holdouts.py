"""The hold-out: a second way to score, which agents never see. The supervisor grades on it by itself: the seed, each
new best, and the lead at the end.

A grade on the hold-out is no attempt: it has no record, no budget counts it, and its score is kept in the journal
alone. Its key among the pending attempts is a negative number, see `coral.fleet.process_key`.
"""

from attempts.record import Kind, Submission
from attempts.standing import Measured, lead
from coral.fleet import actions as do, events as on
from coral.fleet.process_key import holdout_key
from coral.fleet.reasons import RunEndKind
from coral.fleet.run_state import AttemptStep, HoldoutScore, PendingAttempt, Run
from coral.fleet.transaction import Transaction

# What ends a run in order: then what is still to be graded on the hold-out is graded first.
_FINISHES = (RunEndKind.BUDGET, RunEndKind.TARGET, RunEndKind.PLATEAU, RunEndKind.ALL_RETIRED)


def queue(transaction: Transaction, measured: Measured | None) -> None:
    """Queue the grade of an attempt on the hold-out, unless the task has no hold-out or the attempt has such a grade
    already."""
    if measured is None or transaction.rules.holdout_timeout is None:
        return
    key = holdout_key(measured.number)
    if key in transaction.pending or measured.number in transaction.holdouts:
        return
    submission = Submission(
        id="", agent=measured.agent, commit=measured.commit, tree=measured.tree, title=measured.title,
        kind=Kind.HOLDOUT, submitted_at=transaction.wall,
        wait=0.0,  # mutants: equivalent, nobody waits for it
    )  # fmt: skip
    transaction.pending[key] = PendingAttempt(
        number=key, submission=submission, step=AttemptStep.QUEUED, commit=measured.commit,
        holdout_of=measured.number, epoch=transaction.run.epoch,
    )  # fmt: skip


def begin_anew(transaction: Transaction) -> None:
    """Start with another hold-out: forget the scores on the one before, and grade the seed and the best on the new
    one."""
    transaction.holdouts.clear()
    for key, pending in list(transaction.pending.items()):
        if pending.is_holdout and pending.step is AttemptStep.QUEUED:
            del transaction.pending[key]
    queue(transaction, transaction.standing.seed)
    queue(transaction, transaction.standing.best_measured)


def queue_last(transaction: Transaction) -> None:
    """Queue the lead's grade on the hold-out when the run ends in order: it may be better than the best although that
    is not proven."""
    if goes_on(transaction.run):
        queue(transaction, lead(transaction.standing, transaction.rules.scoring))


def goes_on(run: Run) -> bool:
    """Return whether a stopping run waits for its grades on the hold-out: if it ends in order (budget, target, plateau,
    all agents retired), nobody has asked for a stop meanwhile, and both the disk and the cluster can be used."""
    ends = run.stopping is not None and run.stopping.kind in _FINISHES
    return ends and not run.is_hurried and not run.disk_problem and not run.cluster_problem


def is_waited_for(transaction: Transaction) -> bool:
    """Return whether the end of the run waits for a grade on the hold-out."""
    return goes_on(transaction.run) and any(pending.is_holdout for pending in transaction.pending.values())


def on_graded(transaction: Transaction, pending: PendingAttempt, event: on.Graded) -> None:
    if pending.exceeded:
        end(transaction, pending, reason=pending.exceeded, seconds=event.seconds)
    elif event.outcome is on.Outcome.SCORED:
        end(transaction, pending, event.score, seconds=event.seconds)
    else:
        end(transaction, pending, reason=event.reason or "the grader crashed", seconds=event.seconds)


def end(
    transaction: Transaction,
    pending: PendingAttempt,
    score: float | None = None,
    *,
    reason: str = "",
    seconds: float = 0.0,
) -> None:
    """End a grade on the hold-out: keep its score, or the reason why it has none."""
    number = pending.holdout_of
    assert number is not None, "it is a grade on the hold-out"
    del transaction.pending[pending.number]
    transaction.holdouts[number] = HoldoutScore(number=number, score=score, reason=reason, seconds=seconds)
    transaction.act(do.ShowHoldouts(graded=pending.number))
    transaction.log("hold-out", f"#{number} was tried")  # agents may read this, and learn nothing by it
    seed = transaction.standing.seed
    if score is None and seed is not None and seed.number == number:
        transaction.alert("the hold-out cannot grade the seed: see private/holdout.json")
