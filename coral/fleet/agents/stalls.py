"""Stall detection: an agent that is silent, or works without progress, is escalated until it makes progress.

The steps are a nudge, an interrupt, a new session, and then rests, each longer than the one before. The next step is
taken only when the silence or the lack of progress has lasted its full time once more. An agent that waits for a grade
or a job, is in its research time, or has no process, is not stalled. Progress is a submission or an edited file.
"""

from dataclasses import replace

from coral.fleet import actions as do, events as on
from coral.fleet.agent_state import LIVE, Agent, Phase, Stall
from coral.fleet.messages import STALLED
from coral.fleet.policy import (
    JOB_EXCUSE_SECONDS,
    MAX_REST_DOUBLINGS,
    REST_SECONDS,
    SCAN_SECONDS,
    runs_job,
    ttl_of,
    waits_until,
)
from coral.fleet.reasons import Finding, Reason, ReasonKind
from coral.fleet.rules import Rules
from coral.fleet.run_state import Fleet
from coral.fleet.transaction import Transaction

NUDGED, FRESH, RESTING = 1, 3, 4  # escalations; each further one is a longer rest


def reason_of(stall: Stall) -> Reason | None:
    """Return the last step that was taken against the stall and the finding that led to it; None if the agent made
    progress since."""
    if not stall.escalations:
        return None
    return Reason(ReasonKind.STALLED, count=stall.escalations, finding=stall.finding, seconds=stall.lasted)


def deadlines(agent: Agent, rules: Rules) -> list[float]:
    """Return the times at which stall detection may have to act: when the no-progress timer ends, when a job no longer
    excuses the lack of progress, and when a scan of the clone for edits has taken too long."""
    if agent.stall.since is None or rules.no_progress is None:
        return []
    asked = agent.stall.scan_requested_at
    assert agent.stall.progress_at is not None, "an agent that works has had its first launch"
    times = [agent.stall.since + rules.no_progress, agent.stall.progress_at + JOB_EXCUSE_SECONDS]
    return times if asked is None else [*times, asked + SCAN_SECONDS]


def start_timer(transaction: Transaction, name: str) -> None:
    """Start the no-progress timer because the agent begins to work; a paused timer goes on from where it was."""
    stall = transaction.agents[name].stall
    if stall.since is None:
        at = transaction.clock if stall.progress_at is None else stall.progress_at
        stall = replace(
            stall, since=transaction.clock - stall.accumulated, progress_at=at, excluded_until=transaction.clock
        )
        transaction.set_agent(name, stall=stall)


def forget_scan(transaction: Transaction, name: str) -> None:
    """Forget a requested scan for edits: the supervisor that was to run it is gone, so no result will come."""
    stall = transaction.agents[name].stall
    if stall.scan_requested_at is not None:
        transaction.set_agent(name, stall=replace(stall, scan_requested_at=None))


def pause_timer(transaction: Transaction, name: str) -> None:
    """Pause the no-progress timer because the agent's launch is being ended, or is over."""
    stall = _without_excluded_time(transaction, transaction.agents[name])
    if stall.since is not None:
        spent = max(transaction.clock - stall.since, 0.0)
        transaction.set_agent(name, stall=replace(stall, since=None, accumulated=spent, scan_requested_at=None))


def record_progress(transaction: Transaction, name: str, ago: float = 0.0) -> None:
    """Record progress that the agent made `ago` seconds ago: reset its escalation, and withdraw a nudge that is not in
    flight."""
    agent = transaction.agents[name]
    at = transaction.clock - ago
    reason = Reason(ReasonKind.PROGRESS) if is_ended_for_stall(agent) else agent.reason
    stall = Stall(since=None if agent.stall.since is None else at, progress_at=at)
    transaction.withdraw(name, lambda message: message.name == STALLED, " is overtaken by progress")
    transaction.set_agent(name, reason=reason, stall=stall)


def restart_timer(transaction: Transaction, name: str) -> None:
    """Restart the agent's no-progress timer and its deadline for silence, because until now it could not have made
    progress: its grade has come, or its research time is over."""
    agent = transaction.agents[name]
    stall = agent.stall
    if agent.phase is Phase.RUNNING:
        transaction.set_agent(name, deadline=transaction.clock)  # which is then put off as far as it may be
    if stall.since is not None:
        transaction.set_agent(name, stall=replace(stall, since=transaction.clock))
    elif stall.accumulated:
        transaction.set_agent(name, stall=replace(stall, accumulated=0.0))


def exclude_time(transaction: Transaction, name: str, *over: float) -> None:
    """Take the time in which the disk was full, or a job of the agent ran, off its no-progress timer and its silence.
    `over`: the begin of each job that has just ended, on the run's clock; running jobs are found in the fleet."""
    agent = transaction.agents[name]
    stall = _without_excluded_time(transaction, agent, over)
    if stall is not agent.stall:
        assert agent.stall.since is not None, "only a timer that runs can be adjusted"
        assert stall.since is not None, "only a timer that runs can be adjusted"
        assert agent.deadline is not None, "a running agent has a deadline"
        longest = transaction.clock + ttl_of(agent, transaction.rules)
        deadline = min(agent.deadline + stall.since - agent.stall.since, longest)
        transaction.set_agent(name, stall=stall, deadline=deadline)


def is_excused(fleet: Fleet, agent: Agent, clock: float) -> bool:
    """Return whether an agent of this fleet cannot be expected to make progress at the time `clock` of the run's clock:
    one of its jobs runs, or the disk is full."""
    if fleet.run.disk_problem:
        return True
    assert agent.stall.progress_at is not None, "an agent that works has had its first launch"
    return runs_job(agent.name, fleet.jobs) and clock < agent.stall.progress_at + JOB_EXCUSE_SECONDS


def check_busy(transaction: Transaction, agent: Agent) -> Reason | None:
    """Return why to interrupt a running agent that works without progress; None where it is to go on. Before the first
    step is taken, the agent's clone is scanned for edits that its output did not mention."""
    stall = agent.stall
    if not _has_lasted(transaction, stall):
        return None
    assert stall.since is not None, "a timer that has ended was running"
    if (
        not agent.has_output
        or agent.research_until is not None
        or is_excused(transaction.fleet(), agent, transaction.clock)
    ):
        return None  # it is silent, which is another finding; or it cannot be expected to make progress
    waits = waits_until(agent.name, transaction.pending.values())
    if waits is not None and waits > stall.since:
        transaction.set_agent(agent.name, stall=replace(stall, since=waits))
    elif not _has_lasted(transaction, adjusted := _without_excluded_time(transaction, agent)):
        transaction.set_agent(agent.name, stall=adjusted)
    elif stall.scan_requested_at is None:
        transaction.set_agent(agent.name, stall=replace(stall, scan_requested_at=transaction.clock))
        transaction.act(do.ScanEdits(agent=agent.name, launch=agent.launch))
    elif transaction.clock >= stall.scan_requested_at + SCAN_SECONDS:
        return _escalate(transaction, agent, Finding.NO_PROGRESS)
    return None


def on_edits_scanned(transaction: Transaction, event: on.EditsScanned) -> Reason | None:
    """Return why to interrupt an agent whose clone was scanned for edits; None where it is to go on."""
    agent = transaction.agents.get(event.agent)
    if agent is None or agent.launch != event.launch or agent.stall.scan_requested_at is None:
        return None
    assert agent.stall.since is not None, "a scan is requested only while the timer runs"
    if event.edited is not None and transaction.clock - event.edited > agent.stall.since:
        record_progress(transaction, agent.name, min(event.edited, transaction.clock - agent.spawned_at))
        return None
    if is_excused(transaction.fleet(), agent, transaction.clock):
        transaction.set_agent(agent.name, stall=replace(agent.stall, scan_requested_at=None))
        return None
    return _escalate(transaction, agent, Finding.NO_PROGRESS)


def on_life_seen(transaction: Transaction, event: on.LifeSeen) -> None:
    """Put off the deadline of a silent agent whose programs compute, as a long test or a training does. Whether that
    work leads to progress is checked by `check_busy`."""
    agent = transaction.agents.get(event.agent)
    if agent is None or agent.launch != event.launch or agent.phase is not Phase.RUNNING or not agent.has_output:
        return
    assert agent.deadline is not None, "a running agent has a deadline"
    ttl = ttl_of(agent, transaction.rules)
    transaction.set_agent(agent.name, deadline=max(agent.deadline, transaction.clock + ttl))


def silences(fleet: Fleet, rules: Rules) -> dict[tuple[str, int], tuple[float, float]]:
    """Return for each launch at work, by its agent's name and its number: the time on the run's clock at which its
    silence ends at the latest, and the seconds of silence that its present phase allows (its ttl)."""
    return {
        (agent.name, agent.launch): (agent.deadline, ttl_of(agent, rules))
        for agent in fleet.agents.values()
        if agent.phase is Phase.RUNNING and agent.has_output and agent.deadline is not None
    }


def ttl_now(fleet: Fleet, agent: str, phase: str, clock: float, rules: Rules) -> float:
    """Return for how many seconds from now on an agent may be silent in this phase: the phase's ttl, counted from the
    end of its wait for a grade."""
    waits = waits_until(agent, fleet.pending.values())
    return rules.ttl_of(phase) + max((waits or clock) - clock, 0.0)


def silent_for(fleet: Fleet, agent: Agent, clock: float, rules: Rules) -> float:
    """Return for how many seconds a launch at work has been silent without an excuse. When they reach its ttl,
    `check_silent` acts."""
    assert agent.deadline is not None, "a running agent has a deadline"
    assert agent.stall.since is not None, "the timer of a running agent runs"
    if is_excused(fleet, agent, clock):
        return 0.0
    waits = waits_until(agent.name, fleet.pending.values())
    begins = max(agent.deadline - ttl_of(agent, rules), agent.stall.since)
    return max(clock - (begins if waits is None else max(begins, waits)), 0.0)


def check_silent(transaction: Transaction, agent: Agent) -> Reason | None:
    """Return why to interrupt a running agent that is silent; None where the last step was taken too recently."""
    since = agent.stall.since
    assert since is not None, "the timer of a running agent runs"
    due = since + ttl_of(agent, transaction.rules)
    if transaction.clock < due:
        transaction.set_agent(agent.name, deadline=due)
        return None
    return _escalate(transaction, agent, Finding.SILENT)


def is_ended_for_stall(agent: Agent) -> bool:
    """Return whether the agent's launch is being ended for the last step of its escalation, and for nothing else."""
    ending = agent.phase in LIVE and agent.phase is not Phase.RUNNING
    return ending and agent.reason.kind is ReasonKind.STALLED


def needs_new_session(agent: Agent) -> bool:
    """Return whether the agent's next launch is to begin a new session."""
    return is_ended_for_stall(agent) and agent.stall.escalations >= FRESH


def rest_seconds(agent: Agent) -> float:
    """Return for how many seconds an agent rests now that its launch has ended; 0 where its escalation is not that
    far."""
    if not is_ended_for_stall(agent) or agent.stall.escalations < RESTING:
        return 0.0
    return REST_SECONDS * 2.0 ** min(agent.stall.escalations - RESTING, MAX_REST_DOUBLINGS)


def is_resting(agent: Agent) -> bool:
    return agent.phase is Phase.PARKED and agent.reason.kind is ReasonKind.STALLED


def _has_lasted(transaction: Transaction, stall: Stall) -> bool:
    limit = transaction.rules.no_progress
    return limit is not None and stall.since is not None and transaction.clock >= stall.since + limit


def _without_excluded_time(transaction: Transaction, agent: Agent, over: tuple[float, ...] = ()) -> Stall:
    """Return the stall with the time of jobs and of a full disk taken off its timer, each moment once. A job counts
    only for a bounded time after the last progress. `over`: when jobs began that have just ended."""
    stall = agent.stall
    if stall.since is None or stall.progress_at is None:
        return stall
    since, excluded = stall.since, stall.excluded_until
    until = min(transaction.clock, stall.progress_at + JOB_EXCUSE_SECONDS)
    jobs = (*over, *(job.began_at for job in transaction.jobs.values() if job.agent == agent.name))
    spans = [(began, until) for began in jobs] + (
        [(transaction.run.disk_problem_since, transaction.clock)] if transaction.run.disk_problem else []
    )
    for began, end in sorted(spans):
        start = max(began, since, excluded)
        if end > start:  # mutants: equivalent, an empty span takes nothing off
            since, excluded = since + end - start, end
    return (
        stall if since == stall.since else replace(stall, since=since, excluded_until=excluded, scan_requested_at=None)
    )


def _escalate(transaction: Transaction, agent: Agent, finding: Finding) -> Reason | None:
    """Take the next step against the stall; return why to interrupt the agent. The first step against a busy agent
    returns None: its nudge waits until no tool is at work."""
    before = agent.stall
    begun = agent.last_output_at if finding is Finding.SILENT else before.progress_at
    assert begun is not None, "an agent that has worked has had its first launch"
    stall = replace(
        before,
        since=transaction.clock,
        escalations=before.escalations + 1,
        finding=finding,
        lasted=transaction.clock - begun,
        scan_requested_at=None,
    )
    agent = transaction.set_agent(agent.name, stall=stall)
    reason = reason_of(stall)
    transaction.log("stalled", agent=agent.name, reason=reason)
    if stall.escalations == RESTING:
        text = f"a nudge, an interrupt and a fresh session have not helped {agent.name}"
        transaction.alert(text, agent.name, reason)
    if finding is Finding.NO_PROGRESS and stall.escalations == NUDGED:
        _queue_nudge(transaction, agent, transaction.rules.max_defer, defers=True)
        return None
    _queue_nudge(transaction, agent, 0.0, defers=False)
    return reason


def _queue_nudge(transaction: Transaction, agent: Agent, seconds: float, *, defers: bool) -> None:
    """Queue a message about the finding. If an earlier one is still pending, it says the same: it gets the new due time
    instead."""
    due = transaction.clock + seconds
    earlier = [message for message in agent.pending_messages if message.name == STALLED]
    if earlier:
        transaction.change_messages(agent.name, (replace(message, due=due, defers=defers) for message in earlier))
    else:
        transaction.queue_notice(agent.name, STALLED, due, defers=defers)
