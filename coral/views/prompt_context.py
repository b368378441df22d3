"""Gathers the data for the templates of prompts: the run as plain dictionaries, so that a template can call no
method."""

import math
import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from attempts.index import query
from attempts.index.index import Index
from attempts.noise import mean
from attempts.record import Attempt, Kind, Verdict, to_dict
from attempts.standing import Measured, lead, noise_of, own_best, ranked
from attempts.store import Store
from coral.agent_setup.roster import place_of
from coral.fleet.agent_state import Agent, Spent
from coral.fleet.attempts.confirmations import PAIR, is_affordable
from coral.fleet.reasons import BudgetKey, Finding
from coral.fleet.rules import Allowance, Rules, in_force
from coral.fleet.run_state import FLEET, Fleet
from coral.grading.kinds import kind_of
from coral.processes.cores import usable_cores
from coral.supervisor.context import RunContext
from coral.views import checkpoint
from coral.views.evidence import Records, check_evidence
from coral.views.fleet_view import failures_of, seed_score, spent_of, unknown_use
from coral.views.format import duration, money, plural, some_of, spending, tokens
from coral.views.scale import Scale
from workspace.claims import LATEST, claims_of
from workspace.knowledge import list_skills
from workspace.notes import Note, earlier_notes, latest_synthesis, recent_notes

SHOWN_OF_ATTEMPTS = ("number", "agent", "title", "score", "verdict", "reason", "feedback", "metrics", "commit")
TOP = 10  # attempts of the leaderboard
FAILURES_SHOWN = 5  # kinds of failures
NOTES_SHOWN = 20
EARLIER_SHOWN = 12  # notes of earlier runs
DISPUTED_SHOWN = 3  # figures of one note
_cores = cache(usable_cores)  # finding them reads several files, and each interrupt waits for its prompt


def context_of(run_context: RunContext, fleet: Fleet, agent: str, last_seen: int, clock: float) -> dict[str, Any]:
    """Return the data for every template. `last_seen`: results published after it are new to the agent. `clock`: the
    run's clock."""
    shared, scale, epoch = _shared(run_context, agent), scale_of(run_context, fleet, agent), fleet.run.epoch
    notes = recent_notes(shared, LATEST)
    results = [attempt_data(attempt, scale, epoch) for attempt in run_context.results.since(agent, last_seen)]
    return {
        **task_context(run_context, agent),
        "checkpoint": {
            **checkpoint.checklist_of(shared),
            **checkpoint.snapshot(fleet, agent, _held(run_context, fleet, agent), notes, scale),
        },
        "run": {"id": run_context.layout.root.name, "task": run_context.config.task.name, "elapsed": duration(clock)},
        "baseline": {**_baseline(run_context), "score": seed_score(fleet, run_context.results.baseline)},
        "attempt": results[-1] if results else None,
        "results": results,
        "own": _own(run_context, fleet, agent, scale),
        "fleet": _fleet(run_context, fleet, agent),
        "budget": budget(run_context.rules, fleet, clock, agent),
        "heartbeats": _heartbeats(fleet, agent),
        "stall": _stall(fleet.agents[agent]),
        "jobs": _jobs(fleet, agent, clock),
        "notes": _notes(run_context, fleet, notes[:NOTES_SHOWN]),
        "claims": [asdict(claim) for claim in claims_of(notes)],
        "synthesis": _synthesis(shared),
        "earlier": [{"name": note.name, "title": note.title} for note in earlier_notes(shared, EARLIER_SHOWN)],
        "skills": [
            {"name": skill.name, "description": skill.description} for skill in list_skills(shared)[:NOTES_SHOWN]
        ],
        "research": research_left(fleet.agents[agent], clock),
    }


def research_left(agent: Agent, clock: float) -> str:
    """Return in words how much longer the agent may only read and think; empty if it may submit attempts."""
    return "" if agent.research_until is None else duration(max(agent.research_until - clock, 0.0))


def scale_of(run_context: RunContext, fleet: Fleet, agent: str) -> Scale:
    """Return the scale by which the agent is told differences of scores: the gain so far, the noise and the seed."""
    seed, first = fleet.standing.seed, _lead_for(run_context, fleet, agent)
    scoring = run_context.rules.scoring
    gain = scoring.gain(first.value, seed.value) if first is not None and seed is not None else 0.0
    return Scale(gain, noise_of(fleet.standing, scoring).deviation, seed.number if seed is not None else 0)


def attempt_data(attempt: Attempt, scale: Scale, epoch: int) -> dict[str, Any]:
    """Return an attempt for templates. `earlier`: whether it is of an earlier epoch, so that its score cannot be
    compared with those of `epoch`. `copy_of`: the attempt that was graded before with the same files, if any."""
    plain, earlier = to_dict(attempt), attempt.epoch < epoch
    shown = {name: plain[name] for name in SHOWN_OF_ATTEMPTS}
    is_copy = attempt.verdict is Verdict.TIED and attempt.delta is None and not earlier
    copy_of = attempt.against if is_copy else None
    return {**shown, "delta": "" if earlier else scale.of(attempt), "earlier": earlier, "copy_of": copy_of}


def budget(rules: Rules, fleet: Fleet, clock: float, agent: str = "") -> dict[str, Any]:
    """Return in words what is left of the run's budget; with `agent` also what is left of that agent's own budget."""
    run, lines, unknown = fleet.run, [], unknown_use(fleet, rules)
    rules = in_force(rules, run)
    why = {key: f" (what {some_of(names)} used is not known)" if names else "" for key, names in unknown.items()}
    if rules.budget_attempts is not None:
        left, most = max(rules.budget_attempts - fleet.run.progress.graded, 0), rules.budget_attempts
        lines.append(f"{left} of {most} attempts {'is' if left == 1 else 'are'} left to the fleet")
    if rules.budget_seconds is not None:
        left_seconds = max(rules.budget_seconds - clock, 0)
        lines.append(f"{duration(left_seconds)} of {duration(rules.budget_seconds)} are left")
    if rules.budget_money is not None:
        lines.append(_at_most(_money_left(run.spent, rules.budget_money), why[BudgetKey.MONEY]))
    if rules.budget_tokens is not None:
        lines.append(_at_most(f"{_tokens_left(run.spent, rules.budget_tokens)} tokens", why[BudgetKey.TOKENS]))
    if agent:
        lines += _own_budget(rules.own, fleet.agents[agent], [key for key in unknown if agent in unknown[key]])
    if rules.plateau is not None:
        since = run.progress.stagnant
        lines.append(f"the run ends after {plural(rules.plateau, 'attempt')} without a new best ({since} so far)")
    if rules.target is not None:
        lines.append(f"the run ends when the best, which is proven, reaches {rules.target:.10g}")
    partly = [key for key, names in unknown.items() if names]
    used = "" if rules.budget_money or rules.budget_tokens else spending(spent_of(run.spent), partly)
    return {"text": "; ".join([*lines, *([f"{used} used so far"] if used else [])]), "lines": lines}


def _at_most(left: str, why: str) -> str:
    """Return in words what is left to the fleet. `why`: the reason why it may be less; empty if it is exact."""
    return f"{'at most ' if why else ''}{left} are left to the fleet{why}"


def _own_budget(own: Allowance, agent: Agent, unknown: Collection[BudgetKey]) -> list[str]:
    """Return in words what is left of an agent's own budget. `unknown`: money, tokens or both, if the agent may have
    used more than is counted."""
    lines, most = [], {key: "at most " if key in unknown else "" for key in BudgetKey}
    if own.attempts is not None:
        left = max(own.attempts - agent.progress.graded, 0)
        lines.append(f"{left} of your own {own.attempts} attempts {'is' if left == 1 else 'are'} left")
    if own.money is not None:
        lines.append(f"{most[BudgetKey.MONEY]}{_money_left(agent.spent, own.money)} of your own are left")
    if own.tokens is not None:
        lines.append(f"{most[BudgetKey.TOKENS]}{_tokens_left(agent.spent, own.tokens)} tokens of your own are left")
    return lines


def _money_left(spent: Spent, limit: float) -> str:
    return f"{money(max(limit - (spent.money or 0.0), 0.0))} of {money(limit)}"


def _tokens_left(spent: Spent, limit: int) -> str:
    return f"{tokens(max(limit - spent.tokens, 0))} of {tokens(limit)}"


def task_context(run_context: RunContext, agent: str) -> dict[str, Any]:
    config = run_context.config
    is_placed = place_of(config.agents, run_context.roster.assignment(agent)) is not None
    return {
        "agent": {"name": agent, "placed": is_placed},
        "run": {"id": run_context.layout.root.name, "task": config.task.name, "elapsed": ""},
        "task": {
            "name": config.task.name,
            "description": config.task.description,
            "tips": config.task.tips,
            "direction": config.grader.direction.value,
            "editable": list(config.task.editable),
            "check": config.task.check,
        },
        "baseline": _baseline(run_context),
        "grading": _grading(run_context),
        "paths": {
            "shared": os.path.relpath(_shared(run_context, agent), run_context.layout.clone(agent)),
            "notes": ".shared/notes",
            "skills": ".shared/skills",
            "checklist": ".shared/HEARTBEAT.md",
            "prompts": os.path.relpath(run_context.layout.logs(agent), run_context.layout.clone(agent)),
        },
        "budget": {"text": "", "lines": []},
    }


def _baseline(run_context: RunContext) -> dict[str, Any]:
    """Return the number and the score of the seed's record."""
    baseline = run_context.results.baseline
    return {"number": baseline.number if baseline else 0, "score": baseline.score if baseline else None}


def _grading(run_context: RunContext) -> dict[str, Any]:
    """Return how long a grade takes and the Python that runs it, each empty if it is not known; and the number of
    cores."""
    grader, seconds = run_context.config.grader, run_context.results.usual_seconds()
    return {
        "usual": "" if seconds is None else duration(seconds),
        "timeout": duration(grader.timeout),
        "python": "" if grader.setup else kind_of(grader).python,
        "cores": _cores(),
    }


def _notes(run_context: RunContext, fleet: Fleet, notes: Sequence[Note]) -> list[dict[str, Any]]:
    """Return the latest notes that are not superseded. `disputed`: figures in a note that the records contradict."""
    held = [note for note in notes if not note.superseded_by and not note.is_earlier]
    if not run_context.config.workspace.share:  # an agent must not learn what others did
        return [{"name": note.name, "title": note.title, "author": note.author, "disputed": []} for note in held]
    with closing(Index(run_context.layout.attempts)) as index:
        records = _records(run_context, fleet, index)
        return [
            {
                "name": note.name,
                "title": note.title,
                "author": note.author,
                "disputed": list(check_evidence(note, records).disputed[:DISPUTED_SHOWN]),
            }
            for note in held
        ]


def _records(run_context: RunContext, fleet: Fleet, index: Index) -> Records:
    """Return the scores that notes are compared with. The standing has those that matter now; what it has dropped is in
    the index."""
    measured = fleet.standing.measured

    def scores(number: int) -> Sequence[float]:
        if number in measured:
            return measured[number].scores
        found = index.peek(lambda rows: query.measured(rows, number))
        return found.scores if found else ()

    return Records(cache(Store(index.folder).find), scores, run_context.config.grader.direction)


def _synthesis(shared: Path) -> dict[str, str] | None:
    """Return the sections Conclusions and Next of the latest synthesis; if it has no Conclusions, its whole body
    instead. None if there is no synthesis."""
    if (note := latest_synthesis(shared)) is None:
        return None
    return {
        "name": note.name,
        "conclusions": note.section("Conclusions") or note.body,
        "next": note.section("Next"),
    }


def _shared(run_context: RunContext, agent: str) -> Path:
    return run_context.layout.shared_of(agent, run_context.config.workspace.share)


def _own(run_context: RunContext, fleet: Fleet, agent: str, scale: Scale) -> dict[str, Any]:
    progress, best = fleet.agents[agent].progress, own_best(fleet.standing, agent, run_context.rules.scoring)
    recent = [attempt_data(attempt, scale, fleet.run.epoch) for attempt in _held(run_context, fleet, agent)]
    shown = {"best": best and best.value, "best_number": best and best.number}
    tied = _tied(run_context, fleet, agent)
    return {"attempts": progress.evals, **shown, "stagnant": progress.stagnant, "tied": tied, "recent": recent}


def _held(run_context: RunContext, fleet: Fleet, agent: str) -> list[Attempt]:
    """Return the agent's latest attempts of this epoch, newest first."""
    held = run_context.results.of_agent.get(agent, ())
    return [attempt for attempt in reversed(held) if attempt.epoch == fleet.run.epoch]


def _tied(run_context: RunContext, fleet: Fleet, agent: str) -> str:
    """Return in words what the tied attempts since the agent's last improvement show together, if grades are noisy: a
    single one of them shows nothing. Empty if there are fewer than two."""
    standing, stagnant = fleet.standing, fleet.agents[agent].progress.stagnant
    noise = noise_of(standing, run_context.rules.scoring).deviation
    recent = run_context.results.of_agent.get(agent, ())
    real = [attempt for attempt in recent if attempt.kind is Kind.REAL and attempt.epoch == fleet.run.epoch]
    counted = [attempt for attempt in real if attempt.verdict is not Verdict.VOID]
    tied = [attempt for attempt in counted if attempt.verdict is Verdict.TIED and attempt.delta is not None]
    against = tied[-1].against if tied else None
    since = {attempt.number for attempt in counted[len(counted) - min(stagnant, len(counted)) :]}
    alike = [attempt for attempt in tied if attempt.number in since and attempt.against == against]
    if not noise or against is None or len(alike) < 2:
        return ""
    reference = standing.measured.get(against)
    error = noise * math.sqrt(1 / len(alike) + 1 / (len(reference.scores) if reference else 1))
    together = mean([attempt.delta or 0.0 for attempt in alike])
    return f"{len(alike)} tied, together {together:+.2g} ± {error:.2g} against #{against}"


def _fleet(run_context: RunContext, fleet: Fleet, agent: str) -> dict[str, Any]:
    """Return the scores of the fleet; if the agents of this run do not share, those of this agent alone."""
    share, scoring, standing = run_context.config.workspace.share, run_context.rules.scoring, fleet.standing
    first = _lead_for(run_context, fleet, agent)
    best = standing.best_measured if share else first
    seen = [measured for measured in ranked(standing, scoring) if share or measured.agent == agent]
    highest: dict[str, Measured] = {}
    for measured in seen:
        highest.setdefault(measured.agent, measured)
    noise = noise_of(standing, scoring)
    return {
        "agents": len(fleet.agents),
        "attempts": fleet.run.progress.evals,
        **_named("best", best),
        **_named("lead", first),
        "proven": first is best,
        "confirms": is_affordable(fleet.run, run_context.rules, PAIR),
        "failed": sum(group.count for group in fleet.run.failures.values()) if share else 0,
        "failures": failures_of(fleet)[:FAILURES_SHOWN] if share else [],
        "noise": noise.deviation if noise.freedom else None,
        "leaderboard": [_row(measured) for measured in seen[:TOP]],
        "rank": _rank(highest, agent) if share else None,
        "others": [
            {**_row(measured), "now": _latest_title(run_context, name)}
            for name, measured in sorted(highest.items())
            if name != agent
        ],
    }


def _lead_for(run_context: RunContext, fleet: Fleet, agent: str) -> Measured | None:
    """Return the fleet's lead; if the agents of this run do not share, the agent's own best."""
    standing, scoring = fleet.standing, run_context.rules.scoring
    return lead(standing, scoring) if run_context.config.workspace.share else own_best(standing, agent, scoring)


def _named(name: str, measured: Measured | None) -> dict[str, Any]:
    """Return an attempt as four names for templates: `best`, `best_number`, `best_agent`, `best_title` for the name
    `best`."""
    if measured is None:
        return {name: None, f"{name}_number": None, f"{name}_agent": "", f"{name}_title": ""}
    agent, title = measured.agent, measured.title
    return {name: measured.value, f"{name}_number": measured.number, f"{name}_agent": agent, f"{name}_title": title}


def _latest_title(run_context: RunContext, agent: str) -> str:
    recent = run_context.results.of_agent.get(agent)
    return recent[-1].title if recent else ""


def _rank(highest: Mapping[str, Measured], agent: str) -> int | None:
    """Return the agent's place among the agents, from 1; None if it has no score. `highest`: each agent's highest
    attempt, best first."""
    return list(highest).index(agent) + 1 if agent in highest else None


def _row(measured: Measured) -> dict[str, Any]:
    count = len(measured.scores)
    return {
        "number": measured.number,
        "agent": measured.agent,
        "score": measured.value,
        "count": count,
        "title": measured.title,
    }


def _heartbeats(fleet: Fleet, agent: str) -> list[dict[str, Any]]:
    return [
        {
            "name": heartbeat.name,
            "when": heartbeat.when,
            "scope": heartbeat.scope.value,
            "protected": heartbeat.protected,
        }
        for owner in (agent, FLEET)
        for heartbeat in fleet.heartbeats.get(owner, ())
    ]


def _stall(agent: Agent) -> dict[str, Any]:
    """Return why the agent counts as stalled, and how often in a row it was found to be stalled."""
    found = agent.stall
    lasted = duration(found.lasted) if found.escalations else "too long"  # progress since then has cleared the stall
    return {"times": found.escalations, "silent": found.finding is Finding.SILENT, "lasted": lasted}


def _jobs(fleet: Fleet, agent: str, clock: float) -> list[dict[str, Any]]:
    own = (job for job in fleet.jobs.values() if job.agent == agent)
    return [{"number": job.number, "what": job.title, "time": duration(job.seconds(clock))} for job in own]
