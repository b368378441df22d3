"""Derives the rules of a run from its task."""

from collections.abc import Mapping

from attempts.standing import Scoring
from coral.agent_setup.prices import prices_of
from coral.agent_setup.roster import Roster
from coral.config.load import Config
from coral.fleet.policy import TOOL_ACTIVITY
from coral.fleet.rules import Allowance, Rules
from coral.grading.remote import grows, longest_wait

TOOL_STALLS = 1.5  # tests and downloads are silent for longer than models


def rules_of(config: Config, roster: Roster, seed_commit: str) -> Rules:
    grader, budget, fresh_after = config.grader, config.budget, config.session.fresh_after
    wait = longest_wait(grader)
    assignments = {agent: roster.assignment(agent) for agent in roster}
    return Rules(
        agents=tuple(roster),
        scoring=Scoring(direction=grader.direction, noise=grader.noise_setting),
        confirm_share=grader.confirm,
        slots=grader.most_slots,
        follows_cluster=grader.executor == "ray",
        cluster_grows=grows(grader),
        grade_timeout=grader.timeout + wait,
        holdout_timeout=None if (other := config.holdout_grader) is None else other.timeout + longest_wait(other),
        seed_commit=seed_commit,
        heartbeats=config.heartbeats,
        stall=config.agents.stall,
        ttl=_ttl(config),
        **config.run.model_dump(exclude={"poll_seconds", "watch"}),  # these two are how the loop waits, and no rules
        accounts={agent: account for agent in roster if (account := roster.account(agent))},
        stop_at_limit=config.agents.on_limit == "stop",
        prices={
            agent: prices for agent, assignment in assignments.items() if (prices := prices_of(assignment)) is not None
        },
        budget_attempts=budget.attempts,
        budget_seconds=None if budget.hours is None else budget.hours * 3600,
        budget_money=budget.money,
        budget_tokens=budget.tokens,
        plateau=budget.plateau,
        own=Allowance(**budget.per_agent.model_dump()),
        research={
            agent: assignment.research * 60
            for agent, assignment in assignments.items()
            if assignment.research is not None
        },
        stagger=config.agents.stagger,
        target=budget.target,
        no_progress=config.agents.no_progress or None,
        outage=config.agents.outage,
        retries=config.agents.retries,
        fresh_compactions=fresh_after.compactions,
        fresh_tokens=fresh_after.tokens,
    )


def _ttl(config: Config) -> Mapping[str, float]:
    """Return the phases that have a ttl of their own, in seconds."""
    given: dict[str, float] = config.agents.ttl.model_dump(exclude_none=True)
    return {TOOL_ACTIVITY: TOOL_STALLS * config.agents.stall, **given}
