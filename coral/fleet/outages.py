"""Programs that only ask their model again, silently or for ever: bounded by our own clock, and by a count.

An outage is a crash of whoever meets it: it waits under back-off, and many at once hold up the fleet.
"""

from coral.fleet.draft import Draft
from coral.fleet.policy import Rules, duration
from coral.fleet.state import Agent, Count

OUTAGE = "outage"


def heard(draft: Draft, agent: Agent, before: Count) -> None:
    """Its launch has come to a new count: what goes on begins, or the model has answered."""
    count = agent.count
    if count.in_a_row <= 0:
        since = None
    elif agent.retrying is None or count.answered > before.answered:
        since = draft.clock
    else:
        since = agent.retrying
    if since != agent.retrying:
        draft.set_agent(agent.name, retrying=since)


def deadlines(agent: Agent, rules: Rules) -> list[float]:
    return [] if agent.retrying is None else [agent.retrying + rules.outage]


def reason(agent: Agent, now: float, rules: Rules) -> str:
    """Why a running agent is to be interrupted that only retries; empty where it may go on."""
    if agent.retrying is None:
        return ""
    if agent.count.in_a_row >= rules.retries:
        return f"{OUTAGE}: {agent.count.in_a_row} retries in a row"
    if now >= agent.retrying + rules.outage:
        return f"{OUTAGE}: nothing but retries for {duration(now - agent.retrying)}"
    return ""


def is_ended_for_it(agent: Agent) -> bool:
    """Whether its launch was interrupted for that, and the model has not answered since."""
    return agent.retrying is not None and agent.why.startswith(OUTAGE)
