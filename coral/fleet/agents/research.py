"""Research time: the task may give an agent time to read and think before it submits.

Until that time is over, or the agent ends its turn, its submissions are refused; then a message tells it to begin.
"""

from coral.fleet.agent_state import Agent, Phase
from coral.fleet.agents.stalls import restart_timer
from coral.fleet.messages import BEGIN
from coral.fleet.reasons import Reason, ReasonKind
from coral.fleet.transaction import Transaction


def begin_research(transaction: Transaction, agent: Agent) -> Agent:
    """Begin the agent's research time with its first launch, if the task gives it any."""
    seconds = transaction.rules.research.get(agent.name)
    return agent if seconds is None else transaction.set_agent(agent.name, research_until=transaction.clock + seconds)


def refusal(transaction: Transaction, agent: Agent) -> Reason | None:
    """Return why a submission of this agent is refused; None where it is not."""
    if agent.research_until is None or transaction.clock >= agent.research_until:
        return None
    return Reason(ReasonKind.RESEARCH, seconds=agent.research_until - transaction.clock)


def end_research(transaction: Transaction, agent: Agent) -> Agent:
    """End the agent's research time, and queue a message that tells it to begin; the message waits while a tool is at
    work."""
    if agent.research_until is None:
        return agent
    transaction.set_agent(agent.name, research_until=None)
    restart_timer(transaction, agent.name)
    transaction.queue_notice(agent.name, BEGIN, transaction.clock)
    return transaction.agents[agent.name]


def advance(transaction: Transaction) -> None:
    for agent in list(transaction.agents.values()):
        is_over = agent.research_until is not None and transaction.clock >= agent.research_until
        if is_over and agent.phase is not Phase.RETIRED:
            end_research(transaction, agent)
