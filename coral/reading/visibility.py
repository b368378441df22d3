"""Who looks at a run, and what may be seen of it.

Where agents do not share, an agent sees its own attempts and the seed, and nothing else. Standard library only.
"""

from __future__ import annotations

import os
from pathlib import Path

from coral.errors import CoralError
from coral.reading.run_folder import here
from workspace.layout import Layout, find_agent

TYPE_CHECKING = False  # as in typing, which nothing else of an eval needs
if TYPE_CHECKING:
    from attempts.record import Attempt


def agent_inside() -> str | None:
    found = find_agent(here())
    return found[1] if found else None


def is_agent() -> bool:
    """Whether an agent gives this command: in its workspace, or from what it started there."""
    return bool(os.environ.get("CORAL_AGENT")) or agent_inside() is not None


def alone_in(layout: Layout) -> str:
    """The agent whose workspace this is, if the agents of that run do not share; else empty: everything may be seen.
    Whether they share is seen by the folder that each then has for its own knowledge, because a sealed agent cannot
    read the run's task."""
    try:
        found = find_agent(Path.cwd())
    except OSError:
        return ""
    if found is None or found[0].root != layout.root.resolve():
        return ""
    # The parent of its folder: the folder itself is the agent's, which may have removed it.
    return found[1] if layout.shared_of(found[1], share=False).parent.is_dir() else ""


def may_see(alone: str, attempt: Attempt) -> bool:
    """Whether this agent may see an attempt; everybody may see the seed."""
    return not alone or attempt.agent in (alone, "")


def check_may_see(alone: str, attempt: Attempt, to: str) -> None:
    """CoralError when an agent that works alone wants `to` do something with an attempt that is not its own."""
    if not may_see(alone, attempt):
        hint = "agents of this run do not share: `coral log` lists what is yours"
        raise CoralError(f"cannot {to} #{attempt.number}: it is not yours", hint)
