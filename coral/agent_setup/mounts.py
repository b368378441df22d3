"""Mounts: files and folders of this machine that agents find in their clone, as symbolic links."""

import contextlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from coral.config.load import Config
from coral.config.model import Assignment
from coral.errors import CoralError
from workspace.clone_overlay import mount
from workspace.errors import GitError


@dataclass(frozen=True, slots=True)
class Mount:
    """`at`: the path in the clone."""

    source: Path
    at: str


def mounts_of(config: Config, assignment: Assignment) -> list[Mount]:
    return [
        Mount(config.folder / Path(source).expanduser(), str(PurePosixPath(at)))
        for at, source in assignment.mounts.items()
    ]


def set_up_mounts(clone: Path, mounts: list[Mount], instruction_file: str) -> None:
    """Link the mounts in a new clone. CoralError if the seed or the instructions are at the same path."""
    for planned in mounts:
        if planned.at == instruction_file or (clone / planned.at).exists():
            raise CoralError(
                f"cannot mount {planned.source}: {planned.at} is taken",
                "see agents.mounts in task.yaml: choose another path",
            )
        mount(clone, planned.at, planned.source)


def restore_mounts(clone: Path, mounts: list[Mount]) -> None:
    """Link again what the agent removed. A file of the agent at the same path stays."""
    for planned in mounts:
        with contextlib.suppress(OSError, GitError):
            mount(clone, planned.at, planned.source)
