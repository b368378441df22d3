"""What an agent may see where agents do not share: its own attempts and the seed, and nothing else.

Standard library only. Whether agents share is seen by the folder that each then has for its own knowledge, because a
sealed agent cannot read the run's task.
"""

from __future__ import annotations

from pathlib import Path

from attempts.record import Attempt
from coral.errors import CoralError
from workspace.layout import Layout, find_agent

HINT = "agents of this run do not share: `coral log` lists what is yours"


def alone_in(layout: Layout) -> str:
    """The agent whose workspace this is, if the agents of that run do not share; else empty: everything may be seen."""
    try:
        found = find_agent(Path.cwd())
    except OSError:
        return ""
    if found is None or found[0].root != layout.root.resolve():
        return ""
    # The parent of its folder: the folder itself is the agent's, which may have removed it.
    return found[1] if layout.shared_of(found[1], share=False).parent.is_dir() else ""


def sees(alone: str, attempt: Attempt) -> bool:
    """Whether this agent may see an attempt; everybody may see the seed."""
    return not alone or attempt.agent in (alone, "")


def check(alone: str, attempt: Attempt, to: str) -> None:
    """CoralError when an agent that works alone wants `to` do something with an attempt that is not its own."""
    if not sees(alone, attempt):
        raise CoralError(f"cannot {to} #{attempt.number}: it is not yours", HINT)
