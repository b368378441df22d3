"""Finds out which agent, if any, runs the present command, and which attempts it may see.

If the agents of a run do not share, each sees its own attempts and the seed, and nothing else. Standard library only.
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
    """Return whether an agent runs this command: its environment has CORAL_AGENT, or the current directory is in an
    agent's workspace."""
    return bool(os.environ.get("CORAL_AGENT")) or agent_inside() is not None


def direction_in(layout: Layout) -> str:
    """Return the direction of the score that the environment of an agent of this run has; else an empty text."""
    run = os.environ.get("CORAL_RUN")
    return os.environ.get("CORAL_DIRECTION", "") if run and Path(run).resolve() == layout.root.resolve() else ""


def alone_in(layout: Layout) -> str:
    """Return the agent in whose workspace the current directory is, if the agents of this run do not share; else an
    empty text, which means that everything may be seen. Agents that do not share have folders of their own for their
    knowledge; these are looked for because a sealed agent cannot read the run's task."""
    try:
        found = find_agent(Path.cwd())
    except OSError:
        return ""
    if found is None or found[0].root != layout.root.resolve():
        return ""
    # The parent of the agent's folder is looked for: the agent may have removed the folder itself.
    return found[1] if layout.shared_of(found[1], share=False).parent.is_dir() else ""


def may_see(only_agent: str, attempt: Attempt) -> bool:
    """Return whether a reader may see an attempt. `only_agent`: the agent whose attempts are the only ones, beside the
    seed, that the reader may see; empty for a reader who may see all."""
    return not only_agent or attempt.agent in (only_agent, "")


def check_may_see(only_agent: str, attempt: Attempt, to: str) -> None:
    """Raise CoralError if `may_see` returns False. `to`: the verb of the command, which the message repeats: "show"."""
    if not may_see(only_agent, attempt):
        hint = "agents of this run do not share: `coral log` lists what is yours"
        raise CoralError(f"cannot {to} #{attempt.number}: it is not yours", hint)
