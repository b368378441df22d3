"""The prompt of a launch: the agent's results, its pending messages, the remaining budget.

The templates of `heartbeats/prompts` write it; this module gives them plain dictionaries, so that they can call no
method.
"""

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attempts.noise import mean
from attempts.record import Attempt, Kind, Verdict, to_dict
from attempts.standing import Measured, lead, noise_of, own_best, ranked
from coral.agent_setup.roster import mounts_of
from coral.fleet.actions import Spawn
from coral.fleet.agent_state import Agent, PendingMessage, Spent
from coral.fleet.attempts.confirmations import PAIR, is_affordable
from coral.fleet.messages import ENDED, MESSAGE
from coral.fleet.reasons import Finding, Reason, ReasonKind
from coral.fleet.rules import Allowance, Rules
from coral.fleet.run_state import FLEET, Fleet
from coral.supervisor.context import RunContext
from coral.views.fleet_view import failures_of, seed_score, spent_of, use_unknown_of
from coral.views.format import duration, money, some_of, spending, tokens
from coral.views.reasons import job_notice, reason_text
from coral.views.scale import Scale
from heartbeats.render import render, render_file
from workspace.knowledge import list_skills
from workspace.notes import recent_notes
from workspace.seal import Level

SHOWN_OF_ATTEMPTS = ("number", "agent", "title", "score", "verdict", "reason", "feedback", "metrics", "commit")
TOP = 10  # attempts of the leaderboard
FAILURES_SHOWN = 5  # kinds of failures
NOTES_SHOWN = 20
MAX_CHARACTERS = 400_000  # of a prompt: more than this, many models do not take at all
LEAST_SHOWN = 500  # of a section that is cut


def instructions(run_context: RunContext, agent: str) -> str:
    assignment = run_context.roster.assignment(agent)
    given = {
        "role": assignment.role,
        "sealed": run_context.level is not Level.NONE,
        "mounts": [mount.at for mount in mounts_of(run_context.config, assignment)],
        "research": "" if assignment.research is None else duration(assignment.research * 60),
    }
    return render_file("instructions", {**_task_context(run_context, agent), **given})


def launch_prompt(
    run_context: RunContext, fleet: Fleet, agent: str, spawn: Spawn, clock: float
) -> tuple[str, list[str]]:
    """The text a launch is started with, and the warnings about templates that could not be rendered."""
    frame = _frame(spawn)
    context = context_of(run_context, fleet, agent, spawn.last_result_seen, clock)
    messages = [message.prompt for message in spawn.messages if message.name == MESSAGE]
    context |= {"message": "\n\n".join(messages), "reason": reason_text(spawn.reason)}
    sections, warnings = sections_of(spawn.messages, context)
    text = render_file(frame, {**context, "sections": sections})
    if len(text) > MAX_CHARACTERS:
        limit = MAX_CHARACTERS - len(text) + sum(len(section["text"]) for section in sections)
        text = render_file(frame, {**context, "sections": truncate(sections, limit)})
        warnings.append("the prompt would be too long: the longest of its sections are cut")
    return text, warnings


def truncate(sections: Sequence[dict[str, str]], total: int) -> list[dict[str, str]]:
    """Cuts the longest sections until all texts together have at most `total` characters; LEAST_SHOWN of each stay."""
    limit = max((len(section["text"]) for section in sections), default=0)
    while limit > LEAST_SHOWN and sum(min(len(section["text"]), limit) for section in sections) > total:
        limit = max(limit * 9 // 10, LEAST_SHOWN)
    return [{**section, "text": _cut(section["text"], limit)} for section in sections]


def _cut(text: str, limit: int) -> str:
    left_out = len(text) - limit
    if left_out <= 0:
        return text
    return f"{text[:limit]}\n\n[The prompt would be too long: {left_out} more characters of this section are left out.]"


def inline_sections(
    run_context: RunContext, fleet: Fleet, agent: str, messages: tuple[PendingMessage, ...], clock: float
) -> list[dict[str, str]]:
    """What `coral eval` prints of heartbeats that are delivered there."""
    context = context_of(run_context, fleet, agent, fleet.agents[agent].last_result_seen, clock)
    context |= {"message": "", "reason": reason_text(Reason(ReasonKind.HEARTBEAT))}
    return [section for message in messages for section in sections_of((message,), context)[0]]


def sections_of(
    messages: tuple[PendingMessage, ...], context: Mapping[str, Any]
) -> tuple[list[dict[str, str]], list[str]]:
    """One section for each heartbeat, which names all messages if it fired several times; and warnings. A message that
    this conversation was given before, without an answer, is repeated in short."""
    groups: dict[tuple[str, str, int], list[PendingMessage]] = {}
    for message in messages:
        key = (message.name, message.prompt or job_notice(message), message.handed_at)
        groups.setdefault(key, []).append(message)
    sections, warnings = [], []
    for (name, *_), group in groups.items():
        text, warning = _section(group[0], context)
        sections.append({"name": name, "id": ", ".join(message.id for message in group), "text": text})
        warnings += [f"{name}: {warning}"] if warning else []
    return sections, warnings


def context_of(run_context: RunContext, fleet: Fleet, agent: str, last_seen: int, clock: float) -> dict[str, Any]:
    """The data of every template. Results published after `last_seen` are new to the agent."""
    shared, scale, epoch = _shared(run_context, agent), scale_of(run_context, fleet, agent), fleet.run.epoch
    results = [attempt_data(attempt, scale, epoch) for attempt in run_context.results.since(agent, last_seen)]
    return {
        **_task_context(run_context, agent),
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
        "notes": [
            {"name": note.name, "title": note.title, "author": note.author}
            for note in recent_notes(shared, NOTES_SHOWN)
        ],
        "skills": [
            {"name": skill.name, "description": skill.description} for skill in list_skills(shared)[:NOTES_SHOWN]
        ],
        "research": research_left(fleet.agents[agent], clock),
    }


def research_left(agent: Agent, clock: float) -> str:
    """How much longer an agent only reads and thinks; empty where it may begin."""
    return "" if agent.research_until is None else duration(max(agent.research_until - clock, 0.0))


def scale_of(run_context: RunContext, fleet: Fleet, agent: str) -> Scale:
    """What an agent is told differences of scores relative to, now."""
    seed, first = fleet.standing.seed, _lead_for(run_context, fleet, agent)
    scoring = run_context.rules.scoring
    gain = scoring.gain(first.value, seed.value) if first is not None and seed is not None else 0.0
    return Scale(gain, noise_of(fleet.standing, scoring).deviation, seed.number if seed is not None else 0)


def attempt_data(attempt: Attempt, scale: Scale, epoch: int) -> dict[str, Any]:
    """`earlier`: its score is not compared with those of the present `epoch`. `copy_of`: the attempt that was graded
    with the same files before."""
    plain, earlier = to_dict(attempt), attempt.epoch < epoch
    shown = {name: plain[name] for name in SHOWN_OF_ATTEMPTS}
    is_copy = attempt.verdict is Verdict.TIED and attempt.delta is None and not earlier
    copy_of = attempt.against if is_copy else None
    return {**shown, "delta": "" if earlier else scale.of(attempt), "earlier": earlier, "copy_of": copy_of}


def budget(rules: Rules, fleet: Fleet, clock: float, agent: str = "") -> dict[str, Any]:
    """What is left of the run's budget, in words; for an agent also what is left of its own."""
    run, lines, unknown = fleet.run, [], use_unknown_of(fleet, rules)
    most, why = ("at most ", f" (what {some_of(unknown)} used is not known)") if unknown else ("", "")
    if rules.budget_attempts is not None:
        left = max(rules.budget_attempts - fleet.run.progress.graded, 0)
        lines.append(f"{left} of {rules.budget_attempts} attempts are left to the fleet")
    if rules.budget_seconds is not None:
        left_seconds = max(rules.budget_seconds - clock, 0)
        lines.append(f"{duration(left_seconds)} of {duration(rules.budget_seconds)} are left")
    if rules.budget_money is not None:
        lines.append(f"{most}{_money_left(run.spent, rules.budget_money)} are left to the fleet{why}")
    if rules.budget_tokens is not None:
        lines.append(f"{most}{_tokens_left(run.spent, rules.budget_tokens)} tokens are left to the fleet{why}")
    if agent:
        lines += _own_budget(rules.own, fleet.agents[agent], is_known=agent not in unknown)
    if rules.plateau is not None:
        since = run.progress.stagnant
        lines.append(f"the run ends after {rules.plateau} attempts without a new best ({since} so far)")
    if rules.target is not None:
        lines.append(f"the run ends when the best, which is proven, reaches {rules.target:.10g}")
    used = "" if rules.budget_money or rules.budget_tokens else spending(spent_of(run.spent))
    used = f"at least {used}" if used and unknown else used
    return {"text": "; ".join([*lines, *([f"{used} used so far"] if used else [])]), "lines": lines}


def _own_budget(own: Allowance, agent: Agent, *, is_known: bool) -> list[str]:
    lines, most = [], "" if is_known else "at most "
    if own.attempts is not None:
        lines.append(f"{max(own.attempts - agent.progress.graded, 0)} of your own {own.attempts} attempts are left")
    if own.money is not None:
        lines.append(f"{most}{_money_left(agent.spent, own.money)} of your own are left")
    if own.tokens is not None:
        lines.append(f"{most}{_tokens_left(agent.spent, own.tokens)} tokens of your own are left")
    return lines


def _money_left(spent: Spent, limit: float) -> str:
    return f"{money(max(limit - (spent.money or 0.0), 0.0))} of {money(limit)}"


def _tokens_left(spent: Spent, limit: int) -> str:
    return f"{tokens(max(limit - spent.tokens, 0))} of {tokens(limit)}"


def _frame(spawn: Spawn) -> str:
    if spawn.session is None:
        return "start" if spawn.launch == 1 else "fresh"
    return "resume" if spawn.messages else "keep_going"


def _section(first: PendingMessage, context: Mapping[str, Any]) -> tuple[str, str]:
    if first.handed_at:
        path = f"{context['paths']['prompts']}/{first.handed_at:04d}.prompt.md"
        return render_file("again", {**context, "again": {"launch": first.handed_at, "path": path}}), ""
    if first.name in (MESSAGE, ENDED):
        return first.prompt or job_notice(first), ""
    if not first.prompt:
        return render_file(first.name, context), ""
    rendered = render(first.prompt, context)
    return rendered.text, rendered.warning


def _task_context(run_context: RunContext, agent: str) -> dict[str, Any]:
    config = run_context.config
    return {
        "agent": {"name": agent},
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
    """The seed: the number and the score of its record."""
    baseline = run_context.results.baseline
    return {"number": baseline.number if baseline else 0, "score": baseline.score if baseline else None}


def _shared(run_context: RunContext, agent: str) -> Path:
    return run_context.layout.shared_of(agent, run_context.config.workspace.share)


def _own(run_context: RunContext, fleet: Fleet, agent: str, scale: Scale) -> dict[str, Any]:
    progress, best = fleet.agents[agent].progress, own_best(fleet.standing, agent, run_context.rules.scoring)
    held = run_context.results.of_agent.get(agent, ())
    epoch = fleet.run.epoch
    recent = [attempt_data(attempt, scale, epoch) for attempt in reversed(held) if attempt.epoch == epoch]
    shown = {"best": best and best.value, "best_number": best and best.number}
    tied = _tied(run_context, fleet, agent)
    return {"attempts": progress.evals, **shown, "stagnant": progress.stagnant, "tied": tied, "recent": recent}


def _tied(run_context: RunContext, fleet: Fleet, agent: str) -> str:
    """What the tied ones among the agent's latest attempts without improvement show together, where grades are noisy:
    each alone shows nothing. Empty for fewer than two."""
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
    """The scores of the fleet; where the agents of this run do not see each other, those of this agent alone."""
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
        "others": [_row(measured) for name, measured in sorted(highest.items()) if name != agent],
    }


def _lead_for(run_context: RunContext, fleet: Fleet, agent: str) -> Measured | None:
    """The fleet's lead; the agent's own, where the agents of this run do not see each other."""
    standing, scoring = fleet.standing, run_context.rules.scoring
    return lead(standing, scoring) if run_context.config.workspace.share else own_best(standing, agent, scoring)


def _named(name: str, measured: Measured | None) -> dict[str, Any]:
    """An attempt as four names of a prompt: `best`, `best_number`, `best_agent`, `best_title`."""
    if measured is None:
        return {name: None, f"{name}_number": None, f"{name}_agent": "", f"{name}_title": ""}
    agent, title = measured.agent, measured.title
    return {name: measured.value, f"{name}_number": measured.number, f"{name}_agent": agent, f"{name}_title": title}


def _rank(highest: Mapping[str, Measured], agent: str) -> int | None:
    """The agent's place among the agents by their highest attempts, from 1."""
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
    """Why the agent counts as stalled, and how often this was found in a row."""
    found = agent.stall
    lasted = duration(found.lasted) if found.escalations else "too long"  # overtaken by progress, on its way
    return {"times": found.escalations, "silent": found.finding is Finding.SILENT, "lasted": lasted}


def _jobs(fleet: Fleet, agent: str, clock: float) -> list[dict[str, Any]]:
    own = (job for job in fleet.jobs.values() if job.agent == agent)
    return [{"number": job.number, "what": job.title, "time": duration(job.seconds(clock))} for job in own]
