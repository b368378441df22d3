"""Makes a task of ours from one of the other CORAL: for users who want to change it, since it also runs as it is."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attempts.files import expanded
from coral.config.load import TASK_FILE, load, translation_of
from coral.config.other_format import SEED
from coral.grading.venv import folders_beside
from coral.importing.written_task import NOT_COPIED, MadeTask

_NOT_OURS = {SEED, "results", "runs", "task.schema.json", *NOT_COPIED}


def import_task(path: Path) -> MadeTask:
    """Make a task of ours. `path`: the file of the other task. CoralError if that task could not run as it is."""
    config, folder = load(path), path.absolute().parent
    translation = translation_of(path)
    assert translation is not None, "the caller has asked"
    sections: dict[str, Any] = translation.document.data  # type: ignore[assignment]  # load has refused anything else
    made = MadeTask(f"Made from {folder.name}, a task of the other CORAL.", sections, report=list(translation.lines))
    if (below := translation.below) is not None:
        made.copies += [(f"{SEED}/{item.name}", item) for item in sorted(below.iterdir()) if item.name != ".git"]
        made.report = [line for line in made.report if not line.startswith("workspace.repo_path:")]
        made.report.append(f"workspace.repo_path: {SEED} holds its files, and over them those of the task's own seed")
    made.copies.append((SEED, config.seed))
    sections["task"]["seed"] = SEED
    for item in sorted(folder.iterdir()):
        if item.name not in _NOT_OURS and not item.name.startswith((".", "task")) and item.exists():
            made.copies.append((item.name, item))
    _take_in_sources(made, config.grader.setup, folder)
    for assignment in _assignments(sections):
        _keep_paths(assignment, folder)
    return made


def _take_in_sources(made: MadeTask, commands: tuple[str, ...], folder: Path) -> None:
    """Copy the folders beside the task that `grader.setup` installs into the task, and change its commands accordingly.
    A folder around the task is not copied: the commands name it by its absolute path."""
    for word, source in folders_beside(commands, folder).items():
        is_around, name = folder.resolve().is_relative_to(source), source.name
        if is_around:
            name = str(source)
            made.report.append(f"grader.setup: {word} is {source}, which has the task in it, and is not copied")
        else:
            made.copies.append((name, source))
            made.report.append(f"grader.setup: {word} is copied to {name}")
        commands = tuple(_with_word(command, word, name) for command in commands)
    if commands:
        made.sections["grader"]["setup"] = list(commands)


def _with_word(command: str, word: str, name: str) -> str:
    """Return the command with the path `name` in place of `word`."""
    return re.sub(rf"(?<![\w./]){re.escape(word)}(?![\w./])", lambda _: name, command)


def _assignments(sections: dict[str, Any]) -> Iterator[dict[str, Any]]:
    agents = sections.get("agents") or {}
    yield agents
    yield from agents.get("assignments") or ()


def _keep_paths(assignment: dict[str, Any], folder: Path) -> None:
    """Make paths that lead outside the task's folder absolute: the new task lies in another folder."""
    if "role_file" in assignment:
        assignment["role_file"] = _kept(assignment["role_file"], folder)
    if "mounts" in assignment:
        assignment["mounts"] = {target: _kept(name, folder) for target, name in assignment["mounts"].items()}


def _kept(name: str, folder: Path) -> str:
    path = folder / expanded(name)
    is_copied = path.resolve().is_relative_to(folder.resolve()) and path.name != TASK_FILE
    return name if is_copied else str(path.resolve())
