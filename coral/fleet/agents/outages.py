"""Outages: a program that does nothing but retry its model is interrupted after a time, or a number of retries.

The interrupt counts as a crash: the agent waits under back-off, and many crashes at once pause the whole fleet.
"""

from coral.fleet.agent_state import Agent, OutputCounts
from coral.fleet.reasons import Reason, ReasonKind
from coral.fleet.rules import Rules
from coral.fleet.transaction import Transaction


def on_output(transaction: Transaction, agent: Agent, before: OutputCounts) -> None:
    """Note since when the launch has done nothing but retry its model; an answer of the model resets that time."""
    count = agent.output_counts
    if count.in_a_row <= 0:
        since = None
    elif agent.retrying_since is None or count.answered > before.answered:
        since = transaction.clock
    else:
        since = agent.retrying_since
    if since != agent.retrying_since:
        transaction.set_agent(agent.name, retrying_since=since)


def deadlines(agent: Agent, rules: Rules) -> list[float]:
    return [] if agent.retrying_since is None else [agent.retrying_since + rules.outage]


def reason(agent: Agent, now: float, rules: Rules) -> Reason | None:
    """Return why to interrupt a running agent that does nothing but retry its model; None where it is to go on."""
    if agent.retrying_since is None:
        return None
    if agent.output_counts.in_a_row >= rules.retries:
        return Reason(ReasonKind.OUTAGE, count=agent.output_counts.in_a_row)
    if now >= agent.retrying_since + rules.outage:
        return Reason(ReasonKind.OUTAGE, seconds=now - agent.retrying_since)
    return None


def is_ended_for_outage(agent: Agent) -> bool:
    """Return whether the launch was interrupted for an outage, and its model has not answered since then."""
    return agent.retrying_since is not None and agent.reason.kind is ReasonKind.OUTAGE
