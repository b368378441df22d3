"""Programs that only ask their model again, silently or for ever: bounded by our own clock, and by a count.

An outage is a crash of whoever meets it: it waits under back-off, and many at once hold up the fleet.
"""

from coral.fleet.agent_state import Agent, OutputCounts
from coral.fleet.policy import duration
from coral.fleet.rules import Rules
from coral.fleet.transaction import Transaction

OUTAGE = "outage"


def on_output(transaction: Transaction, agent: Agent, before: OutputCounts) -> None:
    """Its launch has come to a new count: what goes on begins, or the model has answered."""
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
    """Why a running agent is to be interrupted that only retries; empty where it may go on."""
    if agent.retrying_since is None:
        return ""
    if agent.output_counts.in_a_row >= rules.retries:
        return f"{OUTAGE}: {agent.output_counts.in_a_row} retries in a row"
    if now >= agent.retrying_since + rules.outage:
        return f"{OUTAGE}: nothing but retries for {duration(now - agent.retrying_since)}"
    return ""


def is_ended_for_it(agent: Agent) -> bool:
    """Whether its launch was interrupted for that, and the model has not answered since."""
    return agent.retrying_since is not None and agent.why.startswith(OUTAGE)
