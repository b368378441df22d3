"""An attempt's way in: a submission gets a number, and its commit is brought into the hub, once more where it fails by
our fault. What cannot be graded settles here; what can waits for a slot.
"""

from attempts.record import Submission, Verdict
from coral.fleet import actions as do
from coral.fleet import events as on
from coral.fleet import research
from coral.fleet.budgets import no_attempt_left
from coral.fleet.draft import Draft
from coral.fleet.policy import MOST_TRIES, TAKE_AGAIN_SECONDS, counts_same, is_repeat, remember
from coral.fleet.settling import settle
from coral.fleet.stalls import progressed
from coral.fleet.state import Pending, Step


def on_submitted(draft: Draft, submission: Submission) -> None:
    agent = draft.agents.get(submission.agent)
    if agent is None or draft.run.stopping or draft.run.left or draft.run.lack:
        return  # it stays in the inbox, and is read again
    if is_repeat(agent.recent, submission.id):
        draft.act(do.Discard(agent=agent.name, submission=submission.id))
        return
    if reason := research.refusal(draft, agent):
        _refuse(draft, submission, reason, "write down what you find; end your turn to begin at once")
        return
    if reason := no_attempt_left(draft.fleet(), agent, draft.rules):
        _refuse(draft, submission, reason, "finish the notes; the run ends when the attempts in hand are graded")
        return
    number = draft.run.next_number
    draft.set_run(next_number=number + 1)
    # A refusal is not remembered: should it be lost, it is given again, and that does no harm.
    draft.set_agent(agent.name, submitted=agent.submitted + 1, recent=remember(agent.recent, submission.id))
    progressed(draft, agent.name)
    draft.pending[number] = Pending(number=number, submission=submission, waited_until=draft.clock + submission.wait)
    draft.act(do.TakeIn(number=number, agent=agent.name, commit=submission.commit, repeat=False))
    draft.act(do.Accept(agent=agent.name, submission=submission.id, number=number))


def on_taken_in(draft: Draft, event: on.TakenIn) -> None:
    pending = draft.pending.get(event.number)
    if pending is None or pending.step is not Step.TAKING:
        return
    pending = draft.set_pending(event.number, commit=event.commit, tree=event.tree, parent=event.parent)
    if event.twin is not None and draft.rules.noise == 0 and counts_same(pending.submission.kind):
        reason = f"the same tree as #{event.twin}"
        settle(draft, pending, Verdict.TIED, score=event.twin_score, reason=reason)
    else:
        draft.set_pending(event.number, step=Step.QUEUED, deadline=None)


def on_not_taken(draft: Draft, event: on.NotTaken) -> None:
    pending = draft.pending.get(event.number)
    if pending is None or pending.step is not Step.TAKING:
        return
    if not event.ours:
        settle(draft, pending, Verdict.FAILED, reason=event.reason)
    elif draft.run.lack or draft.run.stopping:
        draft.set_pending(event.number, deadline=draft.clock)
    elif pending.tries < MOST_TRIES:
        draft.set_pending(event.number, tries=pending.tries + 1, deadline=draft.clock + TAKE_AGAIN_SECONDS)
    else:
        settle(draft, pending, Verdict.VOID, reason=event.reason)


def take_again(draft: Draft, pending: Pending) -> None:
    submission = draft.set_pending(pending.number, deadline=None).submission
    draft.act(do.TakeIn(number=pending.number, agent=submission.agent, commit=submission.commit, repeat=True))


def _refuse(draft: Draft, submission: Submission, reason: str, hint: str) -> None:
    reason = f"cannot grade this commit: {reason}"
    draft.act(do.Refuse(agent=submission.agent, submission=submission.id, reason=reason, hint=hint))
