"""An attempt settles: it gets its verdict and its place in the order, once, and whatever follows from that is owed.

Publication is a file that follows and can be repeated.
"""

from attempts.progress import advance
from attempts.record import Attempt, Verdict
from coral.fleet import actions as do
from coral.fleet import events as on
from coral.fleet.draft import Draft
from coral.fleet.interventions import cross_after_attempt, place_at_eval, withdraw_overtaken
from coral.fleet.policy import MOST_VOIDS, QUEUE_PAUSE
from coral.fleet.records import record_of
from coral.fleet.stalls import waited
from coral.fleet.state import Pending, Step


def settle(
    draft: Draft,
    pending: Pending,
    verdict: Verdict,
    *,
    score: float | None = None,
    reason: str = "",
    graded: on.Graded | None = None,
) -> None:
    """Count the attempt: progress, triggers, and what the agent hears of it."""
    order = draft.run.order + 1
    attempt = record_of(draft, pending, verdict, order, score=score, reason=reason, graded=graded)
    draft.set_run(order=order)
    _count(draft, attempt)
    _watch_voids(draft, attempt)
    waits = draft.clock < pending.waited_until
    names, inline = place_at_eval(draft, attempt.agent, waits)
    if waits:
        waited(draft, attempt.agent)
    draft.set_pending(
        pending.number,
        step=Step.SETTLED,
        deadline=None,
        waited_until=0.0,
        attempt=attempt,
        heartbeats=names,
    )
    draft.act(do.Publish(attempt=attempt, heartbeats=names, inline=inline))


def _count(draft: Draft, attempt: Attempt) -> None:
    rules = draft.rules
    before, whole_before = draft.agents[attempt.agent].progress, draft.run.progress
    own = advance(before, attempt, rules.direction, rules.noise)
    whole = advance(whole_before, attempt, rules.direction, rules.noise)
    draft.set_agent(attempt.agent, progress=own, crashes=0, idle=0)
    draft.set_run(progress=whole)
    if own.evals == before.evals:
        return
    withdraw_overtaken(draft, attempt.agent, improved=own.stagnant == 0, best_improved=whole.stagnant == 0)
    cross_after_attempt(draft, attempt.agent, attempt.number)


def _watch_voids(draft: Draft, attempt: Attempt) -> None:
    """Three voids in a row hold the queue up, so that breaking the grader is no way to try for free."""
    voids = draft.run.voids + 1 if attempt.verdict is Verdict.VOID else 0
    draft.set_run(voids=voids)
    if voids >= MOST_VOIDS:
        draft.set_run(queue_held_until=draft.clock + QUEUE_PAUSE)
        draft.alert(
            f"{voids} attempts in a row are void; grading is held up for {QUEUE_PAUSE:g} seconds: {attempt.reason}"
        )
