"""The answers to heartbeats, by name. Those that are not built in get an answer too: where the search stands."""

from __future__ import annotations

from attempts.record import Verdict
from coral.native.answers.consolidate import consolidate
from coral.native.answers.redirect import redirect
from coral.native.answers.reflect import reflect
from coral.native.calls import Call, Remember, Say
from coral.native.format import numbers, score
from coral.native.prompt import Section
from coral.native.situation import Situation

LITTLE_ROOM = 0.02  # free share of the disk
FAILURES = 3  # failed attempts in a row that are worth an alert
QUOTED = 300  # characters of an unknown prompt that are remembered


def answer(situation: Situation, section: Section) -> tuple[Call, ...]:
    """What to do about one heartbeat."""
    match section.name:
        case "reflect":
            return reflect(situation)
        case "consolidate":
            return consolidate(situation)
        case "redirect":
            return redirect(situation)
        case "checkpoint":
            return (Say(text=checkpoint(situation)),)
        case _:
            return _other(situation, section)


def checkpoint(situation: Situation) -> str:
    """The report on the checklist; its last line is `HEARTBEAT_OK` or an alert."""
    memory, world = situation.memory, situation.world
    graded = [trial for trial in memory.trials if trial.number is not None]
    last = graded[-FAILURES:]
    failing = len(last) == FAILURES and all(trial.verdict == Verdict.FAILED for trial in last)
    unnoted = sum(not trial.noted for trial in graded)
    points = [
        "Nothing hangs: this program runs nothing but the public check, under a limit of time."
        if world.checked
        else "Nothing hangs: this program runs nothing of its own.",
        f"Handed in and not yet graded: {memory.pending.title}." if memory.pending else "Nothing waits for a grade.",
        f"My last results: {', '.join(f'#{t.number} {t.verdict}' for t in graded[-5:]) or 'none yet'}.",
        f"{_standing(situation)}",
        f"Attempts of mine without a note: {unnoted}.",
        f"Free on the disk: {world.room:.0%}.",
    ]
    points += [f"Checklist: {line}" for line in _own_points(world.checklist)]
    verdict = "HEARTBEAT_OK"
    if failing:
        named = numbers([trial.number for trial in last if trial.number is not None])
        verdict = (
            f"ALERT: my last {FAILURES} attempts failed ({named}); the grader says: {last[-1].reason or 'nothing'}"
        )
    elif world.room < LITTLE_ROOM:
        verdict = f"ALERT: only {world.room:.1%} of the disk is free"
    return "\n".join((*(f"- {point}" for point in points), "", verdict))


def _own_points(checklist: str) -> list[str]:
    """What the fleet added to the checklist in so many words for programs: lines that begin with `- native:`."""
    return [line[9:].strip() for line in checklist.splitlines() if line.startswith("- native:")]


def _standing(situation: Situation) -> str:
    own, lead = situation.own, situation.leader
    if own is None:
        return "I have no score yet."
    text = f"My best is #{own.number} with {score(own.score)}"
    if lead is not None and lead.number != own.number:
        return f"{text}; the fleet's is #{lead.number} with {score(lead.score)} by {lead.agent or 'the seed'}."
    return f"{text}, which leads the fleet."


def _other(situation: Situation, section: Section) -> tuple[Call, ...]:
    """A prompt of somebody's own: this brain reads no prose, and says so; what was asked is kept."""
    asked = " ".join(section.text.split())[:QUOTED]
    plan = situation.memory.blocks.get("plan", "") or "the family that has paid most, from my best attempt"
    lately = situation.memory.trials[-1].title if situation.memory.trials else "nothing yet"
    text = (
        f"To `{section.name}`: {_standing(situation)} Last I tried: {lately}. Plan: {plan}. "
        "I search over numbers and choices and do not follow instructions in prose; what was asked is in my memory."
    )
    return (Remember(block="learned", text=f"Asked by {section.name}: {asked}", add=True), Say(text=text))
