"""What tokens cost, for programs that do not tell it: the task's own figures, else those of genai-prices, if installed.

They are looked up when a supervisor begins, and hold as long as it does.
"""

import importlib
from typing import Any

from coral.config.load import Config
from coral.fleet.policy import MILLION, Prices

SAMPLE = 1000  # tokens: prices that rise with the length of a request are taken at their beginning


def prices_of(config: Config) -> Prices | None:
    stated = config.agents.prices
    if stated is None:
        return looked_up(config.agents.model)
    cached = stated.input if stated.cached is None else stated.cached
    return Prices(input=stated.input, cached=cached, output=stated.output)


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
