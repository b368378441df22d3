"""The prices of tokens, for programs that report tokens only: the task's own, else those of the package genai-prices.

They are looked up when a supervisor starts, and stay the same until it ends. How much a budget can buy is estimated
with them before the run starts: these are rough figures, and never a reason to refuse the start.
"""

import importlib
from collections.abc import Callable, Iterator
from typing import Any

from coral.agent_setup.roster import Roster, account_of, is_paid, members_of
from coral.config.load import Config
from coral.config.model import Assignment
from coral.errors import CoralError
from coral.fleet.agent_state import Spent
from coral.fleet.agents.spending import cost
from coral.fleet.members import Prices
from coral.fleet.policy import MILLION
from coral.runtimes.model import Runtime
from coral.views.format import duration, money, tokens

LIMITED = ("money", "tokens")
SAMPLE = 1000  # tokens: where the price rises with the length of a request, the lowest price is taken
LIMIT_ADVICE = "set budget.money, budget.hours or budget.attempts; budget.none=true if no limit is meant"
FEWEST = 3  # a run with fewer attempts can hardly find anything
# Roughly the tokens of one attempt: reading the task and the last results, thinking, changing a file.
ATTEMPT = Spent(input=30_000, cached=300_000, output=6_000)
TYPICAL = Prices(input=3.0, cached=0.3, output=15.0)  # where nobody knows what the model costs


def prices_of(assignment: Assignment) -> Prices | None:
    """Return the prices for an assignment's model; None if neither the task nor the package states any."""
    stated = assignment.prices
    if stated is None:
        return look_up(assignment.model)
    cached = stated.input if stated.cached is None else stated.cached
    return Prices(input=stated.input, cached=cached, output=stated.output)


def unenforceable_budgets(config: Config, assignment: Assignment, runtime: Runtime) -> list[str]:
    """Return the task's budgets that cannot be enforced for agents of this runtime, because their program does not
    report its use; each with the reason."""
    if config.agents.assignments and not account_of(assignment, runtime):
        return []  # its agents spend nothing: the budget is for the others
    reports = runtime.reports if runtime.reports_interrupted else ""
    known = LIMITED if reports == "money" or (reports and prices_of(assignment)) else (reports,)
    budget = config.budget
    unknown = [name for name in LIMITED if name not in known]
    given = [f"budget.{name}" for name in unknown if getattr(budget, name) is not None]
    given += [f"budget.per_agent.{name}" for name in unknown if getattr(budget.per_agent, name) is not None]
    shortage = f"reports {reports} only: set agents.prices" if reports else "reports nothing of what it uses"
    if not runtime.reports_interrupted:
        shortage = "does not report what an interrupted step used; limit attempts or hours instead"
    return [f"{name} cannot be enforced: {runtime.name} {shortage}" for name in given]


def check_unlimited(config: Config, verb: str = "start") -> None:
    """Raise CoralError if agents would spend money without end. `verb`: what the user has asked for."""
    if endless := unlimited(config):
        raise CoralError(f"cannot {verb}: {endless}", LIMIT_ADVICE)


def check_enforceable(config: Config, roster: Roster, verb: str = "start") -> None:
    """Raise CoralError if a budget cannot be enforced; it names one. `verb`: what the user has asked for."""
    for assignment, runtime in roster.assignments:
        if budgets := unenforceable_budgets(config, assignment, runtime):
            raise CoralError(f"cannot {verb}: {budgets[0]}", "leave that budget out, or limit attempts or hours")


def look_up(model: str) -> Prices | None:
    """Return the prices of a model by its name, also as `provider/model`; None if the package does not know it, or is
    not installed."""
    try:
        genai: Any = importlib.import_module("genai_prices")
    except ImportError:
        return None
    provider, _, name = model.rpartition("/")
    try:
        return Prices(
            input=_rate(genai, provider, name, input_tokens=SAMPLE),
            cached=_rate(genai, provider, name, input_tokens=SAMPLE, cache_read_tokens=SAMPLE),
            output=_rate(genai, provider, name, output_tokens=SAMPLE),
        )
    except (LookupError, ValueError):
        return None


def _rate(genai: Any, provider: str, model: str, **tokens: int) -> float:
    price = genai.calc_price(genai.Usage(**tokens), model_ref=model, provider_id=provider or None)
    return float(price.total_price) * MILLION / SAMPLE


def unlimited(config: Config) -> str:
    """Return why the run would spend money without end; "" where it would not, or the task says that this is meant."""
    budget = config.budget
    limits = (budget.attempts, budget.hours, budget.money, budget.tokens, budget.plateau)
    own = budget.per_agent.model_dump().values()
    if budget.none or any(limit is not None for limit in (*limits, *own)):
        return ""
    paying: dict[str, int] = {}
    for assignment, runtime in Roster(config).assignments:
        if is_paid(assignment, runtime):
            paying[runtime.name] = paying.get(runtime.name, 0) + assignment.count
    agents = " and ".join(f"{count} of {name}" for name, count in paying.items())
    return f"no budget: agents ({agents}) spend money until you stop them" if paying else ""


def budget_warning(config: Config, grade_seconds: float) -> str:
    """Return a warning for the user who starts the run; "" if the budget is large enough. `grade_seconds`: how long
    grading the seed took."""
    found = "; ".join(budget_concerns(config, grade_seconds))
    return f"the budget may be too small: {found}" if found else ""


def budget_concerns(config: Config, grade_seconds: float) -> Iterator[str]:
    budget, agents = config.budget, len(members_of(config))
    enough = max(FEWEST, agents)
    if budget.attempts is not None and budget.attempts < agents:
        yield f"budget.attempts={budget.attempts} is less than one for each of {agents} agents"
    if budget.hours is not None and grade_seconds > 0:
        slots = config.grader.slots or 1  # on Ray too, for nobody knows yet how many it has room for
        grades = budget.hours * 3600 * slots / grade_seconds
        if grades < enough:
            took = duration(grade_seconds)
            yield f"budget.hours={budget.hours:g} is enough for {_attempts(grades)}, as grading the seed took {took}"
    price = rough_price(config)
    for name, limits, wanted in (("budget", budget, enough), ("budget.per_agent", budget.per_agent, FEWEST)):
        if limits.money is not None and price and limits.money < wanted * price:
            buys = _attempts(limits.money / price)
            yield f"{name}.money={limits.money:g} is enough for {buys}, at a rough {money(price)} each"
        if limits.tokens is not None and limits.tokens < wanted * ATTEMPT.tokens:
            buys = _attempts(limits.tokens / ATTEMPT.tokens)
            yield f"{name}.tokens={limits.tokens} is enough for {buys}, at a rough {tokens(ATTEMPT.tokens)} each"


def rough_price(config: Config, of: Callable[..., float | None] = min) -> float | None:
    """Return the rough price of one attempt in US dollars, of the agents that pay the least, or of those that pay the
    most with `max`; None where nobody pays."""
    paying = [assignment for assignment, runtime in Roster(config).assignments if is_paid(assignment, runtime)]
    return of((cost(ATTEMPT, prices_of(assignment) or TYPICAL) for assignment in paying), default=None)


def _attempts(count: float) -> str:
    return "less than one attempt" if count < 1 else f"about {int(count)} attempt{'s' if count >= 2 else ''}"
