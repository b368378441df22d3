"""The prices of tokens, for programs that report tokens only: the task's own, else those of the package genai-prices.

They are looked up when a supervisor starts, and hold until it ends.
"""

import importlib
from typing import Any

from coral.agent_setup.roster import account_of
from coral.config.load import Config
from coral.config.model import Assignment
from coral.fleet.policy import MILLION
from coral.fleet.rules import Prices
from coral.runtimes.model import Runtime

LIMITED = ("money", "tokens")
SAMPLE = 1000  # tokens: where the price rises with the length of a request, the lowest price is taken


def prices_of(assignment: Assignment) -> Prices | None:
    """None if nobody states a price."""
    stated = assignment.prices
    if stated is None:
        return look_up(assignment.model)
    cached = stated.input if stated.cached is None else stated.cached
    return Prices(input=stated.input, cached=cached, output=stated.output)


def unenforceable_budgets(config: Config, assignment: Assignment, runtime: Runtime) -> list[str]:
    """The task's budgets that cannot be enforced, because the agents' program does not report its use."""
    if config.agents.assignments and not account_of(assignment, runtime):
        return []  # its agents spend nothing: the budget is for the others
    reports = runtime.reports
    known = LIMITED if reports == "money" or (reports and prices_of(assignment)) else (reports,)
    budget = config.budget
    unknown = [name for name in LIMITED if name not in known]
    given = [f"budget.{name}" for name in unknown if getattr(budget, name) is not None]
    given += [f"budget.per_agent.{name}" for name in unknown if getattr(budget.per_agent, name) is not None]
    shortage = f"reports {reports} only: set agents.prices" if reports else "reports nothing of what it uses"
    return [f"{name} cannot be enforced: {runtime.name} {shortage}" for name in given]


def look_up(model: str) -> Prices | None:
    """By the name of a model, also as `provider/model`; None if the package does not know it, or is not there."""
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
