"""The end of a launch: what it means, and when the agent starts again, if ever.

A turn that ended, a crash, a limit, a signal of ours and a program that cannot be started are one wait with different
lengths; only what is pointless to repeat retires an agent.
"""

from dataclasses import replace

from coral.fleet import accounts, jobs, outages, research, stalls
from coral.fleet import events as on
from coral.fleet.draft import Draft
from coral.fleet.interventions import leave_unanswered
from coral.fleet.policy import MOST_KILLS, PRODUCTIVE_SECONDS, back_off
from coral.fleet.state import LIVE, Agent, Phase
from heartbeats.heartbeat import Scope

AT_LIMIT = "usage limit"
LEFTOVERS = "leftovers"


def on_exited(draft: Draft, event: on.Exited) -> None:
    agent = draft.agents.get(event.agent)
    if agent is None or agent.launch != event.launch or not _may_end(agent):
        return
    draft.note("exited", f"launch {agent.launch} ended: {event.ending}", agent.name)
    asked_by_us = agent.phase is not Phase.RUNNING and agent.why != LEFTOVERS
    agent = _let_go(draft, agent)
    if event.ending is not on.Ending.LIMIT and not asked_by_us:
        accounts.ended(draft, agent, well=event.ending is on.Ending.CLEAN)
    cut_off = asked_by_us and outages.is_ended_for_it(agent)
    if cut_off or (asked_by_us and stalls.is_ended_for_it(agent)):
        accounts.ended(draft, agent, well=False)
    match event.ending:
        case on.Ending.TERMINAL:
            _give_up(draft, agent, event.detail or "its program says that going on is pointless")
        case on.Ending.LIMIT:
            _park(draft, agent, event.until)
        case on.Ending.LOST if not stalls.is_ended_for_it(agent):
            wait(draft, agent, "resumed", in_turn(draft, agent.name))
        case on.Ending.UNKNOWN_SESSION:
            agent = draft.set_agent(agent.name, session=None)
            _wait_after_crash(draft, agent, event.detail or "its program does not know the session")
        case _ if cut_off:
            _wait_after_crash(draft, agent, agent.why, agent.why)
        case _ if asked_by_us:
            _wait_after_our_signal(draft, agent)
        case on.Ending.CLEAN:
            _wait_after_turn(draft, research.over(draft, agent))
        case _:
            _wait_after_crash(draft, agent, event.detail or f"it {event.ending}")


def on_not_started(draft: Draft, name: str, launch: int, reason: str) -> None:
    agent = draft.agents.get(name)
    if agent is not None and agent.launch == launch and _may_end(agent):
        _wait_after_crash(draft, _let_go(draft, agent), f"its program could not be started: {reason}")


def wait(draft: Draft, agent: Agent, why: str, seconds: float = 0.0) -> None:
    draft.set_agent(agent.name, phase=Phase.WAITING, deadline=draft.clock + seconds, why=why)


def in_turn(draft: Draft, name: str) -> float:
    """How many seconds an agent waits for those before it, where all of them come back at once."""
    return list(draft.agents).index(name) * draft.rules.stagger


def retire(draft: Draft, agent: Agent, reason: str, *, told: bool = False) -> None:
    """It starts no more. What it owes of the fleet's falls to the next who submits."""
    owed = [each for each in agent.owed if each.scope is Scope.FLEET]
    draft.set_run(orphans=(*draft.run.orphans, *(replace(each, printed=False) for each in owed)))
    stays = tuple(each for each in agent.owed if each.scope is not Scope.FLEET)
    draft.set_agent(agent.name, phase=Phase.RETIRED, deadline=None, why=reason, owed=stays)
    if told:
        draft.note("retired", reason, agent.name)
    else:
        draft.alert(f"{agent.name} has retired: {reason}", agent.name)


def _may_end(agent: Agent) -> bool:
    given_up = agent.phase is Phase.RETIRED and agent.kills >= MOST_KILLS
    return agent.phase in LIVE or given_up


def _let_go(draft: Draft, agent: Agent) -> Agent:
    """The launch is gone. What it did not acknowledge stays owed; a checkpoint that it did not answer never will be;
    and if it sat in `coral eval`, nobody does now."""
    for number, pending in draft.pending.items():
        if pending.submission.agent == agent.name:
            draft.set_pending(number, waited_until=0.0)
    stalls.pause(draft, agent.name)
    if agent.asked and not draft.run.stopping:
        leave_unanswered(draft, agent.name)
    why = "killed" if agent.phase is Phase.RETIRED else agent.why
    return draft.set_agent(agent.name, carried=(), asked=(), busy="", kills=0, why=why)


def _park(draft: Draft, agent: Agent, until: float | None) -> None:
    """No usage is left. A provider that names no time, or one that has come already, is not asked again at once."""
    rules = draft.rules
    agent = draft.set_agent(agent.name, crashes=agent.crashes + 1)
    if rules.stop_at_limit and not draft.run.stopping:
        draft.set_run(stopping=f"{rules.accounts.get(agent.name, agent.name)} has reached its usage limit")
    if agent.name in rules.accounts:
        accounts.hit(draft, agent, until)
        draft.set_agent(agent.name, phase=Phase.PARKED, deadline=None, why=AT_LIMIT)
        return
    seconds = rules.backoff_max if until is None else max(until, accounts.least(draft, agent))
    draft.set_agent(agent.name, phase=Phase.PARKED, deadline=draft.clock + seconds, why=AT_LIMIT)
    draft.alert(f"{agent.name} has reached a usage limit and is parked", agent.name)


def _wait_after_our_signal(draft: Draft, agent: Agent) -> None:
    seconds = stalls.rest(agent)
    if stalls.renews(agent):
        agent = draft.set_agent(agent.name, session=None)
    if seconds:
        draft.set_agent(agent.name, phase=Phase.PARKED, deadline=draft.clock + seconds)
    elif agent.heard:
        wait(draft, agent, agent.why)
    else:
        # It never said a word: without a back-off, a program that hangs at its start would be restarted for ever.
        _fail(draft, agent, agent.why)


def _wait_after_turn(draft: Draft, agent: Agent) -> None:
    tried = agent.submitted > agent.submitted_at_spawn
    if tried or draft.clock - agent.spawned_at >= PRODUCTIVE_SECONDS:
        agent = draft.set_agent(agent.name, idle=0, crashes=0)
        seconds = 0.0
    else:
        agent = draft.set_agent(agent.name, idle=agent.idle + 1)
        seconds = back_off(draft.run.id, agent, agent.idle, draft.rules)
    if not jobs.wait_for(draft, agent):
        wait(draft, agent, "turn ended", seconds)


def _wait_after_crash(draft: Draft, agent: Agent, reason: str, why: str = "crashed") -> None:
    draft.note("crashed", f"launch {agent.launch}: {reason}", agent.name)
    _fail(draft, agent, why)
    _trip_breaker(draft, reason)


def _fail(draft: Draft, agent: Agent, why: str) -> None:
    agent = draft.set_agent(agent.name, crashes=agent.crashes + 1)
    wait(draft, agent, why, back_off(draft.run.id, agent, agent.crashes, draft.rules))


def _trip_breaker(draft: Draft, reason: str) -> None:
    """Many crashes in a short time have one cause: hold the whole fleet, not agent by agent."""
    rules = draft.rules
    since = draft.clock - rules.breaker_window
    recent = (*(each for each in draft.run.crashes if each > since), draft.clock)
    draft.set_run(crashes=recent[-rules.breaker_crashes :])
    if len(recent) >= rules.breaker_crashes and draft.clock >= draft.run.held_until:
        draft.set_run(held_until=draft.clock + rules.breaker_pause, crashes=())
        draft.alert(
            f"{len(recent)} crashes within {rules.breaker_window:g} seconds; "
            f"nothing starts for {rules.breaker_pause:g} seconds. The last one: {reason}"
        )


def _give_up(draft: Draft, agent: Agent, reason: str) -> None:
    """Its program can do nothing more: a wrong key, no credit. Nor can those who depend on the same."""
    account = draft.rules.accounts.get(agent.name)
    if account is not None:
        accounts.close(draft, account, reason)
    retire(draft, agent, reason, told=account is not None)
