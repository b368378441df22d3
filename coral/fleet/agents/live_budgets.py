"""Budgets that the operator changes while the run goes on.

A change stays in force over a resume, until the task itself states another limit for that budget.
"""

from collections.abc import Mapping
from dataclasses import replace

from coral.errors import CoralError
from coral.fleet.agent_state import Order, Phase
from coral.fleet.agents.budgets import agent_over, run_over
from coral.fleet.agents.launch_exit import wait
from coral.fleet.messages import MESSAGE
from coral.fleet.reasons import Reason, ReasonKind
from coral.fleet.request_kinds import SetBudget
from coral.fleet.rules import BUDGETS, OWN_BUDGETS, Rules, budget_of, in_force
from coral.fleet.run_state import Fleet, SetLimit
from coral.fleet.transaction import Transaction

# Budgets of things that are counted: their limits are whole numbers.
COUNTED = ("attempts", "tokens", "plateau", "per_agent.attempts", "per_agent.tokens")


def set_budget(transaction: Transaction, asked: SetBudget) -> str:
    """Change a budget, tell the agents, and start those again that had retired because their own budget was used up.
    CoralError where the key or the limit is wrong, nothing would change, or the run would end at once."""
    key, before = asked.key, transaction.rules
    _check(transaction, asked)
    base, budgets = budget_of(transaction.task_rules, key), dict(transaction.run.budgets)
    budgets.pop(key, None)
    if not asked.as_task and asked.limit != base:
        budgets[key] = SetLimit(limit=_as_in_task(key, asked.limit), base=base)
    changed = _with_budgets(transaction.fleet(), budgets)
    rules = in_force(transaction.task_rules, changed.run)
    text, was = f"budget.{key} is {_shown(budget_of(rules, key))}", _shown(budget_of(before, key))
    if rules == before:
        raise CoralError(f"cannot set budget.{key}: it is {was} already", "coral status shows what is left")
    if run_over(changed, transaction.clock, rules) or _nobody_is_left(changed, rules):
        if run_over(transaction.fleet(), transaction.clock, before):
            hint = "`coral resume` says which budget is used up"
            raise CoralError(f"cannot set budget.{key}: the run would end at once all the same", hint)
        raise CoralError(f"cannot set: the run would end at once if {text}", "`coral stop` ends it")
    transaction.set_run(budgets=budgets)
    transaction.rules = rules
    _restart_and_tell(transaction, f"The operator has changed the budget: {text} now (it was {was}).")
    return f"{text} (it was {was})"


def restore(transaction: Transaction, budgets: Mapping[str, SetLimit] | None) -> None:
    """Put the budgets in force that the operator had set in the time that a damaged journal lost; `budgets` is None if
    the operator had set none then."""
    if budgets is not None:
        transaction.set_run(budgets=budgets)
        drop_outdated(transaction)
        transaction.rules = in_force(transaction.task_rules, transaction.run)


def _nobody_is_left(fleet: Fleet, rules: Rules) -> bool:
    """Return whether every agent at work has used up its own budget."""
    at_work = [agent for agent in fleet.agents.values() if agent.phase is not Phase.RETIRED]
    return bool(at_work) and all(agent_over(agent, rules) is not None for agent in at_work)


def drop_outdated(transaction: Transaction) -> None:
    """Forget the operator's change of a budget for which the task states another limit since."""
    rules = transaction.task_rules
    kept = {key: change for key, change in transaction.run.budgets.items() if budget_of(rules, key) == change.base}
    if len(kept) < len(transaction.run.budgets):
        transaction.set_run(budgets=kept)


def _check(transaction: Transaction, asked: SetBudget) -> None:
    key, limit = asked.key, asked.limit
    known = (*BUDGETS, *OWN_BUDGETS)
    if key not in known:
        hint = f"these can be set: budget.{', '.join(known)}; the rest by `coral resume KEY=VALUE`"
        raise CoralError(f"cannot set budget.{key}: there is no such budget", hint)
    if transaction.run.is_ending:
        raise CoralError(f"cannot set budget.{key}: the run is stopping", f"coral resume budget.{key}=NUMBER")
    if limit is not None and key != "target" and limit <= 0:
        raise CoralError(f"cannot set budget.{key} to {_shown(limit)}: it must be above 0", "or `none`: no limit")
    if limit is not None and key in COUNTED and limit != int(limit):
        raise CoralError(f"cannot set budget.{key} to {_shown(limit)}: it is a whole number", "or `none`: no limit")


def _with_budgets(fleet: Fleet, budgets: Mapping[str, SetLimit]) -> Fleet:
    return replace(fleet, run=replace(fleet.run, budgets=budgets))


def _as_in_task(key: str, limit: float | None) -> float | None:
    """Return the limit as task.yaml holds it: a whole number, where the budget is of things that are counted."""
    return int(limit) if limit is not None and key in COUNTED else limit


def _shown(limit: float | None) -> str:
    return "without limit" if limit is None else f"{limit:.15g}"


def _restart_and_tell(transaction: Transaction, text: str) -> None:
    """Start the agents again that had retired because their own budget was used up, if it no longer is. Tell them and
    all that are at work."""
    due = transaction.clock + transaction.rules.max_defer
    for name, agent in list(transaction.agents.items()):
        is_over = agent.phase is Phase.RETIRED and agent.reason.kind is ReasonKind.OWN_BUDGET
        if is_over and agent.order is Order.WORK and agent_over(agent, transaction.rules) is None:
            wait(transaction, agent, Reason(ReasonKind.BUDGET_RAISED))
        elif agent.phase is Phase.RETIRED:
            continue
        transaction.queue_notice(name, MESSAGE, due, prompt=text)
