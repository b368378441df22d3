"""Outages: a program that does nothing but retry its model is interrupted after a time, or a number of retries.

The interrupt counts as a crash: the agent waits under back-off, and many crashes at once pause the whole fleet.
"""

from coral.fleet.agent_state import Agent, OutputCounts
from coral.fleet.policy import duration
from coral.fleet.rules import Rules
from coral.fleet.transaction import Transaction

OUTAGE = "outage"


def on_output(transaction: Transaction, agent: Agent, before: OutputCounts) -> None:
    """Note when the launch began to do nothing but retry; an answer of the model starts that anew."""
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


def reason(agent: Agent, now: float, rules: Rules) -> str:
    """Why to interrupt a running agent that does nothing but retry; empty where it is to go on."""
    if agent.retrying_since is None:
        return ""
    if agent.output_counts.in_a_row >= rules.retries:
        return f"{OUTAGE}: {agent.output_counts.in_a_row} retries in a row"
    if now >= agent.retrying_since + rules.outage:
        return f"{OUTAGE}: nothing but retries for {duration(now - agent.retrying_since)}"
    return ""


def is_ended_for_it(agent: Agent) -> bool:
    """Whether the launch was interrupted for an outage, and its model has not answered since."""
    return agent.retrying_since is not None and agent.why.startswith(OUTAGE)
