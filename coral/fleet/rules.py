"""The rules by which a run is decided: what its task says, in seconds where it is a time."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from attempts.standing import Scoring
from coral.fleet.members import Member, Prices
from coral.fleet.run_state import Run
from heartbeats.heartbeat import BUILT_IN, Heartbeat, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """The budgets of each agent; None is without limit."""

    attempts: int | None = None
    money: float | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of one run: what its task says. Times are in seconds; a limit of None is no limit."""

    agents: tuple[str, ...] = ()  # those that the task has now; empty: those that the run began with
    scoring: Scoring = field(default_factory=Scoring)
    confirm_share: float = 0.2  # how many confirmations there may be for each attempt; 0: none
    slots: int = 1
    follows_cluster: bool = False  # no more grades are in flight than the cluster has room for ...
    cluster_grows: bool = False  # ... but some are where it has none, because it adds nodes for what waits
    grade_timeout: float = 300.0
    holdout_timeout: float | None = None  # of a grade on the hold-out; None: there is no hold-out
    seed_commit: str = ""  # graded as a probe, to learn whether the grader or a candidate is at fault
    heartbeats: tuple[Heartbeat, ...] = BUILT_IN
    stall: float = 1200.0  # of silence, in every phase of a launch that `ttl` does not name
    ttl: Mapping[str, float] = field(default_factory=dict)  # by phase: of silence
    interrupt_grace: float = 10.0
    terminate_grace: float = 5.0
    start_grace: float = 60.0  # a launch without output is not interrupted earlier
    max_defer: float = 600.0  # how long a message may wait for a good moment
    backoff: float = 5.0
    backoff_max: float = 600.0
    breaker_crashes: int = 6  # within the window; then nothing starts for the pause
    breaker_window: float = 60.0
    breaker_pause: float = 300.0
    accounts: Mapping[str, str] = field(default_factory=dict)  # by agent; one that has none meets no shared limit
    stop_at_limit: bool = False
    prices: Mapping[str, Prices] = field(default_factory=dict)  # by agent, where its program reports tokens only
    budget_attempts: int | None = None
    budget_seconds: float | None = None
    budget_money: float | None = None
    budget_tokens: int | None = None
    plateau: int | None = None  # attempts in a row without a new best of the fleet
    own: Allowance = field(default_factory=Allowance)
    research: Mapping[str, float] = field(default_factory=dict)  # by agent: for how long it only reads and thinks first
    stagger: float = 0.05  # between the starts of two agents: of a new run, after a resume, after the breaker's pause
    target: float | None = None
    no_progress: float | None = None  # how long an agent may work without an edit or a submission
    outage: float = 900.0  # how long a program may do nothing but retry its model ...
    retries: int = 30  # ... and how many times in a row
    fresh_compactions: int | None = None  # a conversation that was compacted so often is not resumed ...
    fresh_tokens: int | None = None  # ... nor one that has used so many tokens

    def ttl_of(self, phase: str) -> float:
        """Return for how many seconds a launch may be silent in this phase; a phase is the activity that its output
        reported last."""
        return self.ttl.get(phase, self.stall)

    def defaults(self, scope: Scope) -> tuple[Heartbeat, ...]:
        """Return the heartbeats that a new owner of this scope starts with."""
        return tuple(heartbeat for heartbeat in self.heartbeats if heartbeat.scope is scope)


BUDGETS = {  # the keys of `budget` in task.yaml that can be set while the run goes on, and the rule of each
    "attempts": "budget_attempts",
    "hours": "budget_seconds",
    "money": "budget_money",
    "tokens": "budget_tokens",
    "plateau": "plateau",
    "target": "target",
}
OWN_BUDGETS = {f"per_agent.{name}": name for name in ("attempts", "money", "tokens")}


def budget_of(rules: Rules, key: str) -> float | None:
    """Return a budget in the unit of task.yaml; None is without limit."""
    limit: float | None = getattr(rules.own, OWN_BUDGETS[key]) if key in OWN_BUDGETS else getattr(rules, BUDGETS[key])
    return limit / 3600 if key == "hours" and limit is not None else limit


def with_budget(rules: Rules, key: str, limit: float | None) -> Rules:
    # `Any`: what the fields of the records hold; their names stand in the tables above.
    changed: dict[str, Any] = {OWN_BUDGETS.get(key) or BUDGETS[key]: limit}
    if key in OWN_BUDGETS:
        return replace(rules, own=replace(rules.own, **changed))
    if key == "hours" and limit is not None:
        changed = {BUDGETS[key]: limit * 3600}
    return replace(rules, **changed)


def in_force(rules: Rules, run: Run) -> Rules:
    """Return the rules with the budgets that the operator has set since, and the agents that the operator has added or
    moved. `rules`: those of the task."""
    for key, change in run.budgets.items():
        if budget_of(rules, key) == change.base:
            rules = with_budget(rules, key, change.limit)
    return _with_members(rules, run.members) if run.members else rules


def _with_members(rules: Rules, members: Mapping[str, Member]) -> Rules:
    added = (name for name, member in members.items() if member.added and name not in rules.agents)
    accounts = {name: account for name, account in rules.accounts.items() if name not in members}
    prices = {name: stated for name, stated in rules.prices.items() if name not in members}
    return replace(
        rules,
        agents=(*rules.agents, *added) if rules.agents else (),
        accounts=accounts | {name: member.account for name, member in members.items() if member.account},
        prices=prices | {name: member.prices for name, member in members.items() if member.prices is not None},
    )
