"""What a launch of an agent's program finds: its settings and the user's login in the state folder, and an environment
without what belongs to other programs."""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from coral.runtimes.model import Command
from workspace.clone_overlay import place


def settle(command: Command, state: Path) -> None:
    """Put settings and links into the state folder. What lies there already stays: the program may have changed it.

    OSError where that is not possible.
    """
    state.mkdir(parents=True, exist_ok=True)
    for name, text in command.files.items():
        if not os.path.lexists(state / name):
            place(state, name, text)
    for name, target in command.links.items():
        link = state / name
        if target.exists() and not os.path.lexists(link):
            link.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                link.symlink_to(target.resolve())


def environment(base: Mapping[str, str], command: Command) -> dict[str, str]:
    """The environment of a launch: the base without what the command drops, and what it adds."""
    kept = {
        name: value
        for name, value in base.items()
        if not name.startswith(command.drop) or name.startswith(command.keep)
    }
    return {**kept, **command.env}
