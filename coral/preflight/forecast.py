"""Forecasts what a run will cost: from the last runs of the task with the same programs, else from rough prices."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from attempts.files import entries, read_bytes
from coral.agent_setup.prices import ATTEMPT, rough_price
from coral.agent_setup.roster import Roster, is_paid, members_of
from coral.config.load import Config
from coral.fleet.policy import MILLION
from coral.views.format import money, plural, tokens

GUESS = "a rough guess"
RUNS = 5  # the last ones that are looked at
LARGEST = 20_000_000  # bytes of a status file


@dataclass(frozen=True, slots=True)
class CostOfRun:
    """What one past run used: US dollars, attempts, tokens without cache reads (0 if they are not known), and the hours
    of all its agents together."""

    dollars: float
    attempts: int
    tokens: int
    hours: float


@dataclass(frozen=True, slots=True)
class Forecast:
    """The expected cost of a run. `dollars`: the cost by the time that one of its budgets ends it; None if it cannot be
    known. `text`: the same in words, with the basis of the estimate."""

    dollars: float | None
    text: str


def forecast(config: Config, runs: Path) -> Forecast | None:
    """Forecast the cost of a run of this task; None if no agent costs money. `runs`: the folder of all runs."""
    paid = {(part.runtime, part.model) for part, runtime in Roster(config).assignments if is_paid(part, runtime)}
    if not paid:
        return None
    past = list(islice(_past_runs(runs / config.slug, paid), RUNS))
    found = dict(_limits(config, past))
    if not found:
        return Forecast(None, "nobody knows what it will cost: no budget limits it in money")
    reckoned = min(found, key=lambda text: found[text])
    how_sure = "at most" if reckoned.startswith("budget.") else "about"
    return Forecast(found[reckoned], f"{how_sure} {money(found[reckoned])}: {reckoned}")


def _limits(config: Config, past: list[CostOfRun]) -> Iterator[tuple[str, float]]:
    """Yield for each budget the basis of its estimate in words, and how many dollars the run can spend before that
    budget ends it."""
    budget, own, count = config.budget, config.budget.per_agent, len(members_of(config))
    if budget.money is not None:
        yield "budget.money", budget.money
    if own.money is not None:
        yield f"budget.per_agent.money for {plural(count, 'agent')}", own.money * count
    parts = ("dollars", "attempts", "tokens", "hours")
    spent, attempts, used, hours = (sum(getattr(run, part) for run in past) for part in parts)
    basis = (
        f"as in the last {plural(len(past), 'run')} of this task"
        if len(past) > 1
        else "as in the last run of this task"
    )
    is_in_money = budget.money is not None or own.money is not None
    guess = None if is_in_money else rough_price(config, max)
    if most := _least(budget.attempts, own.attempts, count):
        price, source = (spent / attempts, basis) if attempts else (guess, GUESS)
        if price:
            yield f"{plural(most, 'attempt')} at {money(price)}, {source}", most * price
    if most := _least(budget.tokens, own.tokens, count):
        has_tokens = used and all(run.tokens for run in past)
        price, source = (spent / used, basis) if has_tokens else (guess and guess / ATTEMPT.tokens, GUESS)
        if price:
            yield f"{tokens(most)} tokens at {money(price * MILLION)} a million, {source}", most * price
    if budget.hours is not None and hours:
        hourly = spent / hours
        yield (
            f"{budget.hours:g} hours of {plural(count, 'agent')} at {money(hourly)}, {basis}",
            budget.hours * count * hourly,
        )


def _least(limit: int | None, own: int | None, agents: int) -> int | None:
    """Return the smaller of the run's limit and the sum of the limits of its agents; None if there is neither. `own`:
    the limit of each agent."""
    return min((most for most in (limit, None if own is None else own * agents) if most is not None), default=None)


def _past_runs(folder: Path, paid: set[tuple[str, str]]) -> Iterator[CostOfRun]:
    """Yield the past runs in `folder` that used all of these programs and models, newest first. A run whose cost is
    unknown or only a lower bound is left out. If its number of tokens is, that is 0."""
    for root in sorted(entries(folder, lambda entry: entry.is_dir()), reverse=True):
        try:
            status = json.loads(read_bytes(root / "status.json", LARGEST))
            agents, dollars = status["agents"], float(status["spent"]["money"] or 0.0)
            hours = float(status["clock"]) / 3600 * len(agents)
            known = 0 if status.get("tokens_unknown_of") else int(status["spent"]["tokens"] or 0)
            run = CostOfRun(dollars, int(status["attempts"]), known, hours)
            used = {(agent["runtime"], agent["model"]) for agent in agents}
            is_partly_known = bool(status.get("money_unknown_of"))
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            continue
        if run.dollars > 0 and paid <= used and not is_partly_known:
            yield run
