"""What `workspace.submit` says of the commits in an agent's clone: a module of its own, imported while git works."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Made:
    """A commit. `unchanged`: the tree is the last commit's, and `commit` is that one. `branch` is "" when detached."""

    commit: str
    tree: str
    parent: str
    branch: str
    unchanged: bool


@dataclass(frozen=True, slots=True)
class Moved:
    """Where the branch is now; `saved` is a commit of what was not committed before, or ""."""

    commit: str
    saved: str


@dataclass(frozen=True, slots=True)
class Head:
    """The commit that HEAD leads to, "" where there is none yet, and the branch, "" when detached."""

    commit: str
    tree: str
    parents: tuple[str, ...]
    branch: str
