"""What agents find in their workspace besides the code: files and folders of this machine, as links."""

import contextlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from coral.config.agents import Driven
from coral.config.load import Config
from coral.errors import CoralError
from workspace.clone_overlay import mount
from workspace.errors import GitError


@dataclass(frozen=True, slots=True)
class Mount:
    """`at`: the path in the clone."""

    source: Path
    at: str


def mounts_of(config: Config, part: Driven) -> list[Mount]:
    return [
        Mount(config.folder / Path(source).expanduser(), str(PurePosixPath(at))) for at, source in part.mounts.items()
    ]


def set_up(clone: Path, mounts: list[Mount], instructions: str) -> None:
    """In a new clone; CoralError where something else has their place: of the seed, or the agent's instructions."""
    for each in mounts:
        if each.at == instructions or (clone / each.at).exists():
            raise CoralError(
                f"cannot mount {each.source}: {each.at} is taken", "see agents.mounts in task.yaml: choose another path"
            )
        mount(clone, each.at, each.source)


def keep_up(clone: Path, mounts: list[Mount]) -> None:
    """What the agent may have removed is there again, but where it laid something in its way."""
    for each in mounts:
        with contextlib.suppress(OSError, GitError):
            mount(clone, each.at, each.source)
