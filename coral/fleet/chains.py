"""Chains of heartbeats that set each other off, and their limit.

A heartbeat continues a chain if the attempt that fired it was the agent's answer to the heartbeat before, without new
work: the tree of the submission has a score already, or is the tree of the agent's last new work. A submission of any
other tree is new work, whatever led to it, and ends the chain; nothing else does. After MAX_CHAIN heartbeats in a chain
further ones are skipped, with one alert, until there is new work.
"""

from dataclasses import replace

from coral.fleet import events as on
from coral.fleet.agent_state import Chain, PendingMessage
from coral.fleet.policy import MAX_CHAIN
from coral.fleet.reasons import Reason, ReasonKind
from coral.fleet.run_state import PendingAttempt
from coral.fleet.transaction import Transaction
from heartbeats.heartbeat import Heartbeat

CUT = Reason(ReasonKind.CHAIN, count=MAX_CHAIN)


def on_received(transaction: Transaction, name: str, received: list[PendingMessage]) -> None:
    """Note at which depth of a chain the agent is now that it has received these messages. A heartbeat that an attempt
    fired sets the depth; one of the clock begins a chain, and ends none."""
    chain = transaction.agents[name].chain
    depth = chain.depth
    for message in received:
        depth = max(depth, message.depth) if message.attempt is None else message.depth
    if depth != chain.depth:
        transaction.set_agent(name, chain=replace(chain, depth=depth))


def on_taken_in(transaction: Transaction, pending: PendingAttempt, event: on.TakenIn) -> PendingAttempt:
    """End the author's chain if the tree of its submission is new work; else let it go on. Called once the tree is
    known."""
    agent = transaction.agents[pending.submission.agent]
    if event.duplicate is not None or event.tree == agent.chain.tree:
        return pending
    transaction.set_agent(agent.name, chain=Chain(tree=event.tree))
    return transaction.set_pending(pending.number, answers=0)


def is_over_limit(transaction: Transaction, author: str, depth: int, fired: list[Heartbeat]) -> bool:
    """Return whether heartbeats at this depth of a chain are skipped. If so, logs each of them, and alerts the operator
    once for the chain."""
    if depth <= MAX_CHAIN or not fired:
        return False
    for heartbeat in fired:
        transaction.log_skipped(heartbeat.name, author, CUT)
    agent = transaction.agents[author]
    if not agent.chain.is_cut:
        transaction.set_agent(author, chain=replace(agent.chain, is_cut=True))
        transaction.alert(f"{author} gets no more heartbeats before it submits something new", author, CUT)
    return True
