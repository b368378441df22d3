"""The last synthesis of a run: one agent is asked to write it while there is budget left for it.

The run does not wait for the synthesis: it ends when the budget is used up, whatever is written by then.
"""

from coral.fleet.agent_state import Agent, Phase
from coral.fleet.agents.budgets import is_nearly_used_up
from coral.fleet.messages import CONCLUDE
from coral.fleet.policy import waits_until
from coral.fleet.transaction import Transaction


def ask(transaction: Transaction) -> None:
    """Ask one agent for the synthesis when a budget of the run is nearly used up; ask another one if the message cannot
    reach the first any more. Where a resume with a larger budget has moved the end away, withdraw the message."""
    asked = transaction.agents.get(transaction.run.concluder)
    if not is_nearly_used_up(transaction.fleet(), transaction.clock, transaction.rules):
        if asked is not None:
            _withdraw(transaction, asked, ": there is more budget now")
            transaction.set_run(concluder="")
        return
    if asked is not None and (_is_reachable(asked) or not _is_undelivered(asked)):
        return
    able = [agent for agent in transaction.agents.values() if _is_reachable(agent)]
    chosen = min(able, key=lambda agent: _remoteness(transaction, agent), default=None)
    if chosen is not None:
        if asked is not None:
            _withdraw(transaction, asked, f": {chosen.name} is asked")
        transaction.set_run(concluder=chosen.name)
        transaction.queue_notice(chosen.name, CONCLUDE, _due(transaction, chosen))


def _is_reachable(agent: Agent) -> bool:
    return agent.phase not in (Phase.RETIRED, Phase.PARKED)


def _is_undelivered(agent: Agent) -> bool:
    return any(message.name == CONCLUDE for message in agent.pending_messages)


def _withdraw(transaction: Transaction, agent: Agent, why: str) -> None:
    transaction.withdraw(agent.name, lambda message: message.name == CONCLUDE, why)


def _due(transaction: Transaction, agent: Agent) -> float:
    """Return when the message may interrupt the agent: for an agent that waits for a grade, when the wait ends."""
    return max(transaction.clock, waits_until(agent.name, transaction.pending.values()) or transaction.clock)


def _remoteness(transaction: Transaction, agent: Agent) -> tuple[bool, float]:
    """Return the sort key by which the agent is chosen: the lowest is likely to receive the message first."""
    return agent.phase is not Phase.RUNNING, _due(transaction, agent)
