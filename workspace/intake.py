"""Taking a commit from an agent's clone into the hub, where it is pinned for good.

Rules: of the clone only its objects are read - never its configuration, references or hooks, which are the agent's to
write - and they pass through a quarantine that recomputes every name; what is refused leaves nothing behind.
What is pinned is complete: objects move into the hub before what refers to them, so a kill in between is made good by
the next try.
"""

from __future__ import annotations

import contextlib
import graphlib
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from workspace.errors import GitError, ReaderError, Unacceptable
from workspace.git import Git
from workspace.loose import parse_header, read_header
from workspace.tree import MAX_BYTES, MAX_FILES, check, parse, too_many

SEED = "refs/heads/main"
_ID = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
TIMEOUT = 60.0  # seconds
_WINDOW = 64  # commits looked at; more than these between two submissions only cost a longer walk
# What the disk or the system says when it is not the candidate's doing.
_OURS = (
    *("No space left", "Permission denied", "Read-only file system", "Input/output error", "quota exceeded"),
    *("Too many open files", "Cannot allocate memory", "Out of memory", "File too large"),
)


@dataclass(frozen=True, slots=True)
class Taken:
    """A commit in the hub. `parent`: the nearest first-parent ancestor that was there before it, or ""."""

    commit: str
    tree: str
    parent: str


def take_in(hub: Path, clone: Path, commit: str, number: int) -> Taken:
    """Bring `commit` into the hub and pin it as `refs/attempts/<number>`; doing it again changes nothing.

    Raises Unacceptable for what its author did, GitError for what we cannot do.
    """
    if not _ID.fullmatch(commit):
        raise Unacceptable(f"not a commit: {commit[:80]!r}")
    with _quarantine(hub, number) as incoming:
        if not _object(hub / "objects", commit).exists():
            _transfer(hub, clone, commit, incoming)
        inside = _reading(hub, incoming, hub / "objects")
        taken = _describe(inside, incoming, hub / "objects", commit)
        examine(inside, commit)
        _settle(incoming, hub / "objects")
    pin(hub, number, commit)
    return taken


def pin(hub: Path, number: int, commit: str) -> None:
    """Keep `commit` for as long as the run: `refs/attempts/<number>`, written once."""
    name = f"refs/attempts/{int(number)}"
    store = Git(hub)
    try:
        store.run("update-ref", name, full(commit), "0" * len(commit))
    except GitError as error:
        if store.text("for-each-ref", "--format=%(objectname)", name) != commit:
            raise GitError(f"cannot pin attempt {number} at {commit}: {error}") from error


def full(commit: str) -> str:
    """`commit` if it is a whole commit id: anything else could be read as an option or another revision."""
    if not _ID.fullmatch(commit):
        raise GitError(f"not a whole commit id: {commit[:80]!r}")
    return commit


def examine(store: Git, commit: str) -> None:
    """Refuse a tree that cannot be checked out safely (Unacceptable)."""
    limit = MAX_FILES * 500
    listing = store.run("ls-tree", "-r", "-l", "-z", "--full-tree", commit, limit=limit, cut=True)
    if len(listing) == limit:
        raise too_many()

    def read(blobs: list[str]) -> Mapping[str, bytes]:
        return dict(zip(blobs, _contents(store, blobs), strict=True))

    check(parse(listing), read)


def _contents(store: Git, blobs: list[str]) -> Iterator[bytes]:
    """What `cat-file --batch` prints: `<id> blob <size>`, the bytes, an end of line."""
    output = store.run("cat-file", "--batch", data="".join(f"{blob}\n" for blob in blobs).encode())
    at = 0
    for _ in blobs:
        end = output.index(b"\n", at)
        size = int(output[at:end].split()[2])
        yield output[end + 1 : end + 1 + size]
        at = end + 1 + size + 1


@contextlib.contextmanager
def _quarantine(hub: Path, number: int) -> Iterator[Path]:
    """A folder for objects that are not accepted yet, on the hub's own disk."""
    folder = hub / "incoming" / str(int(number))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _reading(hub: Path, objects: Path, *more: Path) -> Git:
    """The hub's git, with its own configuration, on other objects."""
    others = ":".join('"' + str(path.absolute()).replace("\\", "\\\\").replace('"', '\\"') + '"' for path in more)
    return Git(hub, GIT_OBJECT_DIRECTORY=objects, GIT_ALTERNATE_OBJECT_DIRECTORIES=others)


def _transfer(hub: Path, clone: Path, commit: str, incoming: Path) -> None:
    """Pack what the hub lacks, and unpack it in the quarantine, where a wrong name or a missing link is an error."""
    theirs = clone / ".git" / "objects"
    if not theirs.is_dir():
        raise Unacceptable("its clone has no repository any more", "git init will not help: ask the operator")
    source = _reading(hub, theirs, hub / "objects")
    into = _reading(hub, incoming, hub / "objects")
    # Uncompressed and without deltas, so that the limit below holds for what the objects really are.
    pack = ("pack-objects", "--revs", "--stdout", "--local", "-q", "--no-reuse-object", "--no-reuse-delta")
    plain = ("--window=0", "--compression=0", "--threads=1")
    unpack = ("unpack-objects", "-q", "--strict", f"--max-input-size={MAX_BYTES}")
    try:
        known = (f"^{name}" for name in _boundary(commit, theirs, hub / "objects"))
        wanted = "\n".join((commit, f"^{SEED}", *known, ""))
        source.pipe((*pack, *plain), into, unpack, data=wanted.encode(), timeout=TIMEOUT)
    except GitError as error:
        full_disk = isinstance(error, ReaderError) and any(sign in error.detail for sign in _OURS)
        if full_disk or error.killed:
            raise
        Git(hub).run("rev-parse", "--verify", "--quiet", SEED)  # raises if it is the hub that cannot be used
        raise Unacceptable(f"the commit cannot be read: {_said(error)}", "see `git fsck`") from error


def _boundary(commit: str, theirs: Path, ours: Path) -> list[str]:
    """Commits before `commit` that the hub has: what they reach need not be walked. Missing one only costs time."""
    found: list[str] = []
    ahead = [commit]
    for _ in range(_WINDOW):
        if not ahead:
            break
        header = read_header(_object(theirs, ahead.pop()))
        for parent in header.parents if header else ():
            (found if _object(ours, parent).exists() else ahead).append(parent)
    return found


def _describe(inside: Git, incoming: Path, ours: Path, commit: str) -> Taken:
    """Read the commit where every name has been recomputed, and find the nearest ancestor that is not in quarantine."""
    header = read_header(_object(incoming, commit)) or read_header(_object(ours, commit))
    if header is None:  # in a pack, then, as the seed is
        about, _, body = inside.run("cat-file", "--batch", data=f"{commit}\n".encode()).partition(b"\n")
        header = parse_header(body) if about.split()[1:2] == [b"commit"] else None
    if header is None:
        raise Unacceptable("it is not a commit")
    ancestor = next(iter(header.parents), "")
    while ancestor and (older := read_header(_object(incoming, ancestor))):
        ancestor = next(iter(older.parents), "")
    return Taken(commit, header.tree, ancestor)


def _settle(incoming: Path, objects: Path) -> None:
    """Move the quarantined objects into the hub: commits last, and after their parents."""
    names = [folder.name + file.name for folder in incoming.glob("??") for file in folder.iterdir()]
    commits = {name: header.parents for name in names if (header := read_header(_object(incoming, name)))}
    in_order = (name for name in graphlib.TopologicalSorter(commits).static_order() if name in commits)
    for name in (*(name for name in names if name not in commits), *in_order):
        target = _object(objects, name)
        target.parent.mkdir(exist_ok=True)
        _object(incoming, name).replace(target)


def _object(objects: Path, name: str) -> Path:
    return objects / name[:2] / name[2:]


def _said(error: GitError) -> str:
    """What git itself complained of, for the author of the commit."""
    return "it took too long" if error.timed_out else str(error).partition(": ")[2]
