"""Budgets as bars, each with a forecast of when it is used up if the run goes on as it has so far."""

from rich.text import Text

from coral.cli.ui.table import dim
from coral.fleet.reasons import BudgetKey
from coral.reading.lenient_json import LenientJson
from coral.views import format

WIDTH = 12  # characters of a bar
ENOUGH = 0.02  # share of a budget below which a forecast would be a guess


def bars(status: LenientJson, late: float) -> list[Text]:
    """One text for each budget. `late`: how old the status is, in seconds."""
    clock = (status.number("clock") or 0.0) + late
    unknown = bool(status.texts("use_unknown_of"))
    return [bar for budget in status.objects("budgets") if (bar := _bar(budget, clock, late, unknown)) is not None]


def forecast(used: float, limit: float, clock: float) -> float | None:
    """Seconds until the budget is used up, at the rate so far; None where little is used yet, or nothing is left."""
    if clock <= 0 or limit <= 0 or not ENOUGH <= used / limit < 1:
        return None
    return (limit - used) * clock / used


def _bar(budget: LenientJson, clock: float, late: float, unknown: bool) -> Text | None:
    key, used, limit = budget.text("key", 20), budget.number("used"), budget.number("limit")
    if used is None or not limit or key not in set(BudgetKey):
        return None
    if key == BudgetKey.HOURS:
        used = min(used + late / 3600, limit)
    share = min(max(used / limit, 0.0), 1.0)
    full = round(share * WIDTH)
    style = "red" if share >= 0.95 else "yellow" if share >= 0.8 else "green"
    text = Text.assemble(f"{key} ", ("█" * full, style), dim("░" * (WIDTH - full)), f" {_amounts(key, used, limit)}")
    left = forecast(used, limit, clock)
    if key == BudgetKey.HOURS:
        text.append(f", {format.duration((limit - used) * 3600)} left", style="dim")
    elif left is not None:
        at_most = "at most " if unknown and key in (BudgetKey.MONEY, BudgetKey.TOKENS) else ""
        text.append(f", {at_most}~{format.duration(left, units=1)} left", style="dim")
    return text


def _amounts(key: str, used: float, limit: float) -> str:
    match key:
        case BudgetKey.MONEY:
            return f"{format.money(used)} of {format.money(limit)}"
        case BudgetKey.TOKENS:
            return f"{format.tokens(used)} of {format.tokens(limit)}"
        case BudgetKey.HOURS:
            return f"{format.duration(used * 3600, units=1)} of {format.duration(limit * 3600)}"
        case _:
            return f"{used:.0f} of {limit:.0f}"


def per_hour(status: LenientJson, late: float) -> str:
    """What the run costs an hour; empty where that is not known."""
    money, clock = status.inner("spent").number("money"), (status.number("clock") or 0.0) + late
    if not money or clock < 60:
        return ""
    return f"{format.money(money * 3600 / clock)} an hour"
