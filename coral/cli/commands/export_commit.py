"""An attempt as one commit in the user's own repository: a new branch and its objects, nothing else there changes.

No working tree, no index, no hook and no configuration of the user's is touched or run.
"""

from __future__ import annotations

from pathlib import Path

from coral.errors import CoralError
from workspace.git import Git, GitError
from workspace.gitenv import identity
from workspace.intake import SEED

COMMITS = 20_000  # of the user's history, newest first, searched for the seed


def repository_around(path: Path) -> Path | None:
    """The git directory of the repository that `path` is in."""
    for folder in (path.resolve(), *path.resolve().parents):
        inside = folder / ".git"
        if inside.is_file():  # a linked worktree, or a submodule
            target = inside.read_text(encoding="utf-8", errors="replace").removeprefix("gitdir:").strip()
            return (folder / target).resolve()
        if inside.is_dir():
            return inside
        if (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir():
            return folder
    return None


def export(hub: Path, commit: str, repository: Path, branch: str, agent: str, message: str) -> str:
    """Make `branch` with one commit: the attempt's files, on the commit of the user's that the run started from."""
    ours, theirs = Git(hub), Git(repository)
    _check_branch(theirs, branch)
    seed = ours.text("rev-parse", f"{SEED}^{{tree}}")
    tree = ours.text("rev-parse", f"{commit}^{{tree}}")
    base, place = _base(theirs, seed)
    ours.pipe(("pack-objects", "--revs", "--stdout", "-q"), theirs, ("unpack-objects", "-q"), data=tree.encode())
    whole = _grafted(theirs, f"{base}^{{tree}}", place, tree)
    author = theirs.with_(**identity(agent or "Coral"))
    made = author.text("commit-tree", whole, "-p", base, "-F", "-", data=message.encode("utf-8", "replace"))
    theirs.run("update-ref", "-m", "coral export", f"refs/heads/{branch}", made, "0" * len(made))
    return made


def _check_branch(theirs: Git, branch: str) -> None:
    try:
        theirs.run("check-ref-format", f"refs/heads/{branch}")
    except GitError:
        raise CoralError(f"cannot make the branch {branch!r}: git allows no such name", "--branch NAME") from None
    try:
        theirs.run("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}")
    except GitError:
        return
    raise CoralError(f"cannot make the branch {branch}: it exists", "name another: --branch NAME")


def _base(theirs: Git, seed: str) -> tuple[str, tuple[str, ...]]:
    """The commit that holds the seed and the folder in it, from the root: () when the seed is the whole commit."""
    try:
        head = theirs.text("rev-parse", "--verify", "HEAD^{commit}")
    except GitError:
        raise CoralError(f"cannot export to {theirs.directory}: it has no commit yet", "--patch FILE") from None
    folders = theirs.run("ls-tree", "-r", "-d", "-z", "--full-tree", head).decode("utf-8", "surrogateescape")
    at = [line.partition("\t")[2] for line in folders.split("\0") if line.partition("\t")[0].endswith(seed)]
    if at:
        return head, tuple(min(at, key=len).split("/"))
    history = theirs.text("log", "--format=%H %T", "-n", str(COMMITS), "HEAD", "--all").split("\n")
    for line in history:
        commit, _, tree = line.partition(" ")
        if tree == seed:
            return commit, ()
    raise CoralError(
        f"cannot export to {theirs.directory}: the run's seed is in none of its commits",
        "commit the seed there as it was, or write a patch: --patch FILE",
    )


def _grafted(theirs: Git, tree: str, place: tuple[str, ...], new: str) -> str:
    """`tree` with the folder at `place` replaced by the tree `new`."""
    if not place:
        return new
    lines = []
    for line in theirs.run("ls-tree", "-z", tree).split(b"\0"):
        about, _, name = line.partition(b"\t")
        if name == place[0].encode("utf-8", "surrogateescape"):
            mode, kind, inner = about.split(b" ")
            line = b" ".join((mode, kind, _grafted(theirs, inner.decode(), place[1:], new).encode())) + b"\t" + name
        lines.append(line)
    return theirs.text("mktree", "-z", data=b"\0".join(lines))
