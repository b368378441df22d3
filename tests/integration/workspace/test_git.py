"""The supervisor's git: nothing of the surroundings reaches it, and nothing it runs outlives its deadline."""

import os
import shlex

import pytest
from real_runs import is_alive, wait_until

from workspace.errors import GitError, ReaderError
from workspace.git import Git, scrub_environment
from workspace.gitenv import environment


@pytest.fixture
def repository(tmp_path) -> Git:
    folder = tmp_path / "repository"
    folder.mkdir()
    git = Git(folder / ".git")
    git.run("init", "-q", "--template=", "--initial-branch=main")
    (folder / "a.txt").write_text("one\n")
    work = Git(git.directory, GIT_WORK_TREE=folder)
    work.run("add", "-A")
    git.run("update-ref", "HEAD", git.text("commit-tree", git.text("write-tree"), "-m", "first"))
    return git


def test_variables_of_the_caller_do_not_redirect_it(repository: Git, monkeypatch, tmp_path):
    head = repository.text("rev-parse", "HEAD")
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_CONFIG_PARAMETERS"):
        monkeypatch.setenv(name, str(tmp_path / "nowhere"))
    assert repository.text("rev-parse", "HEAD") == head
    assert not [name for name in os.environ if name.startswith("GIT_")]
    assert not [name for name in environment() if name in ("GIT_DIR", "GIT_WORK_TREE")]


def test_configuration_of_the_user_is_not_read(repository: Git, monkeypatch, tmp_path):
    home = tmp_path / "home"
    (home / ".config" / "git").mkdir(parents=True)
    (home / ".gitconfig").write_text("[user]\n\tname = Somebody\n[core]\n\tabbrev = 5\n")
    (home / ".config" / "git" / "ignore").write_text("*.txt\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    assert repository.text("log", "-1", "--format=%an <%ae>") == "Coral <Coral@coral.invalid>"
    assert len(repository.text("rev-parse", "--short", "HEAD")) > 5
    (repository.directory.parent / "b.txt").write_text("two\n")
    assert "b.txt" in Git(repository.directory, GIT_WORK_TREE=repository.directory.parent).text("status", "--short")


def test_a_repository_that_is_gone_does_not_lead_to_the_one_above(repository: Git) -> None:
    inner = repository.directory.parent / "inner"
    inner.mkdir()
    with pytest.raises(GitError, match="not a git repository"):
        Git(inner / ".git").run("rev-parse", "HEAD")


def test_too_much_output_fails_or_is_cut(repository: Git) -> None:
    with pytest.raises(GitError, match="more than 10 bytes"):
        repository.run("log", limit=10)
    assert repository.run("log", limit=10, cut=True) == b"commit " + repository.run("rev-parse", "HEAD")[:3]
    assert repository.run("rev-parse", "HEAD", limit=41, cut=True).endswith(b"\n")


def _waits(repository: Git, seconds: int) -> Git:
    """A git that starts a child which sleeps: an alias is the simplest."""
    script = shlex.quote(str(repository.directory / "child.pid"))
    repository.run("config", "alias.slow", f"!echo $$ > {script}.part; mv {script}.part {script}; exec sleep {seconds}")
    return repository


def test_at_the_deadline_git_and_its_children_are_gone(repository: Git) -> None:
    git, pid_file = _waits(repository, 600), repository.directory / "child.pid"
    for seconds in (0.2, 1.0, 5.0, 25.0):  # on a slow machine the child is not born at once
        with pytest.raises(GitError, match=f"more than {seconds:g} s") as caught:
            git.run("slow", timeout=seconds)
        assert caught.value.timed_out
        if pid_file.exists():
            break
    child = int(pid_file.read_text())
    wait_until(lambda: not is_alive(child), what="the child's end, long before it would have ended by itself")


def test_errors_hold_git_s_message(repository: Git) -> None:
    with pytest.raises(GitError, match="cannot run git rev-parse: Needed a single revision") as caught:
        repository.run("rev-parse", "--verify", "nothing")
    assert caught.value.detail.startswith("fatal")
    assert not caught.value.timed_out


def test_the_error_of_a_pipe_names_the_end_that_failed(repository: Git) -> None:
    head = repository.text("rev-parse", "HEAD").encode()
    repository.pipe(("pack-objects", "--revs", "--stdout", "-q"), repository, ("unpack-objects", "-q"), data=head)
    with pytest.raises(ReaderError, match="unpack-objects"):
        repository.pipe(("log",), repository, ("unpack-objects", "-q"), data=b"")
    with pytest.raises(GitError, match="pack-objects") as caught:
        repository.pipe(
            ("pack-objects", "--revs", "--stdout", "-q"), repository, ("unpack-objects", "-q"), data=b"0" * 40
        )
    assert not isinstance(caught.value, ReaderError)


def test_of_a_pipe_both_ends_are_killed_at_the_deadline(repository: Git) -> None:
    git = _waits(repository, 600)
    with pytest.raises(GitError) as caught:
        git.pipe(("slow",), git, ("unpack-objects", "-q"), data=b"", timeout=0.2)
    assert caught.value.timed_out


def test_without_git_it_says_so(repository: Git, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitError, match="cannot find the program git") as caught:
        repository.run("version")
    assert "install" in caught.value.hint


def test_scrubbing_leaves_the_rest(monkeypatch) -> None:
    monkeypatch.setenv("GIT_DIR", "/x")
    monkeypatch.setenv("DIGIT_X", "y")
    scrub_environment()
    assert "GIT_DIR" not in os.environ
    assert os.environ["DIGIT_X"] == "y"
