"""An attempt that was taken in is graded as a launch of its own, in one of a few slots, and settled by its outcome.

It becomes void only with proof that the fault is ours: the seed, graded in its place, fails too.
"""

from attempts.progress import judge
from attempts.record import Verdict
from coral.fleet import actions as do
from coral.fleet import events as on
from coral.fleet.draft import Draft
from coral.fleet.intake import take_again
from coral.fleet.policy import KILL_AGAIN_SECONDS, MOST_KILLS, MOST_LOST, MOST_UNSTARTED, START_AGAIN_SECONDS
from coral.fleet.settling import settle
from coral.fleet.state import OCCUPYING, Pending, Step


def on_graded(draft: Draft, event: on.Graded) -> None:
    pending = draft.pending.get(event.number)
    if pending is None or pending.launch != event.launch or pending.step not in OCCUPYING:
        return
    if draft.run.lack:
        void = pending.stopped or event.outcome is on.Outcome.LOST
        draft.act(do.Tidy(number=event.number, launch=event.launch, whole=void))
    if pending.stopped:
        _queue_again(draft, pending)
    elif event.outcome is on.Outcome.LOST:
        _lose(draft, pending)
    elif pending.suspicion:
        _end_probe(draft, pending, event)
    elif pending.timed_out:
        reason = f"the grader took longer than {draft.rules.grade_timeout:g} seconds"
        settle(draft, pending, Verdict.FAILED, reason=reason, graded=event)
    elif event.outcome is on.Outcome.SCORED and event.score is not None:
        agent = draft.agents[pending.submission.agent]
        verdict = judge(agent.progress, event.score, draft.rules.direction, draft.rules.noise)
        settle(draft, pending, verdict, score=event.score, graded=event)
    elif event.outcome is on.Outcome.FAILED:
        settle(draft, pending, Verdict.FAILED, reason=event.reason, graded=event)
    else:
        suspicion = event.reason or "the grader crashed"
        _queue_again(draft, draft.set_pending(event.number, suspicion=suspicion))


def on_grade_not_started(draft: Draft, number: int, launch: int, reason: str) -> None:
    pending = draft.pending.get(number)
    if pending is None or pending.launch != launch or pending.step not in OCCUPYING:
        return
    if pending.stopped:
        _queue_again(draft, pending)
    elif pending.unstarted < MOST_UNSTARTED:
        later = draft.clock + START_AGAIN_SECONDS
        draft.set_pending(number, step=Step.QUEUED, unstarted=pending.unstarted + 1, deadline=later)
    else:
        settle(draft, pending, Verdict.VOID, reason=f"the grader could not be started: {reason}")


def on_lingered(draft: Draft, number: int, launch: int) -> None:
    """The grader has answered, but what it started goes on: end that first, so that the slot is really free."""
    pending = draft.pending.get(number)
    if pending is not None and pending.launch == launch and pending.step is Step.GRADING:
        _kill(draft, pending)


def on_published(draft: Draft, number: int) -> None:
    pending = draft.pending.get(number)
    if pending is not None and pending.step is Step.SETTLED:
        del draft.pending[number]


def repeat_unfinished(draft: Draft) -> None:
    """A new supervisor does again, by key, what the last one may not have finished."""
    for number, pending in draft.pending.items():
        agent = pending.submission.agent
        draft.act(do.Accept(agent=agent, submission=pending.submission.id, number=number))
        if pending.step is Step.TAKING:
            take_again(draft, pending)
        elif pending.attempt is not None:
            draft.act(do.Publish(attempt=pending.attempt, heartbeats=pending.heartbeats))


def stop_grading(draft: Draft) -> None:
    """The attempts stay, and are graded again when the run resumes."""
    for number, pending in list(draft.pending.items()):
        if pending.step in OCCUPYING and not pending.stopped:
            draft.set_pending(number, stopped=True)
            if pending.step is Step.GRADING:
                _terminate(draft, pending)


def advance_timers(draft: Draft) -> None:
    for number, pending in list(draft.pending.items()):
        if pending.deadline is None or draft.clock < pending.deadline:
            continue
        if pending.step is Step.TAKING:
            if not draft.run.lack and not draft.run.stopping:
                take_again(draft, pending)
        elif pending.step is Step.GRADING:
            draft.set_pending(number, timed_out=True)
            _terminate(draft, pending)
        elif pending.step in OCCUPYING:
            _kill(draft, pending)
        elif pending.step is Step.QUEUED:
            draft.set_pending(number, deadline=None)


def fill_slots(draft: Draft) -> None:
    """Start what a free slot can take: a question of fault first, then the oldest attempt."""
    if draft.run.stopping or draft.run.lack or draft.clock < draft.run.queue_held_until:
        return
    taken = sum(each.step in OCCUPYING for each in draft.pending.values())
    queue = [each for each in draft.pending.values() if each.step is Step.QUEUED and each.deadline is None]
    queue.sort(key=lambda each: not each.suspicion)
    for pending in queue[: max(draft.rules.slots - taken, 0)]:
        launch = pending.launch + 1
        draft.set_pending(
            pending.number,
            step=Step.GRADING,
            launch=launch,
            deadline=draft.clock + draft.rules.grade_timeout,
            stopped=False,
            timed_out=False,
            kills=0,
        )
        probe = bool(pending.suspicion)
        commit = draft.rules.seed_commit if probe else pending.commit
        draft.act(do.Grade(number=pending.number, launch=launch, commit=commit, probe=probe))


def _terminate(draft: Draft, pending: Pending) -> None:
    deadline = draft.clock + draft.rules.terminate_grace
    draft.set_pending(pending.number, step=Step.TERMINATED, deadline=deadline)
    draft.act(do.Terminate(who=pending.who, launch=pending.launch))


def _kill(draft: Draft, pending: Pending) -> None:
    if pending.kills >= MOST_KILLS:
        draft.alert(f"the grader of {pending.who} cannot be killed; its slot is given up")
        if pending.stopped:
            _queue_again(draft, pending)
        else:
            settle(draft, pending, Verdict.VOID, reason="the grader could not be killed")
        return
    deadline = draft.clock + KILL_AGAIN_SECONDS
    draft.set_pending(pending.number, step=Step.KILLED, deadline=deadline, kills=pending.kills + 1)
    draft.act(do.Kill(who=pending.who, launch=pending.launch))


def _queue_again(draft: Draft, pending: Pending) -> None:
    """This try of grading it tells nothing about it."""
    draft.set_pending(pending.number, step=Step.QUEUED, deadline=None)


def _lose(draft: Draft, pending: Pending) -> None:
    """Nobody saw its end, or it came on a full disk. That is nobody's fault, unless it does so every time: then it is
    a suspicion like any other."""
    if not draft.run.lack or pending.lost < MOST_LOST:
        _queue_again(draft, draft.set_pending(pending.number, lost=pending.lost + bool(draft.run.lack)))
    elif pending.suspicion:
        reason = f"the seed cannot be graded either: {draft.run.lack}"
        settle(draft, pending, Verdict.VOID, reason=reason)
    else:
        suspicion = f"each of {MOST_LOST + 1} grades of it ended on a disk without room: {draft.run.lack}"
        _queue_again(draft, draft.set_pending(pending.number, suspicion=suspicion, lost=0))


def _end_probe(draft: Draft, pending: Pending, event: on.Graded) -> None:
    """The seed was graded in the candidate's place: if that works, the crash was the candidate's doing."""
    if event.outcome is on.Outcome.SCORED:
        settle(draft, pending, Verdict.FAILED, reason=pending.suspicion, graded=event)
    else:
        reason = f"the grader fails on the seed too: {event.reason or pending.suspicion}"
        settle(draft, pending, Verdict.VOID, reason=reason, graded=event)
