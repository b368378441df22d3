"""What the parts of a fleet name on this machine: role files, which become a part of the task, and what is mounted."""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from coral.config.agents import AgentsSection, Assignment
from coral.config.files import outside, split_entry
from coral.config.model import GraderSection, TaskSection
from coral.config.problem import Path as Where
from coral.config.problem import Problem, shown

LARGEST = 100_000  # bytes of a role: agents read all of it
OURS = (".git", ".shared")


def part_problems(
    agents: AgentsSection, task: TaskSection | None, grader: GraderSection | None, folder: Path
) -> Iterator[Problem]:
    seed = _place(task.seed, folder) if task else None
    secret = _secret(grader, folder)
    for where, part in parts_of(agents):
        if part.role_file:
            yield from _role(part, (*where, "role_file"), folder)
        for at, source in part.mounts.items():
            path = (*where, "mounts", at)
            yield from (
                Problem(path, text) for text in (_target(at, part, seed), _source(source, folder, secret)) if text
            )


def with_roles(agents: AgentsSection, folder: Path) -> AgentsSection:
    """The section with the words of its role files in their place, so that a run needs none of them."""
    assignments = tuple(each.model_copy(update=_read(each, folder)) for each in agents.assignments)
    return agents.model_copy(update={**_read(agents, folder), "assignments": assignments})


def _read(part: Assignment, folder: Path) -> dict[str, str]:
    if not part.role_file:
        return {}
    return {"role": (folder / Path(part.role_file).expanduser()).read_text("utf-8-sig"), "role_file": ""}


def parts_of(agents: AgentsSection) -> Iterator[tuple[Where, Assignment]]:
    yield ("agents",), agents
    for index, part in enumerate(agents.assignments):
        yield ("agents", "assignments", index), part


def _role(part: Assignment, path: Where, folder: Path) -> Iterator[Problem]:
    if part.role:
        yield Problem(path, "stands beside a role; keep one of them")
    file = _place(part.role_file, folder)
    try:
        if file is None or not file.is_file():
            yield Problem(path, f"{shown(part.role_file)} is no file (looked at {file or folder})")
        elif file.stat().st_size > LARGEST or "\0" in file.read_text("utf-8-sig"):
            yield Problem(path, f"{shown(part.role_file)} is no text of at most {LARGEST // 1000} kB")
    except (OSError, ValueError):
        yield Problem(path, f"{shown(part.role_file)} cannot be read as a text in UTF-8")


def _target(at: str, part: Assignment, seed: Path | None) -> str:
    """What is wrong with the place in the workspace."""
    names = PurePosixPath(at).parts
    if outside(at) or not names or "\0" in at or names[0] in OURS:
        return "must be a path inside the workspace, and not one of git's or Coral's"
    around = [each for each in part.mounts if each != at and PurePosixPath(at).is_relative_to(each)]
    if around:
        return f"lies in {shown(around[0])}, which is a mount itself"
    if seed is None:
        return ""
    taken = _place(at, seed)
    return "is no path" if taken is None else "is in the seed already" if taken.exists() else ""


def _source(source: str, folder: Path, secret: list[Path]) -> str:
    """What is wrong with what it leads to."""
    place = _place(source, folder)
    if place is None or not place.exists():
        return f"{shown(source)} does not exist (looked at {place or folder})"
    if any(each.is_relative_to(place) or place.is_relative_to(each) for each in secret):
        return f"{shown(source)} holds what belongs to the grader: agents would see it"
    return ""


def _secret(grader: GraderSection | None, folder: Path) -> list[Path]:
    if grader is None:
        return []
    entry = split_entry(grader.entry)
    names = [*([entry[0]] if entry else []), *grader.private]
    return [place for name in names if (place := _place(name, folder)) is not None]


def _place(name: str, folder: Path) -> Path | None:
    """Where a text of the task leads to; None where it is no path at all."""
    try:
        os.fsencode(name)
        place = (folder / Path(name).expanduser()).resolve()
        place.exists()
    except (OSError, ValueError, RuntimeError):  # too long; with a zero byte; of a user that is not there, or a loop
        return None
    return place
