"""What the supervisor puts into an agent's clone beside the code: the link to shared knowledge, the instructions.

Rules: none of it is ever committed; nothing is written through a link that the agent may have planted, because files
are put in place by rename and folders are looked up first.
"""

from __future__ import annotations

import os
import posixpath
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from workspace.errors import GitError
from workspace.git import Git
from workspace.locks import clear_stale_lock
from workspace.plain_file import read_plain
from workspace.submit import OURS

SHARED = ".shared"
# Generated beside the code by running it: committed, it would make every tree a new one.
_CACHES = ("__pycache__/", "*.pyc", ".pytest_cache/", ".mypy_cache/", ".ruff_cache/", ".ipynb_checkpoints/")
_LONGEST = 1_000_000
LITTER = (*_CACHES, ".venv/", "node_modules/", ".DS_Store", ".coral-*")


@dataclass(frozen=True, slots=True)
class Instructions:
    """What stands in an instruction file. `tracked`: the seed has one of that name, which stays as it is committed."""

    text: str
    tracked: bool


def exclude_from(repository: Path, patterns: Iterable[str], names: Iterable[str] = ()) -> None:
    """Tell git (`info/exclude`) what is not part of the work; `names` are paths from the top of the clone.

    A pattern for a link must not end in a slash, or it does not match.
    """
    wanted = [*patterns, *map(_exactly, names)]
    lines = _lines(repository / "info" / "exclude")
    if set(wanted) <= set(lines):
        return
    kept = [line for line in lines if line not in wanted]
    place(repository, "info/exclude", "".join(f"{line}\n" for line in (*kept, *wanted)))


def _exactly(name: str) -> str:
    """The pattern that matches this path alone."""
    return "/" + re.sub(r"([\\*?\[\]!# ])", r"\\\1", name)


def _keep_as_committed(repository: Path, name: str) -> None:
    """Tell `coral eval` that a tracked file is ours. Git refuses a path that is both named to it and excluded."""
    kept = [line for line in _lines(repository / "info" / "exclude") if line != _exactly(name)]
    place(repository, "info/exclude", "".join(f"{line}\n" for line in kept))
    place(repository, OURS, "".join(f"{line}\n" for line in sorted({*_lines(repository / OURS), name})))


def link_shared(clone: Path, shared: Path) -> None:
    """Make `.shared` in the clone lead to the knowledge folder, by a relative path: the run folder may be copied."""
    _lead(clone, SHARED, os.path.relpath(shared.resolve(), clone.resolve()), "shared")


def mount(clone: Path, name: str, source: Path) -> None:
    """Make `name` in the clone lead to a file or folder of the machine, which is no part of the work."""
    _move_aside(clone, name)
    _lead(clone, name, str(source), "mount")


def _lead(clone: Path, name: str, target: str, kind: str) -> None:
    """A link that git does not see."""
    exclude_from(clone / ".git", (), [name])
    link = clone / name
    if link.is_symlink() and str(link.readlink()) == target:
        return
    if link.exists() and not link.is_symlink():
        # Made by the agent, perhaps with notes in it: kept, but not where the next launch looks for what is ours.
        link.rename(clone / f".coral-{kind}-{secrets.token_hex(8)}")
    temporary = clone / f".coral-{secrets.token_hex(8)}"
    temporary.symlink_to(target)
    temporary.replace(link)


def write_instructions(clone: Path, hub: Path, commit: str, filename: str, text: str) -> Instructions:
    """Put `text` into the clone, which is at `commit`, as its instruction file, never to be committed; what `put_back`
    needs later.

    Where the commit has such a file, its own text follows ours, and git is told to look away (skip-worktree).
    """
    theirs = _committed_text(hub, commit, filename)
    if theirs is not None:
        text = f"{text.rstrip()}\n\n---\n\n{theirs}"
        _look_away(clone, hub, filename)
    put_back(clone, filename, given := Instructions(text, theirs is not None))
    return given


def put_back(clone: Path, filename: str, given: Instructions) -> None:
    """The same once more, for an agent that removed it. Quick: no git, and nothing that the agent could block."""
    if given.tracked:
        _keep_as_committed(clone / ".git", filename)
    else:
        exclude_from(clone / ".git", (), [filename])
    place(clone, filename, given.text)


def _look_away(clone: Path, hub: Path, filename: str) -> None:
    """Set skip-worktree, by the hub's configuration: by the clone's, `update-index` would run the agent's filters."""
    clear_stale_lock(clone / ".git")
    own = Git(hub, GIT_INDEX_FILE=clone / ".git" / "index", GIT_WORK_TREE=clone)
    own.run("update-index", "--skip-worktree", "--", filename)


@lru_cache(maxsize=64)  # the agents of a run begin at one commit
def _committed_text(hub: Path, commit: str, filename: str, depth: int = 0) -> str | None:
    """What a commit has under this name, through links (`AGENTS.md -> CLAUDE.md` is common); None if it has nothing."""
    mode, kind, name, *_ = Git(hub).text("ls-tree", commit, "--", filename).split() or ("", "nothing", "")
    if kind != "blob":
        return None
    text = Git(hub).run("cat-file", "blob", name).decode("utf-8", "replace")
    if mode != "120000":
        return text
    target = posixpath.normpath(posixpath.join(posixpath.dirname(filename), text))
    leaves = depth >= 5 or target.startswith(("/", ".."))
    return (None if leaves else _committed_text(hub, commit, target, depth + 1)) or ""


def _move_aside(folder: Path, name: str) -> Path:
    """The path `folder/name`, with the folders above it. GitError where one of those leads out of `folder`: it is
    asked before anything is made, for an agent may have planted a link. `folder` itself may have to be made."""
    path = folder / name
    there = next(parent for parent in path.parents if parent.exists() or parent.is_symlink())
    if not folder.is_relative_to(there) and not there.resolve().is_relative_to(folder.resolve()):
        raise GitError(f"cannot write {path}: {there} leads elsewhere")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def place(folder: Path, name: str, text: str) -> None:
    """Write `folder/name` whole or not at all; whatever is in its place is replaced, not followed."""
    path = _move_aside(folder, name)
    temporary = path.with_name(f".coral-{secrets.token_hex(8)}")
    temporary.write_text(text, encoding="utf-8", errors="replace")
    temporary.replace(path)


def _lines(path: Path) -> list[str]:
    return (read_plain(path, _LONGEST, follow=True) or b"").decode("utf-8", "replace").splitlines()
