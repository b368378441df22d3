"""Measures how long the prompts are that agents get: what each launch costs before an agent has done anything.

They are rendered from the example that templates are checked with, a run of four agents in its middle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from benchmarks import machine, table
from benchmarks.benchmark import Ask, Full
from benchmarks.figure import Check, Target, check
from benchmarks.results import Result
from heartbeats.example import example_context
from heartbeats.render import render_file

NAME = "prompts"
CHARACTERS = 4  # of a token: the usual estimate for English text
INSTRUCTIONS, REFLECT = "the instruction file", "resume: reflect"
TOGETHER = "resume: reflect, consolidate, redirect"
# The template of each prompt, and the heartbeats in it, of which the last one decides the next step.
PROMPTS: Mapping[str, tuple[str, Sequence[str]]] = {
    INSTRUCTIONS: ("instructions", ()),
    "start": ("start", ()),
    REFLECT: ("resume", ("reflect",)),
    "resume: consolidate": ("resume", ("consolidate",)),
    "resume: redirect": ("resume", ("redirect",)),
    TOGETHER: ("resume", ("reflect", "consolidate", "redirect")),
    "resume: checkpoint": ("resume", ("checkpoint",)),
    "resume: land": ("resume", ("land",)),
    "after the agent ended its turn": ("keep_going", ()),
    "a new session": ("fresh", ()),
}
TARGETS = {INSTRUCTIONS: Target(median=1400), REFLECT: Target(median=850), TOGETHER: Target(median=2000)}
WHY = "Leave out what an agent cannot act on, and what another part of the prompt says."


def measure(ask: Ask) -> Iterable[Result]:
    ask.say(f"{len(PROMPTS)} prompts")
    series = {name: [_tokens(frame, heartbeats)] for name, (frame, heartbeats) in PROMPTS.items()}
    yield Result(NAME, machine.today(), machine.here(), {"characters": CHARACTERS}, series)


def full() -> Mapping[str, Full]:
    return {NAME: Full({"characters": CHARACTERS}, dict.fromkeys(PROMPTS, 1))}


def checks(results: Mapping[str, Result]) -> list[Check]:
    series = results[NAME].series
    return [check(f"prompt, {name}", series[name], aim, "tokens", WHY) for name, aim in TARGETS.items()]


def section(results: Mapping[str, Result]) -> list[str]:
    result = results[NAME]
    lines = ["## The size of prompts", "", _ABOUT, "", "| prompt | tokens |", "|---|---:|"]
    lines += [f"| {name} | {values[0]:,.0f} |" for name, values in result.series.items()]
    return [*lines, "", table.origin(result)]


_ABOUT = f"""Rendered from the example that templates are checked with: the middle of a run of four agents, on a
noisy task, with notes, a synthesis, a claim and a job. A token is taken as {CHARACTERS} characters, the usual
estimate: every model counts in its own way. The task's description, feedback and notes come on top. Nothing is drawn by
chance, so that each is measured once."""


def prompt_text(frame: str, heartbeats: Sequence[str]) -> str:
    step = heartbeats[-1] if heartbeats else ""
    context = {**example_context(), "next_step": step, "asked": list(heartbeats)}
    sections = [{"name": name, "id": "h1", "text": render_file(name, context)} for name in heartbeats]
    return render_file(frame, {**context, "sections": sections})


def _tokens(frame: str, heartbeats: Sequence[str]) -> float:
    return round(len(prompt_text(frame, heartbeats)) / CHARACTERS)
