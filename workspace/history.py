"""The history of shared knowledge: a git repository in the folder itself, that the supervisor alone commits to.

Rules: agents can write there, so git never reads the files: it gets their contents from us, and no filter, hook or
ignore list of theirs has a say. A folder in which nothing changed costs a look at its files and no process; a
repository that was damaged is put aside and begun anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

from workspace.clone_overlay import place
from workspace.errors import GitError
from workspace.git import Git
from workspace.locks import clear_stale_lock
from workspace.plain_file import read_plain

_BRANCH = "refs/heads/main"
_STATE = "coral-state.json"
_LARGE = 1_000_000
_AT_ONCE = 32_000_000  # bytes that one snapshot holds in memory
_STATE_LARGE = 8_000_000
_MANY = 5_000
_DEEP = 6
_LOOKS = 20_000  # names, in folders that may hold nothing but folders

# path -> (what the file system says, digest of the content)
_State = dict[str, tuple[list[int], str]]


@dataclass(frozen=True, slots=True)
class Change:
    """One commit of the history; `at` is ISO-8601."""

    commit: str
    at: str
    message: str
    files: tuple[str, ...]


def snapshot(shared: Path, message: str) -> str:
    """Commit what changed in the folder since the last time; the new commit, or "" if nothing did."""
    if not shared.is_dir():
        return ""
    repository = shared / ".git"
    if repository.is_symlink() or repository.is_file():
        _put_aside(repository)
    try:
        return _snapshot(shared, message)
    except GitError:
        if not _is_damaged(repository):
            raise
        _put_aside(repository)
        return _snapshot(shared, message)


def history(shared: Path, limit: int = 20) -> list[Change]:
    """The last commits, newest first."""
    git = Git(shared / ".git")
    if not (git.directory / "objects").is_dir() or not git.text("for-each-ref", _BRANCH):
        return []
    layout = "--format=%x01%H%x02%cI%x02%s%x02"
    plain = ("--no-show-signature", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames")
    log = ("-c", "core.quotePath=false", "log", *plain, "--name-only", layout, "-n", str(int(limit)), _BRANCH, "--")
    return [_change(part) for part in git.text(*log).split("\x01")[1:]]


def _is_damaged(repository: Path) -> bool:
    """Whether git finds fault with it: a disk that is full or slow, or no git at all, must not cost the history."""
    try:
        Git(repository).run("fsck", "--connectivity-only")
    except GitError as error:
        return bool(error.detail) and not (error.timed_out or error.killed)
    return False


def _put_aside(repository: Path) -> None:
    """Make room for a new repository; nothing is deleted."""
    repository.rename(repository.with_name(f".git.broken-{time.time_ns()}"))


def _change(part: str) -> Change:
    commit, at, message, files = part.split("\x02", 3)
    return Change(commit, at, message, tuple(line for line in files.split("\n") if line))


def _snapshot(shared: Path, message: str) -> str:
    repository = shared / ".git"
    before = _load(repository)
    now = dict(_look(shared, before or {}))
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
    made = ""
    if contents or before is None or before.keys() - now.keys():
        for reference in ("HEAD", _BRANCH):
            clear_stale_lock(repository, f"{reference}.lock")
        gone = None if before is None else before.keys() - now.keys()
        git.run("fast-import", "--quiet", "--force", "--date-format=now", data=_stream(git, message, contents, gone))
        made = git.text("rev-parse", "--verify", _BRANCH)
    place(repository, _STATE, json.dumps(now))
    return made


def _stream(git: Git, message: str, contents: dict[str, bytes], gone: set[str] | None) -> bytes:
    """What fast-import reads: one commit; without a known state (`gone` is None) it holds all there is."""
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


def _look(shared: Path, before: _State) -> Iterator[tuple[str, tuple[list[int], str]]]:
    """Every file with what it is; the digest is taken again only where the file system says that it changed."""
    for name, mark in islice(_files(shared, "", 0, count()), _MANY):
        known = before.get(name)
        if known is not None and known[0] == mark:
            yield name, known
        elif (content := read_plain(shared / name, _LARGE)) is not None:
            yield name, (mark, hashlib.sha256(content).hexdigest())


def _changed(shared: Path, before: _State, now: _State) -> tuple[dict[str, bytes], set[str]]:
    """What changed, as far as memory allows at one time, and the names of what is left for the next snapshots."""
    contents: dict[str, bytes] = {}
    later: set[str] = set()
    capacity = _AT_ONCE
    for name, (mark, digest) in now.items():
        if name in before and before[name][1] == digest:
            continue
        if capacity < mark[1]:
            later.add(name)
        elif (content := read_plain(shared / name, _LARGE)) is not None:
            contents[name] = content
            capacity -= len(content)
    return contents, later


def _files(shared: Path, below: str, depth: int, looks: Iterator[int]) -> Iterator[tuple[str, list[int]]]:
    """Regular files, by path, that are small and plainly named; links and dot names are not looked at."""
    try:
        with os.scandir(shared / below) as entries:
            found = sorted(islice(entries, _MANY), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in found:
        if entry.name.startswith((".", '"')) or not entry.name.isprintable():
            continue
        if next(looks) >= _LOOKS:
            return
        try:
            about = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        name = f"{below}{entry.name}"
        if stat.S_ISDIR(about.st_mode) and depth < _DEEP:
            yield from _files(shared, f"{name}/", depth + 1, looks)
        elif stat.S_ISREG(about.st_mode) and about.st_size <= _LARGE:
            yield name, [about.st_mtime_ns, about.st_size, about.st_ino]


def _load(repository: Path) -> _State | None:
    """What the last commit held; None if that is not known."""
    try:
        state = json.loads(read_plain(repository / _STATE, _STATE_LARGE) or b"")
        return {str(name): ([int(part) for part in mark], str(digest)) for name, (mark, digest) in state.items()}
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
