"""An agent's life: when it starts, and when its launch is interrupted, terminated and killed.

Heartbeat, stall, crash, back-off, pause, budget and stop are phases of the agent with different deadlines; none of them
has a mechanism of its own. The next launch begins a new session when the conversation was compacted too often, or is
too long; no launch is interrupted for that.
"""

from dataclasses import replace

from coral.fleet import actions as do, events as on
from coral.fleet.agent_state import LIVE, Agent, Conversation, Order, OutputCounts, Phase
from coral.fleet.agents import accounts, budgets, outages, research, stalls
from coral.fleet.agents.launch_exit import AT_LIMIT, LEFTOVERS, breaker_of, next_start_slot, retire, wait
from coral.fleet.messages import acknowledge_prompt, read_reply
from coral.fleet.policy import MAX_KILLS, STARTING, is_due, kill_again_at, may_interrupt, ttl_of, waits_until
from coral.fleet.reasons import START, Reason, ReasonKind
from coral.fleet.rules import Rules
from coral.fleet.transaction import Transaction

PAUSED, DISMISSED = Reason(ReasonKind.PAUSED), Reason(ReasonKind.DISMISSED)
_EXPECTED = (ReasonKind.LEFT_OUT, ReasonKind.DISMISSED)  # reasons to retire that nobody need be alerted of


def on_output_seen(transaction: Transaction, event: on.OutputSeen) -> None:
    agent = transaction.agents.get(event.agent)
    if agent is None or agent.launch != event.launch or agent.phase not in LIVE:
        return
    before = agent.output_counts
    ttl = transaction.rules.ttl_of(event.activity)
    deadline = transaction.clock + ttl if agent.phase is Phase.RUNNING else agent.deadline
    session = agent.session if event.session is None else event.session
    agent = transaction.set_agent(
        agent.name,
        has_output=True,
        last_output_at=transaction.clock,
        activity=event.activity,
        session=session,
        deadline=deadline,
        output_counts=_most(before, event.count),
    )
    _count_compactions(transaction, agent, before)
    outages.on_output(transaction, agent, before)
    if agent.output_counts.edits > before.edits:
        stalls.record_progress(transaction, agent.name)
    agent = transaction.agents[agent.name]
    if agent.retrying_since is None:
        accounts.on_output(transaction, agent)
    if event.has_prompt:
        acknowledge_prompt(transaction, agent.name)
    if event.reply and event.place > agent.output_searched_to:
        transaction.set_agent(agent.name, output_searched_to=event.place)
        read_reply(transaction, agent.name, event.reply)


def on_edits_scanned(transaction: Transaction, event: on.EditsScanned) -> None:
    if reason := stalls.on_edits_scanned(transaction, event):
        interrupt(transaction, transaction.agents[event.agent], reason)


def on_left_processes(transaction: Transaction, name: str, launch: int) -> None:
    """End the processes that a launch left running when its program ended: the agent starts again only when they are
    gone."""
    agent = transaction.agents.get(name)
    if agent is None or agent.launch != launch or agent.phase not in (Phase.RUNNING, Phase.INTERRUPTED):
        return
    _terminate(transaction, agent, agent.reason if agent.phase is Phase.INTERRUPTED else LEFTOVERS)


def resume_all(transaction: Transaction, away: float) -> None:
    """Go on under a new supervisor: agents that waited for a resume start one after another; launches that still run go
    on."""
    accounts.resume(transaction, away)
    resumed = Reason(ReasonKind.RESUMED)
    for name, agent in list(transaction.agents.items()):
        agent = transaction.set_agent(name, losses=0)  # those of the last supervisor's end have a cause of their own
        reason = resumed if agent.reason.kind is ReasonKind.STOP else agent.reason
        if agent.phase is Phase.WAITING and agent.deadline is None:
            wait(transaction, agent, resumed if agent.launch else START, next_start_slot(transaction, name))
        elif agent.phase is Phase.RETIRED and agent.kills < MAX_KILLS and agent.order is not Order.RETIRE:
            agent = transaction.set_agent(name, crashes=0)
            wait(transaction, agent, resumed, next_start_slot(transaction, name))
        elif agent.phase is Phase.INTERRUPTED:
            # Nobody knows whether the last supervisor sent the signal before it died; a second one does no harm. The
            # rest of the grace goes on: a new grace from each new supervisor might never end.
            transaction.set_agent(name, reason=reason)
            transaction.act(do.Interrupt(who=name, launch=agent.launch))
        elif agent.phase is Phase.RUNNING:
            transaction.set_agent(name, deadline=transaction.clock + ttl_of(agent, transaction.rules))
            stalls.forget_scan(transaction, name)
        elif agent.phase in LIVE:
            transaction.set_agent(name, reason=reason)


def stop_all(transaction: Transaction) -> None:
    stop = Reason(ReasonKind.STOP)
    for name, agent in list(transaction.agents.items()):
        if agent.phase is Phase.RUNNING:
            interrupt(transaction, agent, stop)
        elif agent.phase is Phase.WAITING and agent.deadline is not None:
            transaction.set_agent(name, deadline=None, reason=stop)
        elif stalls.is_resting(agent):
            transaction.set_agent(name, phase=Phase.WAITING, deadline=None, reason=stop)


def advance_timers(transaction: Transaction) -> None:
    for agent in list(transaction.agents.values()):
        if agent.phase is Phase.RUNNING and accounts.is_held(transaction, agent):
            interrupt(transaction, agent, AT_LIMIT)
        elif agent.phase is Phase.RUNNING and (reason := _reason_to_end(agent, transaction.rules)):
            interrupt(transaction, agent, reason)
        elif agent.phase is Phase.RUNNING and (reason := outages.reason(agent, transaction.clock, transaction.rules)):
            transaction.log("outage", agent=agent.name, launch=agent.launch, reason=reason)
            interrupt(transaction, agent, reason)
        elif agent.phase is Phase.RUNNING and _has_something_due(transaction, agent):
            interrupt(transaction, agent, Reason(ReasonKind.HEARTBEAT))
        elif agent.phase is Phase.RUNNING and (reason := stalls.check_busy(transaction, agent)):
            interrupt(transaction, transaction.agents[agent.name], reason)
        elif agent.deadline is not None and transaction.clock >= agent.deadline:
            _on_deadline(transaction, agent)


def _on_deadline(transaction: Transaction, agent: Agent) -> None:
    match agent.phase:
        case Phase.WAITING | Phase.PARKED:
            if transaction.run.is_ending or transaction.run.disk_problem:
                return
            paused_until = breaker_of(transaction, agent.name)[1].paused_until
            if transaction.clock < paused_until and agent.reason.kind is not ReasonKind.HEARTBEAT:
                _hold(transaction, agent, paused_until)
            elif reason := accounts.closed(transaction, agent):
                retire(transaction, agent, reason, alert=False)
            elif reason := _reason_to_end(agent, transaction.rules):
                retire(transaction, agent, reason, alert=reason.kind not in _EXPECTED)
            elif agent.order is Order.PAUSE:
                transaction.set_agent(agent.name, phase=Phase.PARKED, deadline=None, reason=PAUSED)
            elif accounts.is_held(transaction, agent):
                transaction.set_agent(agent.name, phase=Phase.PARKED, deadline=None, reason=AT_LIMIT)
            else:
                _spawn(transaction, agent)
        case Phase.RUNNING:
            _on_silence(transaction, agent)
        case Phase.INTERRUPTED:
            _terminate(transaction, agent, agent.reason)
        case Phase.TERMINATED | Phase.KILLED:
            _kill(transaction, agent)
        case Phase.RETIRED:
            pass


def _reason_to_end(agent: Agent, rules: Rules) -> Reason | None:
    """Return why the agent must not start again, and its launch is to be interrupted; None where it may work."""
    if agent.order is Order.RETIRE:
        return DISMISSED
    if rules.agents and agent.name not in rules.agents:
        return Reason(ReasonKind.LEFT_OUT)
    return budgets.agent_over(agent, rules)


def _on_silence(transaction: Transaction, agent: Agent) -> None:
    # The silence of an agent that waits for a grade begins when the wait ends.
    waits, ttl = waits_until(agent.name, transaction.pending.values()), ttl_of(agent, transaction.rules)
    if waits is not None and transaction.clock < waits + ttl:
        transaction.set_agent(agent.name, deadline=waits + ttl)
    elif stalls.is_excused(transaction.fleet(), agent, transaction.clock):
        transaction.set_agent(agent.name, deadline=transaction.clock + ttl)
    elif reason := stalls.check_silent(transaction, agent):
        interrupt(transaction, transaction.agents[agent.name], reason)


def _hold(transaction: Transaction, agent: Agent, until: float) -> None:
    """Delay the agent's start until the pause of its account is over; the account's agents then start one after
    another."""
    transaction.set_agent(agent.name, deadline=until + next_start_slot(transaction, agent.name))


def _has_something_due(transaction: Transaction, agent: Agent) -> bool:
    if not agent.pending_messages or transaction.run.disk_problem:
        return False
    # A message in flight was given to this launch already: to interrupt the launch for it would be a repeat.
    is_reachable = may_interrupt(agent, transaction.clock, transaction.rules)
    return is_reachable and any(is_due(message, agent, transaction.clock) for message in agent.undelivered)


def _spawn(transaction: Transaction, agent: Agent) -> None:
    if not agent.launch:
        agent = research.begin_research(transaction, agent)
    if agent.session is not None and agent.begins_session:
        agent = transaction.set_agent(agent.name, session=None)
    elif agent.session is not None and (reason := _reason_to_renew(agent, transaction.rules)):
        agent = transaction.set_agent(agent.name, session=None, reason=reason)
    if agent.session is None:
        agent = _begin_session(transaction, agent)
    agent = transaction.set_agent(
        agent.name,
        phase=Phase.RUNNING,
        deadline=transaction.clock + transaction.rules.ttl_of(STARTING),
        launch=agent.launch + 1,
        has_output=False,
        last_output_at=transaction.clock,
        spawned_at=transaction.clock,
        in_flight=tuple(message.id for message in agent.pending_messages),
        last_result_sent=transaction.run.order,
        submitted_at_spawn=agent.submitted,
        output_searched_to=0,
        output_counts=OutputCounts(),
        retrying_since=None,
        begins_session=False,
    )
    stalls.start_timer(transaction, agent.name)
    transaction.act(
        do.Spawn(
            agent=agent.name,
            launch=agent.launch,
            session=agent.session,
            messages=agent.pending_messages,
            last_result_seen=agent.last_result_seen,
            reason=agent.reason,
        )
    )


def _most(one: OutputCounts, other: OutputCounts) -> OutputCounts:
    """Return the higher of each count. A new supervisor reads a launch's output from the beginning again, so its first
    counts are too low."""
    return OutputCounts(
        edits=max(one.edits, other.edits),
        compactions=max(one.compactions, other.compactions),
        retries=max(one.retries, other.retries),
        answered=max(one.answered, other.answered),
    )


def interrupt(transaction: Transaction, agent: Agent, reason: Reason) -> None:
    stalls.pause_timer(transaction, agent.name)
    deadline = transaction.clock + transaction.rules.interrupt_grace
    transaction.set_agent(agent.name, phase=Phase.INTERRUPTED, deadline=deadline, reason=reason)
    transaction.act(do.Interrupt(who=agent.name, launch=agent.launch))


def _terminate(transaction: Transaction, agent: Agent, reason: Reason) -> None:
    stalls.pause_timer(transaction, agent.name)
    deadline = transaction.clock + transaction.rules.terminate_grace
    transaction.set_agent(agent.name, phase=Phase.TERMINATED, deadline=deadline, reason=reason)
    transaction.act(do.Terminate(who=agent.name, launch=agent.launch))


def _kill(transaction: Transaction, agent: Agent) -> None:
    if agent.kills >= MAX_KILLS:
        retire(transaction, agent, Reason(ReasonKind.UNKILLABLE))
        return
    deadline = kill_again_at(transaction.clock, agent.kills)
    transaction.set_agent(agent.name, phase=Phase.KILLED, deadline=deadline, kills=agent.kills + 1)
    transaction.act(do.Kill(who=agent.name, launch=agent.launch))


def _begin_session(transaction: Transaction, agent: Agent) -> Agent:
    """Start the counts of a new conversation at zero: its compactions and its tokens. The new conversation was given
    none of the pending messages, so the next launch gets each of them with its whole text."""
    messages = tuple(replace(message, handed_at=0) for message in agent.pending_messages)
    conversation = Conversation(tokens_before=agent.spent.tokens)
    return transaction.set_agent(agent.name, conversation=conversation, pending_messages=messages)


def _count_compactions(transaction: Transaction, agent: Agent, before: OutputCounts) -> None:
    more = agent.output_counts.compactions - before.compactions
    if more:
        conversation = replace(agent.conversation, compactions=agent.conversation.compactions + more)
        transaction.set_agent(agent.name, conversation=conversation)


def _reason_to_renew(agent: Agent, rules: Rules) -> Reason | None:
    """Return why the next launch begins a new session; None where the conversation is resumed."""
    compactions, tokens = agent.conversation.compactions, agent.spent.tokens - agent.conversation.tokens_before
    if rules.fresh_compactions is not None and compactions >= rules.fresh_compactions:
        return Reason(ReasonKind.SESSION_COMPACTED, count=compactions)
    if rules.fresh_tokens is not None and tokens >= rules.fresh_tokens:
        return Reason(ReasonKind.SESSION_LONG, count=tokens)
    return None
