"""Answers a heartbeat by its name. Heartbeats that are not built in are answered with where the search stands."""

from coral.native.answers.checkpoint import checkpoint, standing
from coral.native.answers.consolidate import consolidate
from coral.native.answers.redirect import redirect
from coral.native.answers.reflect import reflect
from coral.native.calls import Remember, Say
from coral.native.prompt import HeartbeatSection
from coral.native.situation import Call, Situation

ANSWERS = {"reflect": reflect, "consolidate": consolidate, "conclude": consolidate, "redirect": redirect}
LONGEST_QUOTE = 300  # characters of an unknown prompt that are remembered


def answer(situation: Situation, section: HeartbeatSection) -> tuple[Call, ...]:
    if section.name in ANSWERS:
        return ANSWERS[section.name](situation)
    if section.name == "checkpoint":
        return (Say(text=checkpoint(situation)),)
    plan = situation.memory.blocks.get("plan", "what has paid most")
    asked = " ".join(section.text.split())[:LONGEST_QUOTE]
    text = (
        f"To `{section.name}`: {standing(situation)} Plan: {plan.rstrip('.')}. "
        "I search over numbers and choices and do not follow instructions in prose; what was asked is in my memory."
    )
    return (Remember(block="learned", text=f"Asked by {section.name}: {asked}", add=True), Say(text=text))
