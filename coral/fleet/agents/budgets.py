"""Budgets: when a run or an agent is over, and the notices in time that a budget is nearly used up.

A target and a plateau end a run as well, but no part of them is ever used up: no notice is sent for them.
"""

from collections.abc import Iterable

from coral.fleet.agent_state import Agent, PendingMessage, Phase
from coral.fleet.messages import LAND
from coral.fleet.policy import LAND_AT, waits_until
from coral.fleet.rules import Rules
from coral.fleet.run_state import Fleet, Step
from coral.fleet.transaction import Transaction

Measure = tuple[float | None, float | None]  # what is used (None: not known), and the limit (None: there is none)


def run_over(fleet: Fleet, now: float, rules: Rules) -> str:
    """Why the run is over, in words; empty while it is not."""
    progress, spent = fleet.run.progress, fleet.run.spent
    if rules.target is not None and progress.best is not None and _reaches(progress.best, rules):
        return f"the target of {rules.target:g} is reached: {progress.best:.10g} by #{progress.best_attempt}"
    if rules.budget_attempts is not None and progress.graded >= rules.budget_attempts:
        return f"the budget of {rules.budget_attempts} attempts is used up"
    if rules.budget_seconds is not None and now >= rules.budget_seconds:
        return f"the budget of {rules.budget_seconds / 3600:g} hours is used up"
    if rules.budget_money is not None and spent.money is not None and spent.money >= rules.budget_money:
        return f"the budget of ${rules.budget_money:g} is used up"
    if rules.budget_tokens is not None and spent.tokens >= rules.budget_tokens:
        return f"the budget of {rules.budget_tokens} tokens is used up"
    if rules.plateau is not None and progress.stagnant >= rules.plateau:
        return f"a plateau is reached: {rules.plateau} attempts in a row did not improve the fleet's best"
    return ""


def agent_over(agent: Agent, rules: Rules) -> str:
    """Why the agent may do no more, in words; empty while it may."""
    own, money = rules.own, agent.spent.money
    if own.attempts is not None and agent.progress.graded >= own.attempts:
        return f"its budget of {own.attempts} attempts is used up"
    if own.money is not None and money is not None and money >= own.money:
        return f"its budget of ${own.money:g} is used up"
    if own.tokens is not None and agent.spent.tokens >= own.tokens:
        return f"its budget of {own.tokens} tokens is used up"
    return ""


def money_left(fleet: Fleet, agent: Agent, rules: Rules) -> float | None:
    """US dollars that a launch of this agent may still use; None is without limit. Of the run's budget it gets an equal
    share: the other agents work at the same time, and some programs report their use only when their turn ends."""
    sharing = sum(other.phase is not Phase.RETIRED for other in fleet.agents.values())
    purses = ((fleet.run.spent.money, rules.budget_money, sharing), (agent.spent.money, rules.own.money, 1))
    left = [(limit - (used or 0.0)) / among for used, limit, among in purses if limit is not None]
    return max(min(left), 0.0) if left else None


def no_attempt_left(fleet: Fleet, agent: Agent, rules: Rules) -> str:
    """Why one more submission of this agent is not paid for, those on their way counted; empty where it is."""
    coming = [attempt.submission.agent for attempt in fleet.pending.values() if attempt.step is not Step.SETTLED]
    if rules.budget_attempts is not None and fleet.run.progress.graded + len(coming) >= rules.budget_attempts:
        return f"the budget of {rules.budget_attempts} attempts is used up"
    own = rules.own.attempts
    if own is not None and agent.progress.graded + coming.count(agent.name) >= own:
        return f"the budget of {own} attempts of {agent.name} is used up"
    return ""


def send_budget_notices(transaction: Transaction) -> None:
    """Queue a notice for every agent when a budget passes a threshold. Where a resume with a larger budget has moved
    the threshold away again, withdraw the notice that was not delivered yet."""
    run, rules = transaction.run, transaction.rules
    whole = _passed(
        [
            (run.progress.graded, rules.budget_attempts),
            (transaction.clock, rules.budget_seconds),
            (run.spent.money, rules.budget_money),
            (run.spent.tokens, rules.budget_tokens),
        ]
    )
    for agent in list(transaction.agents.values()):
        level = max(whole, _passed(_own(agent, rules)))
        if agent.phase is Phase.RETIRED:
            continue
        if level > agent.budget_notice_level:
            transaction.set_agent(agent.name, budget_notice_level=level)
            _queue_notice(transaction, agent)
        elif level < agent.budget_notice_level:
            transaction.set_agent(agent.name, budget_notice_level=level)
            _withdraw(transaction, agent)


def _own(agent: Agent, rules: Rules) -> list[Measure]:
    return [
        (agent.progress.graded, rules.own.attempts),
        (agent.spent.money, rules.own.money),
        (agent.spent.tokens, rules.own.tokens),
    ]


def _passed(measures: Iterable[Measure]) -> float:
    """The highest threshold that any of the measures has reached; 0 where none has."""
    known = [(used, limit) for used, limit in measures if used is not None and limit is not None]
    return max((part for part in LAND_AT for used, limit in known if used >= part * limit), default=0.0)


def _queue_notice(transaction: Transaction, agent: Agent) -> None:
    """Queue a notice, unless an earlier one is undelivered and says the same. An agent that waits for a grade gets it
    when the wait is over."""
    if any(_is_undelivered(message, agent) for message in agent.pending_messages):
        return
    due = max(transaction.clock, waits_until(agent.name, transaction.pending.values()) or transaction.clock)
    id = transaction.next_message_id()
    transaction.queue_message(
        agent.name, PendingMessage(id=id, name=LAND, since=transaction.clock, due=due, defers=True)
    )


def _withdraw(transaction: Transaction, agent: Agent) -> None:
    for message in agent.pending_messages:
        if _is_undelivered(message, agent):
            transaction.log("withdrawn", f"{LAND} ({message.id}): there is more budget now", agent.name)
    transaction.set_agent(
        agent.name,
        pending_messages=tuple(message for message in agent.pending_messages if not _is_undelivered(message, agent)),
    )


def _is_undelivered(message: PendingMessage, agent: Agent) -> bool:
    return message.name == LAND and message.id not in agent.in_flight


def _reaches(best: float, rules: Rules) -> bool:
    assert rules.target is not None
    return not rules.direction.better(rules.target, best)
