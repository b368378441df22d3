"""How much agents use their models, counted as the difference of the figures that their programs report.

A new supervisor reads an output again and sees the same figures again: they count once. Money that a program reports is
taken as it is; where it reports none, the task's prices turn its tokens into money. Some programs report the money
before or after the tokens that it paid for: it counts once all the same.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from coral.fleet import events as on
from coral.fleet.agent_state import Agent, Meter, Spent
from coral.fleet.members import Member, Prices
from coral.fleet.policy import MILLION
from coral.fleet.transaction import Transaction


def on_used(transaction: Transaction, event: on.Used) -> None:
    agent = transaction.agents.get(event.agent)
    if agent is None or agent.launch != event.launch:
        return
    before = _before(agent.meter, event)
    meter, spent = _counted(before, event.figure, transaction.rules.prices.get(event.agent))
    if meter == agent.meter:
        return
    transaction.set_agent(agent.name, meter=meter, spent=added(agent.spent, spent))
    transaction.set_run(spent=added(transaction.run.spent, spent))


def added(one: Spent, other: Spent) -> Spent:
    return _combined(one, other, sum)


def highest(one: Spent, other: Spent) -> Spent:
    return _combined(one, other, max)


def cost(spent: Spent, prices: Prices) -> float:
    """Return what these tokens cost at these prices, in US dollars."""
    return (spent.input * prices.input + spent.cached * prices.cached + spent.output * prices.output) / MILLION


def reports_nothing(agent: Agent, member: Member | None, account: str) -> bool:
    """Return whether the program that drives the agent uses a model and has reported nothing of it. `member`: how the
    agent is driven if the operator has added or moved it; `account`: empty where the program uses no model."""
    if not account or not agent.launch:
        return False
    if member is None or not member.former:
        return agent.spent == Spent()
    return agent.launch > member.former[-1].through >= agent.meter.launch


def _before(meter: Meter, event: on.Used) -> Meter:
    """Return what of a reported figure is counted already. If the whole figure is lower than in the launch before, the
    program began to count at zero again. One part alone may fall: for an answer that was cut off, programs report an
    estimate first and drop it later."""
    same_launch = meter.launch == event.launch
    lost = meter.closed()
    begun = Meter(launch=event.launch, session=event.session)
    nothing = replace(begun, is_money_lost=lost.is_money_lost, is_use_lost=lost.is_use_lost)
    if meter.session != event.session or not (same_launch or event.session):
        return nothing
    old, new = meter.figure, event.figure
    counted = replace(meter, launch=event.launch)
    if same_launch or new.input >= old.input:
        return counted
    fallen = new.output < old.output if not old.money or new.money is None else new.money < old.money
    return nothing if fallen else counted


def _counted(before: Meter, now: Spent, prices: Prices | None) -> tuple[Meter, Spent]:
    """Return the meter after a figure, and what the figure adds."""
    old = before.figure
    tokens = Spent(
        input=max(now.input - old.input, 0),
        cached=max(now.cached - old.cached, 0),
        output=max(now.output - old.output, 0),
    )
    money = None if now.money is None else max(now.money - (old.money or 0.0), 0.0)
    estimated, is_ahead = before.estimated, before.is_ahead and tokens == Spent()
    is_unpriced = before.is_unpriced
    # A program that does not know a model's price reports a cost of 0: what a model costs that is free for certain,
    # the task's prices say.
    if money:
        is_ahead, is_unpriced = tokens == Spent() and not estimated and not is_unpriced, False
        money, estimated = max(money - estimated, 0.0), max(estimated - money, 0.0)
    elif prices is not None:
        money = 0.0 if before.is_ahead else cost(tokens, prices)
        estimated += money
    else:
        money, is_unpriced = None, is_unpriced or (tokens != Spent() and not before.is_ahead)
    figure = highest(old, now)
    meter = replace(before, figure=figure, estimated=estimated, is_ahead=is_ahead, is_unpriced=is_unpriced)
    return meter, replace(tokens, money=money)


def _combined(one: Spent, other: Spent, combine: Callable[[list[Any]], Any]) -> Spent:
    known = [figure.money for figure in (one, other) if figure.money is not None]
    return Spent(
        input=combine([one.input, other.input]),
        cached=combine([one.cached, other.cached]),
        output=combine([one.output, other.output]),
        money=combine(known) if known else None,
    )
