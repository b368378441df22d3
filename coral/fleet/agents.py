"""An agent's phases: it waits, runs, is interrupted, terminated, killed, parked, or has retired.

Heartbeat, stall, crash, back-off, pause, budget and stop are these phases with other deadlines; none has a mechanism
of its own.
"""

from coral.fleet import accounts, budgets, outages, research, sessions, stalls
from coral.fleet import actions as do
from coral.fleet import events as on
from coral.fleet.draft import Draft
from coral.fleet.ends import AT_LIMIT, LEFTOVERS, in_turn, retire, wait
from coral.fleet.interventions import acknowledge, hear_reply
from coral.fleet.policy import (
    KILL_AGAIN_SECONDS,
    MOST_KILLS,
    is_due,
    may_interrupt,
    waits_until,
)
from coral.fleet.state import LIVE, Agent, Count, Phase


def on_heard(draft: Draft, event: on.Heard) -> None:
    agent = draft.agents.get(event.agent)
    if agent is None or agent.launch != event.launch or agent.phase not in LIVE:
        return
    before = agent.count
    deadline = draft.clock + draft.rules.stall if agent.phase is Phase.RUNNING else agent.deadline
    session = agent.session if event.session is None else event.session
    agent = draft.set_agent(
        agent.name,
        heard=True,
        heard_at=draft.clock,
        busy=event.busy,
        session=session,
        deadline=deadline,
        count=_most(before, event.count),
    )
    sessions.heard(draft, agent, before)
    outages.heard(draft, agent, before)
    if agent.count.edits > before.edits:
        stalls.progressed(draft, agent.name)
    agent = draft.agents[agent.name]
    if agent.retrying is None:
        accounts.heard(draft, agent)
    if agent.carried or agent.told != agent.carried_told:
        draft.set_agent(agent.name, told=agent.carried_told)
        acknowledge(draft, agent.name, agent.carried)
    if event.reply and event.place > agent.replied:
        draft.set_agent(agent.name, replied=event.place)
        hear_reply(draft, agent.name, event.reply)


def on_looked(draft: Draft, event: on.Looked) -> None:
    if why := stalls.looked(draft, event):
        _interrupt(draft, draft.agents[event.agent], why)


def on_lingered(draft: Draft, name: str, launch: int) -> None:
    """The program has ended and left something behind: that ends now, before anything else starts."""
    agent = draft.agents.get(name)
    if agent is None or agent.launch != launch or agent.phase not in (Phase.RUNNING, Phase.INTERRUPTED):
        return
    why = agent.why if agent.phase is Phase.INTERRUPTED else LEFTOVERS
    _terminate(draft, agent, why)


def resume_all(draft: Draft, away: float) -> None:
    """A new supervisor: who waited for a resume starts now; who still runs is left alone."""
    accounts.resume(draft, away)
    for name, agent in list(draft.agents.items()):
        why = "resumed" if agent.why == "stop" else agent.why
        if agent.phase is Phase.WAITING and agent.deadline is None:
            wait(draft, agent, "resumed" if agent.launch else "start", in_turn(draft, name))
        elif agent.phase is Phase.RETIRED and agent.kills < MOST_KILLS:
            agent = draft.set_agent(name, crashes=0)
            wait(draft, agent, "resumed", in_turn(draft, name))
        elif agent.phase is Phase.INTERRUPTED:
            # Whether the signal went out before the last supervisor died is not known; twice does no harm. The grace
            # is what is left of it: given anew by one supervisor after the other, it would never end.
            draft.set_agent(name, why=why)
            draft.act(do.Interrupt(who=name, launch=agent.launch))
        elif agent.phase is Phase.RUNNING:
            draft.set_agent(name, deadline=draft.clock + draft.rules.stall)
            stalls.resume(draft, name)
        elif agent.phase in LIVE:
            draft.set_agent(name, why=why)


def stop_all(draft: Draft) -> None:
    for name, agent in list(draft.agents.items()):
        if agent.phase is Phase.RUNNING:
            _interrupt(draft, agent, "stop")
        elif agent.phase is Phase.WAITING and agent.deadline is not None:
            draft.set_agent(name, deadline=None, why="stopped")
        elif stalls.rests(agent):
            draft.set_agent(name, phase=Phase.WAITING, deadline=None, why="stopped")


def advance_timers(draft: Draft) -> None:
    for agent in list(draft.agents.values()):
        if agent.phase is Phase.RUNNING and accounts.is_held(draft, agent):
            _interrupt(draft, agent, AT_LIMIT)
        elif agent.phase is Phase.RUNNING and budgets.agent_over(agent, draft.rules):
            _interrupt(draft, agent, "budget")
        elif agent.phase is Phase.RUNNING and (why := outages.reason(agent, draft.clock, draft.rules)):
            draft.note("outage", f"launch {agent.launch}: {why}", agent.name)
            _interrupt(draft, agent, why)
        elif agent.phase is Phase.RUNNING and _has_something_due(draft, agent):
            _interrupt(draft, agent, "heartbeat")
        elif agent.phase is Phase.RUNNING and (why := stalls.busy(draft, agent)):
            _interrupt(draft, draft.agents[agent.name], why)
        elif agent.deadline is not None and draft.clock >= agent.deadline:
            _on_deadline(draft, agent)


def _on_deadline(draft: Draft, agent: Agent) -> None:
    match agent.phase:
        case Phase.WAITING | Phase.PARKED:
            if draft.run.stopping or draft.run.lack:
                return
            if draft.clock < draft.run.held_until:
                _hold(draft, agent)
            elif reason := accounts.closed(draft, agent):
                retire(draft, agent, reason, told=True)
            elif reason := budgets.agent_over(agent, draft.rules):
                retire(draft, agent, reason)
            elif accounts.is_held(draft, agent):
                draft.set_agent(agent.name, phase=Phase.PARKED, deadline=None, why=AT_LIMIT)
            else:
                _spawn(draft, agent)
        case Phase.RUNNING:
            _on_silence(draft, agent)
        case Phase.INTERRUPTED:
            _terminate(draft, agent, agent.why)
        case Phase.TERMINATED | Phase.KILLED:
            _kill(draft, agent)
        case Phase.RETIRED:
            pass


def _on_silence(draft: Draft, agent: Agent) -> None:
    # Whoever waits for a grade is not silent; that begins when the waiting ends.
    waits = waits_until(agent.name, draft.pending.values())
    if waits is not None and draft.clock < waits + draft.rules.stall:
        draft.set_agent(agent.name, deadline=waits + draft.rules.stall)
    elif stalls.is_excused(draft, agent):
        draft.set_agent(agent.name, deadline=draft.clock + draft.rules.stall)
    elif why := stalls.silent(draft, agent):
        _interrupt(draft, draft.agents[agent.name], why)


def _hold(draft: Draft, agent: Agent) -> None:
    """The whole fleet is held up. When that is over it starts in turn, and not all at once."""
    draft.set_agent(agent.name, deadline=draft.run.held_until + in_turn(draft, agent.name))


def _has_something_due(draft: Draft, agent: Agent) -> bool:
    if draft.run.lack or not may_interrupt(agent, draft.clock, draft.rules):
        return False
    # What this launch was handed and has not acknowledged yet is on its way; interrupting for it would be a repeat.
    return any(is_due(each, agent, draft.clock) for each in agent.owed if each.id not in agent.carried)


def _spawn(draft: Draft, agent: Agent) -> None:
    if not agent.launch:
        agent = research.start(draft, agent)
    if agent.session is not None and (worn := sessions.worn(agent, draft.rules)):
        agent = draft.set_agent(agent.name, session=None, why=f"fresh session after {worn}")
    if agent.session is None:
        agent = sessions.begin(draft, agent)
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
        replied=0,
        count=Count(),
        retrying=None,
    )
    stalls.begin(draft, agent.name)
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


def _most(one: Count, other: Count) -> Count:
    """A new supervisor hears it all again, piece by piece."""
    return Count(
        edits=max(one.edits, other.edits),
        compactions=max(one.compactions, other.compactions),
        retries=max(one.retries, other.retries),
        answered=max(one.answered, other.answered),
    )


def _interrupt(draft: Draft, agent: Agent, why: str) -> None:
    stalls.pause(draft, agent.name)
    deadline = draft.clock + draft.rules.interrupt_grace
    draft.set_agent(agent.name, phase=Phase.INTERRUPTED, deadline=deadline, why=why)
    draft.act(do.Interrupt(who=agent.name, launch=agent.launch))


def _terminate(draft: Draft, agent: Agent, why: str) -> None:
    stalls.pause(draft, agent.name)
    deadline = draft.clock + draft.rules.terminate_grace
    draft.set_agent(agent.name, phase=Phase.TERMINATED, deadline=deadline, why=why)
    draft.act(do.Terminate(who=agent.name, launch=agent.launch))


def _kill(draft: Draft, agent: Agent) -> None:
    if agent.kills >= MOST_KILLS:
        retire(draft, agent, f"launch {agent.launch} cannot be killed")
        return
    deadline = draft.clock + KILL_AGAIN_SECONDS
    draft.set_agent(agent.name, phase=Phase.KILLED, deadline=deadline, kills=agent.kills + 1)
    draft.act(do.Kill(who=agent.name, launch=agent.launch))
