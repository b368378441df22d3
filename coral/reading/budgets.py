"""Reads from status.json what the agents used and how much of each budget that is, and forecasts when it will be used
up. What is not known is never shown as 0: a sum that leaves something out is a lower bound."""

from collections.abc import Collection
from dataclasses import dataclass

from coral.fleet.reasons import BudgetKey
from coral.reading.lenient_json import LenientJson
from coral.reading.run_view import RunView
from coral.views import format

AT_LEAST, NOT_KNOWN = "at least ", "use not known"
ENOUGH = 0.02  # share of a budget below which a forecast would be a guess


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """How much of one budget is used. `share`: 0 to 1, None if that is not known. `amounts`: in words, `$3.20 of
    $10.00`. `left`: in words, for how long the rest lasts; empty if that is unknown."""

    key: str
    share: float | None
    amounts: str
    left: str


def used(view: RunView) -> str:
    """Return in words what all agents used: `at least 12.3k tokens, $0.12`, or `use not known`; empty if none of them
    uses a model, and for a sealed agent that cannot read the status."""
    known = format.spending(view.status.inner("spent").data)
    if not is_partly_known(view):
        return known
    return f"{AT_LEAST}{known}" if known else NOT_KNOWN


def use_unknown_of(status: LenientJson) -> frozenset[str]:
    """Return the agents whose use is not known, or not all of it."""
    return frozenset(status.texts("use_unknown_of"))


def used_by(agent: LenientJson, unknown: Collection[str]) -> str:
    """Return in words the tokens and the money that an agent used; empty if it uses no model. `agent`: its entry in
    status.json; `unknown`: the names that `use_unknown_of` returns."""
    known = format.spending(agent.inner("spent").data)
    return known or (NOT_KNOWN if agent.text("name") in unknown else "")


def uses(status: LenientJson, late: float) -> list[BudgetUse]:
    """Return the use of each budget. `late`: the age of the status in seconds."""
    clock = (status.number("clock") or 0.0) + late
    partly = bool(use_unknown_of(status))
    found = (_use(budget, clock, late, partly) for budget in status.objects("budgets"))
    return [use for use in found if use is not None]


def forecast(used: float, limit: float, clock: float) -> float | None:
    """Return in how many seconds the budget will be used up at the average rate so far; None if less than ENOUGH of it
    is used, or all of it. `clock`: seconds that the run took so far."""
    if clock <= 0 or limit <= 0 or not ENOUGH <= used / limit < 1:
        return None
    return (limit - used) * clock / used


def is_partly_known(view: RunView) -> bool:
    """Return whether the use of some agents is not known, or of all because status.json cannot be read."""
    return view.is_use_lost or bool(use_unknown_of(view.status))


def _use(budget: LenientJson, clock: float, late: float, partly: bool) -> BudgetUse | None:
    key, used, limit = budget.text("key", 20), budget.number("used"), budget.number("limit")
    if not limit or key not in set(BudgetKey):
        return None
    partly = partly and key in (BudgetKey.MONEY, BudgetKey.TOKENS)
    if used is None or (partly and not used):
        return BudgetUse(key, None, f"{NOT_KNOWN}, limit {_amount(key, limit)}", "")
    if key == BudgetKey.HOURS:
        used = min(used + late / 3600, limit)
    lasts, left = forecast(used, limit, clock), ""
    if key == BudgetKey.HOURS:
        left = f"{format.duration((limit - used) * 3600)} left"
    elif lasts is not None:
        left = f"{'at most ' if partly else ''}~{format.duration(lasts, units=1)} left"
    amounts = f"{AT_LEAST if partly else ''}{_amount(key, used)} of {_amount(key, limit)}"
    return BudgetUse(key, min(max(used / limit, 0.0), 1.0), amounts, left)


def _amount(key: str, value: float) -> str:
    match key:
        case BudgetKey.MONEY:
            return format.money(value)
        case BudgetKey.TOKENS:
            return format.tokens(value)
        case BudgetKey.HOURS:
            return format.duration(value * 3600)
        case _:
            return f"{value:.0f}"


def per_hour(status: LenientJson, late: float) -> str:
    """Return in words what the run costs an hour on average; empty if the cost is unknown or the run is younger than a
    minute. `late`: the age of the status in seconds."""
    money, clock = status.inner("spent").number("money"), (status.number("clock") or 0.0) + late
    if not money or clock < 60:
        return ""
    return f"{AT_LEAST if use_unknown_of(status) else ''}{format.money(money * 3600 / clock)} an hour"
