"""Reads from status.json how much of each budget is used, and forecasts when it will be used up."""

from dataclasses import dataclass

from coral.fleet.reasons import BudgetKey
from coral.reading.lenient_json import LenientJson
from coral.views import format

ENOUGH = 0.02  # share of a budget below which a forecast would be a guess


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """How much of one budget is used. `share`: 0 to 1. `amounts`: in words, `$3.20 of $10.00`. `left`: in words, for
    how long the rest lasts; empty if that is unknown."""

    key: str
    share: float
    amounts: str
    left: str


def uses(status: LenientJson, late: float) -> list[BudgetUse]:
    """Return the use of each budget. `late`: the age of the status in seconds."""
    clock = (status.number("clock") or 0.0) + late
    unknown = bool(status.texts("use_unknown_of"))
    found = (_use(budget, clock, late, unknown) for budget in status.objects("budgets"))
    return [use for use in found if use is not None]


def forecast(used: float, limit: float, clock: float) -> float | None:
    """Return in how many seconds the budget will be used up at the average rate so far; None if less than ENOUGH of it
    is used, or all of it. `clock`: seconds that the run took so far."""
    if clock <= 0 or limit <= 0 or not ENOUGH <= used / limit < 1:
        return None
    return (limit - used) * clock / used


def _use(budget: LenientJson, clock: float, late: float, unknown: bool) -> BudgetUse | None:
    key, used, limit = budget.text("key", 20), budget.number("used"), budget.number("limit")
    if used is None or not limit or key not in set(BudgetKey):
        return None
    if key == BudgetKey.HOURS:
        used = min(used + late / 3600, limit)
    lasts, left = forecast(used, limit, clock), ""
    if key == BudgetKey.HOURS:
        left = f"{format.duration((limit - used) * 3600)} left"
    elif lasts is not None:
        at_most = "at most " if unknown and key in (BudgetKey.MONEY, BudgetKey.TOKENS) else ""
        left = f"{at_most}~{format.duration(lasts, units=1)} left"
    return BudgetUse(key, min(max(used / limit, 0.0), 1.0), _amounts(key, used, limit), left)


def _amounts(key: str, used: float, limit: float) -> str:
    match key:
        case BudgetKey.MONEY:
            return f"{format.money(used)} of {format.money(limit)}"
        case BudgetKey.TOKENS:
            return f"{format.tokens(used)} of {format.tokens(limit)}"
        case BudgetKey.HOURS:
            return f"{format.duration(used * 3600)} of {format.duration(limit * 3600)}"
        case _:
            return f"{used:.0f} of {limit:.0f}"


def per_hour(status: LenientJson, late: float) -> str:
    """Return in words what the run costs an hour on average; empty if the cost is unknown or the run is younger than a
    minute. `late`: the age of the status in seconds."""
    money, clock = status.inner("spent").number("money"), (status.number("clock") or 0.0) + late
    if not money or clock < 60:
        return ""
    return f"{format.money(money * 3600 / clock)} an hour"
