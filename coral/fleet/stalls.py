"""Agents that come to nothing: silent, or busy without progress. More and more is done about one until it has some.

It is nudged, interrupted, given a fresh session, and then it rests, each time longer. No step is taken before the
finding has lasted its whole time once more. Who waits for a grade or a job, does research or does not work is not
stalled.
"""

from dataclasses import replace

from coral.fleet import actions as do
from coral.fleet import events as on
from coral.fleet.draft import Draft
from coral.fleet.interventions import STALLED
from coral.fleet.policy import (
    EXCUSED_SECONDS,
    LOOK_SECONDS,
    MOST_DOUBLINGS,
    REST_SECONDS,
    Rules,
    duration,
    runs_job,
    waits_until,
)
from coral.fleet.state import LIVE, Agent, Owed, Phase
from coral.fleet.wear import Stall

SILENT, FRUITLESS = "silent", "no progress"
NUDGED, FRESH, RESTING = 1, 3, 4  # and whatever is more, is a longer rest
_STEPS = ("", "nudged", "interrupted", "fresh session", "parked")


def words_of(stall: Stall) -> str:
    """What was done last and why, `nudged: silent for 20 min`; empty where it has had progress since."""
    return f"{_STEPS[min(stall.steps, RESTING)]}: {stall.finding} for {duration(stall.lasted)}" if stall.steps else ""


def deadlines(agent: Agent, rules: Rules) -> list[float]:
    """When its work without progress may have lasted long enough, when no job excuses that, and when a look has."""
    if agent.stall.since is None or rules.no_progress is None:
        return []
    asked = agent.stall.asked
    assert agent.stall.progress_at is not None, "who works has begun"
    times = [agent.stall.since + rules.no_progress, agent.stall.progress_at + EXCUSED_SECONDS]
    return times if asked is None else [*times, asked + LOOK_SECONDS]


def begin(draft: Draft, name: str) -> None:
    """It works from here on."""
    stall = draft.agents[name].stall
    if stall.since is None:
        at = draft.clock if stall.progress_at is None else stall.progress_at
        stall = replace(stall, since=draft.clock - stall.spent, progress_at=at, excused=draft.clock)
        draft.set_agent(name, stall=stall)


def resume(draft: Draft, name: str) -> None:
    """It works on under a new supervisor. Whoever was sent to look by the last one never says what was found."""
    begin(draft, name)
    stall = draft.agents[name].stall
    if stall.asked is not None:
        draft.set_agent(name, stall=replace(stall, asked=None))


def pause(draft: Draft, name: str) -> None:
    """It works no more, for now."""
    stall = _without_excuses(draft, draft.agents[name])
    if stall.since is not None:
        spent = max(draft.clock - stall.since, 0.0)
        draft.set_agent(name, stall=replace(stall, since=None, spent=spent, asked=None))


def progressed(draft: Draft, name: str, ago: float = 0.0) -> None:
    """Something came of its work, so many seconds ago: what was done about it is over."""
    agent = draft.agents[name]
    at = draft.clock - ago
    why = "progress" if is_ended_for_it(agent) else agent.why
    stall = Stall(since=None if agent.stall.since is None else at, progress_at=at)
    stays = tuple(each for each in agent.owed if each.name != STALLED or each.id in agent.carried)
    for owed in (each for each in agent.owed if each not in stays):
        draft.note("withdrawn", f"{owed.name} ({owed.id}) is overtaken by progress", name)
    draft.set_agent(name, why=why, stall=stall, owed=stays)


def waited(draft: Draft, name: str) -> None:
    """Its grade has come, or its research is over: until now nothing was to come of its work."""
    stall = draft.agents[name].stall
    if stall.since is not None:
        draft.set_agent(name, stall=replace(stall, since=draft.clock))
    elif stall.spent:
        draft.set_agent(name, stall=replace(stall, spent=0.0))


def excuse(draft: Draft, name: str, *over: float) -> None:
    """Hold nothing against it of the time in which the disk was full or a job of its ran, one that goes on or one that
    is over and began then: neither that nothing came of its work, nor its silence."""
    agent = draft.agents[name]
    stall = _without_excuses(draft, agent, over)
    if stall is not agent.stall:
        assert agent.stall.since is not None, "nothing is taken off what has not begun"
        assert stall.since is not None, "nothing is taken off what has not begun"
        assert agent.deadline is not None, "who works has a deadline"
        deadline = min(agent.deadline + stall.since - agent.stall.since, draft.clock + draft.rules.stall)
        draft.set_agent(name, stall=stall, deadline=deadline)


def is_excused(draft: Draft, agent: Agent) -> bool:
    """Whether nothing can be said against it now: a result is on its way, or none can be written."""
    if draft.run.lack:
        return True
    assert agent.stall.progress_at is not None, "who works has begun"
    return runs_job(agent.name, draft.jobs) and draft.clock < agent.stall.progress_at + EXCUSED_SECONDS


def busy(draft: Draft, agent: Agent) -> str:
    """Why a running agent is to be interrupted that works without progress; empty where it is not. Before that,
    somebody looks whether it has edited anything."""
    stall = agent.stall
    if not _has_lasted(draft, stall):
        return ""
    assert stall.since is not None, "nothing lasts that has not begun"
    if not agent.heard or agent.research is not None or draft.run.lack or is_excused(draft, agent):
        return ""  # it is silent; it is not to have results yet; it cannot have any; they are on their way
    waits = waits_until(agent.name, draft.pending.values())
    if waits is not None and waits > stall.since:
        draft.set_agent(agent.name, stall=replace(stall, since=waits))
    elif not _has_lasted(draft, excused := _without_excuses(draft, agent)):
        draft.set_agent(agent.name, stall=excused)
    elif stall.asked is None:
        draft.set_agent(agent.name, stall=replace(stall, asked=draft.clock))
        draft.act(do.Look(agent=agent.name, launch=agent.launch))
    elif draft.clock >= stall.asked + LOOK_SECONDS:
        return _climb(draft, agent, FRUITLESS)
    return ""


def looked(draft: Draft, event: on.Looked) -> str:
    """Why the agent is to be interrupted whose files were looked at; empty where it is not."""
    agent = draft.agents.get(event.agent)
    if agent is None or agent.launch != event.launch or agent.stall.asked is None:
        return ""
    assert agent.stall.since is not None, "nobody is sent to look while it does not work"
    if event.edited is not None and draft.clock - event.edited > agent.stall.since:
        progressed(draft, agent.name, min(event.edited, draft.clock - agent.spawned_at))
        return ""
    if is_excused(draft, agent):
        draft.set_agent(agent.name, stall=replace(agent.stall, asked=None))
        return ""
    return _climb(draft, agent, FRUITLESS)


def silent(draft: Draft, agent: Agent) -> str:
    """Why a running agent is to be interrupted whose silence has lasted; empty where a step was taken only lately."""
    since = agent.stall.since
    assert since is not None, "a running agent works"
    if draft.clock < since + draft.rules.stall:
        draft.set_agent(agent.name, deadline=since + draft.rules.stall)
        return ""
    return _climb(draft, agent, SILENT)


def is_ended_for_it(agent: Agent) -> bool:
    """Whether its launch was interrupted for the last step, and not for anything else."""
    ending = agent.phase in LIVE and agent.phase is not Phase.RUNNING
    return ending and agent.why == words_of(agent.stall)


def renews(agent: Agent) -> bool:
    """Whether the launch that has ended is to be the last of its conversation."""
    return is_ended_for_it(agent) and agent.stall.steps >= FRESH


def rest(agent: Agent) -> float:
    """How many seconds an agent rests now that its launch has ended; 0 where it has not come to that."""
    if not is_ended_for_it(agent) or agent.stall.steps < RESTING:
        return 0.0
    return REST_SECONDS * 2.0 ** min(agent.stall.steps - RESTING, MOST_DOUBLINGS)


def rests(agent: Agent) -> bool:
    return agent.phase is Phase.PARKED and agent.why.startswith(_STEPS[RESTING])


def _has_lasted(draft: Draft, stall: Stall) -> bool:
    """Whether its work without progress has, so long that something is to be done."""
    limit = draft.rules.no_progress
    return limit is not None and stall.since is not None and draft.clock >= stall.since + limit


def _without_excuses(draft: Draft, agent: Agent, over: tuple[float, ...] = ()) -> Stall:
    """Its work without progress, less the time in which there was a reason for it: each moment once. A job is one for
    a bounded time after the last progress; `over`: when jobs began that have just ended."""
    stall = agent.stall
    if stall.since is None or stall.progress_at is None:
        return stall
    since, excused = stall.since, stall.excused
    until = min(draft.clock, stall.progress_at + EXCUSED_SECONDS)
    jobs = (*over, *(each.began_at for each in draft.jobs.values() if each.agent == agent.name))
    spans = [(began, until) for began in jobs] + ([(draft.run.lack_at, draft.clock)] if draft.run.lack else [])
    for began, end in sorted(spans):
        start = max(began, since, excused)
        if end > start:  # mutants: equivalent, nothing is taken off where they are the same
            since, excused = since + end - start, end
    return stall if since == stall.since else replace(stall, since=since, excused=excused, asked=None)


def _climb(draft: Draft, agent: Agent, finding: str) -> str:
    """The next step. A nudge of somebody who is at work waits for a good moment; all else is an interrupt."""
    before = agent.stall
    begun = agent.heard_at if finding == SILENT else before.progress_at
    assert begun is not None, "who has worked has begun"
    stall = replace(
        before,
        since=draft.clock,
        steps=before.steps + 1,
        finding=finding,
        lasted=draft.clock - begun,
        asked=None,
    )
    agent = draft.set_agent(agent.name, stall=stall)
    words = words_of(stall)
    draft.note("stalled", words, agent.name)
    if stall.steps == RESTING:
        draft.alert(f"{agent.name} is {words}; a nudge, an interrupt and a fresh session have not helped", agent.name)
    if finding == FRUITLESS and stall.steps == NUDGED:
        _owe(draft, agent, draft.rules.max_defer, defers=True)
        return ""
    _owe(draft, agent, 0.0, defers=False)
    return words


def _owe(draft: Draft, agent: Agent, seconds: float, *, defers: bool) -> None:
    """Tell it what was found. What was not delivered yet says it for both, if need be sooner."""
    due = draft.clock + seconds
    if any(each.name == STALLED for each in agent.owed):
        owed = (replace(each, due=due, defers=defers) if each.name == STALLED else each for each in agent.owed)
        draft.set_agent(agent.name, owed=tuple(owed))
    else:
        id = draft.next_owed_id()
        draft.owe(agent.name, Owed(id=id, name=STALLED, since=draft.clock, due=due, defers=defers))
