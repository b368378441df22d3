"""The grader's own copy of its files: what is graded with does not change when the task's folder does.

Files keep their places relative to the task's folder, so that a grader finds its data the same way in both.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from coral.config.load import Config
from coral.config.model import GraderSection
from coral.config.paths import split_entry
from coral.errors import CoralError
from workspace.layout import leads_outside

_JUNK = shutil.ignore_patterns("__pycache__", ".git")


def prepare(config: Config, private: Path) -> None:
    """Copy the grader's entry, the files its command names, and its `private` entries into `private` (made 0700).

    An entry in a folder of its own brings the whole folder, so that its siblings can be imported.
    """
    private.mkdir(mode=0o700, parents=True, exist_ok=True)
    private.chmod(0o700)
    for name in dict.fromkeys(_names(config.grader, config.folder)):
        try:
            _copy(config.folder / name, private / name)
        except (OSError, shutil.Error) as error:
            raise CoralError(
                f"cannot copy the grader's file {name}: {error}", "see grader.private in task.yaml"
            ) from error


def _names(grader: GraderSection, folder: Path) -> Iterator[Path]:
    entry = split_entry(grader.entry)
    if entry is not None:
        own = Path(entry[0]).parent
        yield own if own.parts else Path(entry[0])
    for word in _words(grader):
        if not leads_outside(word) and (folder / word).is_file():
            yield Path(word)
    yield from map(Path, grader.private)


def _words(grader: GraderSection) -> list[str]:
    """What the command may name; in a line for the shell every run of a path's characters."""
    return re.findall(r"[\w@%+=:,./-]+", grader.command) if isinstance(grader.command, str) else list(grader.command)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True, ignore=_JUNK, ignore_dangling_symlinks=True)
    else:
        shutil.copy2(source, target)
