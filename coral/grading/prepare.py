"""Copies the grader's files: a change to the task's folder must not change the grader of a run.

Files keep their places relative to the task's folder, so that a grader finds its data the same way in both.
"""

import shutil
from pathlib import Path

from coral.config.load import Config
from coral.errors import CoralError
from coral.grading.kinds import kind_of

_JUNK = shutil.ignore_patterns("__pycache__", ".git")


def copy_grader_files(config: Config, private: Path) -> None:
    """Copies the files that the grader's kind needs, and its `private` entries, into `private` (made 0700)."""
    private.mkdir(mode=0o700, parents=True, exist_ok=True)
    private.chmod(0o700)
    needed = kind_of(config.grader).files(config.grader, config.folder)
    for name in dict.fromkeys([*needed, *map(Path, config.grader.private)]):
        try:
            _copy(config.folder / name, private / name)
        except (OSError, shutil.Error) as error:
            raise CoralError(
                f"cannot copy the grader's file {name}: {error}", "see grader.private in task.yaml"
            ) from error


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True, ignore=_JUNK, ignore_dangling_symlinks=True)
    else:
        shutil.copy2(source, target)
