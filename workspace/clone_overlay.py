"""What the supervisor puts into an agent's clone beside the code: the link to shared knowledge, the mounts, the
instructions.

None of it is ever committed. Nothing is written through a link that the agent may have made: files are put in place by
rename, in folders that were opened without following links.
"""

import os
import posixpath
import re
import secrets
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from workspace.errors import GitError
from workspace.git import Git
from workspace.layout import SHARED
from workspace.locks import clear_stale_lock
from workspace.plain_file import folder_of, link_below, read_below, write_below
from workspace.submit import OURS

# Generated beside the code by running it: committed, it would make every tree a new one.
_CACHES = ("__pycache__/", "*.pyc", ".pytest_cache/", ".mypy_cache/", ".ruff_cache/", ".ipynb_checkpoints/")
_LONGEST = 1_000_000
_INDEX, _LARGEST_INDEX = ".git/index", 1 << 30  # bytes
LITTER = (*_CACHES, ".venv/", "node_modules/", ".DS_Store", ".coral-*")


@dataclass(frozen=True, slots=True)
class Instructions:
    """The text of an instruction file. `tracked`: the seed has a file of that name, which stays in git as it was
    committed."""

    text: str
    tracked: bool


def exclude_from(repository: Path, patterns: Iterable[str], names: Iterable[str] = ()) -> None:
    """Make git ignore these patterns, and the paths in `names`, which are relative to the top of the clone
    (`info/exclude`).

    A pattern for a link must not end in a slash, or it does not match.
    """
    wanted = [*patterns, *map(_exactly, names)]
    lines = _lines(repository, "info/exclude")
    if not set(wanted) <= set(lines):
        _write_lines(repository, "info/exclude", [*(line for line in lines if line not in wanted), *wanted])


def _exactly(name: str) -> str:
    """Return the pattern that matches this path alone."""
    return "/" + re.sub(r"([\\*?\[\]!# ])", r"\\\1", name)


def _keep_as_committed(repository: Path, name: str) -> None:
    """Note for `coral eval` that a tracked file was written by the supervisor, and is not to be committed. The file
    must not be excluded too: git refuses to add a path that is both."""
    lines = _lines(repository, "info/exclude")
    _write_lines(repository, "info/exclude", [line for line in lines if line != _exactly(name)])
    _write_lines(repository, OURS, sorted({*_lines(repository, OURS), name}))


def link_shared(clone: Path, shared: Path) -> None:
    """Make `.shared` in the clone a link to the knowledge folder, by a relative path, because the run's folder may be
    copied."""
    _link(clone, SHARED, os.path.relpath(shared.resolve(), clone.resolve()), "shared")


def mount(clone: Path, name: str, source: Path) -> None:
    """Make `name` in the clone a link to a file or folder of the machine; it is never committed."""
    _link(clone, _without_links(clone, name), str(source), "mount")


def _link(clone: Path, name: str, target: str, kind: str) -> None:
    exclude_from(clone / ".git", (), [name])
    with folder_of(clone, name, make=True) as place:
        last = Path(name).name
        try:
            if os.readlink(last, dir_fd=place) == target:
                return
        except FileNotFoundError:
            pass
        except OSError:  # no link: made by the agent, perhaps with notes in it, and kept under another name
            os.rename(last, f".coral-{kind}-{secrets.token_hex(8)}", src_dir_fd=place, dst_dir_fd=place)
    link_below(clone, name, target)


def write_instructions(clone: Path, hub: Path, commit: str, filename: str, text: str) -> Instructions:
    """Write `text` as the instruction file of a clone that is at `commit`; returns what `put_back` needs to write it
    again.

    The file is never committed. If the commit has such a file, its text follows `text`, and git is told to ignore
    changes of it (skip-worktree).
    """
    theirs = _committed_text(hub, commit, filename)
    if theirs is not None:
        text = f"{text.rstrip()}\n\n---\n\n{theirs}"
        _skip_worktree(clone, hub, filename)
    put_back(clone, filename, given := Instructions(text, theirs is not None))
    return given


def put_back(clone: Path, filename: str, given: Instructions) -> None:
    """Write an instruction file again that the agent removed. Starts no git, and opens nothing that could block."""
    if given.tracked:
        _keep_as_committed(clone / ".git", filename)
    else:
        exclude_from(clone / ".git", (), [filename])
    place(clone, filename, given.text)


def _skip_worktree(clone: Path, hub: Path, filename: str) -> None:
    """Make git ignore changes of a tracked file. Uses the hub's configuration: with the clone's, `update-index` would
    run the agent's filters. Git gets a copy of the index, because it would write through a link in the place of it;
    where there is no index, there is nothing to mark. OSError if `.git` is a link."""
    with folder_of(clone, _INDEX), tempfile.TemporaryDirectory() as folder:
        clear_stale_lock(clone / ".git")
        if (held := read_below(clone, _INDEX, _LARGEST_INDEX)) is None:
            return
        copy = Path(folder) / "index"
        copy.write_bytes(held)
        own = Git(hub, GIT_INDEX_FILE=copy, GIT_WORK_TREE=clone)
        own.run("update-index", "--skip-worktree", "--", filename)
        write_below(clone, _INDEX, copy.read_bytes())


@lru_cache(maxsize=64)  # the agents of a run begin at one commit
def _committed_text(hub: Path, commit: str, filename: str, depth: int = 0) -> str | None:
    """Return the text of a file in a commit, through links (`AGENTS.md -> CLAUDE.md` is common); None if there is no
    such file."""
    mode, kind, name, *_ = Git(hub).text("ls-tree", commit, "--", filename).split() or ("", "nothing", "")
    if kind != "blob":
        return None
    text = Git(hub).run("cat-file", "blob", name).decode("utf-8", "replace")
    if mode != "120000":
        return text
    target = posixpath.normpath(posixpath.join(posixpath.dirname(filename), text))
    leaves = depth >= 5 or target.startswith(("/", ".."))
    return (None if leaves else _committed_text(hub, commit, target, depth + 1)) or ""


def place(folder: Path, name: str, text: str) -> None:
    """Write `folder/name` whole or not at all; a link in its place is replaced, not followed. GitError if a link that
    the agent made leads out of `folder` on the way."""
    write_below(folder, _without_links(folder, name), text.encode("utf-8", "replace"))


def _without_links(folder: Path, name: str) -> str:
    """Return the path of `folder/name` relative to the folder, with links to other folders inside it resolved. GitError
    if one leads out of it."""
    path = folder / name
    real, top = path.parent.resolve(), folder.resolve()
    if not real.is_relative_to(top):
        raise GitError(f"cannot write {path}: {path.parent} leads elsewhere")
    return str(real.relative_to(top) / path.name)


def _write_lines(folder: Path, name: str, lines: Iterable[str]) -> None:
    place(folder, name, "".join(f"{line}\n" for line in lines))


def _lines(folder: Path, name: str) -> list[str]:
    """Return the lines of a file; none if there is no file. It must not lie behind a link: an agent may have made one
    to a file that it cannot read itself, and what is read here is written where the agent can read it."""
    return (read_below(folder, name, _LONGEST) or b"").decode("utf-8", "replace").splitlines()
