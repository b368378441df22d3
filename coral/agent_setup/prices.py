"""What tokens cost, for programs that do not tell it: the task's own figures, else those of genai-prices, if installed.

They are looked up when a supervisor begins, and hold as long as it does.
"""

import importlib
from typing import Any

from coral.agent_setup.roster import account_of
from coral.config.agents import Driven
from coral.config.load import Config
from coral.fleet.policy import MILLION
from coral.fleet.rules import Prices
from coral.runtimes.model import Runtime

WATCHED = ("money", "tokens")
SAMPLE = 1000  # tokens: prices that rise with the length of a request are taken at their beginning


def prices_of(part: Driven) -> Prices | None:
    stated = part.prices
    if stated is None:
        return looked_up(part.model)
    cached = stated.input if stated.cached is None else stated.cached
    return Prices(input=stated.input, cached=cached, output=stated.output)


def unkept(config: Config, part: Driven, runtime: Runtime) -> list[str]:
    """The budgets that nobody could keep, because the agents' program does not say what it uses."""
    if config.agents.assignments and not account_of(part, runtime):
        return []  # it spends nothing: the budget is that of the others
    reports = runtime.reports
    kept = WATCHED if reports == "money" or (reports and prices_of(part)) else (reports,)
    budget = config.budget
    given = [f"budget.{name}" for name in WATCHED if name not in kept and getattr(budget, name) is not None]
    given += [
        f"budget.per_agent.{name}"
        for name in WATCHED
        if name not in kept and getattr(budget.per_agent, name) is not None
    ]
    why = f"{runtime.name} tells {reports or 'nothing of what it uses'}"
    why += ": say in agents.prices what they cost" if reports else ""
    return [f"{name} cannot be kept: {why}" for name in given]


def looked_up(model: str) -> Prices | None:
    """By the name of a model, also as `provider/model`; None where nobody knows it."""
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
    found = genai.calc_price(genai.Usage(**tokens), model_ref=model, provider_id=provider or None)
    return float(found.total_price) * MILLION / SAMPLE
