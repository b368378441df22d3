"""An attempt in the user's own repository: one branch, nothing else there touched."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from clones import git
from files import write_files
from sample import attempt

from attempts.record import Attempt, Kind, Verdict
from attempts.store import Store
from workspace import hub, intake
from workspace.git import Git
from workspace.layout import Layout, create, new_run, runs_under
from workspace.submit import commit


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Path:
    """A user's repository with a task in it, and a run of that task with one attempt."""
    base = tmp_path_factory.mktemp("template")
    seed = base / "repo" / "tasks" / "toy" / "seed"
    write_files(base / "repo", {"tasks/toy/seed/a.txt": "1\n", "tasks/toy/seed/deep/b.bin": "\0\1", "README": "mine\n"})
    git(base / "repo", "init", "-q", "-b", "main")
    git(base / "repo", "add", "-A")
    git(base / "repo", "commit", "-qm", "first")
    layout = new_run(base / "repo" / "runs", "toy")
    create(layout, ["agent-1"])
    root = hub.create(layout.hub, seed)
    hub.clone(layout.hub, layout.clone("agent-1"), "agent-1", root, [])
    (layout.clone("agent-1") / "a.txt").write_text("2\n")
    (layout.clone("agent-1") / "new.bin").write_bytes(b"\0new")
    made = commit(layout.clone("agent-1"), "agent-1", "two", lambda _: None)
    intake.pin(layout.hub, 1, intake.take_in(layout.hub, layout.clone("agent-1"), made.commit, 1).commit)
    store = Store(layout.attempts)
    store.publish(_record(layout, 0, root, ""))
    store.publish(_record(layout, 1, made.commit, root))
    return base


def _record(layout: Layout, number: int, name: str, parent: str) -> Attempt:
    tree = Git(layout.hub).text("rev-parse", f"{name}^{{tree}}")
    return attempt(number, 1.0 + number, commit=name, tree=tree, parent=parent, agent="agent-1" if number else "")


@pytest.fixture
def repo(template: Path, tmp_path, monkeypatch) -> Path:
    shutil.copytree(template / "repo", tmp_path / "repo", symlinks=True)
    monkeypatch.chdir(tmp_path / "repo")
    return tmp_path / "repo"


def test_one_more_grade_of_an_attempt_is_not_exported(repo: Path, coral) -> None:
    (layout,) = runs_under(repo / "runs")
    store = Store(layout.attempts)
    store.publish(replace(store.read(1), number=2, order=2, kind=Kind.CONFIRM, of=1))
    code, _, err = coral("export", "2")
    assert (code, "cannot export #2: it is one more grade of #1" in err) == (1, True)
    assert "export 1` exports that one" in err


def test_the_message_of_a_commit_says_how_often_it_was_graded_and_whether_it_is_proven(repo: Path, coral) -> None:
    (layout,) = runs_under(repo / "runs")
    layout.status.write_text(json.dumps({"lead": {"number": 1}, "best": {"number": 0}}))
    store = Store(layout.attempts)
    assert coral("export", "1", "--branch", "one")[0] == 0
    assert "score 2, not proven to be the best, of the run toy/" in git(repo, "log", "-1", "--format=%b", "one")
    status = layout.status.read_text()
    layout.status.unlink()
    store.publish(replace(store.read(1), number=3, order=3, score=9.0, tree="3" * 40, verdict=Verdict.OWN_BEST))
    assert coral("export", "3", "--branch", "three")[0] == 0
    assert "score 9, not proven to be the best, of the run toy/" in git(repo, "log", "-1", "--format=%b", "three")
    layout.status.write_text(status)
    store.publish(replace(store.read(1), number=2, order=2, kind=Kind.CONFIRM, of=1, score=3.0))
    layout.verified.parent.mkdir(exist_ok=True)
    layout.verified.write_text('{"1": {"is_same": true}}')
    assert coral("export", "1", "--branch", "two")[0] == 0
    told = git(repo, "log", "-1", "--format=%b", "two")
    assert "score 2.5 (median of 2 grades), not proven to be the best, verified, of the run toy/" in told


def test_a_branch_on_the_commit_that_holds_the_seed(repo: Path, coral) -> None:
    (repo / "README").write_text("being edited\n")
    hook = repo / ".git" / "hooks" / "reference-transaction"
    hook.write_text("#!/bin/sh\ntouch ../ran\n")
    hook.chmod(0o755)
    before = (git(repo, "rev-parse", "HEAD"), git(repo, "status", "--short"), (repo / ".git" / "index").read_bytes())
    hook.with_name("reference-transaction").touch()
    code, out, err = coral("export", "1")
    assert (code, err) == (0, "")
    assert "git switch coral/toy-1" in out
    hook.unlink()
    after = (git(repo, "rev-parse", "HEAD"), git(repo, "status", "--short"), (repo / ".git" / "index").read_bytes())
    assert after == before
    assert not (repo.parent / "ran").exists()
    assert git(repo, "rev-parse", "coral/toy-1^") == before[0]
    changed = git(repo, "diff", "--stat", "--summary", "main", "coral/toy-1")
    assert "tasks/toy/seed/a.txt" in changed
    assert "create mode 100644 tasks/toy/seed/new.bin" in changed
    assert "2 files changed" in changed
    assert git(repo, "show", "coral/toy-1:README") == "mine"
    assert git(repo, "log", "-1", "--format=%an: %s", "coral/toy-1") == "agent-1: try 1"
    assert "Attempt #1 by agent-1, score 2" in git(repo, "log", "-1", "--format=%b", "coral/toy-1")


def test_the_branch_of_a_run_that_was_copied_has_the_name_of_its_task(repo: Path, coral) -> None:
    (layout,) = runs_under(repo / "runs")
    copy = repo.parent / "kept" / "the best run"
    shutil.copytree(layout.root, copy, symlinks=True)
    Layout(copy).status.write_text(json.dumps({"task": "Toy"}))
    assert "git switch coral/toy-1" in coral("export", "1", "--run", str(copy), "--repo", str(repo))[1]


def test_a_branch_is_never_overwritten(repo: Path, coral) -> None:
    assert coral("export", "1", "--branch", "best")[0] == 0
    assert "cannot make the branch best: it exists" in coral("export", "1", "--branch", "best")[2]
    assert "git allows no such name" in coral("export", "1", "--branch", "a..b")[2]


def test_the_seed_may_be_a_whole_repository(template: Path, tmp_path, coral, repo: Path) -> None:
    own = tmp_path / "own"
    shutil.copytree(repo / "tasks" / "toy" / "seed", own)
    git(own, "init", "-q", "-b", "main")
    git(own, "add", "-A")
    git(own, "commit", "-qm", "the seed")
    (own / "later").write_text("later\n")
    git(own, "add", "-A")
    git(own, "commit", "-qm", "later")
    assert coral("export", "1", "--repo", str(own))[0] == 0
    assert git(own, "log", "--format=%s", "coral/toy-1").split("\n") == ["try 1", "the seed"]
    assert git(own, "show", "coral/toy-1:a.txt") == "2"


def test_a_repository_without_the_seed_is_refused(tmp_path, coral, repo: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    assert "is in no git repository" in coral("export", "1", "--repo", str(own))[2]
    git(own, "init", "-q", "-b", "main")
    assert "it has no commit yet" in coral("export", "1", "--repo", str(own))[2]
    git(own, "commit", "-q", "--allow-empty", "-m", "x")
    assert "the run's seed is in none of its commits" in coral("export", "1", "--repo", str(own))[2]
    clone = next((repo / "runs" / "toy").iterdir()) / "workspace" / "agents" / "agent-1"
    assert "belongs to a run" in coral("export", "1", "--repo", str(clone))[2]


def test_from_inside_a_run_the_repository_around_the_runs_is_meant(repo: Path, coral, monkeypatch) -> None:
    monkeypatch.chdir(next((repo / "runs" / "toy").iterdir()) / "workspace" / "agents" / "agent-1")
    assert coral("export", "1", "--branch", "b")[0] == 0
    assert git(repo, "branch", "--list", "b").strip() == "b"


def test_a_patch_applies_to_the_seed(repo: Path, coral, tmp_path) -> None:
    target = tmp_path / "one.patch"
    assert coral("export", "1", "--patch", str(target))[0] == 0
    git(repo, "apply", "--directory=tasks/toy/seed", str(target))
    assert (repo / "tasks" / "toy" / "seed" / "a.txt").read_text() == "2\n"
    assert (repo / "tasks" / "toy" / "seed" / "new.bin").read_bytes() == b"\0new"
    assert "it exists" in coral("export", "1", "--patch", str(target))[2]
    assert "cannot export #9: there is no such attempt" in coral("export", "9")[2]
    assert "a branch and a patch at once" in coral("export", "1", "--patch", "-", "--branch", "b")[2]


def test_json_says_where_it_went(repo: Path, coral, tmp_path) -> None:
    said = json.loads(coral("export", "1", "--json")[1])
    assert said == {"attempt": 1, "branch": "coral/toy-1", "repo": str(repo)}
    target = str(tmp_path / "one.patch")
    assert json.loads(coral("export", "1", "--patch", target, "--json")[1]) == {
        "attempt": 1,
        "patch": target,
        "repo": None,
    }
    assert "a patch and JSON at once" in coral("export", "1", "--patch", "-", "--json")[2]
