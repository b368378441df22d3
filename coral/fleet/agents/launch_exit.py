"""The end of a launch: what it means, and when the agent starts again, if ever.

After a turn, a crash, a signal that the supervisor sent or a failed start, the agent waits before its next launch; each
case has its own waiting time. At a usage limit it is parked. It retires only where another launch would be pointless.
"""

from dataclasses import replace

from coral.fleet import actions as do, events as on, jobs
from coral.fleet.agent_state import LIVE, Agent, Phase
from coral.fleet.agents import accounts, outages, research, stalls
from coral.fleet.agents.back_off import back_off
from coral.fleet.messages import acknowledge_prompt, end_of_turn, mark_unanswered
from coral.fleet.policy import BREAKER_AGENTS, MAX_DENIALS, MAX_KILLS, MAX_LOST_LAUNCHES, PRODUCTIVE_SECONDS
from coral.fleet.reasons import Reason, ReasonKind, RunEnd, RunEndKind
from coral.fleet.run_state import Breaker
from coral.fleet.transaction import Transaction
from heartbeats.heartbeat import Scope

AT_LIMIT = Reason(ReasonKind.AT_LIMIT)
LEFTOVERS = Reason(ReasonKind.LEFTOVERS)


def on_exited(transaction: Transaction, event: on.Exited) -> None:
    agent = transaction.agents.get(event.agent)
    if agent is None or agent.launch != event.launch or not _may_end(agent):
        return
    transaction.act(do.LogEvent(type="exited", agent=agent.name, launch=agent.launch, ending=event.ending))
    asked_by_us = agent.phase is not Phase.RUNNING and agent.reason.kind is not ReasonKind.LEFTOVERS
    is_turn = event.ending is on.Ending.CLEAN and not asked_by_us
    _settle_messages(transaction, agent, event, is_turn=is_turn)
    agent = _release_messages(transaction, transaction.agents[agent.name], began=event.began)
    lost = event.ending is on.Ending.LOST and agent.submitted == agent.submitted_at_spawn
    agent = transaction.set_agent(
        agent.name,
        denials=(agent.denials + 1) * (event.ending is on.Ending.DENIED),
        losses=(agent.losses + 1) * lost,
    )
    if event.ending is not on.Ending.LIMIT and not asked_by_us:
        accounts.on_launch_ended(transaction, agent, well=event.ending is on.Ending.CLEAN)
    cut_off = asked_by_us and outages.is_ended_for_outage(agent)
    if cut_off or (asked_by_us and stalls.is_ended_for_stall(agent)):
        accounts.on_launch_ended(transaction, agent, well=False)
    match event.ending:
        case on.Ending.TERMINAL:
            _give_up(transaction, agent, Reason(ReasonKind.GIVEN_UP, detail=event.detail))
        case on.Ending.DENIED if agent.denials > MAX_DENIALS:
            _give_up(transaction, agent, Reason(ReasonKind.GIVEN_UP, detail=event.detail))
        case on.Ending.LIMIT:
            _park(transaction, agent, event.until)
        case on.Ending.LOST if not stalls.is_ended_for_stall(agent):
            _wait_after_loss(transaction, agent, event.detail)
        case on.Ending.UNKNOWN_SESSION:
            agent = transaction.set_agent(agent.name, session=None)
            _wait_after_crash(transaction, agent, Reason(ReasonKind.UNKNOWN_SESSION, detail=event.detail))
        case _ if cut_off:
            _wait_after_crash(transaction, agent, agent.reason)
        case _ if asked_by_us:
            _wait_after_our_signal(transaction, agent)
        case on.Ending.CLEAN:
            _wait_after_turn(transaction, research.end_research(transaction, agent))
        case _:
            _wait_after_crash(transaction, agent, Reason(ReasonKind.CRASHED, detail=event.detail))


def on_not_started(transaction: Transaction, name: str, launch: int, detail: str) -> None:
    agent = transaction.agents.get(name)
    if agent is not None and agent.launch == launch and _may_end(agent):
        _wait_after_crash(
            transaction,
            _release_messages(transaction, agent, began=False),
            Reason(ReasonKind.NOT_STARTED, detail=detail),
        )


def wait(transaction: Transaction, agent: Agent, reason: Reason, seconds: float = 0.0) -> None:
    if agent.retired_alert:  # it works again
        transaction.settle_alert(agent.retired_alert)
        transaction.set_agent(agent.name, retired_alert=0)
    transaction.set_agent(agent.name, phase=Phase.WAITING, deadline=transaction.clock + seconds, reason=reason)


def next_start_slot(transaction: Transaction, name: str) -> float:
    """Return the seconds after which this agent starts when all agents start at once: they start one after another."""
    return list(transaction.agents).index(name) * transaction.rules.stagger


def retire(transaction: Transaction, agent: Agent, reason: Reason, *, alert: bool = True) -> None:
    """End the agent's work for good. Its pending messages from the fleet's heartbeats go to the next agent that
    submits."""
    pending = agent.pending_messages
    of_fleet = tuple(replace(message, printed=False) for message in pending if message.scope is Scope.FLEET)
    transaction.set_run(unassigned_messages=transaction.run.unassigned_messages + of_fleet)
    stays = tuple(message for message in pending if message.scope is not Scope.FLEET)
    transaction.set_agent(agent.name, phase=Phase.RETIRED, deadline=None, reason=reason, pending_messages=stays)
    if alert:
        transaction.alert(f"{agent.name} has retired", agent.name, reason)
        transaction.set_agent(agent.name, retired_alert=transaction.run.alert_count)
    else:
        transaction.log("retired", agent=agent.name, reason=reason)


def _may_end(agent: Agent) -> bool:
    given_up = agent.phase is Phase.RETIRED and agent.kills >= MAX_KILLS
    return agent.phase in LIVE or given_up


def _settle_messages(transaction: Transaction, agent: Agent, event: on.Exited, *, is_turn: bool) -> None:
    """Acknowledge the prompt of a turn that ended well, even if its program prints nothing. End the wait for replies to
    checkpoints, because no reply can come any more. The alert about an unanswered checkpoint names the last error,
    which a launch that ended well clears. `is_turn`: the agent ended its turn by itself, and was not cut off in its
    work."""
    if is_turn:
        acknowledge_prompt(transaction, agent.name)
        agent = transaction.agents[agent.name]
    if event.ending not in (on.Ending.CLEAN, on.Ending.INTERRUPTED, on.Ending.LOST):
        transaction.set_agent(agent.name, last_error=event.detail)
    if agent.awaiting_reply and not transaction.run.is_ending:
        (end_of_turn if is_turn else mark_unanswered)(transaction, agent.name)
    if agent.has_output and event.ending in (on.Ending.CLEAN, on.Ending.INTERRUPTED):
        transaction.set_agent(agent.name, last_error="")


def _release_messages(transaction: Transaction, agent: Agent, *, began: bool) -> Agent:
    """Undo what tied messages to the launch that is over: its unacknowledged messages stay pending, no reply is
    awaited, and no `coral eval` of the agent waits any more. `began`: the launch printed something that its runtime
    knows."""
    for number, pending in transaction.pending.items():
        if pending.submission.agent == agent.name:
            transaction.set_pending(number, waited_until=0.0)
    stalls.pause_timer(transaction, agent.name)
    if began:  # the conversation may have the text although no answer came, and the launch's prompt file has it
        unanswered = [message for message in agent.pending_messages if message.id in agent.in_flight]
        handed = (replace(message, handed_at=message.handed_at or agent.launch) for message in unanswered)
        transaction.change_messages(agent.name, handed)
    reason = Reason(ReasonKind.KILLED) if agent.phase is Phase.RETIRED else agent.reason
    return transaction.set_agent(
        agent.name, in_flight=(), awaiting_reply=(), last_words="", activity="", kills=0, reason=reason
    )


def _park(transaction: Transaction, agent: Agent, seconds_left: float | None) -> None:
    """Park an agent that met a usage limit, until the limit is over. Where the provider named no time, or one that has
    passed, the agent waits for a back-off instead."""
    rules = transaction.rules
    agent = transaction.set_agent(agent.name, crashes=agent.crashes + 1)
    if rules.stop_at_limit and not transaction.run.is_ending:
        account = rules.accounts.get(agent.name, agent.name)
        transaction.set_run(stopping=RunEnd(RunEndKind.USAGE_LIMIT, account=account))
    if agent.name in rules.accounts:
        accounts.on_limit(transaction, agent, seconds_left)
        transaction.set_agent(agent.name, phase=Phase.PARKED, deadline=None, reason=AT_LIMIT)
        return
    shortest = accounts.shortest_wait(transaction, agent)
    seconds = rules.backoff_max if seconds_left is None else max(seconds_left, shortest)
    transaction.set_agent(agent.name, phase=Phase.PARKED, deadline=transaction.clock + seconds, reason=AT_LIMIT)
    transaction.alert(f"{agent.name} has reached a usage limit and is parked", agent.name)


def _wait_after_our_signal(transaction: Transaction, agent: Agent) -> None:
    seconds = stalls.rest_seconds(agent)
    if stalls.needs_new_session(agent):
        agent = transaction.set_agent(agent.name, session=None)
    if seconds:
        transaction.set_agent(agent.name, phase=Phase.PARKED, deadline=transaction.clock + seconds)
    elif agent.has_output:
        wait(transaction, agent, agent.reason)
    else:
        # It never printed anything: without a back-off, a program that hangs at its start would be restarted for ever.
        _fail(transaction, agent, agent.reason)


def _wait_after_turn(transaction: Transaction, agent: Agent) -> None:
    tried = agent.submitted > agent.submitted_at_spawn
    if tried or transaction.clock - agent.spawned_at >= PRODUCTIVE_SECONDS:
        agent = transaction.set_agent(agent.name, unproductive_turns=0, crashes=0)
        seconds = 0.0
    else:
        agent = transaction.set_agent(agent.name, unproductive_turns=agent.unproductive_turns + 1)
        seconds = back_off(transaction.run.id, agent, agent.unproductive_turns, transaction.rules)
    if not jobs.wait_for(transaction, agent):
        wait(transaction, agent, Reason(ReasonKind.TURN_ENDED), seconds)


def _wait_after_loss(transaction: Transaction, agent: Agent, detail: str) -> None:
    """Let an agent whose launch was lost begin again at once, as nobody's failure. Where that goes on, the agent's own
    program may be what ends its node."""
    if agent.losses > MAX_LOST_LAUNCHES:
        _wait_after_crash(transaction, agent, Reason(ReasonKind.CRASHED, detail=detail))
    else:
        wait(transaction, agent, Reason(ReasonKind.RESUMED), next_start_slot(transaction, agent.name))


def _wait_after_crash(transaction: Transaction, agent: Agent, reason: Reason) -> None:
    transaction.log("crashed", agent=agent.name, launch=agent.launch, reason=reason)
    _fail(transaction, agent, reason)
    _trip_breaker(transaction, agent, reason)


def _fail(transaction: Transaction, agent: Agent, reason: Reason) -> None:
    agent = transaction.set_agent(agent.name, crashes=agent.crashes + 1)
    wait(transaction, agent, reason, back_off(transaction.run.id, agent, agent.crashes, transaction.rules))


def _trip_breaker(transaction: Transaction, agent: Agent, reason: Reason) -> None:
    """Pause the starts of all agents of an account after many crashes in a short time: these have one cause, and after
    the back-off of a single agent it would crash again. Agents of other accounts go on."""
    rules = transaction.rules
    account, breaker = breaker_of(transaction, agent.name)
    since = transaction.clock - rules.breaker_window
    recent = (*(crash for crash in breaker.crashes if crash > since), transaction.clock)
    most = _most_crashes(transaction, account)
    breaker = replace(breaker, crashes=recent[-most:])
    if len(recent) >= most and transaction.clock >= breaker.paused_until:
        breaker = Breaker(paused_until=transaction.clock + rules.breaker_pause)
        whose, who = (f" of {account}", "none of them") if account else ("", "nothing")
        transaction.alert(
            f"{len(recent)} crashes{whose} within {rules.breaker_window:g} seconds; {who} starts for "
            f"{rules.breaker_pause:g} seconds. The last one, of {agent.name}",
            reason=reason,
        )
    transaction.set_run(breakers={**transaction.run.breakers, account: breaker})


def breaker_of(transaction: Transaction, agent: str) -> tuple[str, Breaker]:
    """Return the account that an agent's crashes are counted under ("" if it has none), and the breaker of that
    account."""
    account = transaction.rules.accounts.get(agent, "")
    return account, transaction.run.breakers.get(account, Breaker())


def _most_crashes(transaction: Transaction, account: str) -> int:
    """Return how many crashes trip the breaker of an account: the task's `breaker_crashes`, once for each four of its
    agents."""
    agents = sum(transaction.rules.accounts.get(name, "") == account for name in transaction.agents)
    return transaction.rules.breaker_crashes * max(1, agents // BREAKER_AGENTS)


def _give_up(transaction: Transaction, agent: Agent, reason: Reason) -> None:
    """Retire an agent whose program can do nothing more, as with a wrong key, and all other agents of its account."""
    account = transaction.rules.accounts.get(agent.name)
    if account is not None:
        accounts.close(transaction, account, reason)
    retire(transaction, agent, reason, alert=account is None)
