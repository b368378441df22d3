"""Writes the prompt of a launch: a frame, and a section for each pending message.

It renders the templates in `heartbeats/prompts` with the data of `prompt_context`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from coral.agent_setup.roster import mounts_of
from coral.fleet.actions import Spawn
from coral.fleet.agent_state import PendingMessage
from coral.fleet.messages import JOB_ENDED, MESSAGE
from coral.fleet.reasons import Reason, ReasonKind
from coral.fleet.run_state import Fleet
from coral.supervisor.context import RunContext
from coral.views.format import duration
from coral.views.prompt_context import context_of, task_context
from coral.views.reasons import job_notice, reason_text
from heartbeats.render import render, render_file
from workspace.seal import Level

MAX_CHARACTERS = 400_000  # of a prompt: more than this, many models do not take at all
LEAST_SHOWN = 500  # of a section that is cut
# Of the heartbeats in one prompt, the first of these says what the next attempt is: several next steps would contradict
# each other.
DECIDING = ("land", "conclude", "changed", "begin", "stalled", "redirect", "consolidate", "reflect", "checkpoint")


def instructions(run_context: RunContext, agent: str) -> str:
    assignment = run_context.roster.assignment(agent)
    context = task_context(run_context, agent)
    given = {
        "role": assignment.role,
        "sealed": run_context.level is not Level.NONE and not context["agent"]["placed"],
        "mounts": [mount.at for mount in mounts_of(run_context.config, assignment)],
        "research": "" if assignment.research is None else duration(assignment.research * 60),
    }
    return render_file("instructions", {**context, **given})


def launch_prompt(
    run_context: RunContext, fleet: Fleet, agent: str, spawn: Spawn, clock: float
) -> tuple[str, list[str]]:
    """Return the prompt of a launch, and warnings about templates that could not be rendered or sections that were
    cut."""
    frame = _frame(spawn)
    context = context_of(run_context, fleet, agent, spawn.last_result_seen, clock)
    messages = [message.prompt for message in spawn.messages if message.name == MESSAGE]
    context |= {"message": "\n\n".join(messages), "reason": reason_text(spawn.reason)}
    context |= {"next_step": next_step(spawn.messages), "asked": [message.name for message in spawn.messages]}
    sections, warnings = sections_of(spawn.messages, context)
    text = render_file(frame, {**context, "sections": sections})
    if len(text) > MAX_CHARACTERS:
        limit = MAX_CHARACTERS - len(text) + sum(len(section["text"]) for section in sections)
        text = render_file(frame, {**context, "sections": truncate(sections, limit)})
        warnings.append("the prompt would be too long: the longest of its sections are cut")
    return text, warnings


def truncate(sections: Sequence[dict[str, str]], total: int) -> list[dict[str, str]]:
    """Cut the longest sections until all texts together have at most `total` characters; at least LEAST_SHOWN
    characters of each stay."""
    limit = max((len(section["text"]) for section in sections), default=0)
    while limit > LEAST_SHOWN and sum(min(len(section["text"]), limit) for section in sections) > total:
        limit = max(limit * 9 // 10, LEAST_SHOWN)
    return [{**section, "text": _cut(section["text"], limit)} for section in sections]


def _cut(text: str, limit: int) -> str:
    left_out = len(text) - limit
    if left_out <= 0:
        return text
    return f"{text[:limit]}\n\n[The prompt would be too long: {left_out} more characters of this section are left out.]"


def section_preview(
    run_context: RunContext, fleet: Fleet, agent: str, name: str, prompt: str, clock: float
) -> tuple[str, str]:
    """Return the section that a heartbeat with this name and prompt would give the agent now, as if its latest attempt
    had just been published; and the warning about its template, or an empty text. An empty `prompt` stands for the
    built-in prompt of that name."""
    held = run_context.results.of_agent.get(agent, ())
    context = context_of(run_context, fleet, agent, held[-1].order - 1 if held else 0, clock)
    message = PendingMessage(id="", name=name, since=clock, due=clock, prompt=prompt)
    context |= {"message": "", "reason": reason_text(Reason(ReasonKind.HEARTBEAT)), "asked": [name]}
    return _section(message, {**context, "next_step": next_step([message])})


def inline_sections(
    run_context: RunContext, fleet: Fleet, agent: str, messages: tuple[PendingMessage, ...], clock: float
) -> list[dict[str, str]]:
    """Return the sections of heartbeats that are delivered in the output of `coral eval`; the last section ends with
    the next step."""
    context = context_of(run_context, fleet, agent, fleet.agents[agent].last_result_seen, clock)
    step = next_step(messages)
    context |= {"message": "", "reason": reason_text(Reason(ReasonKind.HEARTBEAT)), "next_step": step}
    context |= {"asked": [message.name for message in messages]}
    sections = [section for message in messages for section in sections_of((message,), context)[0]]
    if sections:
        sections[-1]["text"] += "\n" + render_file("_next", {**context, "step": step})
    return sections


def next_step(messages: Sequence[PendingMessage]) -> str:
    """Return the heartbeat of these that tells the agent what to do next, the first in DECIDING; empty if none of them
    has a built-in prompt."""
    names = {message.name for message in messages if not message.prompt}
    return next((name for name in DECIDING if name in names), "")


def sections_of(
    messages: tuple[PendingMessage, ...], context: Mapping[str, Any]
) -> tuple[list[dict[str, str]], list[str]]:
    """Return one section for each heartbeat, with the ids of all its messages if it fired several times; and warnings
    about templates. A message that was in an earlier prompt of this conversation and was not answered is only referred
    to."""
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


def _frame(spawn: Spawn) -> str:
    if spawn.session is None:
        return "start" if spawn.launch == 1 else "fresh"
    return "resume" if spawn.messages else "keep_going"


def _section(first: PendingMessage, context: Mapping[str, Any]) -> tuple[str, str]:
    if first.handed_at:
        path = f"{context['paths']['prompts']}/{first.handed_at:04d}.prompt.md"
        return render_file("again", {**context, "again": {"launch": first.handed_at, "path": path}}), ""
    if first.name in (MESSAGE, JOB_ENDED):
        return first.prompt or job_notice(first), ""
    if not first.prompt:
        return render_file(first.name, context), ""
    rendered = render(first.prompt, context)
    return rendered.text, rendered.warning
