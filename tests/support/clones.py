"""A run without agents: its hub, and the clone of one agent to commit in, as the agent does."""

import os
import shlex
import shutil
import subprocess
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from files import write_files

from workspace import hub, intake
from workspace.clone_overlay import Instructions, write_instructions
from workspace.errors import Unacceptable
from workspace.git import load
from workspace.gitenv import FLAGS, environment, identity
from workspace.layout import Layout, create, new_run
from workspace.loose_object import object_file


def git(folder: Path, *arguments: str, data: str = "", **variables: str) -> str:
    """Run git as an agent does, with its own configuration and hooks; returns the output."""
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env=environment(**identity("a"), **variables),
        input=data,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def make_run(folder: Path, seed: Mapping[str, str], *agents: str, exclude: Sequence[str] = (".shared",)) -> Layout:
    """Make a run of this seed below the folder, with a clone for each agent; for `agent-1` alone if none is named."""
    found = new_run(folder / "runs", "task")
    create(found, agents or ["agent-1"])
    commit = hub.create(found.hub, write_files(folder / "seed", seed))
    for agent in agents or ["agent-1"]:
        hub.clone(found.hub, found.clone(agent), agent, commit, exclude)
    return found


def commit(clone: Path, content: str, **variables: str) -> str:
    (clone / "a.txt").write_text(content)
    git(clone, "add", "-A")
    git(clone, "commit", "-q", "-m", content, **variables)
    return git(clone, "rev-parse", "HEAD")


def objects(layout: Layout) -> set[str]:
    return {str(path.relative_to(layout.hub)) for path in layout.hub.rglob("*") if path.is_file()}


def crafted(clone: Path, *rows: str) -> str:
    """Make a commit of a tree with these rows, in the form of `ls-tree`; returns its id."""
    made = git(clone, "mktree", "--missing", data="".join(f"{row}\n" for row in rows))
    return git(clone, "commit-tree", made, "-m", "crafted")


def refused(layout: Layout, clone: Path, name: str, reason: str = ".") -> str:
    """Assert that a commit is refused for this reason, and that nothing of it is left; returns the hint."""
    before = objects(layout)
    with pytest.raises(Unacceptable, match=reason) as caught:
        intake.take_in(layout.hub, clone, name, 1)
    assert 0 < len(str(caught.value)) < 1000
    assert objects(layout) == before
    assert not list((layout.hub / "incoming").glob("*"))
    return caught.value.hint


def blob(clone: Path, content: str) -> str:
    return git(clone, "hash-object", "-w", "--stdin", data=content)


SETTINGS = (
    "core.fsmonitor core.sshCommand core.gitProxy core.alternateRefsCommand core.pager core.editor gpg.program "
    "diff.external diff.x.textconv uploadpack.packObjectsHook filter.x.clean filter.x.smudge filter.x.process "
    "remote.evil.uploadpack credential.helper alias.pack-objects alias.rev-list"
)
HOOKS = "post-index-change reference-transaction pre-commit post-commit pre-receive post-checkout update"


def plant(repository: Path, touched: Path) -> None:
    """Write every setting of a repository that names a program, and every hook: each touches the file `touched` when
    git runs it."""
    program = repository / ".git" / "evil"
    write_files(program.parent, {"evil": f"#!/bin/sh\necho $0 $@ >> {touched}\nexit 1\n"})
    hooks = repository / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in HOOKS.split():
        (hooks / name).symlink_to(program)
    for setting in SETTINGS.split():
        git(repository, "config", setting, str(program))
    git(repository, "config", "core.hooksPath", str(hooks))
    git(repository, "config", "log.showSignature", "true")


def instruct(clone: Path, filename: str, text: str) -> Instructions:
    """Write the instruction file of a clone of a run, which has the seed's own files."""
    ours = clone.parents[1] / "hub.git"
    return write_instructions(clone, ours, git(ours, "rev-parse", "refs/heads/main"), filename, text)


def wrap_git(folder: Path, monkeypatch: pytest.MonkeyPatch, line: str = 'echo "$@" >> "$LOG"') -> Path:
    """Put a wrapper into `folder` and first on PATH. Its line may write to $LOG, which is returned."""
    load()  # GitPython asks a git for its version when it is imported
    wrapper, log = folder / "bin" / "git", folder / "log"
    wrapper.parent.mkdir()
    git, quoted = shlex.quote(str(shutil.which("git"))), shlex.quote(str(log))
    wrapper.write_text(f'#!/bin/sh\nLOG={quoted}\n{line}\nexec {git} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{wrapper.parent}{os.pathsep}{os.environ['PATH']}")
    return log


def verbs(log: Path) -> list[str]:
    """Return the commands of git that were run, in the order of their names."""
    return sorted(line.split()[len(FLAGS)] for line in log.read_text().splitlines())


def committed(store: Path, files: Path) -> str:
    """Commit the files of a folder to a hub; return the id."""
    places = {"GIT_DIR": str(store), "GIT_WORK_TREE": str(files), "GIT_INDEX_FILE": str(store.parent / "index")}
    git(files, "add", "-A", **places)
    return git(store, "commit-tree", git(files, "write-tree", **places), "-m", "x")


def overwrite(store: Path, id: str, kind: str, content: bytes) -> None:
    """Put another content in the place of an object of a hub."""
    path = object_file(store / "objects", id)
    path.chmod(0o644)
    path.write_bytes(zlib.compress(b"%s %d\0%s" % (kind.encode(), len(content), content)))
