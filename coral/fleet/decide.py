"""The whole behaviour of the supervisor: `decide` handles each event in order, then whatever the clock makes due."""

from collections.abc import Iterable

from attempts.standing import advance
from coral.fleet import actions as do, events as on, health, jobs, requests, rollback, upkeep
from coral.fleet.agent_state import LIVE, Phase
from coral.fleet.agents import (
    accounts,
    budgets,
    conclusions,
    launch_exit,
    lifecycle,
    live_budgets,
    membership,
    outages,
    research,
    spending,
    stalls,
)
from coral.fleet.attempts import confirmations, epochs, grading, holdouts, intake
from coral.fleet.messages import fire_clock_heartbeats, put_in_force
from coral.fleet.policy import BUDGET_NOTICES_AT, BUSY_SECONDS
from coral.fleet.process_key import grade_in, job_in
from coral.fleet.reasons import RunEnd, RunEndKind
from coral.fleet.rules import Rules, in_force
from coral.fleet.run_state import FLEET, OCCUPYING, AttemptStep, Fleet
from coral.fleet.transaction import Transaction
from heartbeats.heartbeat import Scope
from heartbeats.trigger import Elapsed


def decide(
    fleet: Fleet, events: Iterable[on.Event], now: on.Moment, rules: Rules
) -> tuple[Fleet, tuple[do.Action, ...]]:
    """Return the fleet after these events at this time, and the actions that follow. Pure: the same arguments give the
    same result. `rules`: those of the task; what the operator has changed since is in the fleet."""
    transaction = Transaction(fleet, now, rules)
    for event in events:
        _handle(transaction, upkeep.without_blame(event, transaction.run.disk_problem))
        health.note_gain(transaction)  # after each event, so that it makes no difference how they are batched
    if transaction.run.opened and not transaction.run.detached_reason:
        _advance_time(transaction)
        health.update_troubles(transaction)
    return transaction.fleet(), tuple(transaction.actions)


def next_deadline(fleet: Fleet, now: float, rules: Rules) -> float | None:
    """Return the next time, on the run's clock, at which `decide` may have to act without an event; None if there is
    none. Never too late, but at some of these times nothing is due."""
    rules = in_force(rules, fleet.run)
    times = [fleet.run.queue_paused_until, *(breaker.paused_until for breaker in fleet.run.breakers.values())]
    for owner, heartbeats in fleet.heartbeats.items():
        targets = fleet.run.targets if owner == FLEET else fleet.agents[owner].targets
        times += [targets[heartbeat.name] for heartbeat in heartbeats if isinstance(heartbeat.trigger, Elapsed)]
    for agent in fleet.agents.values():
        if agent.pending_messages:
            times += [agent.spawned_at + rules.start_grace, agent.last_output_at + BUSY_SECONDS]
        times += [message.due for message in agent.pending_messages]
        times += [time for time in (agent.deadline, agent.research_until) if time is not None]
        times += [*stalls.deadlines(agent, rules), *outages.deadlines(agent, rules)]
    times += [limit.until for limit in fleet.run.limits.values() if limit.until is not None]
    times += [attempt.deadline for attempt in fleet.pending.values() if attempt.deadline is not None]
    times += [job.deadline for job in fleet.jobs.values()]
    times += [] if fleet.run.write_again_at is None else [fleet.run.write_again_at]
    times += health.next_changes(fleet, rules)
    if rules.budget_seconds is not None:
        times += [part * rules.budget_seconds for part in (*BUDGET_NOTICES_AT, 1.0)]
    return min((time for time in times if time > now), default=None)


def _handle(transaction: Transaction, event: on.Event) -> None:  # noqa: C901 - one arm per event
    match event:
        case on.Opened():
            _open(transaction, event)
        case on.Resumed(away=away):
            _resume(transaction, away)
        case on.RolledBack():
            rollback.on_rolled_back(transaction, event)
        case on.TaskChanged():
            epochs.on_task_changed(transaction, event)
        case on.Submitted(submission=submission):
            intake.on_submitted(transaction, submission)
        case on.TakenIn():
            intake.on_taken_in(transaction, event)
        case on.IntakeFailed():
            intake.on_intake_failed(transaction, event)
        case on.CheckedOut():
            grading.on_checked_out(transaction, event)
        case on.Graded():
            grading.on_graded(transaction, event)
        case on.GradeOverLimit():
            grading.on_over_limit(transaction, event)
        case on.Published(number=number):
            grading.on_published(transaction, number)
        case on.OutputSeen():
            lifecycle.on_output_seen(transaction, event)
        case on.EditsScanned():
            lifecycle.on_edits_scanned(transaction, event)
        case on.LifeSeen():
            stalls.on_life_seen(transaction, event)
        case on.Used():
            spending.on_used(transaction, event)
        case on.LeftProcesses():
            _on_left_processes(transaction, event.who, event.launch)
        case on.Exited():
            launch_exit.on_exited(transaction, event)
        case on.SpawnFailed():
            _on_not_started(transaction, event.who, event.launch, event.reason)
        case on.JobEnded():
            jobs.on_ended(transaction, event)
        case on.AgentPrepared():
            membership.on_prepared(transaction, event)
        case on.AgentNotPrepared(agent=name, reason=reason):
            membership.on_not_prepared(transaction, name, reason)
        case on.Requested():
            requests.on_requested(transaction, event)
        case on.ClusterChecked(problem=problem):
            grading.on_cluster_checked(transaction, problem)
        case _:
            upkeep.handle(transaction, event)


def _on_left_processes(transaction: Transaction, who: str, launch: int) -> None:
    if (job := job_in(who)) is not None:
        jobs.on_left_processes(transaction, job)
    elif (number := grade_in(who)) is not None:
        grading.on_left_processes(transaction, number, launch)
    else:
        lifecycle.on_left_processes(transaction, who, launch)


def _on_not_started(transaction: Transaction, who: str, launch: int, reason: str) -> None:
    if (job := job_in(who)) is not None:
        jobs.on_not_started(transaction, job, reason)
    elif (number := grade_in(who)) is not None:
        grading.on_grade_not_started(transaction, number, launch, reason)
    else:
        launch_exit.on_not_started(transaction, who, launch, reason)


def _advance_time(transaction: Transaction) -> None:
    """Do whatever the clock makes due, again until no action follows: a grade that is given up may fire a heartbeat,
    and the last agent that retires ends the run."""
    count = None
    while count != len(transaction.actions) and not transaction.run.finished:
        count = len(transaction.actions)
        membership.advance(transaction)
        grading.advance_timers(transaction)
        confirmations.queue_next(transaction)
        if not transaction.run.stopping and (end := _reason_to_stop(transaction)):
            transaction.set_run(stopping=end)
        if transaction.run.stopping:
            lifecycle.stop_all(transaction)
            holdouts.queue_last(transaction)
            grading.stop_grading(transaction)
        elif transaction.run.draining:
            lifecycle.stop_all(transaction)
        else:
            fire_clock_heartbeats(transaction)
            budgets.send_budget_notices(transaction)
            conclusions.ask(transaction)
            research.advance(transaction)
            accounts.advance(transaction)
        upkeep.write_again(transaction)
        jobs.advance(transaction)
        jobs.wake(transaction)
        lifecycle.advance_timers(transaction)
        if not _waits_for_last_grades(transaction):
            grading.fill_slots(transaction)
        if transaction.run.stopping and _everything_is_gone(transaction):
            transaction.set_run(finished=transaction.run.stopping)
            transaction.act(do.Finish(end=transaction.run.stopping))


def _reason_to_stop(transaction: Transaction) -> RunEnd | None:
    if transaction.run.draining and not transaction.pending and _all_rest(transaction):
        return transaction.run.draining
    if _waits_for_last_grades(transaction):
        return None
    if spent := budgets.run_over(transaction.fleet(), transaction.clock, transaction.rules):
        return spent
    idle = all(attempt.step is AttemptStep.SETTLED for attempt in transaction.pending.values())
    nobody_comes = idle and not transaction.run.preparing
    if nobody_comes and all(agent.phase is Phase.RETIRED for agent in transaction.agents.values()):
        return RunEnd(RunEndKind.ALL_RETIRED)
    return None


def _waits_for_last_grades(transaction: Transaction) -> bool:
    """Return whether a run that stops after its grades has also used up a budget or reached its target, while some
    graders still run: these may end, and no other grade begins."""
    run = transaction.run
    if (
        not run.draining
        or run.stopping
        or all(pending.step not in OCCUPYING for pending in transaction.pending.values())
    ):
        return False
    return budgets.run_over(transaction.fleet(), transaction.clock, transaction.rules) is not None


def _everything_is_gone(transaction: Transaction) -> bool:
    # A resume fetches the commits that are still on their way.
    waiting = (AttemptStep.TAKING, AttemptStep.QUEUED, AttemptStep.SETTLED)
    if holdouts.is_waited_for(transaction):
        return False
    return _all_rest(transaction) and all(attempt.step in waiting for attempt in transaction.pending.values())


def _all_rest(transaction: Transaction) -> bool:
    return all(agent.phase not in LIVE for agent in transaction.agents.values()) and not transaction.jobs


def _open(transaction: Transaction, event: on.Opened) -> None:
    """Open the run: publish the seed's score, which is the first best, and let the agents start one after another."""
    if transaction.run.opened:
        return
    transaction.set_run(id=event.run, opened=True, grade_seconds=event.baseline.seconds)
    transaction.set_standing(advance(transaction.standing, event.baseline, transaction.rules.scoring))
    transaction.act(do.Publish(attempt=event.baseline))
    holdouts.queue(transaction, transaction.standing.seed)
    put_in_force(transaction, FLEET, transaction.rules.defaults(Scope.FLEET))
    _add_agents(transaction, event.agents)


def _add_agents(transaction: Transaction, names: Iterable[str]) -> None:
    """Put new agents into the fleet; they start one after another."""
    for place, name in enumerate(names):
        membership.begin(transaction, name, place * transaction.rules.stagger)


def _resume(transaction: Transaction, away: float) -> None:
    upkeep.exclude_time(transaction)
    transaction.set_run(
        stopping=None, detached_reason=None, finished=None, breakers={}, queue_paused_until=0.0, voids_in_a_row=0
    )
    transaction.set_run(
        disk_problem="",
        cluster_problem="",
        agents_cluster_problem="",
        excluded_nodes={},
        write_again_at=None,
        is_hurried=False,
    )
    transaction.set_run(draining=None, short=())
    live_budgets.drop_outdated(transaction)
    for alert in transaction.run.undelivered_alerts:
        again = do.Notify(id=alert.id, text=alert.text, agent=alert.agent, reason=alert.reason, repeat=True)
        transaction.act(again)
    lifecycle.resume_all(transaction, away)
    known = {*transaction.agents, *transaction.run.preparing}
    _add_agents(transaction, [name for name in transaction.rules.agents if name not in known])
    membership.prepare_again(transaction)
    jobs.resume(transaction, away)
    confirmations.drop_half(transaction)
    grading.repeat_unfinished(transaction)
    for owner in transaction.heartbeats:
        transaction.act(do.ShowHeartbeats(owner=owner))
    if transaction.holdouts:
        transaction.act(do.ShowHoldouts())
