"""Writes a task that was made from something else: its task.yaml, texts and copies of files. Nothing is overwritten."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coral.config.load import TASK_FILE, write
from coral.config.schema import SHIPPED
from coral.errors import CoralError

NOT_COPIED = ("__pycache__", ".venv", "node_modules", ".pytest_cache")
_HEAD = """\
# yaml-language-server: $schema=task.schema.json
# {origin}
# Check it with `coral validate`, attack its grader with `coral audit`, run it with `coral start`.

"""


@dataclass(slots=True)
class MadeTask:
    """A task that is not written yet. `origin`: a sentence about where it comes from. `sections`: those of task.yaml.
    `texts`: files by their path in the task. `copies`: files and folders that are copied to a path, in order: a later
    one is laid over an earlier. `report`: what was translated and what was left out, line by line."""

    origin: str
    sections: dict[str, Any]
    texts: dict[str, str] = field(default_factory=dict)
    copies: list[tuple[str, Path]] = field(default_factory=list)
    report: list[str] = field(default_factory=list)


def write_task(made: MadeTask, folder: Path) -> None:
    """Write the files of a task into a folder. CoralError if the folder is not empty, or a file cannot be copied; then
    nothing is left of what was written."""
    hint = "name a folder that does not exist yet"
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CoralError(f"cannot make a task in {folder}: it exists, and is not empty", hint)
    existed = folder.exists()
    try:
        for name, source in made.copies:
            _copy(source, folder / name)
        for name, text in {**made.texts, **_own(made)}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
    except (OSError, shutil.Error) as error:
        shutil.rmtree(folder, ignore_errors=True)
        if existed:
            folder.mkdir()
        raise CoralError(f"cannot make a task in {folder}: {_words(error)}", hint) from error


def _own(made: MadeTask) -> Mapping[str, str]:
    text = _HEAD.format(origin=made.origin) + _spaced(write(made.sections))
    return {TASK_FILE: text, SHIPPED.name: SHIPPED.read_text(encoding="utf-8")}


def _spaced(text: str) -> str:
    """Put an empty line between the sections of a task.yaml."""
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if number and line and not line.startswith((" ", "-"))]
    return "\n".join(f"\n{line}" if number in starts else line for number, line in enumerate(lines)) + "\n"


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        ignored = shutil.ignore_patterns(*NOT_COPIED)
        shutil.copytree(
            source, target, symlinks=False, ignore=ignored, ignore_dangling_symlinks=True, dirs_exist_ok=True
        )
    else:
        shutil.copy2(source, target)


def _words(error: Exception) -> str:
    """Return what went wrong in words; of many files that could not be copied, for the first."""
    first = error.args[0][0] if isinstance(error, shutil.Error) and isinstance(error.args[0], list) else None
    return str(first[2]) if first else getattr(error, "strerror", None) or str(error)
