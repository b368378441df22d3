"""The history of shared knowledge: a git repository beside the folder, to which only the supervisor commits.

Agents can write to that folder. So git never reads the files itself: it is given their contents, and no filter, hook or
ignore list of an agent has an effect. Agents that are not sealed can write to the repository as well: a damaged one is
renamed, and a new one begun. A folder without changes costs one walk over its files and no process.
"""

import contextlib
import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from workspace.clone_overlay import place
from workspace.errors import GitError
from workspace.git import Git
from workspace.locks import clear_stale_lock
from workspace.plain_file import read_below, read_plain, walk

_BRANCH = "refs/heads/main"
_STATE = "coral-state.json"
_LARGE = 1_000_000
_AT_ONCE = 32_000_000  # bytes that one snapshot holds in memory
_STATE_LARGE = 8_000_000
_MANY = 5_000
_DEEP = 6

# path -> (mark: time of change, size and inode; digest of the content)
_State = dict[str, tuple[list[int], str]]


@dataclass(frozen=True, slots=True)
class Change:
    """One commit of the history. `at`: its time as ISO-8601."""

    commit: str
    at: str
    message: str
    files: tuple[str, ...]


def snapshot(shared: Path, repository: Path, message: str) -> str:
    """Commit what changed in the folder since the last snapshot; returns the new commit, or "" if nothing did."""
    if not shared.is_dir():
        return ""
    if repository.is_symlink() or repository.is_file():
        _put_aside(repository)
    try:
        return _snapshot(shared, repository, message)
    except GitError:
        if not _is_damaged(repository):
            raise
        _put_aside(repository)
        return _snapshot(shared, repository, message)


def history(repository: Path, limit: int = 20) -> list[Change]:
    """Return the last `limit` commits, newest first."""
    git = Git(repository)
    if not (git.directory / "objects").is_dir() or not git.text("for-each-ref", _BRANCH):
        return []
    layout = "--format=%x01%H%x02%cI%x02%s%x02"
    plain = ("--no-show-signature", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames")
    log = ("-c", "core.quotePath=false", "log", *plain, "--name-only", layout, "-n", str(int(limit)), _BRANCH, "--")
    changes = (part.split("\x02", 3) for part in git.text(*log).split("\x01")[1:])
    return [Change(commit, at, text, tuple(filter(None, files.split("\n")))) for commit, at, text, files in changes]


def versions(repository: Path, name: str, limit: int = 20) -> Iterator[tuple[str, str]]:
    """Yield the last contents of one file of the folder, newest first, each with its time (ISO-8601)."""
    git = Git(repository)
    if not (git.directory / "objects").is_dir() or not git.text("for-each-ref", _BRANCH):
        return
    # AM: commits that removed the file are left out, because they have no content of it.
    only = ("--no-show-signature", "--no-renames", "--diff-filter=AM", "--format=%H %cI", "-n", str(int(limit)))
    for line in git.text("log", *only, _BRANCH, "--", f":(literal){name}").splitlines():
        commit, at = line.split(" ", 1)
        yield at, git.run("cat-file", "blob", f"{commit}:{name}").decode("utf-8", "replace")


def _is_damaged(repository: Path) -> bool:
    """Return whether git finds the repository damaged. A full or slow disk, or a missing git, is no damage: the history
    must not be replaced for it."""
    try:
        Git(repository).run("fsck", "--connectivity-only")
    except GitError as error:
        return bool(error.detail) and not (error.timed_out or error.killed)
    return False


def _put_aside(repository: Path) -> None:
    """Rename a repository, so that a new one can be made."""
    repository.rename(repository.with_name(f"{repository.name}.broken-{time.time_ns()}"))


def _snapshot(shared: Path, repository: Path, message: str) -> str:
    before = _load(repository)
    now = dict(_state_of(shared, before or {}))
    if now == before:
        return ""
    git = Git(repository)
    if not (repository / "objects").is_dir():
        repository.mkdir(exist_ok=True)
        git.run("init", "-q", "--template=", "--initial-branch=main")
    contents, later = _changed(shared, before or {}, now)
    now = {name: state for name, state in now.items() if name not in later} | {
        name: (before or {})[name] for name in later if name in (before or {})
    }
    made, gone = "", None if before is None else before.keys() - now.keys()
    if contents or gone is None or gone:
        for reference in ("HEAD", _BRANCH):
            clear_stale_lock(repository, f"{reference}.lock")
        git.run("fast-import", "--quiet", "--force", "--date-format=now", data=_stream(git, message, contents, gone))
        made = git.text("rev-parse", "--verify", _BRANCH)
    place(repository, _STATE, json.dumps(now))
    return made


def _stream(git: Git, message: str, contents: dict[str, bytes], gone: set[str] | None) -> bytes:
    """Return the input for fast-import: one commit with these changes; if `gone` is None, with all files, because the
    last state is not known."""
    title = " ".join(message.split()).encode("utf-8", "replace")
    parts = [f"commit {_BRANCH}\ncommitter Coral <coral@coral.invalid> now\ndata {len(title)}\n".encode(), title, b"\n"]
    if git.text("for-each-ref", _BRANCH):
        parts.append(f"from {_BRANCH}^0\n".encode())
    if gone is None:
        parts.append(b"deleteall\n")
    parts.extend(f"D {name}\n".encode() for name in sorted(gone or ()))
    for name, content in sorted(contents.items()):
        parts.extend((f"M 100644 inline {name}\ndata {len(content)}\n".encode(), content, b"\n"))
    return b"".join(parts)


def _state_of(shared: Path, before: _State) -> Iterator[tuple[str, tuple[list[int], str]]]:
    """Yield every file with its mark and digest; a file is read again only if its mark changed."""
    for name, mark in islice(_files(shared), _MANY):
        known = before.get(name)
        if known is not None and known[0] == mark:
            yield name, known
        elif (content := read_below(shared, name, _LARGE)) is not None:
            yield name, (mark, hashlib.sha256(content).hexdigest())


def _changed(shared: Path, before: _State, now: _State) -> tuple[dict[str, bytes], set[str]]:
    """Return the contents that changed, up to `_AT_ONCE` bytes, and the names of the files that are left for the next
    snapshots."""
    contents: dict[str, bytes] = {}
    later: set[str] = set()
    capacity = _AT_ONCE
    for name, (mark, digest) in now.items():
        if name in before and before[name][1] == digest:
            continue
        if capacity < mark[1]:
            later.add(name)
        elif (content := read_below(shared, name, _LARGE)) is not None:
            contents[name] = content
            capacity -= len(content)
    return contents, later


def _files(shared: Path) -> Iterator[tuple[str, list[int]]]:
    """Yield the regular files that are not too large and have printable names without a dot at the beginning: the path,
    and the mark by which a change is noticed."""
    for entry in walk(shared, _DEEP, _MANY, lambda name: name.isprintable() and name[0] not in '."'):
        with contextlib.suppress(OSError):
            about = entry.stat(follow_symlinks=False)
            if about.st_size <= _LARGE:
                yield entry.path[len(f"{shared}/") :], [about.st_mtime_ns, about.st_size, about.st_ino]


def _load(repository: Path) -> _State | None:
    """Return the state of the files at the last commit; None if it is not known."""
    try:
        state = json.loads(read_plain(repository / _STATE, _STATE_LARGE) or b"")
        return {str(name): ([int(part) for part in mark], str(digest)) for name, (mark, digest) in state.items()}
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
