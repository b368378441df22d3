"""Estimates what a budget can buy before it is spent: rough figures, and never a reason to refuse a start."""

from collections.abc import Iterator

from coral.agent_setup.prices import prices_of
from coral.agent_setup.roster import Roster, account_of, members_of
from coral.config.load import Config
from coral.fleet.agent_state import Spent
from coral.fleet.agents.spending import cost
from coral.fleet.rules import Prices
from coral.views.format import duration, money, tokens

FEWEST = 3  # attempts from which anything can be learned
# Roughly the tokens of one attempt: reading the task and the last results, thinking, changing a file.
ATTEMPT = Spent(input=30_000, cached=300_000, output=6_000)
TYPICAL = Prices(input=3.0, cached=0.3, output=15.0)  # where nobody knows what the model costs


def warning(config: Config, grade_seconds: float) -> str:
    """A line for whoever starts the run; empty if the budget will do. `grade_seconds`: what grading the seed took."""
    found = "; ".join(concerns(config, grade_seconds))
    return f"the budget may be too small: {found}" if found else ""


def concerns(config: Config, grade_seconds: float) -> Iterator[str]:
    budget, agents = config.budget, len(members_of(config))
    enough = max(FEWEST, agents)
    if budget.attempts is not None and budget.attempts < agents:
        yield f"budget.attempts={budget.attempts} is less than one for each of {agents} agents"
    if budget.hours is not None and grade_seconds > 0:
        grades = budget.hours * 3600 * config.grader.slots / grade_seconds
        if grades < enough:
            took = duration(grade_seconds)
            yield f"budget.hours={budget.hours:g} is enough for {_attempts(grades)}, as grading the seed took {took}"
    price = _price(config)
    for name, limits, wanted in (("budget", budget, enough), ("budget.per_agent", budget.per_agent, FEWEST)):
        if limits.money is not None and price and limits.money < wanted * price:
            buys = _attempts(limits.money / price)
            yield f"{name}.money={limits.money:g} is enough for {buys}, at a rough {money(price)} each"
        if limits.tokens is not None and limits.tokens < wanted * ATTEMPT.tokens:
            buys = _attempts(limits.tokens / ATTEMPT.tokens)
            yield f"{name}.tokens={limits.tokens} is enough for {buys}, at a rough {tokens(ATTEMPT.tokens)} each"


def _price(config: Config) -> float | None:
    """What one attempt costs the agents that pay the least; None where nobody pays."""
    paying = [assignment for assignment, runtime in Roster(config).assignments if account_of(assignment, runtime)]
    return min((cost(ATTEMPT, prices_of(assignment) or TYPICAL) for assignment in paying), default=None)


def _attempts(count: float) -> str:
    return "less than one attempt" if count < 1 else f"about {int(count)} attempt{'s' if count >= 2 else ''}"
