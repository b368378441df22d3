"""Grading: a queued attempt gets a grader process in one of a few slots, and is settled by its outcome.

A crash of the grader makes an attempt void only with proof that the candidate is not at fault: the seed, graded in its
place, fails too.
"""

from dataclasses import replace

from attempts.record import Kind, Verdict
from attempts.standing import Judgement, judge, judge_confirmation
from coral.errors import CoralError
from coral.fleet import actions as do, events as on
from coral.fleet.attempts import holdouts
from coral.fleet.attempts.intake import take_again
from coral.fleet.attempts.settlement import ANOTHER_EPOCH, settle
from coral.fleet.policy import (
    MAX_KILLS,
    MAX_LOST_GRADES,
    MAX_START_RETRIES,
    START_RETRY_SECONDS,
    kill_again_at,
    slots_of,
)
from coral.fleet.run_state import OCCUPYING, AttemptStep, PendingAttempt
from coral.fleet.transaction import Transaction

CANCELLED = "the operator cancelled it"
UNKILLABLE = "processes that its grade started could not be killed"


def on_checked_out(transaction: Transaction, event: on.CheckedOut) -> None:
    """Start the grader, unless the grade was ended while its commit was being checked out."""
    pending = transaction.pending.get(event.number)
    if pending is None or pending.launch != event.launch or pending.step not in OCCUPYING or pending.grader_started:
        return
    run = transaction.run
    is_ending = run.detached_reason or (run.stopping and not holdouts.goes_on(run))
    if pending.stopped or pending.exceeded or pending.cancelled or is_ending:
        on_graded(transaction, on.Graded(number=event.number, launch=event.launch, outcome=on.Outcome.LOST))
        return
    transaction.set_pending(event.number, grader_started=True)
    transaction.act(do.StartGrader(number=event.number, launch=event.launch, kind=_kind_to_grade(pending)))


def on_graded(transaction: Transaction, event: on.Graded) -> None:
    pending = transaction.pending.get(event.number)
    if pending is None or pending.launch != event.launch or pending.step not in OCCUPYING:
        return
    if transaction.run.disk_problem:
        void = pending.stopped or event.outcome is on.Outcome.LOST
        transaction.act(do.CleanUpGrade(number=event.number, launch=event.launch, whole=void))
    if pending.cancelled:
        _give_up(transaction, pending, CANCELLED)
    elif pending.stopped:
        _queue_again(transaction, pending)
    elif event.outcome is on.Outcome.LOST:
        _on_lost_grade(transaction, pending)
    elif pending.is_holdout:
        holdouts.on_graded(transaction, pending, event)
    elif pending.suspicion:
        _end_seed_check(transaction, pending, event)
    elif pending.exceeded:
        settle(transaction, pending, Judgement(Verdict.FAILED), reason=pending.exceeded, graded=event)
    elif event.outcome is on.Outcome.SCORED and event.score is not None:
        pending = _recognise_duplicate(transaction, pending)
        judgement = _judge(transaction, pending, event.score)
        settle(transaction, pending, judgement, score=event.score, graded=event)
    elif event.outcome is on.Outcome.VOID:
        settle(transaction, pending, Judgement(Verdict.VOID), reason=event.reason, graded=event)
    elif event.outcome is on.Outcome.FAILED:
        settle(transaction, pending, Judgement(Verdict.FAILED), reason=event.reason, graded=event)
    else:
        suspicion = event.reason or "the grader crashed"
        _queue_again(transaction, transaction.set_pending(event.number, suspicion=suspicion))


def on_grade_not_started(transaction: Transaction, number: int, launch: int, reason: str) -> None:
    pending = transaction.pending.get(number)
    if pending is None or pending.launch != launch or pending.step not in OCCUPYING:
        return
    if pending.cancelled:
        _give_up(transaction, pending, CANCELLED)
    elif pending.stopped:
        _queue_again(transaction, pending)
    elif pending.failed_starts < MAX_START_RETRIES:
        later = transaction.clock + START_RETRY_SECONDS
        transaction.set_pending(
            number, step=AttemptStep.QUEUED, failed_starts=pending.failed_starts + 1, deadline=later
        )
    else:
        _give_up(transaction, pending, f"the grader could not be started: {reason}")


def on_left_processes(transaction: Transaction, number: int, launch: int) -> None:
    """Kill the processes that a grader left running when it ended, so that the slot is really free."""
    pending = transaction.pending.get(number)
    if pending is not None and pending.launch == launch and pending.step is AttemptStep.GRADING:
        _kill(transaction, pending)


def on_over_limit(transaction: Transaction, event: on.GradeOverLimit) -> None:
    """Kill a grade at once that uses more of the machine than it may."""
    pending = transaction.pending.get(event.number)
    if pending is not None and pending.launch == event.launch and pending.step is AttemptStep.GRADING:
        _kill(transaction, transaction.set_pending(event.number, exceeded=event.reason))


def on_published(transaction: Transaction, number: int) -> None:
    pending = transaction.pending.get(number)
    if pending is not None and pending.step is AttemptStep.SETTLED:
        del transaction.pending[number]


def repeat_unfinished(transaction: Transaction) -> None:
    """Order again, under a new supervisor, what the last one may not have finished. Each of these actions can be done
    twice without harm."""
    for number, pending in transaction.pending.items():
        agent = pending.submission.agent
        if pending.is_submitted:
            transaction.act(do.Accept(agent=agent, submission=pending.submission.id, number=number))
        if pending.step is AttemptStep.TAKING:
            take_again(transaction, pending)
        elif pending.attempt is not None:
            if not pending.is_submitted:
                transaction.act(do.Publish(attempt=pending.attempt))
                continue
            launch = transaction.agents[agent].launch
            transaction.act(do.Publish(attempt=pending.attempt, launch=launch, heartbeats=pending.heartbeats))


def stop_grading(transaction: Transaction, *, only_holdouts: bool = False) -> None:
    """Terminate the graders of a run that stops or begins an epoch; `only_holdouts`: only those that grade on the
    hold-out. Their attempts are graded again."""
    for number, pending in list(transaction.pending.items()):
        goes_on = pending.is_holdout and holdouts.goes_on(transaction.run)
        if pending.step in OCCUPYING and not pending.stopped and not goes_on and pending.is_holdout >= only_holdouts:
            transaction.set_pending(number, stopped=True)
            if pending.step is AttemptStep.GRADING:
                _terminate(transaction, pending)


def on_cluster_checked(transaction: Transaction, problem: str) -> None:
    """Begin no grade while the cluster cannot be used. Grades that run wait for it, and have all their time again
    afterwards, for they may have to begin anew."""
    before = transaction.run.cluster_problem
    transaction.set_run(cluster_problem=problem)
    if problem and not before:
        transaction.alert(f"no grade begins until the cluster can be used again: {problem}")
    elif before and not problem:
        for number, pending in list(transaction.pending.items()):
            if pending.step is AttemptStep.GRADING:
                transaction.set_pending(number, deadline=transaction.clock + _timeout(transaction, pending))
        transaction.alert("the cluster can be used again; grading continues")


def hold(transaction: Transaction) -> str:
    """Begin no grade until `release`. Grades that run go on. CoralError where grading is held already, or the run stops
    once all is graded."""
    if transaction.run.is_grading_held:
        raise CoralError("cannot hold the grading: it is held already", "coral grading release")
    if transaction.run.draining:
        raise CoralError("cannot hold the grading: the run stops when it is done", "`coral stop` ends it at once")
    transaction.set_run(is_grading_held=True)
    return "no grade begins; submissions wait"


def release(transaction: Transaction) -> str:
    if not transaction.run.is_grading_held:
        raise CoralError("cannot release the grading: it is not held", "coral status shows what is graded")
    transaction.set_run(is_grading_held=False)
    return "grading goes on"


def cancel(transaction: Transaction, number: int) -> str:
    """End an attempt as void that waits or is being graded. CoralError where there is no such attempt."""
    pending = transaction.pending.get(number)
    if pending is None or pending.step is AttemptStep.SETTLED:
        raise CoralError(f"cannot cancel #{number}: it is neither waiting nor being graded", "coral status shows which")
    if pending.step in OCCUPYING:
        pending = transaction.set_pending(number, cancelled=True)
        if pending.step is AttemptStep.GRADING:
            _terminate(transaction, pending)
    else:
        _give_up(transaction, pending, CANCELLED)
    return f"#{number} is cancelled"


def advance_timers(transaction: Transaction) -> None:
    for number, pending in list(transaction.pending.items()):
        if pending.deadline is None or transaction.clock < pending.deadline:
            continue
        if pending.step is AttemptStep.TAKING:
            if not transaction.run.disk_problem and not transaction.run.stopping:
                take_again(transaction, pending)
        elif pending.step is AttemptStep.GRADING and transaction.run.cluster_problem:
            transaction.set_pending(number, deadline=transaction.clock + _timeout(transaction, pending))
        elif pending.step is AttemptStep.GRADING:
            _terminate(transaction, transaction.set_pending(number, exceeded=_timeout_reason(transaction, pending)))
        elif pending.step in OCCUPYING:
            _kill(transaction, pending)
        elif pending.step is AttemptStep.QUEUED:
            transaction.set_pending(number, deadline=None)


def fill_slots(transaction: Transaction) -> None:
    """Start a grader in each free slot. First come attempts with a suspicion, then confirmations, so that the halves of
    a pair are graded one after the other, then the oldest attempt, and last the grades on the hold-out."""
    run, all_pending = transaction.run, transaction.pending.values()
    is_paused = run.is_grading_held or transaction.clock < run.queue_paused_until
    if run.disk_problem or run.cluster_problem or (is_paused and not run.stopping):
        return
    taken = sum(attempt.step in OCCUPYING for attempt in all_pending)
    queue = [attempt for attempt in all_pending if attempt.step is AttemptStep.QUEUED and attempt.deadline is None]
    if run.stopping:
        queue = [attempt for attempt in queue if attempt.is_holdout and holdouts.goes_on(run)]
    queue.sort(key=lambda attempt: (not attempt.suspicion, attempt.confirmation is None, attempt.is_holdout))
    for pending in queue[: max(slots_of(run, transaction.rules) - taken, 0)]:
        launch = pending.launch + 1
        transaction.set_pending(
            pending.number,
            step=AttemptStep.GRADING,
            launch=launch,
            deadline=transaction.clock + _timeout(transaction, pending),
            grader_started=False,
            stopped=False,
            exceeded="",
            kills=0,
        )
        commit = transaction.rules.seed_commit if pending.suspicion else pending.commit
        kind = _kind_to_grade(pending)
        transaction.act(do.CheckOut(number=pending.number, launch=launch, commit=commit, kind=kind))


def _recognise_duplicate(transaction: Transaction, pending: PendingAttempt) -> PendingAttempt:
    """Mark the attempt as a duplicate if an attempt with the same tree was published since its intake."""
    is_known = pending.duplicate_of is not None or pending.confirmation is not None
    if is_known or pending.submission.kind is not Kind.REAL:
        return pending
    number = next(
        (measured.number for measured in transaction.measured.values() if measured.tree == pending.tree), None
    )
    return transaction.set_pending(pending.number, duplicate_of=number)


def _judge(transaction: Transaction, pending: PendingAttempt, score: float) -> Judgement:
    standing, scoring = transaction.standing, transaction.rules.scoring
    if pending.confirmation is not None:
        return judge_confirmation(standing, pending.confirmation, score, scoring)
    if pending.duplicate_of is not None:
        return Judgement(Verdict.TIED, pending.duplicate_of)
    judgement = judge(standing, pending.submission.agent, score, scoring, pending.built_on)
    if pending.submission.kind is Kind.TUNE and judgement.verdict is Verdict.NEW_BEST:
        return replace(judgement, verdict=Verdict.OWN_BEST)  # a trial of numbers claims nothing
    return judgement


def _timeout_reason(transaction: Transaction, pending: PendingAttempt) -> str:
    return f"the grader took longer than {_timeout(transaction, pending):g} seconds"


def _timeout(transaction: Transaction, pending: PendingAttempt) -> float:
    rules = transaction.rules
    return (rules.holdout_timeout if pending.is_holdout else None) or rules.grade_timeout


def _give_up(transaction: Transaction, pending: PendingAttempt, reason: str) -> None:
    """End an attempt that cannot be graded as void, since its author is not at fault; a grade on the hold-out ends
    without a score."""
    if pending.is_holdout:
        holdouts.end(transaction, pending, reason=reason)
    else:
        settle(transaction, pending, Judgement(Verdict.VOID), reason=reason)


def end_earlier(transaction: Transaction, pending: PendingAttempt) -> None:
    """End a grade of the supervisor's own (a confirmation or a grade on the hold-out) that was queued in an earlier
    epoch."""
    if pending.is_holdout:
        del transaction.pending[pending.number]
        transaction.act(do.ShowHoldouts(graded=pending.number))
    else:
        settle(transaction, pending, Judgement(Verdict.VOID), reason=ANOTHER_EPOCH)


def _kind_to_grade(pending: PendingAttempt) -> Kind:
    return Kind.BASELINE if pending.suspicion else pending.submission.kind


def _terminate(transaction: Transaction, pending: PendingAttempt) -> None:
    deadline = transaction.clock + transaction.rules.terminate_grace
    transaction.set_pending(pending.number, step=AttemptStep.TERMINATED, deadline=deadline)
    transaction.act(do.Terminate(who=pending.who, launch=pending.launch))


def _kill(transaction: Transaction, pending: PendingAttempt) -> None:
    if pending.kills >= MAX_KILLS:
        what = pending.who if pending.holdout_of is None else f"#{pending.holdout_of} on the hold-out"
        transaction.alert(f"the grader of {what} cannot be killed; its slot is given up")
        _end_unkillable(transaction, pending)
        return
    deadline = kill_again_at(transaction.clock, pending.kills)
    transaction.set_pending(pending.number, step=AttemptStep.KILLED, deadline=deadline, kills=pending.kills + 1)
    transaction.act(do.Kill(who=pending.who, launch=pending.launch))


def _end_unkillable(transaction: Transaction, pending: PendingAttempt) -> None:
    """End a grade whose processes cannot be killed. They may be the candidate's own, so its attempt fails, unless the
    seed was graded in its place or the supervisor had ended the grade for another reason."""
    if pending.cancelled:
        _give_up(transaction, pending, CANCELLED)
    elif pending.stopped:
        _queue_again(transaction, pending)
    elif pending.suspicion or pending.is_holdout:
        _give_up(transaction, pending, UNKILLABLE)
    else:
        settle(transaction, pending, Judgement(Verdict.FAILED), reason=pending.exceeded or UNKILLABLE)


def _queue_again(transaction: Transaction, pending: PendingAttempt) -> None:
    """Grade the attempt again: this grade said nothing about it. A grade of the supervisor's own ends instead if its
    epoch is over, or if the task has no hold-out any more."""
    is_over = pending.is_holdout and transaction.rules.holdout_timeout is None
    if is_over or (not pending.is_submitted and pending.epoch != transaction.run.epoch):
        end_earlier(transaction, pending)
        return
    transaction.set_pending(pending.number, step=AttemptStep.QUEUED, deadline=None)


def _on_lost_grade(transaction: Transaction, pending: PendingAttempt) -> None:
    """Queue a grade again that nobody saw end, or that ended on a full disk: neither is anybody's fault. If every grade
    of the attempt ends on a full disk, the candidate may fill it: the seed is graded in its place, as after a crash."""
    problem = transaction.run.disk_problem
    if not problem or pending.lost_grades < MAX_LOST_GRADES:
        lost = pending.lost_grades + bool(problem)
        _queue_again(transaction, transaction.set_pending(pending.number, lost_grades=lost))
    elif pending.suspicion or pending.is_holdout:
        what = "it" if pending.is_holdout else "the seed"
        _give_up(transaction, pending, f"{what} cannot be graded either: {problem}")
    else:
        suspicion = f"each of {MAX_LOST_GRADES + 1} grades of it ended on a disk without room: {problem}"
        _queue_again(transaction, transaction.set_pending(pending.number, suspicion=suspicion, lost_grades=0))


def _end_seed_check(transaction: Transaction, pending: PendingAttempt, event: on.Graded) -> None:
    """Judge the attempt by the grade of the seed in its place. If the seed gets a score, or fails as it did at the
    start of the run, the candidate is at fault and fails; else the grader is at fault and the attempt is void."""
    has_failed = event.outcome is on.Outcome.FAILED and transaction.standing.seed is None and not pending.exceeded
    if event.outcome is on.Outcome.SCORED or has_failed:
        settle(transaction, pending, Judgement(Verdict.FAILED), reason=pending.suspicion, graded=event)
    else:
        reason = f"the grader fails on the seed too: {pending.exceeded or event.reason or pending.suspicion}"
        settle(transaction, pending, Judgement(Verdict.VOID), reason=reason, graded=event)
