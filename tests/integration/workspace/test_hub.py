"""The hub and what is made from it: the seed is only read, clones survive a copy of the run, nothing is deleted."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from clones import git, plant
from strangers import owning

from workspace import hub, intake, submit
from workspace.errors import GitError
from workspace.git import Git
from workspace.gitenv import environment
from workspace.layout import Layout, create, new_run


@pytest.fixture
def layout(tmp_path) -> Layout:
    found = new_run(tmp_path / "runs", "task")
    create(found, ["agent-1", "agent-2"])
    return found


@pytest.fixture
def seed(tmp_path) -> Path:
    folder = tmp_path / "seed"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "main.py").write_text("x = 1\n")
    (folder / "run.sh").write_text("echo\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("src/main.py")
    return folder


@pytest.fixture
def repository(seed: Path) -> Path:
    """The seed as a user's repository, with a history, a hook, and things it never committed."""
    git(seed, "init", "-q", "-b", "trunk")
    (seed / "answers.txt").write_text("hidden\n")
    git(seed, "add", "-A")
    git(seed, "commit", "-q", "-m", "with answers")
    (seed / "answers.txt").unlink()
    git(seed, "add", "-A")
    git(seed, "commit", "-q", "-m", "without")
    (seed / "draft.txt").write_text("not committed\n")
    (seed / "src" / "main.py").write_text("x = 2\n")
    return seed


def cloned(layout: Layout, seed: Path) -> tuple[str, Path]:
    """The hub and the clone of one agent; the seed's commit, and where the clone is."""
    commit, clone = hub.create(layout.hub, seed), layout.clone("agent-1")
    hub.clone(layout.hub, clone, "agent-1", commit, [])
    return commit, clone


def changed(clone: Path, text: str = "changed") -> str:
    (clone / "run.sh").write_text(text)
    git(clone, "add", "-A")
    git(clone, "commit", "-q", "-m", text)
    return git(clone, "rev-parse", "HEAD")


def fingerprint(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Every file of a tree, with its times and content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        about = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (about.st_mode, about.st_mtime_ns, hashlib.sha256(content).hexdigest())
    return found


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


def test_a_folder_becomes_one_commit(layout: Layout, seed: Path) -> None:
    (seed / "__pycache__").mkdir()
    (seed / "__pycache__" / "main.pyc").write_bytes(b"\0")
    before = fingerprint(seed)
    commit = hub.create(layout.hub, seed)
    assert fingerprint(seed) == before
    assert git(layout.hub, "rev-list", "--all") == commit
    assert git(layout.hub, "ls-tree", "-r", "--name-only", commit).split() == ["link", "run.sh", "src/main.py"]


def test_of_a_repository_only_the_last_tree_comes_along(layout: Layout, repository: Path) -> None:
    commit = hub.create(layout.hub, repository)
    assert git(layout.hub, "ls-tree", "-r", "--name-only", commit).split() == ["link", "run.sh", "src/main.py"]
    assert Git(layout.hub).text("show", f"{commit}:src/main.py") == "x = 1"
    assert git(layout.hub, "rev-list", "--all") == commit
    every = git(layout.hub, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    assert git(repository, "rev-parse", "HEAD~:answers.txt") not in every


def test_the_users_repository_is_never_written_to(layout: Layout, repository: Path, tmp_path) -> None:
    touched = tmp_path / "touched"
    plant(repository, touched)
    touched.unlink(missing_ok=True)
    before = fingerprint(repository)
    everything = [repository, *repository.rglob("*")]
    modes = {path: path.stat().st_mode for path in everything if not path.is_symlink()}
    for path in modes:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        cloned(layout, repository)
    finally:
        for path, mode in modes.items():
            path.chmod(mode)
    assert fingerprint(repository) == before
    assert not touched.exists()


def test_a_linked_worktree_and_a_bare_repository_are_seeds_too(layout: Layout, repository: Path, tmp_path) -> None:
    git(repository, "worktree", "add", "-q", str(tmp_path / "linked"))
    git(tmp_path, "clone", "-q", "--bare", str(repository), "bare.git", GIT_ALLOW_PROTOCOL="file")
    for number, seed in enumerate((tmp_path / "linked", tmp_path / "bare.git")):
        target = layout.hub.with_name(f"{number}.git")
        commit = hub.create(target, seed)
        assert Git(target).text("show", f"{commit}:src/main.py") == "x = 1"


def test_a_repository_above_the_seed_is_not_the_seeds(layout: Layout, repository: Path) -> None:
    commit = hub.create(layout.hub, repository / "src")
    assert git(layout.hub, "ls-tree", "-r", "--name-only", commit) == "main.py"
    assert Git(layout.hub).text("show", f"{commit}:main.py") == "x = 2"


def test_a_seed_with_sha256_names(layout: Layout, tmp_path) -> None:
    seed = tmp_path / "long"
    seed.mkdir()
    git(seed, "init", "-q", "--object-format=sha256")
    (seed / "a").write_text("a")
    git(seed, "add", "-A")
    git(seed, "commit", "-q", "-m", "a")
    commit, clone = cloned(layout, seed)
    assert len(commit) == 64
    assert intake.take_in(layout.hub, clone, changed(clone), 1).parent == commit


def _submodule(seed: Path) -> None:
    git(seed, "init", "-q", "inner")
    (seed / "inner" / "a").write_text("a")
    git(seed / "inner", "add", "-A")
    git(seed / "inner", "commit", "-q", "-m", "a")


def _leaving(seed: Path) -> None:
    (seed / "out").symlink_to("../secrets")


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (_submodule, "inner is a repository of its own"),
        (_leaving, "the link out leads out of the repository"),
        (lambda seed: shutil.rmtree(seed), "it is not a folder"),
        (lambda seed: [shutil.rmtree(seed), seed.mkdir()], "it has no files"),
        (lambda seed: git(seed, "init", "-q"), "Needed a single revision"),
    ],
)
def test_a_seed_that_cannot_be_used_says_why_and_leaves_no_hub(layout: Layout, seed: Path, spoil, reason: str) -> None:
    spoil(seed)
    with pytest.raises(GitError, match=reason):
        hub.create(layout.hub, seed)
    assert not layout.hub.exists()


def test_a_start_that_was_cut_off_can_be_repeated(layout: Layout, seed: Path) -> None:
    for half in (layout.hub.with_name(".hub.git.partial"), layout.agents / ".agent-1.partial"):
        half.mkdir()
        (half / "rubbish").write_text("")
    _, clone = cloned(layout, seed)
    assert files(clone) >= {"link", "run.sh", "src/main.py"}
    assert not (clone / "rubbish").exists()


def test_the_hub_deletes_nothing(layout: Layout, seed: Path) -> None:
    hub.create(layout.hub, seed)
    lost = git(layout.hub, "hash-object", "-w", "--stdin")
    for command in (["prune", "--expire=now"], ["repack", "-a", "-d"], ["gc", "--prune=now"]):
        subprocess.run(["git", *command], cwd=layout.hub, env=environment(), capture_output=True, check=False)
    assert git(layout.hub, "cat-file", "-t", lost) == "blob"


def test_a_clone_is_the_agents_own(layout: Layout, seed: Path) -> None:
    commit = hub.create(layout.hub, seed)
    for agent in ("agent-1", "agent-2"):
        hub.clone(layout.hub, layout.clone(agent), agent, commit, [".shared"])
    clone = layout.clone("agent-1")
    assert git(clone, "status", "--short") == ""
    assert git(clone, "symbolic-ref", "HEAD") == "refs/heads/agent-1"
    assert git(clone, "remote") == ""
    assert git(clone, "config", "user.name") == "agent-1"
    assert git(clone, "rev-parse", "HEAD") == commit
    assert os.access(clone / "run.sh", os.X_OK)
    assert (clone / "link").readlink() == Path("src/main.py")
    assert files(clone / ".git" / "objects") == {"info/alternates"}
    with pytest.raises(GitError, match="it exists"):
        hub.clone(layout.hub, clone, "agent-1", commit, [])


def test_a_garbage_collection_in_a_clone_harms_nobody(layout: Layout, seed: Path) -> None:
    commit = hub.create(layout.hub, seed)
    clones = [layout.clone(agent) for agent in ("agent-1", "agent-2")]
    for clone in clones:
        hub.clone(layout.hub, clone, clone.name, commit, [])
        intake.take_in(layout.hub, clone, changed(clone, clone.name), clones.index(clone) + 1)
    git(clones[0], "gc", "-q", "--prune=now")
    for clone in clones:
        assert git(clone, "fsck", "--no-dangling") == ""
        assert git(clone, "log", "--format=%s").split("\n") == [clone.name, "Seed"]
    mine = changed(clones[0], "after the collection")
    assert intake.take_in(layout.hub, clones[0], mine, 3).parent == git(clones[0], "rev-parse", "HEAD~")


def test_a_copied_run_lives_without_the_original(layout: Layout, seed: Path, tmp_path) -> None:
    commit, _ = cloned(layout, seed)
    copied = Layout(tmp_path / "elsewhere" / "deeper" / "run: a")
    shutil.copytree(layout.root, copied.root, symlinks=True)
    shutil.rmtree(layout.root)
    clone = copied.clone("agent-1")
    mine = changed(clone)
    assert git(clone, "fsck", "--no-dangling") == ""
    assert intake.take_in(copied.hub, clone, mine, 1).parent == commit
    hub.checkout(copied.hub, mine, tmp_path / "out")
    assert (tmp_path / "out" / "run.sh").read_text() == "changed"


def test_a_run_below_a_link_works(seed: Path, tmp_path) -> None:
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (tmp_path / "shortcut").symlink_to("real/deep")
    layout = Layout(tmp_path / "shortcut" / "run")
    create(layout, ["agent-1"])
    _, clone = cloned(layout, seed)
    assert git(clone, "fsck") == ""


def test_agents_on_another_disk(layout: Layout, seed: Path, tmp_path) -> None:
    (tmp_path / "disk" / "deeper").mkdir(parents=True)
    layout.agents.rmdir()
    layout.agents.symlink_to(tmp_path / "disk" / "deeper")
    _, clone = cloned(layout, seed)
    assert git(clone, "fsck") == ""


def test_paths_may_be_relative(layout: Layout, seed: Path, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    here = Layout(layout.root.relative_to(tmp_path))
    _, clone = cloned(here, Path("seed"))
    (clone / "run.sh").write_text("changed")
    mine = submit.commit(clone, "agent-1", "changed", lambda made: None).commit
    intake.take_in(here.hub, clone, mine, 1)
    hub.checkout(here.hub, mine, Path("out"))
    assert (tmp_path / "out" / "run.sh").read_text() == "changed"


def test_a_checkout_is_files_and_nothing_else(layout: Layout, seed: Path, tmp_path) -> None:
    commit = hub.create(layout.hub, seed)
    before = fingerprint(layout.hub)
    hub.checkout(layout.hub, commit, tmp_path / "deep" / "out")
    assert files(tmp_path / "deep" / "out") == {"link", "run.sh", "src/main.py"}
    assert os.access(tmp_path / "deep" / "out" / "run.sh", os.X_OK)
    assert fingerprint(layout.hub) == before
    with pytest.raises(FileExistsError):
        hub.checkout(layout.hub, commit, tmp_path / "deep" / "out")


def test_a_checkout_runs_no_filter_and_no_hook(layout: Layout, seed: Path, tmp_path, monkeypatch) -> None:
    touched = tmp_path / "touched"
    (seed / ".gitattributes").write_text("*.py filter=evil\n*.sh text eol=crlf\n")
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(f'[filter "evil"]\n\tsmudge = touch {touched}\n\tclean = touch {touched}\n')
    monkeypatch.setenv("HOME", str(home))
    commit, clone = cloned(layout, seed)
    hub.checkout(layout.hub, commit, tmp_path / "out")
    assert not touched.exists()
    assert (tmp_path / "out" / "src" / "main.py").read_text() == "x = 1\n"
    # What a tree itself asks for is done: the grader sees the files as the agent does.
    assert (tmp_path / "out" / "run.sh").read_bytes() == (clone / "run.sh").read_bytes() == b"echo\r\n"


def test_settings_that_somebody_gave_the_hub_start_nothing_in_a_clone(layout: Layout, seed: Path, tmp_path) -> None:
    """An agent whose clone is gone gets a new one, at its last attempt: its attributes name the filter."""
    touched = tmp_path / "touched"
    (seed / ".gitattributes").write_text("*.py filter=evil\n")
    commit, clone = cloned(layout, seed)
    shutil.rmtree(clone / ".git")
    evil = f'[filter "evil"]\n\tsmudge = touch {touched}; cat\n[core]\n\tfilemode = false; x\n'
    for path in (*layout.hub.glob("config*"), layout.hub / "config-of-clones"):
        with path.open("a") as file:
            file.write(evil)
    hub.clone_again(layout.hub, clone, "agent-1", commit, [])
    assert not touched.exists()
    assert git(clone, "status", "--short") == ""
    os.mkfifo(layout.hub / "new")
    (layout.hub / "new").rename(layout.hub / "config")  # nobody waits for it
    hub.clone(layout.hub, layout.clone("agent-2"), "agent-2", commit, [])


@pytest.mark.parametrize("name", ["HEAD", "config", "packed-refs", "info/exclude", "shallow"])
@pytest.mark.parametrize("is_pipe", [True, False])
def test_git_waits_for_no_pipe_and_misses_nothing(layout: Layout, seed: Path, name: str, is_pipe: bool) -> None:
    commit, _ = cloned(layout, seed)
    config = hub.settings(layout.hub, layout.hub_config)
    assert hub.restore_settings(layout.hub, config) == []
    (layout.hub / name).unlink(missing_ok=True)
    if is_pipe:
        os.mkfifo(layout.hub / name)
    found = [name] if is_pipe or name in ("HEAD", "config") else []
    assert hub.restore_settings(layout.hub, config) == found
    assert Git(layout.hub).text("rev-parse", intake.SEED, timeout=20) == commit
    assert hub.restore_settings(layout.hub, config) == []


def test_differences_and_files_of_commits(layout: Layout, seed: Path, tmp_path) -> None:
    commit, clone = cloned(layout, seed)
    (clone / "blob").write_bytes(bytes(range(256)))
    mine = changed(clone, "echo more\n")
    intake.take_in(layout.hub, clone, mine, 1)
    text = hub.diff(layout.hub, commit, mine)
    assert "+echo more" in text
    assert "Binary files" in text
    hub.checkout(layout.hub, commit, tmp_path / "out")
    applied = subprocess.run(
        ["git", "apply"], input=hub.patch(layout.hub, commit, mine), cwd=tmp_path / "out", check=True
    )
    assert applied.returncode == 0
    assert (tmp_path / "out" / "blob").read_bytes() == bytes(range(256))
    for wrong in ("--output=x", "HEAD", mine[:7]):
        with pytest.raises(GitError, match="not a whole commit id"):
            hub.diff(layout.hub, wrong, mine)


def test_a_long_difference_is_cut(layout: Layout, seed: Path) -> None:
    commit = hub.create(layout.hub, seed)
    other = Git(layout.hub)
    blob = other.text("hash-object", "-w", "--stdin", data=b"line\n" * 1_000_000)
    tree = other.text("mktree", data=f"100644 blob {blob}\tlong\n".encode())
    new = other.text("commit-tree", tree, "-m", "long")
    assert hub.diff(layout.hub, commit, new).endswith("[cut off here]\n")


@pytest.mark.parametrize("name", [".", ".git", ".git/objects"])
def test_a_repository_that_its_agent_closed_is_made_again(layout: Layout, seed: Path, name: str) -> None:
    """Whoever cannot look into it cannot start its agent either."""
    commit, clone = cloned(layout, seed)
    assert hub.is_whole(clone)
    with owning(layout.root):
        (clone / name).chmod(0)
        assert not hub.is_whole(clone)
        hub.clone_again(layout.hub, clone, "agent-1", commit, [])
        assert hub.is_whole(clone)
        assert Git(clone / ".git").text("rev-parse", "HEAD") == commit
