"""The rules a run is decided by, out of its task."""

from coral.config.load import Config
from coral.fleet.policy import Allowance, Rules
from coral.prices import prices_of

PAYING_NOBODY = ("native", "scripted")


def rules_of(config: Config, seed_commit: str) -> Rules:
    grader, run, budget = config.grader, config.run, config.budget
    return Rules(
        direction=grader.direction,
        noise=grader.noise,
        slots=grader.slots,
        grade_timeout=grader.timeout,
        seed_commit=seed_commit,
        heartbeats=config.heartbeats,
        stall=config.agents.stall,
        interrupt_grace=run.interrupt_grace,
        terminate_grace=run.terminate_grace,
        start_grace=run.start_grace,
        max_defer=run.max_defer,
        backoff=run.backoff,
        backoff_max=run.backoff_max,
        breaker_crashes=run.breaker_crashes,
        breaker_window=run.breaker_window,
        breaker_pause=run.breaker_pause,
        accounts=_accounts(config),
        stop_at_limit=config.agents.on_limit == "stop",
        prices=prices_of(config),
        budget_attempts=budget.attempts,
        budget_seconds=None if budget.hours is None else budget.hours * 3600,
        budget_money=budget.money,
        budget_tokens=budget.tokens,
        plateau=budget.plateau,
        own=Allowance(**budget.per_agent.model_dump()),
        target=budget.target,
    )


def agent_names(config: Config) -> tuple[str, ...]:
    return tuple(f"agent-{number}" for number in range(1, config.agents.count + 1))


def _accounts(config: Config) -> dict[str, str]:
    """Agents that come with Coral spend nobody's usage; all others share what their program's login has."""
    agents = config.agents
    account = agents.account or ("" if agents.runtime in PAYING_NOBODY else agents.runtime)
    return dict.fromkeys(agent_names(config), account) if account else {}
