"""What is owed to whom: crossings of triggers, messages, and the acknowledgement that lets go of them.

A crossing is owed once, at the attempt that crossed; what is owed goes along with every launch until the first
output of one of them acknowledges it.
"""

from collections.abc import Mapping
from dataclasses import replace

from attempts.progress import Progress
from coral.fleet.agent_state import Agent, PendingMessage, Phase
from coral.fleet.policy import INLINE_SECONDS, MAX_OWED, MAX_UNANSWERED
from coral.fleet.run_state import FLEET
from coral.fleet.transaction import Transaction
from heartbeats.heartbeat import Delivery, Heartbeat, Scope
from heartbeats.reply import Alert as SaidAlert
from heartbeats.reply import Ok, parse_reply
from heartbeats.trigger import Elapsed, Stagnant, step

MESSAGE = "message"
LAND = "land"
BEGIN = "begin"
STALLED = "stalled"
ENDED = "job ended"  # not a name that a heartbeat may have
UNASKED = (MESSAGE, LAND, BEGIN, STALLED, ENDED)  # they ask for no answer
UNDELIVERED = "the one before has not been delivered yet"
UNANSWERED = "the one before has not been answered yet"


def fire_after_attempt(transaction: Transaction, author: str, number: int) -> None:
    """Look at every trigger that counts attempts, now that one more was counted. What the fleet has crossed falls to
    the author, so that nobody else is disturbed by it; if the author has retired, to the next who submits."""
    agent = transaction.agents[author]
    targets, fired = _step_all(transaction, author, agent.targets, agent.progress)
    transaction.set_agent(author, targets=targets)
    for heartbeat in fired:
        transaction.queue_message(author, _message_of(transaction, heartbeat, number))
    targets, fired = _step_all(transaction, FLEET, transaction.run.targets, transaction.run.progress)
    orphans = (
        *transaction.run.unassigned_messages,
        *(_message_of(transaction, heartbeat, number) for heartbeat in fired),
    )
    if transaction.agents[author].phase is Phase.RETIRED:
        transaction.set_run(targets=targets, unassigned_messages=orphans)
        return
    transaction.set_run(targets=targets, unassigned_messages=())
    for owed in orphans:
        transaction.queue_message(author, owed)


def withdraw_overtaken(transaction: Transaction, author: str, improved: bool, best_improved: bool) -> None:
    """A stagnation that an improvement has overtaken says nothing any more, unless it is on its way already."""
    if best_improved:
        for owed in (message for message in transaction.run.unassigned_messages if message.stagnant):
            transaction.log("withdrawn", f"{owed.name} ({owed.id}) is overtaken by an improvement")
        transaction.set_run(
            unassigned_messages=tuple(
                message for message in transaction.run.unassigned_messages if not message.stagnant
            )
        )
    for name, agent in list(transaction.agents.items()):
        stays = []
        for owed in agent.pending_messages:
            overtaken = best_improved if owed.scope is Scope.FLEET else improved and name == author
            if owed.stagnant and overtaken and owed.id not in agent.in_flight:
                transaction.log("withdrawn", f"{owed.name} ({owed.id}) is overtaken by an improvement", name)
            else:
                stays.append(owed)
        if len(stays) != len(agent.pending_messages):
            transaction.set_agent(name, pending_messages=tuple(stays))


def deliver_at_eval(
    transaction: Transaction, author: str, waiting: bool
) -> tuple[tuple[str, ...], tuple[PendingMessage, ...]]:
    """An attempt of this agent is published: the end of its `coral eval` is a good place for all that is owed.

    Returns the names of the heartbeats that interrupt, and those that `coral eval` prints instead.
    """
    agent = transaction.agents[author]
    if not waiting or agent.phase is not Phase.RUNNING:
        return (), ()
    fresh = tuple(
        message
        for message in agent.pending_messages
        if message.id not in agent.in_flight and not _is_read_now(message, transaction.clock)
    )
    if fresh and all(message.inline for message in fresh):
        # Printed once; should nobody acknowledge it in time, it becomes an interrupt like any other.
        due = transaction.clock + INLINE_SECONDS
        printed = {message.id: replace(message, due=due, inline=False, printed=True) for message in fresh}
        transaction.set_agent(
            author, pending_messages=tuple(printed.get(message.id, message) for message in agent.pending_messages)
        )
        return (), fresh
    due_now = {message.id: replace(message, due=transaction.clock, defers=False) for message in fresh}
    transaction.set_agent(
        author, pending_messages=tuple(due_now.get(message.id, message) for message in agent.pending_messages)
    )
    return tuple(dict.fromkeys(message.name for message in fresh)), ()


def fire_clock_heartbeats(transaction: Transaction) -> None:
    """Heartbeats that the clock sets off. One that is still unanswered, or an agent that is already owed a lot, is
    a stated reason to leave this period out."""
    for name, agent in transaction.agents.items():
        if agent.phase is not Phase.RETIRED:
            for heartbeat in _fire(transaction, name):
                if reason := _reason_to_skip(transaction.agents[name], heartbeat):
                    transaction.log("skipped", f"{heartbeat.name}: {reason}", name)
                    if reason == UNANSWERED:
                        mark_unanswered(transaction, name)
                else:
                    transaction.queue_message(name, _message_of(transaction, heartbeat, None))
    # Of the fleet's clock nobody is the author: it falls to the next who submits.
    for heartbeat in _fire(transaction, FLEET):
        if _waits_for_delivery(transaction, heartbeat):
            transaction.log("skipped", f"{heartbeat.name}: {UNDELIVERED}")
        else:
            transaction.set_run(
                unassigned_messages=(*transaction.run.unassigned_messages, _message_of(transaction, heartbeat, None))
            )


def queue_operator_message(transaction: Transaction, name: str, text: str) -> None:
    """A word of the operator's: it waits for a good moment like a heartbeat of the clock."""
    due = transaction.clock + transaction.rules.max_defer
    id = transaction.next_message_id()
    transaction.queue_message(
        name, PendingMessage(id=id, name=MESSAGE, since=transaction.clock, due=due, prompt=text, defers=True)
    )


def acknowledge(transaction: Transaction, name: str, ids: tuple[str, ...]) -> None:
    """The agent has received these."""
    agent = transaction.agents[name]
    got = [message for message in agent.pending_messages if message.id in ids]
    if not got:
        return
    names = tuple(dict.fromkeys(message.name for message in got))
    # What the clock set off, and nobody said, asks for an answer.
    asks = tuple(message.name for message in got if message.attempt is None and message.name not in UNASKED)
    transaction.set_agent(
        name,
        pending_messages=tuple(message for message in agent.pending_messages if message.id not in ids),
        in_flight=tuple(id for id in agent.in_flight if id not in ids),
        awaiting_reply=tuple(dict.fromkeys(agent.awaiting_reply + asks)),
    )
    transaction.log("heartbeat", f"{', '.join(names)} ({', '.join(message.id for message in got)}) received", name)


def read_reply(transaction: Transaction, name: str, text: str) -> None:
    """An answer to a checkpoint: `HEARTBEAT_OK` is kept silent, `ALERT: ...` goes to the operator."""
    if not transaction.agents[name].awaiting_reply:
        return
    match parse_reply(text):
        case Ok():
            transaction.set_agent(name, awaiting_reply=(), unanswered_checkpoints=0)
        case SaidAlert(said):
            transaction.set_agent(name, awaiting_reply=(), unanswered_checkpoints=0)
            transaction.alert(said, name)


def mark_unanswered(transaction: Transaction, name: str) -> None:
    """One alert for a row of them: who answers no more may have stopped to make sense of what it is told."""
    agent = transaction.set_agent(name, unanswered_checkpoints=transaction.agents[name].unanswered_checkpoints + 1)
    if agent.unanswered_checkpoints == MAX_UNANSWERED:
        transaction.alert(f"{name} has left {MAX_UNANSWERED} checkpoints in a row unanswered", name)


def _step_all(
    transaction: Transaction, owner: str, targets: Mapping[str, float], progress: Progress
) -> tuple[dict[str, float], list[Heartbeat]]:
    moved, fired = dict(targets), []
    for heartbeat in transaction.heartbeats.get(owner, ()):
        if isinstance(heartbeat.trigger, Elapsed):
            continue
        now = step(heartbeat.trigger, moved[heartbeat.name], progress, transaction.clock)
        moved[heartbeat.name] = now.target
        if now.fired:
            fired.append(heartbeat)
    return moved, fired


def _message_of(transaction: Transaction, heartbeat: Heartbeat, number: int | None) -> PendingMessage:
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
        defers=by_clock,
        inline=heartbeat.delivery is Delivery.INLINE,
    )


def _fire(transaction: Transaction, owner: str) -> list[Heartbeat]:
    """The heartbeats of an owner that the clock has come to; their next period begins."""
    holder = transaction.run if owner == FLEET else transaction.agents[owner]
    targets, fired = holder.targets, []
    for heartbeat in transaction.heartbeats.get(owner, ()):
        # Asked here first: at nearly every look none is due, and a fleet has many.
        if isinstance(heartbeat.trigger, Elapsed) and transaction.clock >= targets[heartbeat.name]:
            now = step(heartbeat.trigger, targets[heartbeat.name], holder.progress, transaction.clock)
            targets = {**targets, heartbeat.name: now.target}
            fired.append(heartbeat)
    if fired and owner == FLEET:
        transaction.set_run(targets=targets)
    elif fired:
        transaction.set_agent(owner, targets=targets)
    return fired


def _reason_to_skip(agent: Agent, heartbeat: Heartbeat) -> str:
    if any(message.name == heartbeat.name and message.scope is heartbeat.scope for message in agent.pending_messages):
        return UNDELIVERED
    if heartbeat.name in agent.awaiting_reply:
        return UNANSWERED
    if len(agent.pending_messages) >= MAX_OWED:
        return f"{len(agent.pending_messages)} other heartbeats are still owed"
    return ""


def _waits_for_delivery(transaction: Transaction, heartbeat: Heartbeat) -> bool:
    owed = (
        *transaction.run.unassigned_messages,
        *(message for agent in transaction.agents.values() for message in agent.pending_messages),
    )
    return any(message.name == heartbeat.name and message.scope is Scope.FLEET for message in owed)


def _is_read_now(owed: PendingMessage, now: float) -> bool:
    """Whether `coral eval` has printed it, and there is time yet to acknowledge it."""
    return owed.printed and now < owed.due
