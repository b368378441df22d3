"""Where agents do not share, one that asks from its workspace sees its own attempts and the seed, and nothing else.

Standard library only. Told by the folder for knowledge of one's own: a sealed agent cannot read the run's task.
"""

from __future__ import annotations

from pathlib import Path

from attempts.record import Attempt
from coral.errors import CoralError
from workspace.layout import Layout, find_agent

HINT = "agents of this run do not share: `coral log` lists what is yours"


def alone_in(layout: Layout) -> str:
    """The agent in whose workspace this is, if it works alone in that run; else empty, and everything may be seen."""
    try:
        found = find_agent(Path.cwd())
    except OSError:
        return ""
    if found is None or found[0].root != layout.root.resolve():
        return ""
    # The folder above its own: that one is the agent's, who may have removed it.
    return found[1] if layout.shared_of(found[1], share=False).parent.is_dir() else ""


def sees(alone: str, attempt: Attempt) -> bool:
    """Whether an attempt is for this agent to see; the seed is everybody's."""
    return not alone or attempt.agent in (alone, "")


def check(alone: str, attempt: Attempt, to: str) -> None:
    """CoralError when an agent that works alone wants `to` do something with an attempt of another."""
    if not sees(alone, attempt):
        raise CoralError(f"cannot {to} #{attempt.number}: it is not yours", HINT)
