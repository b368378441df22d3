"""Budgets: when a run or an agent has used one up, and the notices that go out when a budget is nearly used up.

A target and a plateau end a run as well, but they are not used up part by part: no notice is sent for them.
"""

from collections.abc import Iterable

from coral.fleet.agent_state import Agent, Phase
from coral.fleet.attempts.confirmations import is_under_way
from coral.fleet.messages import LAND
from coral.fleet.policy import BUDGET_NOTICES_AT, waits_until
from coral.fleet.reasons import Budget, BudgetKey, Reason, ReasonKind, RunEnd, RunEndKind
from coral.fleet.rules import Allowance, Rules, in_force
from coral.fleet.run_state import AttemptStep, Fleet, Run
from coral.fleet.transaction import Transaction

UNLIMITED = Allowance()
# What is used (None: not known), and the limit (None: there is none). Hours are measured in seconds.
Measure = tuple[BudgetKey, float | None, float | None]


def run_over(fleet: Fleet, now: float, rules: Rules) -> RunEnd | None:
    """Return why the run is over; None while it is not. While a confirmation is being graded, neither the budget of
    attempts nor a plateau ends the run: it would stop before its last gain is proven."""
    best = fleet.standing.best_measured
    if rules.target is not None and best is not None and rules.scoring.gain(best.value, rules.target) >= 0:
        return RunEnd(RunEndKind.TARGET, limit=rules.target, score=best.value, attempt=best.number)
    proving = is_under_way(fleet.pending.values())
    measures = _of_run(fleet.run, now, rules)
    if budget := _used_up(measure for measure in measures if not (proving and measure[0] is BudgetKey.ATTEMPTS)):
        return RunEnd(RunEndKind.BUDGET, budget=budget)
    if rules.plateau is not None and fleet.run.progress.stagnant >= rules.plateau and not proving:
        return RunEnd(RunEndKind.PLATEAU, limit=rules.plateau)
    return None


def agent_over(agent: Agent, rules: Rules) -> Reason | None:
    """Return why the agent may not work any more; None while it may."""
    budget = _used_up(_of_agent(agent, rules))
    return None if budget is None else Reason(ReasonKind.OWN_BUDGET, budget=budget)


def money_left(fleet: Fleet, agent: Agent, rules: Rules) -> float | None:
    """Return the US dollars that a launch of this agent may still use; None is without limit. Of the run's budget it
    gets an equal share: the other agents work at the same time, and some programs report their use only when their turn
    ends."""
    sharing = sum(other.phase is not Phase.RETIRED for other in fleet.agents.values())
    rules = in_force(rules, fleet.run)
    budgets = ((fleet.run.spent.money, rules.budget_money, sharing), (agent.spent.money, rules.own.money, 1))
    left = [(limit - (used or 0.0)) / agents for used, limit, agents in budgets if limit is not None]
    return max(min(left), 0.0) if left else None


def no_attempt_left(fleet: Fleet, agent: Agent, rules: Rules) -> Reason | None:
    """Return why the budget of attempts does not allow this agent one more submission; None where it does. Submissions
    that are not graded yet are counted."""
    coming = [
        attempt.submission.agent
        for attempt in fleet.pending.values()
        if attempt.step is not AttemptStep.SETTLED and attempt.is_submitted
    ]
    for kind, used, limit in (
        (ReasonKind.RUN_BUDGET, fleet.run.progress.graded + len(coming), rules.budget_attempts),
        (ReasonKind.OWN_BUDGET, agent.progress.graded + coming.count(agent.name), rules.own.attempts),
    ):
        if limit is not None and used >= limit:
            return Reason(kind, budget=Budget(BudgetKey.ATTEMPTS, limit))
    return None


def send_budget_notices(transaction: Transaction) -> None:
    """Queue a notice for every agent when a budget passes a threshold. Where a resume with a larger budget has moved
    the threshold away again, withdraw the notice that was not delivered yet."""
    rules = transaction.rules
    whole = _passed(_of_run(transaction.run, transaction.clock, rules))
    for agent in list(transaction.agents.values()):
        level = max(whole, _passed(_of_agent(agent, rules)))
        if agent.phase is Phase.RETIRED:
            continue
        if level > agent.budget_notice_level:
            transaction.set_agent(agent.name, budget_notice_level=level)
            _queue_notice(transaction, agent)
        elif level < agent.budget_notice_level:
            transaction.set_agent(agent.name, budget_notice_level=level)
            transaction.withdraw(agent.name, lambda message: message.name == LAND, ": there is more budget now")


def is_nearly_used_up(fleet: Fleet, now: float, rules: Rules) -> bool:
    """Return whether a budget of the run has passed the last threshold; or the first one, if no more attempts are left
    than agents are at work, because each of them may have one in progress."""
    first, last = BUDGET_NOTICES_AT
    part = _passed(_of_run(fleet.run, now, rules))
    if rules.budget_attempts is None or part >= last:
        return part >= last
    at_work = sum(agent.phase is not Phase.RETIRED for agent in fleet.agents.values())
    return part >= first and rules.budget_attempts - fleet.run.progress.graded <= at_work


def _of_run(run: Run, now: float, rules: Rules) -> list[Measure]:
    return [
        (BudgetKey.ATTEMPTS, run.progress.graded, rules.budget_attempts),
        (BudgetKey.HOURS, now, rules.budget_seconds),
        (BudgetKey.MONEY, run.spent.money, rules.budget_money),
        (BudgetKey.TOKENS, run.spent.tokens, rules.budget_tokens),
    ]


def _of_agent(agent: Agent, rules: Rules) -> list[Measure]:
    if rules.own == UNLIMITED:  # nearly always, and each agent is asked in each turn
        return []
    return [
        (BudgetKey.ATTEMPTS, agent.progress.graded, rules.own.attempts),
        (BudgetKey.MONEY, agent.spent.money, rules.own.money),
        (BudgetKey.TOKENS, agent.spent.tokens, rules.own.tokens),
    ]


def _used_up(measures: Iterable[Measure]) -> Budget | None:
    for key, used, limit in measures:
        if used is not None and limit is not None and used >= limit:
            return Budget(key, limit / 3600 if key is BudgetKey.HOURS else limit)
    return None


def _passed(measures: Iterable[Measure]) -> float:
    """Return the highest threshold that any of the measures has reached; 0 where none has."""
    known = [(used, limit) for _, used, limit in measures if used is not None and limit is not None]
    return max((part for part in BUDGET_NOTICES_AT for used, limit in known if used >= part * limit), default=0.0)


def _queue_notice(transaction: Transaction, agent: Agent) -> None:
    """Queue a notice, unless an earlier one is undelivered and says the same. An agent that waits for a grade gets it
    when the wait is over."""
    if any(message.name == LAND for message in agent.undelivered):
        return
    due = max(transaction.clock, waits_until(agent.name, transaction.pending.values()) or transaction.clock)
    transaction.queue_notice(agent.name, LAND, due)
