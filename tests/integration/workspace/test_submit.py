"""From a working tree to a submitted commit: whatever interrupts it, no commit on the branch lacks its submission."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from clones import git, instruct, make_run
from real_runs import wait_until

from workspace import hub, intake, submit
from workspace.clone_overlay import link_shared
from workspace.errors import LockedError, SubmitError, Unacceptable
from workspace.gitenv import environment
from workspace.layout import Layout
from workspace.submit import Made, Moved


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Layout:
    seed = {"a.txt": "seed\n", "CLAUDE.md": "Words of the seed.\n"}
    found = make_run(tmp_path_factory.mktemp("template"), seed, exclude=["AGENTS.md"])
    link_shared(found.clone("agent-1"), found.shared)
    return found


def quiet(made: Made) -> None:
    """An announcement to nobody."""


def commit(clone: Path, message: str = "try", text: str = "") -> Made:
    """With that text in `a.txt`, if one is given."""
    if text:
        (clone / "a.txt").write_text(f"{text}\n")
    return submit.commit(clone, "agent-1", message, quiet)


def test_a_commit_is_announced_before_the_branch_moves(clone: Path) -> None:
    seed = git(clone, "rev-parse", "HEAD")
    (clone / "a.txt").write_text("one\n")
    (clone / "new" / "deep").mkdir(parents=True)
    (clone / "new" / "deep" / "b").write_text("b")
    seen = []

    def announce(made: Made) -> None:
        seen.append((made, git(clone, "rev-parse", "HEAD"), git(clone, "cat-file", "-t", made.commit)))

    made = submit.commit(clone, "agent-1", "  one\n\nmore of it ", announce)
    assert seen == [(made, seed, "commit")]
    assert made == Made(
        commit=git(clone, "rev-parse", "refs/heads/agent-1"),
        tree=git(clone, "rev-parse", "HEAD^{tree}"),
        parent=seed,
        branch="refs/heads/agent-1",
        unchanged=False,
    )
    assert git(clone, "status", "--short") == ""
    assert git(clone, "ls-files").split() == ["CLAUDE.md", "a.txt", "new/deep/b"]
    assert (
        git(clone, "log", "-1", "--format=%an %ae %cn %B") == "agent-1 agent-1@coral.invalid agent-1 one\n\nmore of it"
    )


def test_an_unchanged_tree_names_the_commit_that_has_it(clone: Path) -> None:
    seed = git(clone, "rev-parse", "HEAD")
    tree, branch = git(clone, "rev-parse", "HEAD^{tree}"), "refs/heads/agent-1"
    assert commit(clone) == Made(commit=seed, tree=tree, parent="", branch=branch, unchanged=True)
    made = commit(clone, text="one")
    os.utime(clone / "a.txt", (1, 1))
    assert commit(clone) == Made(commit=made.commit, tree=made.tree, parent=seed, branch=branch, unchanged=True)
    back = commit(clone, text="seed")
    assert not back.unchanged
    assert back.tree == git(clone, "rev-parse", f"{seed}^{{tree}}")


def test_commits_that_the_agent_made_itself_are_announced_as_they_are(clone: Path) -> None:
    for content in ("one", "two"):
        (clone / "a.txt").write_text(content)
        git(clone, "commit", "-q", "-a", "-m", content)
    seen: list[Made] = []
    made = submit.commit(clone, "agent-1", "both", seen.append)
    assert seen == [made]
    assert made.unchanged
    assert (made.commit, made.parent) == (git(clone, "rev-parse", "HEAD"), git(clone, "rev-parse", "HEAD~"))


def test_an_announcement_that_fails_calls_the_commit_off(clone: Path) -> None:
    seed = git(clone, "rev-parse", "HEAD")
    (clone / "a.txt").write_text("one\n")

    def refuse(made: Made) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        submit.commit(clone, "agent-1", "one", refuse)
    assert git(clone, "rev-parse", "HEAD") == seed
    assert (clone / "a.txt").read_text() == "one\n"
    assert commit(clone).parent == seed


@pytest.mark.parametrize("message", ["", "  \n ", "\0"])
def test_a_message_is_needed(clone: Path, message: str) -> None:
    with pytest.raises(SubmitError, match="without a message") as caught:
        commit(clone, message)
    assert "-m" in caught.value.hint


@pytest.mark.parametrize("message", ["--help", "-x", "# a title", "a\0b", "lone \udcff", "é" * 3000, "a\nb\rc"])
def test_any_message_is_kept_as_data(clone: Path, message: str) -> None:
    assert git(clone, "cat-file", "-t", commit(clone, message, "one").commit) == "commit"
    assert git(clone, "log", "-1", "--format=%B").startswith(message[:1])


def test_a_detached_head_and_a_branch_without_commits(clone: Path) -> None:
    git(clone, "checkout", "-q", "--detach")
    detached = commit(clone, text="one")
    assert detached.branch == ""
    assert git(clone, "rev-parse", "HEAD") == detached.commit
    git(clone, "checkout", "-q", "--orphan", "fresh")
    fresh = commit(clone)
    assert (fresh.parent, fresh.branch, fresh.unchanged) == ("", "refs/heads/fresh", False)


def test_where_the_last_commit_cannot_be_read_nothing_is_announced(clone: Path) -> None:
    """It is no branch without a commit: the one that was made for it could never be where the branch is."""
    last = commit(clone, text="one").commit
    (clone / ".git" / "objects" / last[:2] / last[2:]).unlink()
    (clone / "a.txt").write_text("two\n")
    seen: list[Made] = []
    with pytest.raises(SubmitError, match="cannot read the commit of refs/heads/agent-1"):
        submit.commit(clone, "agent-1", "two", seen.append)
    assert seen == []


def test_a_rewritten_history_and_an_unfinished_merge(clone: Path) -> None:
    commit(clone, text="one")
    git(clone, "commit", "-q", "--amend", "-m", "said better")
    git(clone, "checkout", "-q", "-b", "side", "HEAD~")
    commit(clone, text="two")
    subprocess.run(["git", "merge", "-q", "agent-1"], cwd=clone, env=environment(), capture_output=True, check=False)
    assert "<<<<<<<" in (clone / "a.txt").read_text()
    assert git(clone, "show", f"{commit(clone, text='both').commit}:a.txt") == "both"


def test_replaced_and_grafted_commits_are_not_believed(clone: Path) -> None:
    seed = git(clone, "rev-parse", "HEAD")
    tree = commit(clone, text="one").tree
    head = commit(clone, text="two").commit
    (clone / ".git" / "refs" / "replace").mkdir()
    other = git(clone, "commit-tree", tree, "-m", "other")
    (clone / ".git" / "refs" / "replace" / head).write_text(f"{other}\n")
    (clone / ".git" / "info" / "grafts").write_text(f"{head} {seed}\n")
    made = commit(clone)
    assert made.unchanged
    assert made.parent not in (seed, "")
    assert not commit(clone, text="one").unchanged


def test_everything_deleted_is_a_tree_like_any_other(clone: Path) -> None:
    for name in ("a.txt", "CLAUDE.md"):
        (clone / name).unlink()
    assert git(clone, "ls-tree", "-r", commit(clone).commit) == ""
    assert commit(clone).unchanged


# What is in the clone and not of the work.


def test_what_the_supervisor_put_there_is_never_committed(clone: Path) -> None:
    instruct(clone, "AGENTS.md", "Do well.\n")
    (clone / "__pycache__").mkdir()
    (clone / "__pycache__" / "a.pyc").write_bytes(b"\0")
    assert (clone / ".shared").is_dir()
    assert commit(clone).unchanged
    git(clone, "add", "-A")
    assert git(clone, "status", "--short") == ""


@pytest.mark.parametrize("spoil", ["nothing", "flag", "index"])
def test_an_instruction_file_that_the_seed_has_stays_as_committed(clone: Path, spoil: str) -> None:
    instruct(clone, "CLAUDE.md", "Do well.\n")
    assert (clone / "CLAUDE.md").read_text() == "Do well.\n\n---\n\nWords of the seed.\n"
    if spoil == "flag":
        git(clone, "update-index", "--no-skip-worktree", "CLAUDE.md")
    elif spoil == "index":
        (clone / ".git" / "index").unlink()
    assert commit(clone).unchanged
    assert submit.diff(clone) == ""
    made = commit(clone, text="one")
    assert git(clone, "show", f"{made.commit}:CLAUDE.md") == "Words of the seed."
    submit.revert(clone)
    submit.checkout(clone, made.commit)
    if spoil == "nothing":
        assert (clone / "CLAUDE.md").read_text().startswith("Do well.")
    instruct(clone, "CLAUDE.md", "Do better.\n")  # as at the next launch
    assert (clone / "CLAUDE.md").read_text() == "Do better.\n\n---\n\nWords of the seed.\n"
    assert commit(clone).unchanged


def test_a_repository_inside_is_refused_by_git_or_by_the_hub(layout: Layout, clone: Path) -> None:
    git(clone, "init", "-q", "inner")
    (clone / "inner" / "x").write_text("x")
    with pytest.raises(SubmitError) as caught:
        commit(clone)
    assert caught.value.hint
    git(clone / "inner", "add", "-A")
    git(clone / "inner", "commit", "-q", "-m", "x")
    with pytest.raises(SubmitError, match="inner: it is a repository of its own") as caught:
        commit(clone)
    assert "inner/.git" in caught.value.hint
    git(clone, "add", "-A")
    with pytest.raises(Unacceptable, match="inner is a repository of its own"):
        intake.take_in(layout.hub, clone, commit(clone).commit, 1)
    git(clone, "rm", "-q", "--cached", "inner")  # as the hint says
    shutil.rmtree(clone / "inner" / ".git")
    again = commit(clone)
    assert git(clone, "show", f"{again.commit}:inner/x") == "x"
    intake.take_in(layout.hub, clone, again.commit, 2)


def test_without_a_repository_the_one_above_is_not_touched(layout: Layout, clone: Path) -> None:
    git(layout.root, "init", "-q", "-b", "above")
    shutil.rmtree(clone / ".git")
    with pytest.raises(LockedError, match="cannot use the repository"):
        commit(clone)
    (clone / ".git").mkdir()
    with pytest.raises(SubmitError):
        commit(clone)
    assert git(layout.root, "for-each-ref") == ""
    assert not (layout.root / ".git" / "index").exists()


# The surroundings.


def test_neither_variables_nor_the_users_configuration_matter(clone: Path, tmp_path, monkeypatch) -> None:
    touched = tmp_path / "touched"
    home = tmp_path / "home"
    hooks = home / "hooks"
    hooks.mkdir(parents=True)
    for name in ("pre-commit", "post-commit", "reference-transaction", "post-index-change"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {touched}\nexit 1\n")
        (hooks / name).chmod(0o755)
    (home / ".gitconfig").write_text(
        f"[core]\n\thooksPath = {hooks}\n\texcludesFile = {home}/ignore\n\tautocrlf = true\n"
        f"\tfsmonitor = {hooks}/pre-commit\n"
        "[user]\n\tname = Somebody\n\tuseConfigOnly = true\n[commit]\n\tgpgSign = true\n[gpg]\n\tprogram = false\n"
    )
    (home / "ignore").write_text("*.txt\n")
    monkeypatch.setenv("HOME", str(home))
    for name in ("DIR", "INDEX_FILE", "WORK_TREE", "OBJECT_DIRECTORY", "AUTHOR_NAME", "NAMESPACE"):
        monkeypatch.setenv(f"GIT_{name}", str(tmp_path / "nowhere"))
    (clone / "b.txt").write_bytes(b"one\r\n")
    made = commit(clone)
    monkeypatch.undo()
    assert git(clone, "ls-tree", "--name-only", made.commit).split() == ["CLAUDE.md", "a.txt", "b.txt"]
    assert git(clone, "log", "-1", "--format=%an", made.commit) == "agent-1"
    assert git(clone, "cat-file", "-s", f"{made.commit}:b.txt") == "5"
    assert not touched.exists()


def test_only_the_standard_library_is_imported() -> None:
    code = "import sys, workspace.submit; print([m for m in sys.modules if m.split('.')[0] in sys.argv[1:]])"
    heavy = ["git", "pydantic", "jinja2", "rich", "asyncio", "tempfile", "shutil"]
    done = subprocess.run([sys.executable, "-P", "-c", code, *heavy], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# Interruptions. A `git` of our own stands first on PATH: it does something at one step, then runs the real one.

CHILD = """
import json, sys
from pathlib import Path
from workspace.submit import commit
clone, inbox = map(Path, sys.argv[1:])
def announce(made):
    (inbox / made.commit).write_text(json.dumps([made.tree, made.parent]))
try:
    commit(clone, "agent-1", "interrupted", announce)
except KeyboardInterrupt:
    sys.exit(130)
"""


class Wrapped:
    """Runs a submission in a process of its own, with something done before or after the git of one step."""

    def __init__(self, clone: Path, tmp_path: Path) -> None:
        self.clone, self.inbox, self.bin = clone, tmp_path / "inbox", tmp_path / "bin"
        self.inbox.mkdir()
        self.bin.mkdir()
        self.calls = tmp_path / "calls"
        self.real = shutil.which("git")

    def run(self, step: str = "none", action: str = "", when: str = "before") -> int:
        self.calls.write_text("")
        wrapper = self.bin / "git"
        wrapper.write_text(
            f'#!/bin/sh\necho "$@" >> {self.calls}\ncase " $* " in *" {step} "*) now={when};; esac\n'
            f'[ "$now" = before ] && {{ {action or ":"}; }}\n'
            f'[ "$now" = after ] || exec {self.real} "$@"\n{self.real} "$@"; code=$?\n{action or ":"}\nexit $code\n'
        )
        wrapper.chmod(0o755)
        variables = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}"}
        command = [sys.executable, "-P", "-c", CHILD, str(self.clone), str(self.inbox)]
        done = subprocess.run(command, env=variables, check=False, start_new_session=True, capture_output=True)
        wait_until(lambda: not (self.clone / ".git" / "index.lock").exists() or not _git_runs(self.clone))
        return done.returncode

    def unannounced(self) -> set[str]:
        """Commits of the branch that nobody was told of."""
        seed = git(self.clone, "rev-list", "--max-parents=0", "HEAD")
        return {*git(self.clone, "rev-list", "HEAD").split()} - {seed} - {path.name for path in self.inbox.iterdir()}


def _git_runs(clone: Path) -> bool:
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "comm").read_text().startswith("git") and (entry / "cwd").readlink() == clone:
                return True
        except OSError:
            continue
    return False


@pytest.fixture
def wrapped(clone: Path, tmp_path) -> Iterator[Wrapped]:
    (clone / "a.txt").write_text("one\n")
    return Wrapped(clone, tmp_path)


STEPS = ["rev-parse", "add", "write-tree", "commit-tree", "update-ref"]


def test_five_processes_of_git_and_three_when_nothing_changed(wrapped: Wrapped) -> None:
    assert wrapped.run() == 0
    lines = wrapped.calls.read_text().splitlines()
    assert {next(word for word in line.split() if word in STEPS) for line in lines} == set(STEPS)
    assert len(lines) == len(STEPS)
    assert wrapped.run() == 0
    assert len(wrapped.calls.read_text().splitlines()) == 3


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step(wrapped: Wrapped, clone: Path, step: str, when: str) -> None:
    assert wrapped.run(step, "kill -9 $PPID", when) == -signal.SIGKILL
    wait_until(lambda: not _git_runs(clone))
    assert wrapped.unannounced() == set()
    assert len(list(wrapped.inbox.iterdir())) == (step == STEPS[-1])
    made = commit(clone, "after the kill", "two")
    assert git(clone, "rev-parse", "HEAD") == made.commit
    assert git(clone, "show", "HEAD:a.txt") == "two"
    assert git(clone, "fsck", "--no-dangling") == ""


@pytest.mark.parametrize("whom", ["$PPID", "-$PPID"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_interrupted_at_any_step(wrapped: Wrapped, clone: Path, step: str, when: str, whom: str) -> None:
    assert wrapped.run(step, f"kill -INT {whom}", when) == 130
    assert wrapped.unannounced() == set()
    # Once announced, the branch moves too: the signal waits for it.
    moved = git(clone, "rev-parse", "HEAD") in {path.name for path in wrapped.inbox.iterdir()}
    assert moved == (step == STEPS[-1])
    # A signal that meets git between making its lock and noting it leaves the lock; the next command removes it.
    assert commit(clone, "again").unchanged == moved


def test_interrupted_while_git_holds_its_lock_the_lock_goes_too(wrapped: Wrapped, clone: Path, tmp_path) -> None:
    """A filter of the agent's that takes long; the signal reaches us alone, and git by us."""
    git(clone, "config", "filter.slow.clean", f"touch {tmp_path}/started; sleep 600")
    (clone / ".gitattributes").write_text("*.txt filter=slow\n")
    command = [sys.executable, "-P", "-c", CHILD, str(clone), str(wrapped.inbox)]
    with subprocess.Popen(command, start_new_session=True) as child:
        wait_until((tmp_path / "started").exists)
        assert (clone / ".git" / "index.lock").exists()
        child.send_signal(signal.SIGINT)
        assert child.wait(120) == 130
        os.killpg(child.pid, signal.SIGKILL)  # the filter itself
    assert not (clone / ".git" / "index.lock").exists()
    assert list(wrapped.inbox.iterdir()) == []


def test_killed_with_all_of_git_while_the_branch_moves(wrapped: Wrapped, clone: Path) -> None:
    wrapped.run("update-ref", "touch .git/HEAD.lock .git/refs/heads/agent-1.lock .git/index.lock; kill -9 -$PPID")
    (submitted,) = (path.name for path in wrapped.inbox.iterdir())
    assert git(clone, "rev-parse", "HEAD") != submitted
    made = commit(clone, "the same work again")
    assert made.tree == json.loads((wrapped.inbox / submitted).read_text())[0]
    assert git(clone, "rev-parse", "HEAD") == made.commit


def test_two_submissions_at_once_follow_each_other(clone: Path) -> None:
    made: list[Made] = []

    def work(name: str) -> None:
        (clone / name).write_text(name)
        made.append(commit(clone, name))

    threads = [threading.Thread(target=work, args=(name,)) for name in ("x", "y")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert git(clone, "ls-files").split() == ["CLAUDE.md", "a.txt", "x", "y"]
    assert git(clone, "status", "--short") == ""
    assert len(made) == 2


# The commands beside `coral eval`.


def test_diff_shows_what_would_be_submitted_and_stages_nothing(clone: Path) -> None:
    (clone / "a.txt").write_text("one\n")
    (clone / "new").write_text("new\n")
    before = (clone / ".git" / "index").read_bytes()
    text = submit.diff(clone)
    assert "+one" in text
    assert "+new" in text
    assert (clone / ".git" / "index").read_bytes() == before
    assert git(clone, "diff", "--cached") == ""
    commit(clone)
    assert submit.diff(clone) == ""


def test_revert_steps_back_once_and_keeps_what_was_not_committed(clone: Path) -> None:
    seed = git(clone, "rev-parse", "HEAD")
    first = commit(clone, text="one")
    (clone / "a.txt").write_text("draft\n")
    (clone / "new").write_text("new\n")
    moved = submit.revert(clone)
    assert moved.commit == first.commit
    assert (clone / "a.txt").read_text() == "one\n"
    assert not (clone / "new").exists()
    assert git(clone, "show", f"{moved.saved}:new") == "new"
    assert moved.saved in git(clone, "for-each-ref", "--format=%(objectname)")
    assert submit.revert(clone) == Moved(commit=seed, saved="")
    assert (clone / "a.txt").read_text() == "seed\n"
    assert git(clone, "symbolic-ref", "HEAD") == "refs/heads/agent-1"
    with pytest.raises(SubmitError, match="no commit before"):
        submit.revert(clone)


def test_checkout_goes_to_any_attempt_of_the_run(layout: Layout, clone: Path) -> None:
    other = layout.clone("agent-2")
    hub.clone(layout.hub, other, "agent-2", git(clone, "rev-parse", "HEAD"), [])
    (other / "a.txt").write_text("theirs\n")
    (other / "extra").write_text("x")
    theirs = submit.commit(other, "agent-2", "theirs", quiet)
    intake.take_in(layout.hub, other, theirs.commit, 1)
    (clone / "draft").write_text("mine\n")
    moved = submit.checkout(clone, theirs.commit)
    assert moved.commit == theirs.commit
    assert sorted(path.name for path in clone.iterdir()) == [".git", ".shared", "CLAUDE.md", "a.txt", "extra"]
    assert git(clone, "symbolic-ref", "HEAD") == "refs/heads/agent-1"
    assert commit(clone).unchanged
    assert submit.checkout(clone, moved.saved).commit == moved.saved
    assert (clone / "draft").read_text() == "mine\n"


@pytest.mark.parametrize("name", ["nothing", "--help", "", "0" * 40])
def test_checkout_of_what_is_not_there(clone: Path, name: str) -> None:
    with pytest.raises(SubmitError, match="no such commit"):
        submit.checkout(clone, name)
