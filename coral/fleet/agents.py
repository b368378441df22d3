"""An agent's phases: it waits, runs, is interrupted, terminated, killed, parked, or has retired.

Heartbeat, stall, crash, back-off, pause, budget and stop are these phases with other deadlines; none has a mechanism
of its own.
"""

from dataclasses import replace

from coral.fleet import accounts
from coral.fleet import actions as do
from coral.fleet import events as on
from coral.fleet.draft import Draft
from coral.fleet.interventions import acknowledge, hear_reply
from coral.fleet.policy import (
    KILL_AGAIN_SECONDS,
    MOST_KILLS,
    PRODUCTIVE_SECONDS,
    back_off,
    is_due,
    may_interrupt,
    waits_until,
)
from coral.fleet.state import LIVE, Agent, Phase
from heartbeats.heartbeat import Scope

AT_LIMIT = "usage limit"


def on_heard(draft: Draft, event: on.Heard) -> None:
    agent = draft.agents.get(event.agent)
    if agent is None or agent.launch != event.launch or agent.phase not in LIVE:
        return
    deadline = draft.clock + draft.rules.stall if agent.phase is Phase.RUNNING else agent.deadline
    session = agent.session if event.session is None else event.session
    agent = draft.set_agent(
        agent.name, heard=True, heard_at=draft.clock, busy=event.busy, session=session, deadline=deadline
    )
    accounts.heard(draft, agent)
    if agent.carried or agent.told != agent.carried_told:
        draft.set_agent(agent.name, told=agent.carried_told)
        acknowledge(draft, agent.name, agent.carried)
    if event.reply:
        hear_reply(draft, agent.name, event.reply)


def on_lingered(draft: Draft, name: str, launch: int) -> None:
    """The program has ended and left something behind: that ends now, before anything else starts."""
    agent = draft.agents.get(name)
    if agent is None or agent.launch != launch or agent.phase not in (Phase.RUNNING, Phase.INTERRUPTED):
        return
    why = agent.why if agent.phase is Phase.INTERRUPTED else "leftovers"
    _terminate(draft, agent, why)


def on_exited(draft: Draft, event: on.Exited) -> None:
    agent = draft.agents.get(event.agent)
    if agent is None or agent.launch != event.launch or not _may_end(agent):
        return
    draft.note("exited", f"launch {agent.launch} ended: {event.ending}", agent.name)
    asked_by_us = agent.phase is not Phase.RUNNING and agent.why != "leftovers"
    agent = _let_go(draft, agent)
    if event.ending is not on.Ending.LIMIT and not asked_by_us:
        accounts.ended(draft, agent, well=event.ending is on.Ending.CLEAN)
    match event.ending:
        case on.Ending.TERMINAL:
            _give_up(draft, agent, event.detail or "its program says that going on is pointless")
        case on.Ending.LIMIT:
            _park(draft, agent, event.until)
        case on.Ending.LOST:
            _wait(draft, agent, "resumed")
        case on.Ending.UNKNOWN_SESSION:
            agent = draft.set_agent(agent.name, session=None)
            _wait_after_crash(draft, agent, event.detail or "its program does not know the session")
        case _ if asked_by_us:
            _wait_after_our_signal(draft, agent)
        case on.Ending.CLEAN:
            _wait_after_turn(draft, agent)
        case _:
            _wait_after_crash(draft, agent, event.detail or f"it {event.ending}")


def on_not_started(draft: Draft, name: str, launch: int, reason: str) -> None:
    agent = draft.agents.get(name)
    if agent is not None and agent.launch == launch and _may_end(agent):
        _wait_after_crash(draft, _let_go(draft, agent), f"its program could not be started: {reason}")


def resume_all(draft: Draft, away: float) -> None:
    """A new supervisor: who waited for a resume starts now; who still runs is left alone."""
    accounts.resume(draft, away)
    for name, agent in list(draft.agents.items()):
        why = "resumed" if agent.why == "stop" else agent.why
        if agent.phase is Phase.WAITING and agent.deadline is None:
            _wait(draft, agent, "resumed" if agent.launch else "start")
        elif agent.phase is Phase.RETIRED and agent.kills < MOST_KILLS:
            agent = draft.set_agent(name, crashes=0)
            _wait(draft, agent, "resumed")
        elif agent.phase is Phase.INTERRUPTED:
            # Whether the signal went out before the last supervisor died is not known; twice does no harm. The grace
            # is what is left of it: given anew by one supervisor after the other, it would never end.
            draft.set_agent(name, why=why)
            draft.act(do.Interrupt(who=name, launch=agent.launch))
        elif agent.phase is Phase.RUNNING:
            draft.set_agent(name, deadline=draft.clock + draft.rules.stall)
        elif agent.phase in LIVE:
            draft.set_agent(name, why=why)


def stop_all(draft: Draft) -> None:
    for name, agent in list(draft.agents.items()):
        if agent.phase is Phase.RUNNING:
            _interrupt(draft, agent, "stop")
        elif agent.phase is Phase.WAITING and agent.deadline is not None:
            draft.set_agent(name, deadline=None, why="stopped")


def advance_timers(draft: Draft) -> None:
    for agent in list(draft.agents.values()):
        if agent.phase is Phase.RUNNING and accounts.is_held(draft, agent):
            _interrupt(draft, agent, AT_LIMIT)
        elif agent.phase is Phase.RUNNING and _has_something_due(draft, agent):
            _interrupt(draft, agent, "heartbeat")
        elif agent.deadline is not None and draft.clock >= agent.deadline:
            _on_deadline(draft, agent)


def _may_end(agent: Agent) -> bool:
    given_up = agent.phase is Phase.RETIRED and agent.kills >= MOST_KILLS
    return agent.phase in LIVE or given_up


def _on_deadline(draft: Draft, agent: Agent) -> None:
    match agent.phase:
        case Phase.WAITING | Phase.PARKED:
            if draft.run.stopping or draft.clock < draft.run.held_until:
                return
            if reason := accounts.closed(draft, agent):
                _retire(draft, agent, reason, told=True)
            elif accounts.is_held(draft, agent):
                draft.set_agent(agent.name, phase=Phase.PARKED, deadline=None, why=AT_LIMIT)
            else:
                _spawn(draft, agent)
        case Phase.RUNNING:
            # Whoever waits for a grade is not silent; that begins when the waiting ends.
            waits = waits_until(agent.name, draft.pending.values())
            if waits is not None and draft.clock < waits + draft.rules.stall:
                draft.set_agent(agent.name, deadline=waits + draft.rules.stall)
            else:
                draft.note("stalled", f"silent for {draft.clock - agent.heard_at:.0f} seconds", agent.name)
                _interrupt(draft, agent, "stalled")
        case Phase.INTERRUPTED:
            _terminate(draft, agent, agent.why)
        case Phase.TERMINATED | Phase.KILLED:
            _kill(draft, agent)
        case Phase.RETIRED:
            pass


def _let_go(draft: Draft, agent: Agent) -> Agent:
    """The launch is gone. What it did not acknowledge stays owed; a checkpoint that it did not answer never will be;
    and if it sat in `coral eval`, nobody does now."""
    for number, pending in draft.pending.items():
        if pending.submission.agent == agent.name:
            draft.set_pending(number, waited_until=0.0)
    why = "killed" if agent.phase is Phase.RETIRED else agent.why
    return draft.set_agent(agent.name, carried=(), asked=(), busy="", kills=0, why=why)


def _has_something_due(draft: Draft, agent: Agent) -> bool:
    if not may_interrupt(agent, draft.clock, draft.rules):
        return False
    # What this launch was handed and has not acknowledged yet is on its way; interrupting for it would be a repeat.
    return any(is_due(each, agent, draft.clock) for each in agent.owed if each.id not in agent.carried)


def _spawn(draft: Draft, agent: Agent) -> None:
    agent = draft.set_agent(
        agent.name,
        phase=Phase.RUNNING,
        deadline=draft.clock + draft.rules.stall,
        launch=agent.launch + 1,
        heard=False,
        heard_at=draft.clock,
        spawned_at=draft.clock,
        carried=tuple(each.id for each in agent.owed),
        carried_told=draft.run.order,
        submitted_at_spawn=agent.submitted,
    )
    draft.act(
        do.Spawn(
            agent=agent.name,
            launch=agent.launch,
            session=agent.session,
            owed=agent.owed,
            told=agent.told,
            why=agent.why,
        )
    )


def _interrupt(draft: Draft, agent: Agent, why: str) -> None:
    deadline = draft.clock + draft.rules.interrupt_grace
    draft.set_agent(agent.name, phase=Phase.INTERRUPTED, deadline=deadline, why=why)
    draft.act(do.Interrupt(who=agent.name, launch=agent.launch))


def _terminate(draft: Draft, agent: Agent, why: str) -> None:
    deadline = draft.clock + draft.rules.terminate_grace
    draft.set_agent(agent.name, phase=Phase.TERMINATED, deadline=deadline, why=why)
    draft.act(do.Terminate(who=agent.name, launch=agent.launch))


def _kill(draft: Draft, agent: Agent) -> None:
    if agent.kills >= MOST_KILLS:
        _retire(draft, agent, f"launch {agent.launch} cannot be killed")
        return
    deadline = draft.clock + KILL_AGAIN_SECONDS
    draft.set_agent(agent.name, phase=Phase.KILLED, deadline=deadline, kills=agent.kills + 1)
    draft.act(do.Kill(who=agent.name, launch=agent.launch))


def _park(draft: Draft, agent: Agent, until: float | None) -> None:
    """No usage is left. A provider that names no time, or one that has come already, is not asked again at once."""
    rules = draft.rules
    if rules.stop_at_limit and not draft.run.stopping:
        draft.set_run(stopping=f"{rules.accounts.get(agent.name, agent.name)} has reached its usage limit")
    if agent.name in rules.accounts:
        accounts.hit(draft, agent, until)
        draft.set_agent(agent.name, phase=Phase.PARKED, deadline=None, why=AT_LIMIT)
        return
    seconds = rules.backoff_max if until is None else max(until, back_off(draft.run.id, agent, 1, rules))
    draft.set_agent(agent.name, phase=Phase.PARKED, deadline=draft.clock + seconds, why=AT_LIMIT)
    draft.alert(f"{agent.name} has reached a usage limit and is parked", agent.name)


def _wait(draft: Draft, agent: Agent, why: str, seconds: float = 0.0) -> None:
    draft.set_agent(agent.name, phase=Phase.WAITING, deadline=draft.clock + seconds, why=why)


def _wait_after_our_signal(draft: Draft, agent: Agent) -> None:
    if agent.heard:
        _wait(draft, agent, agent.why)
    else:
        # It never said a word: without a back-off, a program that hangs at its start would be restarted for ever.
        _fail(draft, agent, agent.why)


def _wait_after_turn(draft: Draft, agent: Agent) -> None:
    tried = agent.submitted > agent.submitted_at_spawn
    if tried or draft.clock - agent.spawned_at >= PRODUCTIVE_SECONDS:
        draft.set_agent(agent.name, idle=0, crashes=0)
        _wait(draft, agent, "turn ended")
    else:
        agent = draft.set_agent(agent.name, idle=agent.idle + 1)
        _wait(draft, agent, "turn ended", back_off(draft.run.id, agent, agent.idle, draft.rules))


def _wait_after_crash(draft: Draft, agent: Agent, reason: str) -> None:
    draft.note("crashed", f"launch {agent.launch}: {reason}", agent.name)
    _fail(draft, agent, "crashed")
    _trip_breaker(draft, reason)


def _fail(draft: Draft, agent: Agent, why: str) -> None:
    agent = draft.set_agent(agent.name, crashes=agent.crashes + 1)
    _wait(draft, agent, why, back_off(draft.run.id, agent, agent.crashes, draft.rules))


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
    _retire(draft, agent, reason, told=account is not None)


def _retire(draft: Draft, agent: Agent, reason: str, *, told: bool = False) -> None:
    """It starts no more. What it owes of the fleet's falls to the next who submits."""
    owed = [each for each in agent.owed if each.scope is Scope.FLEET]
    draft.set_run(orphans=(*draft.run.orphans, *(replace(each, printed=False) for each in owed)))
    stays = tuple(each for each in agent.owed if each.scope is not Scope.FLEET)
    draft.set_agent(agent.name, phase=Phase.RETIRED, deadline=None, why=reason, owed=stays)
    if told:
        draft.note("retired", reason, agent.name)
    else:
        draft.alert(f"{agent.name} has retired: {reason}", agent.name)
