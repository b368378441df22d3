"""Reads from status.json what the agents used and how much of each budget that is, and forecasts when it will be used
up. What is not known is never shown as 0: a sum that leaves something out is a lower bound."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from coral.fleet.reasons import BudgetKey
from coral.reading.lenient_json import LenientJson
from coral.reading.run_view import RunView
from coral.views import format
from coral.views.format import AT_LEAST

NOT_KNOWN = "use not known"
Unknown = Mapping[BudgetKey, frozenset[str]]  # names of agents
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
    partly = partly_known(view)
    return format.spending(view.status.inner("spent").data, partly) or (NOT_KNOWN if partly else "")


def unknown_use(status: LenientJson) -> Unknown:
    """Return, for tokens and for money, the names of the agents that may have used more than is counted."""
    return {key: frozenset(status.texts(f"{key}_unknown_of")) for key in (BudgetKey.TOKENS, BudgetKey.MONEY)}


def used_by(agent: LenientJson, unknown: Unknown, *, briefly: bool = False) -> str:
    """Return in words the tokens and the money that an agent used, `briefly` the money alone where any is known; empty
    if it uses no model. `agent`: its entry in status.json; `unknown`: what `unknown_use` returns."""
    spent, partly = agent.inner("spent"), [key for key, names in unknown.items() if agent.text("name") in names]
    money = {"money": spent.number("money")}
    return format.spending(money if briefly and money["money"] is not None else spent.data, partly) or (
        NOT_KNOWN if partly else ""
    )


def trials(status: LenientJson) -> str:
    """Return in words how many trials of numbers `budget.attempts` has counted, which are no attempts elsewhere; empty
    if there is none, or no such budget."""
    counted = [row.integer("used") for row in status.objects("budgets") if row.text("key") == BudgetKey.ATTEMPTS]
    attempts = status.integer("attempts")
    count = counted[0] - attempts if counted and counted[0] is not None and attempts is not None else 0
    return f"{format.plural(count, 'trial')} of numbers" if count > 0 else ""


def uses(status: LenientJson, late: float) -> list[BudgetUse]:
    """Return the use of each budget. `late`: the age of the status in seconds."""
    clock = (status.number("clock") or 0.0) + late
    partly = [key for key, names in unknown_use(status).items() if names]
    found = (_use(budget, clock, late, partly) for budget in status.objects("budgets"))
    return [use for use in found if use is not None]


def forecast(used: float, limit: float, clock: float) -> float | None:
    """Return in how many seconds the budget will be used up at the average rate so far; None if less than ENOUGH of it
    is used, or all of it. `clock`: seconds that the run took so far."""
    if clock <= 0 or limit <= 0 or not ENOUGH <= used / limit < 1:
        return None
    return (limit - used) * clock / used


def partly_known(view: RunView) -> list[BudgetKey]:
    """Return tokens, money, both or neither: those of which an agent may have used more than is counted. Both if
    status.json cannot be read and an agent can use a model."""
    return [key for key, names in unknown_use(view.status).items() if names or view.is_use_lost]


def _use(budget: LenientJson, clock: float, late: float, unknown: Collection[str]) -> BudgetUse | None:
    key, used, limit = budget.text("key", 20), budget.number("used"), budget.number("limit")
    if not limit or key not in set(BudgetKey):
        return None
    partly = key in unknown
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
    return f"{AT_LEAST if unknown_use(status)[BudgetKey.MONEY] else ''}{format.money(money * 3600 / clock)} an hour"
