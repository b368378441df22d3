"""Which files a run takes from a seed, and how the seed differs today from what a run took: of a repository, only the
last commit counts."""

import os
import tempfile
from pathlib import Path

from workspace import hub
from workspace.errors import GitError
from workspace.git import Git
from workspace.intake import SEED

LOOK_SECONDS = 10.0  # time that git has to compare the seed's files with its last commit


def taken_from(seed: Path, folder: Path) -> Path:
    """Return the folder with the files that a run would take: `folder`/seed, where they are checked out, if the seed is
    a repository; else the seed itself. GitError if the repository has no commit."""
    if hub.repository_of(seed) is None:
        return seed
    commit = hub.create(folder / "hub.git", seed)
    hub.checkout(folder / "hub.git", commit, folder / "seed")
    return folder / "seed"


def last_commit(seed: Path) -> str:
    """Return the id of the commit that a run would take from a repository. GitError if it is none, or has no commit."""
    repository = hub.repository_of(seed)
    if repository is None:
        raise GitError(f"{seed} is no repository")
    return Git(repository).text("rev-parse", "HEAD")


def uncommitted(seed: Path) -> list[str]:
    """Return the files of a repository that were changed since its last commit, new ones included; a run leaves them
    out. Empty if git cannot tell within LOOK_SECONDS."""
    repository = hub.repository_of(seed)
    if repository is None or repository == seed:  # a bare one has no files
        return []
    git = Git(repository, GIT_WORK_TREE=seed.resolve())
    try:
        found = git.run("status", "--porcelain", "-z", "--no-renames", timeout=LOOK_SECONDS).decode("utf-8", "replace")
    except GitError:
        return []
    return [entry[3:] for entry in found.split("\0") if entry]


def differences(taken: Path, commit: str, seed: Path) -> list[str]:
    """Return the files in which a seed differs today from the commit that a run took into its hub, `taken`."""
    if not seed.is_dir():
        raise GitError(f"cannot use the seed {seed}: it is not a folder")
    repository = hub.repository_of(seed)
    if repository is None and _newest(seed) < (taken / SEED).stat().st_mtime:
        return []
    if repository is not None and Git(repository).text("rev-parse", "HEAD^{tree}") == hub.tree_of(taken, commit):
        return []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        building = Path(temporary) / "hub.git"
        now = hub.create(building, seed)
        if hub.tree_of(building, now) == hub.tree_of(taken, commit):
            return []
        before, after = _listed(taken, commit), _listed(building, now)
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))


def _newest(seed: Path) -> float:
    """Return when something in a folder was last changed, added or removed, in seconds since the epoch."""
    walked = (
        path for folder, _, names in os.walk(seed) for path in (Path(folder), *(Path(folder, name) for name in names))
    )
    return max((path.lstat().st_ctime for path in walked), default=0.0)


def _listed(repository: Path, commit: str) -> dict[str, str]:
    """Return the mode and id of each file of a commit, by its path."""
    found = Git(repository).run("ls-tree", "-r", "-z", commit).decode("utf-8", "replace")
    entries = (entry.partition("\t") for entry in found.split("\0") if entry)
    return {path: head for head, _, path in entries}
