"""The agent's git: commits a working tree, and announces the commit. Standard library only, and few processes.

The submission is written before the branch moves, so that every commit on the branch has one, whatever interrupts this
process. Signals are held back in between (they reach this process and git a few milliseconds later). After a kill -9 in
between, the work is submitted and still in the working tree, and the next commit is made as usual.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

from workspace.errors import SubmitError
from workspace.gitenv import FLAGS, environment, identity
from workspace.locks import clear_stale_lock, one_at_a_time
from workspace.plain_file import OWN_USERS, read_plain

OURS = "info/coral"  # in .git: names of the tracked files that the supervisor replaced by its own, one per line
_LARGEST_INDEX, _LONGEST_LIST = 1 << 30, 1 << 20  # bytes
_SAVED = "refs/coral/saved"
_FILES_COMPARED = 100  # in one commit, line by line
_EMBEDDED = "warning: adding embedded git repository: "
_ABOUT_HEAD = ("rev-parse", "HEAD", "HEAD^{tree}", "HEAD^@", "--symbolic-full-name", "HEAD")
_HELD_BACK = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Made(SimpleNamespace):  # no dataclass: to import what makes one takes 6 ms of each eval
    """A commit. `unchanged`: the tree is the last commit's, and `commit` is that commit. `branch`: "" if the head is
    detached."""

    commit: str
    tree: str
    parent: str
    branch: str
    unchanged: bool


class Moved(SimpleNamespace):
    """Where the branch is now. `saved`: a commit with the changes that were not committed before, or ""."""

    commit: str
    saved: str


class _Head(SimpleNamespace):
    commit: str
    tree: str
    parents: tuple[str, ...]
    branch: str


def commit(
    clone: Path,
    agent: str,
    message: str,
    announce: Callable[[Made], None],
    meanwhile: Callable[[], object] = lambda: None,
) -> Made:
    """Commit everything in the clone, calling `announce` before the branch moves.

    `announce` is called once, for an unchanged tree too (an agent may commit by itself). If it raises, branch and files
    stay as they are. `meanwhile` is called each time that git works for long.
    """
    title = message.replace("\0", "").strip()
    if not title:
        raise SubmitError("cannot submit without a message", 'say what you changed: coral eval -m "..."')
    git = _Clone(clone, agent)
    with one_at_a_time(git.directory):
        with git.begun(*_ABOUT_HEAD) as end:
            tree = git.add(meanwhile)
            head = git.head_from(end)
        unchanged = tree == head.tree
        made = Made(
            commit=head.commit if unchanged else git.commit_tree(tree, head.commit, title, meanwhile),
            tree=tree,
            parent=next(iter(head.parents), "") if unchanged else head.commit,
            branch=head.branch,
            unchanged=unchanged,
        )
        git.clear_reference_locks(head.branch)
        with _signals_held_back():
            announce(made)
            if not made.unchanged:
                git.move(made.commit, head.commit, title)
    return made


def changes(clone: Path, made: Made) -> tuple[list[str], str]:
    """Return the paths of the files that a commit changes, and the changed lines. No lines of files over 256 kB, nor of
    a commit that changes more than a hundred files."""
    if not made.parent:
        return [], ""
    git, compared = _Clone(clone, ""), ("-r", "--no-renames", made.parent, made.tree)
    files = git.run("diff-tree", "--name-only", "-z", *compared).strip("\0").split("\0")
    if len(files) > _FILES_COMPARED:
        return files, ""
    shown = ("-U0", "--no-color", "--no-ext-diff", "--no-textconv")
    text = git.run("-c", "core.bigFileThreshold=256k", "diff-tree", *shown, *compared)
    lines = (line for line in text.splitlines() if line[:1] in ("+", "-") and line[:3] not in ("+++", "---"))
    return files, "\n".join(lines)


def diff(clone: Path) -> str:
    """Return what the next submission would change since the last commit, new files included. The index stays as it
    is."""
    git = _Clone(clone, "")
    scratch = git.directory / "coral-diff-index"
    with one_at_a_time(git.directory):
        for leftover in (scratch, scratch.with_suffix(".lock")):  # of a killed command: only one at a time uses them
            leftover.unlink(missing_ok=True)
        if (index := read_plain(git.directory / "index", _LARGEST_INDEX)) is not None:
            scratch.write_bytes(index)
        git.environment["GIT_INDEX_FILE"] = str(scratch)
        try:
            git.add()
            return git.run("diff", "--cached", "--no-ext-diff", "--no-textconv", "--no-color", "HEAD", "--")
        finally:
            scratch.unlink(missing_ok=True)


def revert(clone: Path, agent: str = "") -> Moved:
    """Go back one step: to the last commit if anything is not committed, else to the commit before it. SubmitError if
    there is none."""
    git = _Clone(clone, agent)
    with one_at_a_time(git.directory):
        head = git.head()
        tree = git.add()
        before = (head.commit,) if tree != head.tree else head.parents
        if not before or not head.commit:
            raise SubmitError("cannot revert: there is no commit before this one")
        return git.travel(before[0], head, tree)


def checkout(clone: Path, commit: str, agent: str = "") -> Moved:
    """Put the branch and the files at `commit`, which may be any commit of the run: an agent's own or another's."""
    git = _Clone(clone, agent)
    with one_at_a_time(git.directory):
        try:
            target = git.run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}")
        except SubmitError as error:
            raise SubmitError(f"cannot check out {commit!r}: no such commit", "coral log lists the attempts") from error
        return git.travel(target, git.head(), git.add())


def _become_owner(clone: Path) -> None:
    """Make this process, if it is root's, run as the user of the agent that owns the clone: files that git writes must
    not be closed to that agent, and git refuses to work in another user's repository."""
    owner = clone.stat()
    if owner.st_uid in OWN_USERS and os.geteuid() == 0:
        os.setgroups([folder.stat().st_gid for folder in clone.parents[:3]])
        os.setresgid(owner.st_gid, owner.st_gid, owner.st_gid)
        os.setresuid(owner.st_uid, owner.st_uid, owner.st_uid)


class _Clone:
    """Git on one clone, whose directory is given: otherwise git would use the repository above a clone without .git."""

    def __init__(self, clone: Path, agent: str) -> None:
        self.clone = clone.resolve()
        _become_owner(self.clone)
        self.error_lines: list[str] = []  # the last command's standard error
        self.directory = self.clone / ".git"
        who = identity(agent or self.clone.name)
        self.environment = environment(GIT_DIR=self.directory, GIT_WORK_TREE=self.clone, **who)

    def run(self, *arguments: str, data: bytes = b"") -> str:
        """Run a command; returns its standard output, stripped."""
        with self.begun(*arguments) as end:
            return end(data)

    @contextlib.contextmanager
    def begun(self, *arguments: str) -> Iterator[Callable[[bytes], str]]:
        """Start a git; yields a function that waits for its end and returns its standard output, stripped. If the
        context is left by an exception, git is terminated, so that it removes its lock file."""
        command, pipe = ["git", *FLAGS, *arguments], subprocess.PIPE
        try:
            git = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=self.environment, cwd=self.clone)
        except FileNotFoundError as error:
            raise SubmitError(
                "cannot find the program git, or the clone", "install git; see that it is on PATH"
            ) from error
        with git:
            try:
                yield lambda data: self._end(git, arguments[0], data)
            except BaseException:
                git.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    git.wait(2)
                git.kill()
                raise

    def _end(self, git: subprocess.Popen[bytes], verb: str, data: bytes) -> str:
        output, errors = git.communicate(data)
        self.error_lines = errors.decode("utf-8", "replace").splitlines()
        if git.returncode:
            reason = " ".join(line for line in self.error_lines if line and not line.startswith(("hint:", "warning:")))
            raise SubmitError(f"cannot run git {verb}: {reason[-500:] or git.returncode}")
        return output.decode("utf-8", "replace").strip()

    def head(self) -> _Head:
        with self.begun(*_ABOUT_HEAD) as end:
            return self.head_from(end)

    def head_from(self, end: Callable[[bytes], str]) -> _Head:
        """Return the commit, its tree and parents and the branch, from the one process that `end` waits for."""
        try:
            words = end(b"").split()
        except SubmitError as error:
            branch = self.run("symbolic-ref", "HEAD")
            if self.run("for-each-ref", "--format=%(refname)", branch):
                # As a branch without a commit, it could not be moved after the submission was written.
                raise SubmitError(f"cannot read the commit of {branch}", "`git fsck` says what is damaged") from error
            return _Head(commit="", tree="", parents=(), branch=branch)  # no commit yet
        branch = words.pop() if words[-1].startswith("refs/") else ""
        parents = tuple(word for word in words[2:] if word != "HEAD")
        return _Head(commit=words[0], tree=words[1], parents=parents, branch=branch)

    def add(self, meanwhile: Callable[[], object] = lambda: None) -> str:
        """Put everything except the supervisor's files into the index; returns its tree."""
        clear_stale_lock(self.directory)
        if not (self.directory / "index").exists() and self.head().commit:
            self.run("read-tree", "HEAD")  # or files of ours that the seed has would count as deleted
        ours = (read_plain(self.directory / OURS, _LONGEST_LIST) or b"").decode("utf-8", "replace").splitlines()
        try:
            with self.begun("add", "-A", "--", ":(top)", *(f":(top,exclude,literal){name}" for name in ours)) as end:
                meanwhile()
                end(b"")
        except SubmitError as error:
            raise SubmitError(str(error), "remove what git cannot add, or name it in .gitignore") from error
        inside = [line.removeprefix(_EMBEDDED) for line in self.error_lines if line.startswith(_EMBEDDED)]
        if inside:
            self.run("update-index", "--force-remove", "--", *inside)  # or it would stay in the index
            hint = f"remove {inside[0]}/.git, or name {inside[0]} in .gitignore"
            raise SubmitError(f"cannot submit {inside[0]}: it is a repository of its own", hint)
        with self.begun("write-tree") as end:
            meanwhile()
            return end(b"")

    def move(self, new: str, old: str, why: str) -> None:
        """Move the branch (or the detached head) from `old` to `new`, and nothing else."""
        line = why.splitlines()[0][:200]
        self.run("update-ref", "-m", f"coral: {line}", "HEAD", new, old or "0" * len(new))

    def clear_reference_locks(self, branch: str) -> None:
        """Remove locks that a killed git left on the references that `move` will write."""
        for name in ("HEAD", branch):
            if name:
                clear_stale_lock(self.directory, f"{name}.lock")

    def commit_tree(self, tree: str, parent: str, message: str, meanwhile: Callable[[], object] = lambda: None) -> str:
        parents = ("-p", parent) if parent else ()
        with self.begun("commit-tree", tree, *parents, "-F", "-") as end:
            meanwhile()
            return end(message.encode("utf-8", "replace") + b"\n")

    def travel(self, target: str, head: _Head, tree: str) -> Moved:
        """Save `tree` as a commit with a reference, unless it is committed; then put files and branch at `target`."""
        saved = ""
        if tree != head.tree:
            saved = self.commit_tree(tree, head.commit, "Not committed")
            self.run("update-ref", f"{_SAVED}/{saved[:12]}", saved)
        self.clear_reference_locks(head.branch)
        with _signals_held_back():
            self.run("read-tree", "-u", "--reset", target)
            if target != head.commit:
                self.move(target, head.commit, f"to {target[:12]}")
        return Moved(commit=target, saved=saved)


@contextlib.contextmanager
def _signals_held_back() -> Iterator[None]:
    """Hold back the signals that end this process, for git too, which inherits the mask; they are delivered
    afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _HELD_BACK)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
