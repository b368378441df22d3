"""Finds what has changed in a task's folder since a run of it started. The run uses its own copies, so the changes have
no effect on it."""

import filecmp
from collections.abc import Iterator
from pathlib import Path

from coral.config.load import CHECKLIST, Config
from coral.grading.kinds import copied_files, grader_files
from coral.views.format import plural, some_of
from workspace import seed
from workspace.errors import GitError
from workspace.layout import Layout, runs_under


def task_changes(layout: Layout, config: Config) -> list[str]:
    """Return the files that differ from the run's copies, as paths in the task's folder; empty if the folder is gone.
    `config`: the run's own."""
    if not config.path.is_file():
        return []
    found = [] if _is_same(layout.task_source, config.path) else [config.path.name]
    if not _is_same_checklist(layout, config):
        found.append(CHECKLIST)
    found += dict.fromkeys(str(name) for name in _changed_of_grader(layout, config))
    commit = layout.seed_commit.read_text()
    try:
        changed = seed.differences(layout.hub, commit, config.seed)
    except (GitError, OSError):
        return [*found, config.task.seed]  # the seed is gone, or can no longer be used by any run
    return [*found, *(f"{config.task.seed.rstrip('/')}/{name}" for name in changed)]


def uncommitted_text(left: list[str]) -> str:
    """Return the sentence about changed files of a seed that a run leaves out, because they are not committed."""
    return f"of the seed only the last commit is used, without {plural(len(left), 'changed file')}: {some_of(left)}"


def seed_change(config: Config, runs: Path) -> str:
    """Return a sentence about how the seed differs from the one that the newest run of the task used; empty if it does
    not differ, or there is no such run. `runs`: the folder of all runs."""
    newest = next(iter(runs_under(runs / config.slug)), None)
    if newest is None:
        return ""
    try:
        changed = seed.differences(newest.hub, newest.seed_commit.read_text(), config.seed)
    except (GitError, OSError):
        return ""
    return f"the seed has changed since the run {newest.root.name}: {some_of(changed)}" if changed else ""


def _changed_of_grader(layout: Layout, config: Config) -> Iterator[Path]:
    for grader, copies in ((config.grader, layout.grader), (config.holdout_grader, layout.holdout)):
        for name in grader_files(grader, config.folder) if grader else ():
            for file in sorted({*_files(copies, name), *_files(config.folder, name)}):
                if not _is_same(copies / file, config.folder / file):
                    yield file


def _files(folder: Path, name: Path) -> list[Path]:
    """Return the files that a run copies for the entry `name` of a grader, as paths in `folder`: the file itself, or
    the files in the folder of that name."""
    path = folder / name
    return [name] if path.is_file() else [name / inner for inner in copied_files(path)]


def _is_same_checklist(layout: Layout, config: Config) -> bool:
    if (config.folder / CHECKLIST).is_file() != layout.checklist.is_file():
        return False
    return not layout.checklist.is_file() or _is_same(layout.checklist, config.folder / CHECKLIST)


def _is_same(copied: Path, path: Path) -> bool:
    """Return whether two files are the same. Files of equal size and time are not read: copies keep the time."""
    try:
        return filecmp.cmp(copied, path, shallow=True)
    except OSError:
        return False
