"""Agents that come to nothing: silent, or busy without progress. More and more is done about one until it has some.

It is nudged, interrupted, given a fresh session, and then it rests, each time longer. No step is taken before the
finding has lasted its whole time once more. Who waits for a grade or a job, does research or does not work is not
stalled.
"""

from dataclasses import replace

from coral.fleet import actions as do
from coral.fleet import events as on
from coral.fleet.agent_state import LIVE, Agent, PendingMessage, Phase, Stall
from coral.fleet.messages import STALLED
from coral.fleet.policy import (
    EXCUSED_SECONDS,
    LOOK_SECONDS,
    MAX_DOUBLINGS,
    REST_SECONDS,
    duration,
    runs_job,
    waits_until,
)
from coral.fleet.rules import Rules
from coral.fleet.transaction import Transaction

SILENT, FRUITLESS = "silent", "no progress"
NUDGED, FRESH, RESTING = 1, 3, 4  # and whatever is more, is a longer rest
_STEPS = ("", "nudged", "interrupted", "fresh session", "parked")


def words_of(stall: Stall) -> str:
    """What was done last and why, `nudged: silent for 20 min`; empty where it has had progress since."""
    return (
        f"{_STEPS[min(stall.escalations, RESTING)]}: {stall.finding} for {duration(stall.lasted)}"
        if stall.escalations
        else ""
    )


def deadlines(agent: Agent, rules: Rules) -> list[float]:
    """When its work without progress may have lasted long enough, when no job excuses that, and when a look has."""
    if agent.stall.since is None or rules.no_progress is None:
        return []
    asked = agent.stall.scan_requested_at
    assert agent.stall.progress_at is not None, "who works has begun"
    times = [agent.stall.since + rules.no_progress, agent.stall.progress_at + EXCUSED_SECONDS]
    return times if asked is None else [*times, asked + LOOK_SECONDS]


def start_timer(transaction: Transaction, name: str) -> None:
    """It works from here on."""
    stall = transaction.agents[name].stall
    if stall.since is None:
        at = transaction.clock if stall.progress_at is None else stall.progress_at
        stall = replace(
            stall, since=transaction.clock - stall.accumulated, progress_at=at, excluded_until=transaction.clock
        )
        transaction.set_agent(name, stall=stall)


def forget_scan(transaction: Transaction, name: str) -> None:
    """Forget a scan for edits: the supervisor that it was requested from is gone, and its result will never come."""
    stall = transaction.agents[name].stall
    if stall.scan_requested_at is not None:
        transaction.set_agent(name, stall=replace(stall, scan_requested_at=None))


def pause_timer(transaction: Transaction, name: str) -> None:
    """It works no more, for now."""
    stall = _without_excluded_time(transaction, transaction.agents[name])
    if stall.since is not None:
        spent = max(transaction.clock - stall.since, 0.0)
        transaction.set_agent(name, stall=replace(stall, since=None, accumulated=spent, scan_requested_at=None))


def record_progress(transaction: Transaction, name: str, ago: float = 0.0) -> None:
    """Something came of its work, so many seconds ago: what was done about it is over."""
    agent = transaction.agents[name]
    at = transaction.clock - ago
    why = "progress" if is_ended_for_it(agent) else agent.why
    stall = Stall(since=None if agent.stall.since is None else at, progress_at=at)
    stays = tuple(
        message for message in agent.pending_messages if message.name != STALLED or message.id in agent.in_flight
    )
    for message in agent.pending_messages:
        if message not in stays:
            transaction.log("withdrawn", f"{message.name} ({message.id}) is overtaken by progress", name)
    transaction.set_agent(name, why=why, stall=stall, pending_messages=stays)


def restart_timer(transaction: Transaction, name: str) -> None:
    """Its grade has come, or its research is over: until now nothing was to come of its work."""
    stall = transaction.agents[name].stall
    if stall.since is not None:
        transaction.set_agent(name, stall=replace(stall, since=transaction.clock))
    elif stall.accumulated:
        transaction.set_agent(name, stall=replace(stall, accumulated=0.0))


def exclude_time(transaction: Transaction, name: str, *over: float) -> None:
    """Hold nothing against it of the time in which the disk was full or a job of its ran, one that goes on or one that
    is over and began then: neither that nothing came of its work, nor its silence."""
    agent = transaction.agents[name]
    stall = _without_excluded_time(transaction, agent, over)
    if stall is not agent.stall:
        assert agent.stall.since is not None, "nothing is taken off what has not begun"
        assert stall.since is not None, "nothing is taken off what has not begun"
        assert agent.deadline is not None, "who works has a deadline"
        deadline = min(agent.deadline + stall.since - agent.stall.since, transaction.clock + transaction.rules.stall)
        transaction.set_agent(name, stall=stall, deadline=deadline)


def is_excluded(transaction: Transaction, agent: Agent) -> bool:
    """Whether nothing can be said against it now: a result is on its way, or none can be written."""
    if transaction.run.disk_problem:
        return True
    assert agent.stall.progress_at is not None, "who works has begun"
    return runs_job(agent.name, transaction.jobs) and transaction.clock < agent.stall.progress_at + EXCUSED_SECONDS


def check_busy(transaction: Transaction, agent: Agent) -> str:
    """Why a running agent is to be interrupted that works without progress; empty where it is not. Before that,
    somebody looks whether it has edited anything."""
    stall = agent.stall
    if not _has_lasted(transaction, stall):
        return ""
    assert stall.since is not None, "nothing lasts that has not begun"
    if (
        not agent.has_output
        or agent.research_until is not None
        or transaction.run.disk_problem
        or is_excluded(transaction, agent)
    ):
        return ""  # it is silent; it is not to have results yet; it cannot have any; they are on their way
    waits = waits_until(agent.name, transaction.pending.values())
    if waits is not None and waits > stall.since:
        transaction.set_agent(agent.name, stall=replace(stall, since=waits))
    elif not _has_lasted(transaction, excused := _without_excluded_time(transaction, agent)):
        transaction.set_agent(agent.name, stall=excused)
    elif stall.scan_requested_at is None:
        transaction.set_agent(agent.name, stall=replace(stall, scan_requested_at=transaction.clock))
        transaction.act(do.ScanEdits(agent=agent.name, launch=agent.launch))
    elif transaction.clock >= stall.scan_requested_at + LOOK_SECONDS:
        return _escalate(transaction, agent, FRUITLESS)
    return ""


def on_edits_scanned(transaction: Transaction, event: on.EditsScanned) -> str:
    """Why the agent is to be interrupted whose files were looked at; empty where it is not."""
    agent = transaction.agents.get(event.agent)
    if agent is None or agent.launch != event.launch or agent.stall.scan_requested_at is None:
        return ""
    assert agent.stall.since is not None, "nobody is sent to look while it does not work"
    if event.edited is not None and transaction.clock - event.edited > agent.stall.since:
        record_progress(transaction, agent.name, min(event.edited, transaction.clock - agent.spawned_at))
        return ""
    if is_excluded(transaction, agent):
        transaction.set_agent(agent.name, stall=replace(agent.stall, scan_requested_at=None))
        return ""
    return _escalate(transaction, agent, FRUITLESS)


def check_silent(transaction: Transaction, agent: Agent) -> str:
    """Why a running agent is to be interrupted whose silence has lasted; empty where a step was taken only lately."""
    since = agent.stall.since
    assert since is not None, "a running agent works"
    if transaction.clock < since + transaction.rules.stall:
        transaction.set_agent(agent.name, deadline=since + transaction.rules.stall)
        return ""
    return _escalate(transaction, agent, SILENT)


def is_ended_for_it(agent: Agent) -> bool:
    """Whether its launch was interrupted for the last step, and not for anything else."""
    ending = agent.phase in LIVE and agent.phase is not Phase.RUNNING
    return ending and agent.why == words_of(agent.stall)


def needs_new_session(agent: Agent) -> bool:
    """Whether the launch that has ended is to be the last of its conversation."""
    return is_ended_for_it(agent) and agent.stall.escalations >= FRESH


def rest_seconds(agent: Agent) -> float:
    """How many seconds an agent rests now that its launch has ended; 0 where it has not come to that."""
    if not is_ended_for_it(agent) or agent.stall.escalations < RESTING:
        return 0.0
    return REST_SECONDS * 2.0 ** min(agent.stall.escalations - RESTING, MAX_DOUBLINGS)


def is_resting(agent: Agent) -> bool:
    return agent.phase is Phase.PARKED and agent.why.startswith(_STEPS[RESTING])


def _has_lasted(transaction: Transaction, stall: Stall) -> bool:
    """Whether its work without progress has, so long that something is to be done."""
    limit = transaction.rules.no_progress
    return limit is not None and stall.since is not None and transaction.clock >= stall.since + limit


def _without_excluded_time(transaction: Transaction, agent: Agent, over: tuple[float, ...] = ()) -> Stall:
    """Its work without progress, less the time in which there was a reason for it: each moment once. A job is one for
    a bounded time after the last progress; `over`: when jobs began that have just ended."""
    stall = agent.stall
    if stall.since is None or stall.progress_at is None:
        return stall
    since, excused = stall.since, stall.excluded_until
    until = min(transaction.clock, stall.progress_at + EXCUSED_SECONDS)
    jobs = (*over, *(job.began_at for job in transaction.jobs.values() if job.agent == agent.name))
    spans = [(began, until) for began in jobs] + (
        [(transaction.run.disk_problem_since, transaction.clock)] if transaction.run.disk_problem else []
    )
    for began, end in sorted(spans):
        start = max(began, since, excused)
        if end > start:  # mutants: equivalent, nothing is taken off where they are the same
            since, excused = since + end - start, end
    return (
        stall if since == stall.since else replace(stall, since=since, excluded_until=excused, scan_requested_at=None)
    )


def _escalate(transaction: Transaction, agent: Agent, finding: str) -> str:
    """The next step. A nudge of somebody who is at work waits for a good moment; all else is an interrupt."""
    before = agent.stall
    begun = agent.last_output_at if finding == SILENT else before.progress_at
    assert begun is not None, "who has worked has begun"
    stall = replace(
        before,
        since=transaction.clock,
        escalations=before.escalations + 1,
        finding=finding,
        lasted=transaction.clock - begun,
        scan_requested_at=None,
    )
    agent = transaction.set_agent(agent.name, stall=stall)
    words = words_of(stall)
    transaction.log("stalled", words, agent.name)
    if stall.escalations == RESTING:
        transaction.alert(
            f"{agent.name} is {words}; a nudge, an interrupt and a fresh session have not helped", agent.name
        )
    if finding == FRUITLESS and stall.escalations == NUDGED:
        _queue_nudge(transaction, agent, transaction.rules.max_defer, defers=True)
        return ""
    _queue_nudge(transaction, agent, 0.0, defers=False)
    return words


def _queue_nudge(transaction: Transaction, agent: Agent, seconds: float, *, defers: bool) -> None:
    """Tell it what was found. What was not delivered yet says it for both, if need be sooner."""
    due = transaction.clock + seconds
    if any(message.name == STALLED for message in agent.pending_messages):
        owed = (
            replace(message, due=due, defers=defers) if message.name == STALLED else message
            for message in agent.pending_messages
        )
        transaction.set_agent(agent.name, pending_messages=tuple(owed))
    else:
        id = transaction.next_message_id()
        transaction.queue_message(
            agent.name, PendingMessage(id=id, name=STALLED, since=transaction.clock, due=due, defers=defers)
        )
