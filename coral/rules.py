"""The rules a run is decided by, out of its task."""

from collections.abc import Mapping

from coral.config.agents import Driven
from coral.config.load import Config
from coral.crew import account_of, members
from coral.fleet.policy import Allowance, Rules
from coral.prices import prices_of

LAND_AT = (0.8, 0.95)
START_AGAIN = 3
JOBS = 3


def rules_of(config: Config, seed_commit: str, before: Rules | None = None) -> Rules:
    """`before`: those that a run which goes on was decided by."""
    grader, run, budget, fresh_after = config.grader, config.run, config.budget, config.session.fresh_after
    crew = members(config)
    return Rules(
        direction=grader.direction,
        noise=grader.noise,
        slots=grader.slots,
        grade_timeout=grader.timeout,
        start_again=START_AGAIN,
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
        accounts=_accounts(crew, before),
        stop_at_limit=config.agents.on_limit == "stop",
        prices={agent: prices for agent, part in crew.items() if (prices := prices_of(part)) is not None},
        budget_attempts=budget.attempts,
        budget_seconds=None if budget.hours is None else budget.hours * 3600,
        budget_money=budget.money,
        budget_tokens=budget.tokens,
        plateau=budget.plateau,
        own=Allowance(**budget.per_agent.model_dump()),
        land_at=LAND_AT,
        doubts_resets=True,
        research={agent: part.research * 60 for agent, part in crew.items() if part.research is not None},
        stagger=config.agents.stagger,
        jobs=JOBS,
        target=budget.target,
        ladder=True,
        no_progress=config.agents.no_progress or None,
        outage=config.agents.outage,
        retries=config.agents.retries,
        fresh_compactions=fresh_after.compactions,
        fresh_tokens=fresh_after.tokens,
        forgives=True,
        fair=True,
        recounts=True,
    )


def _accounts(crew: Mapping[str, Driven], before: Rules | None) -> dict[str, str]:
    """An account keeps the name that it had when the run began: by it is known what it waits for."""
    known = before.accounts if before is not None else {}
    found = {
        agent: part.runtime if not part.account and known.get(agent) == part.runtime else account_of(part)
        for agent, part in crew.items()
    }
    return {agent: account for agent, account in found.items() if account}
