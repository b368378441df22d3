"""Makes the parts of status.json that follow from the state of a fleet alone, so that they can also be made for an
earlier state.

The heartbeats in force are also written to files, for agents and people to read; Coral never reads these back.
"""

from enum import StrEnum
from pathlib import Path
from typing import Any, assert_never

from attempts.files import Witness
from attempts.noise import summary
from attempts.progress import Progress
from attempts.record import Attempt
from attempts.standing import Measured, Scoring, lead, noise_of, own_bests
from coral.fleet.agent_state import Agent, Phase, Spent
from coral.fleet.agents.spending import reports_nothing
from coral.fleet.agents.stalls import reason_of
from coral.fleet.attempts.confirmations import PAIR, is_affordable
from coral.fleet.messages import BEGIN
from coral.fleet.reasons import BudgetKey
from coral.fleet.rules import Rules, in_force
from coral.fleet.run_state import FLEET, OCCUPYING, AttemptStep, Fleet, Run
from coral.views.format import duration
from coral.views.reasons import reason_data
from heartbeats.folder import Folder
from heartbeats.heartbeat import Heartbeat
from heartbeats.trigger import Elapsed, Every, Stagnant

BATCH = 20  # files per check


class HeartbeatFiles:
    """The files in a run's heartbeats folder. The witness of each file is kept as the supervisor wrote it, so that a
    change by somebody else is noticed."""

    def __init__(self, root: Path) -> None:
        self._folder = Folder(root)
        self._witnesses: dict[str, Witness | None] = {}
        self._next: list[str] = []

    def write(self, fleet: Fleet, owner: str, clock: float) -> None:
        """Write the file of `owner`, which is an agent or the fleet."""
        holder = fleet.run if owner == FLEET else fleet.agents[owner]
        rows = [
            (heartbeat, due(heartbeat, holder.targets[heartbeat.name], holder.progress, clock)["in"])
            for heartbeat in fleet.heartbeats[owner]
        ]
        self._folder.write(owner, rows)
        self._witnesses[owner] = self._folder.witness(owner)

    def altered(self) -> list[str]:
        """Check the next BATCH files, and return the owners of those that somebody else has changed."""
        self._next = self._next or list(self._witnesses)
        batch, self._next = self._next[:BATCH], self._next[BATCH:]
        return [owner for owner in batch if self._folder.witness(owner) != self._witnesses[owner]]


class Unit(StrEnum):
    """The unit in which the distance to a heartbeat is measured."""

    SECONDS = "seconds"
    ATTEMPTS = "attempts"
    STAGNANT = "stagnant"  # attempts in a row without improvement


def due(heartbeat: Heartbeat, target: float, progress: Progress, clock: float) -> dict[str, Any]:
    """Return when a heartbeat is due, as status.json shows it: the amount left, its unit, and both in words. `target`:
    the clock or the count at which it is due."""
    match heartbeat.trigger:
        case Elapsed():
            return due_data(heartbeat.name, target - clock, Unit.SECONDS)
        case Every():
            left = due_data(heartbeat.name, round(target) - progress.evals, Unit.ATTEMPTS)
            return {**left, "after_each": heartbeat.trigger.n == 1}
        case Stagnant():
            return due_data(heartbeat.name, round(target) - progress.stagnant, Unit.STAGNANT)
        case _:
            assert_never(heartbeat.trigger)


def due_data(name: str, left: float, unit: Unit) -> dict[str, Any]:
    left = max(left, 0)
    if unit is Unit.SECONDS:
        left, text = round(left, 1), duration(left)
    elif unit is Unit.ATTEMPTS:
        text = "next attempt" if left <= 1 else f"{left} attempts"
    else:
        text = f"{left} without improvement"
    return {"name": name, "left": left, "unit": unit.value, "in": text}


def state_of(run: Run) -> dict[str, Any]:
    state = "stopped" if run.finished else "left" if run.detached_reason else "stopping" if run.is_ending else "running"
    return {"state": state, "reason": reason_data(run.finished or run.detached_reason or run.stopping or run.draining)}


def grading_of(fleet: Fleet, clock: float) -> dict[str, Any]:
    """Return the numbers of the attempts that are being graded (`running`), that wait for a slot (`queued`), and that
    are graded on the hold-out or wait for that (`holdout`); and whether the queue is paused or held."""
    steps = {number: pending.step for number, pending in fleet.pending.items() if not pending.is_holdout}
    return {
        "running": [number for number, step in steps.items() if step in OCCUPYING],
        "queued": [number for number, step in steps.items() if step in (AttemptStep.TAKING, AttemptStep.QUEUED)],
        "holdout": [pending.holdout_of for pending in fleet.pending.values() if pending.is_holdout],
        "paused": clock < fleet.run.queue_paused_until or bool(fleet.run.cluster_problem),
        "held": fleet.run.is_grading_held,
    }


def seed_score(fleet: Fleet, baseline: Attempt | None) -> float | None:
    """Return the median of the seed's grades, from which gains are measured; None before the seed is graded."""
    seed = fleet.standing.seed
    return seed.value if seed is not None else baseline.score if baseline is not None else None


def scores_of(fleet: Fleet, rules: Rules) -> dict[str, Any]:
    """Return the best and the lead, each with its first score and the median, mean, standard deviation and count of its
    grades; the noise, None if it is not known; and how many attempts failed, for which reasons."""
    standing, scoring = fleet.standing, rules.scoring
    noise = noise_of(standing, scoring)
    best, first = standing.best_measured, lead(standing, scoring)
    return {
        "best": best and measured_data(best),
        "lead": first and {**measured_data(first), "proven": first is best},
        "noise": noise.deviation if noise.freedom else None,
        "confirmations": fleet.run.confirmations,
        "confirms": is_affordable(fleet.run, rules, PAIR),
        "failed": fleet.run.failed,
        "failures": failures_of(fleet),
    }


def failures_of(fleet: Fleet) -> list[dict[str, Any]]:
    """Return each reason for which attempts of this epoch failed and the number of these attempts, the most frequent
    reason first."""
    groups = sorted(fleet.run.failures.values(), key=lambda group: -group.count)
    return [{"reason": group.reason, "count": group.count} for group in groups]


def measured_data(measured: Measured) -> dict[str, Any]:
    scores = measured.scores
    return {
        "number": measured.number,
        "agent": measured.agent,
        "title": measured.title,
        "score": scores[0],
        **summary(scores),
    }


def agents_of(fleet: Fleet, clock: float, scoring: Scoring) -> list[dict[str, Any]]:
    # Computed once for all agents: with hundreds of them this is most of the cost of status.json.
    common = _next_of(fleet, FLEET, fleet.run, clock)
    bests = own_bests(fleet.standing, scoring)
    return [_agent_of(fleet, agent, common, clock, bests.get(agent.name)) for agent in fleet.agents.values()]


def _agent_of(
    fleet: Fleet, agent: Agent, common: list[dict[str, Any]], clock: float, own: Measured | None
) -> dict[str, Any]:
    left = None if agent.research_until is None else agent.research_until - clock
    begin = [] if left is None else [due_data(BEGIN, left, Unit.SECONDS)]
    is_retired = agent.phase is Phase.RETIRED
    return {
        "name": agent.name,
        "phase": agent.phase.value,
        "reason": reason_data(agent.reason),
        "stall": reason_data(reason_of(agent.stall)),
        "launch": agent.launch,
        "session": agent.session,
        "attempts": agent.progress.evals,
        "best": None if own is None else own.value,
        "best_number": None if own is None else own.number,
        "stagnant": agent.progress.stagnant,
        "next": [] if is_retired else [*begin, *_next_of(fleet, agent.name, agent, clock), *common],
        "research": None if left is None else round(left, 1),
        "pending": [message.name for message in agent.pending_messages if not message.quiet],
        "jobs": [
            {"number": job.number, "what": job.title, "seconds": round(job.seconds(clock), 1)}
            for job in fleet.jobs.values()
            if job.agent == agent.name
        ],
        "spent": spent_of(agent.spent),
        "until": None if agent.deadline is None else round(agent.deadline - clock, 1),
    }


def used_by(fleet: Fleet, rules: Rules) -> dict[str, Any]:
    unknown = unknown_use(fleet, rules)
    names = {"tokens_unknown_of": unknown[BudgetKey.TOKENS], "money_unknown_of": unknown[BudgetKey.MONEY]}
    return {"spent": spent_of(fleet.run.spent), **names}


def budgets_of(fleet: Fleet, rules: Rules, clock: float) -> list[dict[str, Any]]:
    """Return for each of the run's budgets that can be used up its limit and how much is used, in the unit of
    task.yaml. What is used is None if nothing is known of it."""
    unknown = unknown_use(fleet, rules)
    spent, rules = fleet.run.spent, in_force(rules, fleet.run)
    found: dict[BudgetKey, tuple[float | None, float | None]] = {
        BudgetKey.ATTEMPTS: (rules.budget_attempts, fleet.run.progress.graded),
        BudgetKey.HOURS: (None if rules.budget_seconds is None else rules.budget_seconds / 3600, clock / 3600),
        BudgetKey.MONEY: (rules.budget_money, spent.money or (None if unknown[BudgetKey.MONEY] else 0)),
        BudgetKey.TOKENS: (rules.budget_tokens, spent.tokens or (None if unknown[BudgetKey.TOKENS] else 0)),
    }
    return [
        {"key": key.value, "limit": limit, "used": None if used is None else round(used, 6)}
        for key, (limit, used) in found.items()
        if limit is not None
    ]


def unknown_use(fleet: Fleet, rules: Rules) -> dict[BudgetKey, list[str]]:
    """Return, for tokens and for money, the names of the agents that have used more than is counted, or may have. The
    sums over all agents are lower bounds if there is one."""
    rules = in_force(rules, fleet.run)
    unknown: dict[BudgetKey, list[str]] = {BudgetKey.TOKENS: [], BudgetKey.MONEY: []}
    for agent in fleet.agents.values():
        account = rules.accounts.get(agent.name, "")
        is_lost = agent.meter.is_use_lost or reports_nothing(agent, fleet.run.members.get(agent.name), account)
        has_used, spent = bool(account and agent.launch), agent.spent
        if is_lost or (has_used and not _has_tokens(spent)):
            unknown[BudgetKey.TOKENS].append(agent.name)
        if is_lost or agent.meter.is_money_partial or (has_used and spent.money is None):
            unknown[BudgetKey.MONEY].append(agent.name)
    return unknown


def spent_of(spent: Spent) -> dict[str, Any]:
    """Return the use for status.json. The numbers of tokens are None if none were reported: the agent may have used
    some."""
    money = None if spent.money is None else round(spent.money, 6)
    tokens = {"tokens": spent.tokens, "input": spent.input, "cached": spent.cached, "output": spent.output}
    return {**(tokens if _has_tokens(spent) else dict.fromkeys(tokens)), "money": money}


def _has_tokens(spent: Spent) -> bool:
    return bool(spent.tokens or spent.cached)


def _next_of(fleet: Fleet, owner: str, holder: Agent | Run, clock: float) -> list[dict[str, Any]]:
    heartbeats = fleet.heartbeats.get(owner, ())
    return [due(heartbeat, holder.targets[heartbeat.name], holder.progress, clock) for heartbeat in heartbeats]
