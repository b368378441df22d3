"""How much of each budget is used, and when it is used up if the run goes on as it has so far."""

from dataclasses import dataclass

from coral.fleet.reasons import BudgetKey
from coral.reading.lenient_json import LenientJson
from coral.views import format

ENOUGH = 0.02  # share of a budget below which a forecast would be a guess


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """`share`: 0 to 1. `amounts`: how much of how much, in words; `left`: how long it lasts, empty where unknown."""

    key: str
    share: float
    amounts: str
    left: str


def uses(status: LenientJson, late: float) -> list[BudgetUse]:
    """The use of each budget. `late`: the age of the status in seconds."""
    clock = (status.number("clock") or 0.0) + late
    unknown = bool(status.texts("use_unknown_of"))
    found = (_use(budget, clock, late, unknown) for budget in status.objects("budgets"))
    return [use for use in found if use is not None]


def forecast(used: float, limit: float, clock: float) -> float | None:
    """Seconds until the budget is used up, at the rate so far; None where little is used yet, or nothing is left."""
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
    """What the run costs an hour; empty where that is not known."""
    money, clock = status.inner("spent").number("money"), (status.number("clock") or 0.0) + late
    if not money or clock < 60:
        return ""
    return f"{format.money(money * 3600 / clock)} an hour"
