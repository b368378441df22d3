"""Research: agents that read and think first. Until their time is over, or they end their turn before it is, nothing of
theirs is graded; then they are told to begin."""

from coral.fleet.draft import Draft
from coral.fleet.interventions import BEGIN
from coral.fleet.stalls import waited
from coral.fleet.state import Agent, Owed, Phase


def start(draft: Draft, agent: Agent) -> Agent:
    """Its first launch: from now on its time runs."""
    seconds = draft.rules.research.get(agent.name)
    return agent if seconds is None else draft.set_agent(agent.name, research=draft.clock + seconds)


def refusal(draft: Draft, agent: Agent) -> str:
    """Why nothing of this agent is graded yet; empty where it is."""
    if agent.research is None or draft.clock >= agent.research:
        return ""
    return f"you read and think first, for {(agent.research - draft.clock) / 60:.0f} more minutes"


def over(draft: Draft, agent: Agent) -> Agent:
    """It may begin, and is told so at a good moment."""
    if agent.research is None:
        return agent
    draft.set_agent(agent.name, research=None)
    waited(draft, agent.name)
    id = draft.next_owed_id()
    draft.owe(agent.name, Owed(id=id, name=BEGIN, since=draft.clock, due=draft.clock, defers=True))
    return draft.agents[agent.name]


def advance(draft: Draft) -> None:
    for agent in list(draft.agents.values()):
        if agent.research is not None and draft.clock >= agent.research and agent.phase is not Phase.RETIRED:
            over(draft, agent)
