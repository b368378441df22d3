"""The whole behaviour: events in, actions out. Events first, in their order; then whatever the clock makes due."""

from collections.abc import Iterable
from typing import assert_never

from attempts.progress import Progress, advance
from coral.fleet import (
    accounts,
    agents,
    budgets,
    ends,
    grading,
    intake,
    jobs,
    outages,
    requests,
    research,
    space,
    spending,
    stalls,
)
from coral.fleet import actions as do
from coral.fleet import events as on
from coral.fleet.draft import Draft
from coral.fleet.interventions import beat_by_clock
from coral.fleet.policy import BUSY_SECONDS, LAND_AT, Rules
from coral.fleet.state import FLEET, LIVE, Agent, Fleet, Phase, Step
from coral.fleet.who import grade_in, job_in
from heartbeats.heartbeat import Scope
from heartbeats.trigger import Elapsed


def decide(
    fleet: Fleet, events: Iterable[on.Event], now: on.Moment, rules: Rules
) -> tuple[Fleet, tuple[do.Action, ...]]:
    """The fleet after these events at this time, and what is to be done about it. Pure: equal in, equal out."""
    draft = Draft(fleet, now, rules)
    for event in events:
        _on(draft, space.excused(event, draft.run.lack))
    if draft.run.opened and not draft.run.left:
        _let_time_pass(draft)
    return draft.fleet(), tuple(draft.actions)


def next_deadline(fleet: Fleet, now: float, rules: Rules) -> float | None:
    """When the clock alone may next make something due, on the run's clock: sometimes in vain, never too late."""
    times = [fleet.run.held_until, fleet.run.queue_held_until]
    for owner, heartbeats in fleet.heartbeats.items():
        targets = fleet.run.targets if owner == FLEET else fleet.agents[owner].targets
        times += [targets[each.name] for each in heartbeats if isinstance(each.trigger, Elapsed)]
    for agent in fleet.agents.values():
        times += [agent.spawned_at + rules.start_grace, agent.heard_at + BUSY_SECONDS] if agent.owed else []
        times += [each.due for each in agent.owed]
        times += [each for each in (agent.deadline, agent.research) if each is not None]
        times += [*stalls.deadlines(agent, rules), *outages.deadlines(agent, rules)]
    times += [each.until for each in fleet.run.limits.values() if each.until is not None]
    times += [each.deadline for each in fleet.pending.values() if each.deadline is not None]
    times += [each.deadline for each in fleet.jobs.values()]
    if rules.budget_seconds is not None:
        times += [each * rules.budget_seconds for each in (*LAND_AT, 1.0)]
    return min((each for each in times if each > now), default=None)


def _on(draft: Draft, event: on.Event) -> None:  # noqa: C901 - one arm per event
    match event:
        case on.Opened():
            _open(draft, event)
        case on.Resumed(away=away):
            _resume(draft, away)
        case on.Submitted(submission=submission):
            intake.on_submitted(draft, submission)
        case on.TakenIn():
            intake.on_taken_in(draft, event)
        case on.NotTaken():
            intake.on_not_taken(draft, event)
        case on.Graded():
            grading.on_graded(draft, event)
        case on.Published(number=number):
            grading.on_published(draft, number)
        case on.Notified(id=id):
            draft.set_run(unsaid=tuple(each for each in draft.run.unsaid if each.id != id))
        case on.Heard():
            agents.on_heard(draft, event)
        case on.Looked():
            agents.on_looked(draft, event)
        case on.Used():
            spending.on_used(draft, event)
        case on.Lingered():
            _on_lingered(draft, event.who, event.launch)
        case on.Exited():
            ends.on_exited(draft, event)
        case on.SpawnFailed():
            _on_not_started(draft, event.who, event.launch, event.reason)
        case on.JobEnded():
            jobs.on_ended(draft, event)
        case on.Requested():
            requests.on_requested(draft, event)
        case on.Broken(item=item, reason=reason):
            draft.alert(f"{item} was set aside: {reason}")
        case on.Space(lack=lack):
            space.on_space(draft, lack)
        case on.Restored():
            _say_restored(draft, event)
        case _:
            assert_never(event)


def _on_lingered(draft: Draft, who: str, launch: int) -> None:
    if (job := job_in(who)) is not None:
        jobs.on_lingered(draft, job)
    elif (number := grade_in(who)) is not None:
        grading.on_lingered(draft, number, launch)
    else:
        agents.on_lingered(draft, who, launch)


def _on_not_started(draft: Draft, who: str, launch: int, reason: str) -> None:
    if (job := job_in(who)) is not None:
        jobs.on_not_started(draft, job, reason)
    elif (number := grade_in(who)) is not None:
        grading.on_grade_not_started(draft, number, launch, reason)
    else:
        ends.on_not_started(draft, who, launch, reason)


def _say_restored(draft: Draft, event: on.Restored) -> None:
    done = f"restored from {event.source}" if event.source else "that cannot be restored"
    draft.alert(f"{event.item} {event.found}, though only the supervisor writes there; {done}")


def _let_time_pass(draft: Draft) -> None:
    """Whatever the clock makes due, until nothing more follows from it: a grade that is given up may be what a
    heartbeat waited for, and the last agent to retire is the end of the run."""
    said = None
    while said != len(draft.actions) and not draft.run.finished:
        said = len(draft.actions)
        grading.advance_timers(draft)
        if not draft.run.stopping and (reason := _reason_to_stop(draft)):
            draft.set_run(stopping=reason)
        if draft.run.stopping:
            agents.stop_all(draft)
            grading.stop_grading(draft)
        else:
            beat_by_clock(draft)
            budgets.land(draft)
            research.advance(draft)
            accounts.advance(draft)
        jobs.advance(draft)
        jobs.wake(draft)
        agents.advance_timers(draft)
        grading.fill_slots(draft)
        if draft.run.stopping and _everything_is_gone(draft):
            draft.set_run(finished=draft.run.stopping)
            draft.act(do.Finish(reason=draft.run.stopping))


def _reason_to_stop(draft: Draft) -> str:
    if spent := budgets.run_over(draft.fleet(), draft.clock, draft.rules):
        return spent
    idle = all(each.step is Step.SETTLED for each in draft.pending.values())
    if idle and all(each.phase is Phase.RETIRED for each in draft.agents.values()):
        return "every agent has retired"
    return ""


def _everything_is_gone(draft: Draft) -> bool:
    waiting = (Step.TAKING, Step.QUEUED, Step.SETTLED)  # a commit that is on its way is fetched again by a resume
    resting = all(each.phase not in LIVE for each in draft.agents.values()) and not draft.jobs
    return resting and all(each.step in waiting for each in draft.pending.values())


def _open(draft: Draft, event: on.Opened) -> None:
    """The seed is where everybody starts from: its score is the first best, and beating it the first improvement."""
    if draft.run.opened:
        return
    start = advance(Progress(), event.baseline, draft.rules.direction, draft.rules.noise)
    draft.set_run(id=event.run, opened=True, progress=start)
    draft.act(do.Publish(attempt=event.baseline))
    requests.put_in_force(draft, FLEET, draft.rules.defaults(Scope.FLEET))
    for place, name in enumerate(event.agents):
        draft.agents[name] = Agent(name=name, progress=start, deadline=draft.clock + place * draft.rules.stagger)
        requests.put_in_force(draft, name, draft.rules.defaults(Scope.OWN))


def _resume(draft: Draft, away: float) -> None:
    space.forgive(draft)
    draft.set_run(stopping="", left="", finished="", held_until=0.0, queue_held_until=0.0)
    draft.set_run(crashes=(), voids=0, lack="")
    for each in draft.run.unsaid:
        draft.act(do.Notify(id=each.id, text=each.text, agent=each.agent, repeat=True))
    agents.resume_all(draft, away)
    jobs.resume(draft, away)
    grading.repeat_unfinished(draft)
    for owner in draft.heartbeats:
        draft.act(do.ShowHeartbeats(owner=owner))
