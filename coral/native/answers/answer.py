"""Answers a heartbeat by its name. Heartbeats that are not built in are answered with where the search stands."""

from coral.native.answers.checkpoint import checkpoint, standing
from coral.native.answers.consolidate import consolidate
from coral.native.answers.redirect import redirect
from coral.native.answers.reflect import reflect
from coral.native.prompt import HeartbeatSection
from coral.native.situation import Call, Remember, Say, Situation

LONGEST_QUOTE = 300  # characters of an unknown prompt that are remembered


def answer(situation: Situation, section: HeartbeatSection) -> tuple[Call, ...]:
    match section.name:
        case "reflect":
            return reflect(situation)
        case "consolidate" | "conclude":
            return consolidate(situation)
        case "redirect":
            return redirect(situation)
        case "checkpoint":
            return (Say(text=checkpoint(situation)),)
        case _:
            return _answer_unknown(situation, section)


def _answer_unknown(situation: Situation, section: HeartbeatSection) -> tuple[Call, ...]:
    """Answer a heartbeat of the user's own: this brain reads no prose, and says so; what was asked is remembered."""
    memory = situation.memory
    asked = " ".join(section.text.split())[:LONGEST_QUOTE]
    plan = memory.blocks.get("plan", "") or "the family that has paid most, from my best attempt"
    last = memory.trials[-1].title if memory.trials else "nothing yet"
    text = (
        f"To `{section.name}`: {standing(situation)} Last I tried: {last}. Plan: {plan}. "
        "I search over numbers and choices and do not follow instructions in prose; what was asked is in my memory."
    )
    return (Remember(block="learned", text=f"Asked by {section.name}: {asked}", add=True), Say(text=text))
