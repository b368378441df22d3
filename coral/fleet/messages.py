"""Messages to agents: which heartbeats fire, when a message is delivered, and when it is acknowledged.

A heartbeat fires once at each attempt or time that its trigger names, and queues a message. A pending message is given
to every launch of its agent, until the first output of one of them acknowledges it.
"""

from collections.abc import Collection
from dataclasses import replace
from functools import partial

from attempts import progress
from coral.fleet import actions as do, chains
from coral.fleet.agent_state import Agent, PendingMessage, Phase
from coral.fleet.policy import BUDGET_NOTICES_AT, INLINE_SECONDS, MAX_PENDING_MESSAGES, MAX_UNANSWERED
from coral.fleet.reasons import Reason, ReasonKind
from coral.fleet.run_state import FLEET
from coral.fleet.transaction import Transaction
from heartbeats.heartbeat import (
    LEAST_SECONDS_FOR_AGENTS,
    NOT_AGENTS,
    RESERVED,
    Delivery,
    Heartbeat,
    Scope,
    find,
)
from heartbeats.reply import AlertReply, OkReply, OtherReply, parse_reply
from heartbeats.trigger import Elapsed, Stagnant, arm, evaluate, retime

MESSAGE, LAND, BEGIN, STALLED, CHANGED, CONCLUDE = RESERVED
JOB_ENDED = "job ended"  # the name of a notice; no heartbeat may have it
WITHOUT_REPLY = (*RESERVED, JOB_ENDED)  # messages that ask for none
UNDELIVERED, UNANSWERED = Reason(ReasonKind.UNDELIVERED), Reason(ReasonKind.UNANSWERED)


def put_in_force(transaction: Transaction, owner: str, heartbeats: tuple[Heartbeat, ...], by: str = "operator") -> None:
    """Replace an owner's heartbeats. An interval that is running may become shorter by it, never longer. `by`: who
    makes the change. If that is an agent, no heartbeat of the clock becomes due at once: the agent would set off a
    heartbeat by its answer to one."""
    before = transaction.heartbeats.get(owner, ())
    holder = transaction.holder(owner)
    targets = {}
    for heartbeat in heartbeats:
        old = find(before, heartbeat.name)
        if old is None:
            targets[heartbeat.name] = arm(heartbeat.trigger, holder.progress, transaction.clock)
        else:
            running, now = holder.targets[heartbeat.name], transaction.clock
            due = retime(old.trigger, heartbeat.trigger, running, holder.progress, now)
            if by not in NOT_AGENTS and isinstance(heartbeat.trigger, Elapsed):
                due = max(due, min(running, now + LEAST_SECONDS_FOR_AGENTS))
            targets[heartbeat.name] = due
    transaction.heartbeats[owner] = heartbeats
    transaction.set_targets(owner, targets)
    transaction.act(do.ShowHeartbeats(owner=owner))


def fire_after_attempt(transaction: Transaction, author: str, number: int, depth: int) -> None:
    """Fire the heartbeats that count attempts, now that one more was counted. Those of the fleet go to the author, so
    that nobody else is interrupted; if the author has retired, to the next agent that submits. `depth`: the place of
    these heartbeats in a chain, from 1."""
    own, of_fleet = (_fire(transaction, owner, by_clock=False) for owner in (author, FLEET))
    if not chains.is_over_limit(transaction, author, depth, [*own, *of_fleet]):
        for heartbeat in own:
            transaction.queue_message(author, _message_of(transaction, heartbeat, number, depth))
        for heartbeat in of_fleet:
            _leave_unassigned(transaction, heartbeat, number, depth)
    if transaction.agents[author].phase is not Phase.RETIRED:
        for message in transaction.run.unassigned_messages:
            transaction.queue_message(author, message)
        transaction.set_run(unassigned_messages=())


def withdraw_overtaken(transaction: Transaction, author: str, improved: bool, best_improved: bool) -> None:
    """Withdraw messages about stagnation that an improvement has made pointless, except those in flight. `improved`:
    the author improved its own best; `best_improved`: the fleet's."""
    if best_improved:
        unassigned = transaction.run.unassigned_messages
        for message in unassigned:
            if message.stagnant:
                text = f"{message.name} ({message.id}) is overtaken by an improvement"
                transaction.log_messages("withdrawn", text, "", (message,))
        transaction.set_run(unassigned_messages=tuple(message for message in unassigned if not message.stagnant))
    for name in list(transaction.agents):
        scopes = [Scope.FLEET] * best_improved + [Scope.OWN] * (improved and name == author)
        transaction.withdraw(name, partial(_is_overtaken, scopes), " is overtaken by an improvement")


def withdraw_stagnation(transaction: Transaction) -> None:
    """Withdraw the pending messages about stagnation, because they are about an earlier task."""
    why = ": the task has changed"
    for message in transaction.run.unassigned_messages:
        if message.stagnant:
            transaction.log_messages("withdrawn", f"{message.name} ({message.id}){why}", "", (message,))
    unassigned = tuple(message for message in transaction.run.unassigned_messages if not message.stagnant)
    transaction.set_run(unassigned_messages=unassigned)
    for name in list(transaction.agents):
        transaction.withdraw(name, lambda message: message.stagnant, why)


def end_stagnation(transaction: Transaction, author: str) -> None:
    """End the stagnation of the fleet and of the author (if not empty) after a new best or a change of task, and arm
    their heartbeats about stagnation anew."""
    transaction.set_run(progress=progress.end_stagnation(transaction.run.progress))
    owners = [FLEET]
    if author:
        transaction.set_agent(author, progress=progress.end_stagnation(transaction.agents[author].progress))
        owners.append(author)
    for owner in owners:
        holder = transaction.holder(owner)
        armed = {
            heartbeat.name: arm(heartbeat.trigger, holder.progress, transaction.clock)
            for heartbeat in transaction.heartbeats.get(owner, ())
            if isinstance(heartbeat.trigger, Stagnant)
        }
        transaction.set_targets(owner, {**holder.targets, **armed})


def deliver_at_eval(
    transaction: Transaction, author: str, waiting: bool
) -> tuple[tuple[str, ...], tuple[PendingMessage, ...]]:
    """Deliver what is pending at the end of the author's `coral eval`, where an interrupt costs no work. `waiting`: the
    author still waits there.

    Returns the names of the heartbeats that interrupt now, and the messages that `coral eval` prints instead.
    """
    agent = transaction.agents[author]
    if not waiting or agent.phase is not Phase.RUNNING:
        return (), ()
    loud = (message for message in agent.undelivered if not message.quiet)
    fresh = tuple(message for message in loud if not _is_read_now(message, transaction.clock))
    if fresh and all(message.inline for message in fresh):
        # Printed once; a message that is not acknowledged in time causes an interrupt like any other.
        due = transaction.clock + INLINE_SECONDS
        printed = (replace(message, due=due, inline=False, printed=True) for message in fresh)
        transaction.change_messages(author, printed)
        return (), fresh
    due_now = (replace(message, due=transaction.clock, defers=False) for message in fresh)
    transaction.change_messages(author, due_now)
    return tuple(dict.fromkeys(message.name for message in fresh)), ()


def fire_clock_heartbeats(transaction: Transaction) -> None:
    """Fire the heartbeats whose time has come. A period is skipped, and the reason logged, while the last message of
    the heartbeat is undelivered or unanswered, its agent is parked or about to use up a budget, or many messages are
    pending for the agent."""
    for name, agent in transaction.agents.items():
        if agent.phase is not Phase.RETIRED:
            for heartbeat in _fire(transaction, name, by_clock=True):
                if reason := _reason_to_skip(transaction.agents[name], heartbeat):
                    transaction.log_skipped(heartbeat.name, name, reason)
                    if reason.kind is ReasonKind.UNANSWERED:
                        mark_unanswered(transaction, name)
                else:
                    transaction.queue_message(name, _message_of(transaction, heartbeat, None))
    # A clock heartbeat of the fleet has no author: it goes to the next agent that submits.
    for heartbeat in _fire(transaction, FLEET, by_clock=True):
        if _waits_for_delivery(transaction, heartbeat):
            transaction.log_skipped(heartbeat.name, "", UNDELIVERED)
        else:
            _leave_unassigned(transaction, heartbeat, None)


def acknowledge(transaction: Transaction, name: str, ids: tuple[str, ...]) -> None:
    """Handle that an agent has received these messages: they are pending no longer, and checkpoints among them await a
    reply."""
    agent = transaction.agents[name]
    received = [message for message in agent.pending_messages if message.id in ids]
    if not received:
        return
    names = tuple(dict.fromkeys(message.name for message in received))
    # Only the heartbeats of the clock await a reply.
    questions = tuple(
        message.name for message in received if message.attempt is None and message.name not in WITHOUT_REPLY
    )
    transaction.set_agent(
        name,
        pending_messages=tuple(message for message in agent.pending_messages if message.id not in ids),
        in_flight=tuple(id for id in agent.in_flight if id not in ids),
        awaiting_reply=tuple(dict.fromkeys(agent.awaiting_reply + questions)),
    )
    chains.on_received(transaction, name, received)
    text = f"{', '.join(names)} ({', '.join(message.id for message in received)}) received"
    transaction.log_messages("heartbeat", text, name, received)


def acknowledge_prompt(transaction: Transaction, name: str) -> None:
    """Handle that an agent's conversation has the prompt of its launch: the results and messages in it are received."""
    agent = transaction.agents[name]
    if agent.in_flight or agent.last_result_seen != agent.last_result_sent:
        transaction.set_agent(name, last_result_seen=agent.last_result_sent)
        acknowledge(transaction, name, agent.in_flight)


def read_reply(transaction: Transaction, name: str, text: str) -> None:
    """Read an agent's reply to its checkpoints: `HEARTBEAT_OK` is not shown, `ALERT: ...` goes to the operator. Any
    other text is kept as the agent's last words."""
    if not transaction.agents[name].awaiting_reply:
        return
    match parse_reply(text):
        case OkReply():
            _answered(transaction, name)
        case AlertReply(alert):
            _answered(transaction, name)
            transaction.alert(alert, name)
        case OtherReply() as other:
            # An agent says much while it goes through its checklist: only the last of it can be the answer.
            transaction.set_agent(name, last_words=other.first_line)


def end_of_turn(transaction: Transaction, name: str) -> None:
    """Handle that an agent ended its turn without a clear answer to its checkpoint. Its last words count as an alert,
    because an agent that has nothing to report should have said so; without any, the checkpoint is unanswered."""
    if words := transaction.agents[name].last_words:
        _answered(transaction, name)
        transaction.alert(words, name)
    else:
        mark_unanswered(transaction, name)


def _answered(transaction: Transaction, name: str) -> None:
    transaction.set_agent(name, awaiting_reply=(), unanswered_checkpoints=0, last_words="")


def mark_unanswered(transaction: Transaction, name: str) -> None:
    """Count a checkpoint without a reply, and alert the operator once after MAX_UNANSWERED in a row: an agent that no
    longer answers may no longer understand what it is given."""
    agent = transaction.set_agent(name, unanswered_checkpoints=transaction.agents[name].unanswered_checkpoints + 1)
    if agent.unanswered_checkpoints == MAX_UNANSWERED:
        failed = Reason(ReasonKind.HEARTBEAT_FAILED, count=MAX_UNANSWERED, detail=agent.last_error)
        transaction.alert(f"{name} has left {MAX_UNANSWERED} checkpoints in a row unanswered", name, failed)


def _message_of(transaction: Transaction, heartbeat: Heartbeat, number: int | None, depth: int = 1) -> PendingMessage:
    by_clock = isinstance(heartbeat.trigger, Elapsed)
    return PendingMessage(
        id=transaction.next_message_id(),
        name=heartbeat.name,
        since=transaction.clock,
        due=transaction.clock + (transaction.rules.max_defer if by_clock else 0.0),
        prompt=heartbeat.prompt,
        attempt=number,
        scope=heartbeat.scope,
        stagnant=isinstance(heartbeat.trigger, Stagnant),
        depth=depth,
        defers=by_clock,
        inline=heartbeat.delivery is Delivery.INLINE,
    )


def _leave_unassigned(transaction: Transaction, heartbeat: Heartbeat, number: int | None, depth: int = 1) -> None:
    message = _message_of(transaction, heartbeat, number, depth)
    transaction.set_run(unassigned_messages=(*transaction.run.unassigned_messages, message))


def _fire(transaction: Transaction, owner: str, *, by_clock: bool) -> list[Heartbeat]:
    """Return the owner's heartbeats whose time (`by_clock`) or count has come, and begin their next period."""
    holder = transaction.holder(owner)
    targets, fired = holder.targets, []
    for heartbeat in transaction.heartbeats.get(owner, ()):
        # Compared here before `evaluate`: nearly always no time has come, and a large fleet has many heartbeats.
        is_early = by_clock and transaction.clock < targets[heartbeat.name]
        if isinstance(heartbeat.trigger, Elapsed) is by_clock and not is_early:
            now = evaluate(heartbeat.trigger, targets[heartbeat.name], holder.progress, transaction.clock)
            targets = {**targets, heartbeat.name: now.target}
            fired += [heartbeat] if now.fired else []
    if targets is not holder.targets:
        transaction.set_targets(owner, targets)
    return fired


def _reason_to_skip(agent: Agent, heartbeat: Heartbeat) -> Reason | None:
    if any(message.name == heartbeat.name and message.scope is heartbeat.scope for message in agent.pending_messages):
        return UNDELIVERED
    if heartbeat.name in agent.awaiting_reply:
        return UNANSWERED
    if agent.phase is Phase.PARKED:
        return Reason(ReasonKind.IS_PARKED)
    if agent.budget_notice_level >= max(BUDGET_NOTICES_AT):
        return Reason(ReasonKind.LANDS)
    waiting = sum(not message.quiet for message in agent.pending_messages)
    if waiting >= MAX_PENDING_MESSAGES:
        return Reason(ReasonKind.SATURATED, count=waiting)
    return None


def _waits_for_delivery(transaction: Transaction, heartbeat: Heartbeat) -> bool:
    pending = (
        *transaction.run.unassigned_messages,
        *(message for agent in transaction.agents.values() for message in agent.pending_messages),
    )
    return any(message.name == heartbeat.name and message.scope is Scope.FLEET for message in pending)


def _is_overtaken(scopes: Collection[Scope], message: PendingMessage) -> bool:
    return message.stagnant and message.scope in scopes


def _is_read_now(message: PendingMessage, now: float) -> bool:
    """Return whether `coral eval` has printed the message, and its agent has time left to acknowledge it."""
    return message.printed and now < message.due
