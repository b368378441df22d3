"""Taking in a commit: complete, pinned and checked, whatever the clone it comes from has been turned into."""

import os
import resource
import shutil
import signal
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from clones import blob, commit, crafted, git, objects, plant, refused, verbs, wrap_git
from strangers import owning

from workspace import intake, tree
from workspace.errors import GitError, Unacceptable
from workspace.git import Git
from workspace.layout import Layout


def test_a_commit_arrives_with_all_it_needs_and_is_pinned(layout: Layout, clone: Path) -> None:
    seed = git(clone, "rev-parse", "HEAD")
    mine = commit(clone, "one")
    taken = intake.take_in(layout.hub, clone, mine, 1)
    assert taken == intake.Taken(mine, git(clone, "rev-parse", "HEAD^{tree}"), seed)
    assert git(layout.hub, "rev-parse", "refs/attempts/1") == mine
    assert git(layout.hub, "fsck", "--strict") == ""
    assert not list((layout.hub / "incoming").iterdir())


def test_the_parent_is_the_nearest_ancestor_that_was_taken_in(layout: Layout, clone: Path) -> None:
    first = commit(clone, "one")
    intake.take_in(layout.hub, clone, first, 1)
    commit(clone, "two")
    commit(clone, "three")
    fourth = commit(clone, "four")
    assert intake.take_in(layout.hub, clone, fourth, 2).parent == first


def test_a_commit_without_a_common_past(layout: Layout, clone: Path) -> None:
    git(clone, "checkout", "-q", "--orphan", "fresh")
    mine = commit(clone, "anew")
    assert intake.take_in(layout.hub, clone, mine, 1).parent == ""
    assert git(layout.hub, "fsck") == ""


def test_a_rewritten_history_is_taken_in_like_any_other(layout: Layout, clone: Path) -> None:
    seed = git(clone, "rev-parse", "HEAD")
    first = commit(clone, "one")
    intake.take_in(layout.hub, clone, first, 1)
    git(clone, "commit", "-q", "--amend", "-m", "one, said better")
    amended = git(clone, "rev-parse", "HEAD")
    git(clone, "reflog", "expire", "--expire=now", "--all")
    git(clone, "gc", "-q", "--prune=now")
    assert intake.take_in(layout.hub, clone, amended, 2) == intake.Taken(
        amended, git(clone, "rev-parse", "HEAD^{tree}"), seed
    )
    assert git(layout.hub, "cat-file", "-t", first) == "commit"


def test_what_a_pack_refers_to_may_lie_outside_of_all_packs(layout: Layout, clone: Path) -> None:
    """As where a fetch brings a commit whose files were there before."""
    mine = commit(clone, "one")
    git(clone, "pack-objects", "-q", ".git/objects/pack/pack", data=f"{mine}\n")
    git(clone, "prune-packed")
    assert not (clone / ".git" / "objects" / mine[:2] / mine[2:]).exists()
    assert intake.take_in(layout.hub, clone, mine, 1).tree == git(clone, "rev-parse", "HEAD^{tree}")
    assert git(layout.hub, "fsck", "--strict") == ""


def test_packs_may_have_other_names(layout: Layout, clone: Path) -> None:
    """As those that `git maintenance` makes of objects without a pack."""
    mine = commit(clone, "one")
    for _ in range(2):  # the second time removes what the first has packed
        git(clone, "maintenance", "run", "--task=loose-objects", "--quiet")
    assert not (clone / ".git" / "objects" / mine[:2] / mine[2:]).exists()
    assert intake.take_in(layout.hub, clone, mine, 1).commit == mine


def test_a_merge_and_many_commits_at_once(layout: Layout, clone: Path) -> None:
    git(clone, "checkout", "-q", "-b", "side")
    lines = ["commit refs/heads/side\ncommitter a <a@x> 1 +0000\ndata 1\nx\nfrom refs/heads/agent-1^0\n"]
    for number in range(150):
        lines.append(
            f"commit refs/heads/side\ncommitter a <a@x> 1 +0000\ndata 1\nx\nM 644 inline b\ndata <<E\n{number}\nE\n"
        )
    git(clone, "fast-import", "--quiet", "--force", data="".join(lines))
    git(clone, "checkout", "-q", "-f", "agent-1")
    commit(clone, "mine")
    git(clone, "merge", "-q", "side", "-m", "both")
    merged = git(clone, "rev-parse", "HEAD")
    intake.take_in(layout.hub, clone, merged, 1)
    assert git(layout.hub, "fsck", "--strict") == ""
    assert int(git(layout.hub, "rev-list", "--count", merged)) == 154


def test_taking_in_again_changes_nothing_and_a_number_is_given_once(layout: Layout, clone: Path) -> None:
    mine = commit(clone, "one")
    taken = intake.take_in(layout.hub, clone, mine, 1)
    before = objects(layout)
    left = layout.hub / "incoming" / "1" / "ab"  # by a supervisor that was killed
    left.mkdir(parents=True)
    (left / "cd").write_text("half an object")
    assert intake.take_in(layout.hub, clone, mine, 1) == taken
    assert intake.take_in(layout.hub, clone, mine, 2) == taken
    assert objects(layout) - before == {"refs/attempts/2"}
    other = commit(clone, "two")
    with pytest.raises(GitError, match="cannot pin attempt 1"):
        intake.take_in(layout.hub, clone, other, 1)
    assert git(layout.hub, "rev-parse", "refs/attempts/1") == mine


def test_the_seed_itself_can_be_taken_in(layout: Layout, clone: Path) -> None:
    seed = git(clone, "rev-parse", "HEAD")
    assert intake.take_in(layout.hub, clone, seed, 1) == intake.Taken(seed, git(clone, "rev-parse", "HEAD^{tree}"), "")


def test_after_a_kill_between_any_two_moves_the_next_try_completes(layout: Layout, tmp_path, monkeypatch) -> None:
    class Killed(BaseException):
        pass

    commit(layout.clone("agent-1"), "one")
    mine = commit(layout.clone("agent-1"), "two")
    real = Path.replace
    for moves in range(8):
        copied = Layout(tmp_path / str(moves))
        shutil.copytree(layout.root, copied.root, symlinks=True)
        left = moves

        def replace(self: Path, target: Path) -> Path:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            return real(self, target)

        with monkeypatch.context() as patched:
            patched.setattr(Path, "replace", replace)
            try:
                intake.take_in(copied.hub, copied.clone("agent-1"), mine, 1)
            except Killed:
                assert moves < 7
            else:
                assert moves == 7
        # Whatever commit is there already has all that it refers to.
        for path in (copied.hub / "objects").glob("??/*"):
            name = path.parent.name + path.name
            if git(copied.hub, "cat-file", "-t", name) == "commit":
                git(copied.hub, "rev-list", "--objects", name)
        intake.take_in(copied.hub, copied.clone("agent-1"), mine, 1)
        assert git(copied.hub, "rev-parse", "refs/attempts/1") == mine
        assert git(copied.hub, "fsck", "--strict") == ""


# What an agent can do to its clone. Each must neither run anything nor change what is taken in.


PROMISOR = {
    "remote.evil.url": "{clone}",
    "remote.evil.promisor": "true",
    "extensions.partialClone": "evil",
    "core.repositoryFormatVersion": "1",
}


def test_nothing_of_the_clone_is_run(layout: Layout, clone: Path, tmp_path) -> None:
    touched = tmp_path / "touched"
    mine = commit(clone, "one")
    missing = git(clone, "mktree", "--missing", data=f"100644 blob {'1' * 40}\tgone\n")
    incomplete = git(clone, "commit-tree", missing, "-m", "incomplete")
    plant(clone, touched)
    for setting, value in PROMISOR.items():
        git(clone, "config", setting, value.format(clone=clone))
    intake.take_in(layout.hub, clone, mine, 1)
    with pytest.raises(Unacceptable):
        intake.take_in(layout.hub, clone, incomplete, 2)
    with pytest.raises(Unacceptable):
        intake.take_in(layout.hub, clone, "2" * 40, 3)
    assert not touched.exists(), touched.read_text()


def _replace(clone: Path, mine: str) -> None:
    other = git(clone, "commit-tree", "HEAD~^{tree}", "-m", "other")
    (clone / ".git" / "refs" / "replace").mkdir()
    (clone / ".git" / "refs" / "replace" / mine).write_text(other + "\n")


def _remove_files(clone: Path, mine: str) -> None:
    for name in ("config", "HEAD", "index"):
        (clone / ".git" / name).unlink()


def _damage_commit_graph(clone: Path, mine: str) -> None:
    git(clone, "commit-graph", "write", "--reachable")
    (clone / ".git" / "objects" / "info" / "commit-graph").chmod(0o644)
    (clone / ".git" / "objects" / "info" / "commit-graph").write_bytes(b"CGPH rubbish")


TWISTS = {
    "replace": _replace,
    "files removed": _remove_files,
    "commit graph": _damage_commit_graph,
    "shallow": lambda clone, mine: (clone / ".git" / "shallow").write_text(mine + "\n"),
    "grafts": lambda clone, mine: (clone / ".git" / "info" / "grafts").write_text(mine + "\n"),
    "alternates": lambda clone, _: (clone / ".git" / "objects" / "info" / "alternates").write_text("/nowhere\n"),
}


@pytest.mark.parametrize("twist", TWISTS.values(), ids=TWISTS)
def test_false_statements_of_the_clone_change_nothing(layout, clone, twist) -> None:
    seed = git(clone, "rev-parse", "HEAD")
    mine = commit(clone, "one")
    expected = git(clone, "rev-parse", "HEAD^{tree}")
    twist(clone, mine)
    assert intake.take_in(layout.hub, clone, mine, 1) == intake.Taken(mine, expected, seed)
    assert git(layout.hub, "fsck", "--strict") == ""


def _object(clone: Path, revision: str) -> Path:
    name = git(clone, "rev-parse", revision)
    path = clone / ".git" / "objects" / name[:2] / name[2:]
    path.chmod(0o644)
    return path


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _another_commit(clone: Path) -> None:
    other = git(clone, "commit-tree", "HEAD^{tree}", "-m", "other")
    _object(clone, "HEAD").write_bytes(_object(clone, other).read_bytes())


WRONG = zlib.compress(b"blob 5\0wrong")
SPOILED: dict[str, Callable[[Path], object]] = {
    "another commit in its file": _another_commit,
    "wrong content": lambda clone: _object(clone, "HEAD:a.txt").write_bytes(WRONG),
    "wrong content in its parent": lambda clone: _object(clone, "HEAD~:a.txt").write_bytes(WRONG),
    "pipe": lambda clone: _pipe(_object(clone, "HEAD:a.txt")),
    "pipe for the commit": lambda clone: _pipe(_object(clone, "HEAD")),
    "garbage": lambda clone: _object(clone, "HEAD").write_bytes(b"garbage"),
    "tree deleted": lambda clone: _object(clone, "HEAD^{tree}").unlink(),
    "no repository": lambda clone: (clone / ".git").rename(clone / "gone"),
}


@pytest.mark.parametrize("spoil", SPOILED)
def test_what_cannot_be_read_is_refused_and_leaves_nothing(layout, clone, spoil, monkeypatch) -> None:
    monkeypatch.setattr(intake, "TIMEOUT", 1.0)
    commit(clone, "one")
    mine = commit(clone, "two")
    SPOILED[spoil](clone)
    refused(layout, clone, mine)


@pytest.mark.parametrize("name", ["HEAD", "", "--all", "0" * 40, "f" * 39, "../../x", "g" * 40])
def test_what_is_not_a_commit_is_refused(layout: Layout, clone: Path, name: str) -> None:
    refused(layout, clone, name)


def test_a_tree_a_blob_and_a_tag_are_not_commits(layout: Layout, clone: Path) -> None:
    mine = commit(clone, "one")
    git(clone, "tag", "-a", "-m", "tag", "v1")
    like_a_commit = blob(clone, git(clone, "cat-file", "commit", mine))
    for name in (f"{mine}^{{tree}}", f"{mine}:a.txt", "v1", like_a_commit):
        refused(layout, clone, git(clone, "rev-parse", name))
    assert git(layout.hub, "for-each-ref", "refs/attempts") == ""


def test_a_link_out_of_the_tree_is_refused_by_name(layout: Layout, clone: Path) -> None:
    (clone / ".shared").symlink_to("../../shared")
    git(clone, "add", "-f", ".shared")
    git(clone, "commit", "-q", "-m", "with the shared folder")
    hint = refused(layout, clone, git(clone, "rev-parse", "HEAD"), r"the link \.shared leads out of the repository")
    assert "git rm --cached .shared" in hint


@pytest.mark.parametrize("target", ["", "x\0y"])
def test_a_link_without_a_target_is_refused(layout: Layout, clone: Path, target: str) -> None:
    refused(layout, clone, crafted(clone, f"120000 blob {blob(clone, target)}\tl"), "the link l has no target")


def test_a_submodule_is_refused_by_name(layout: Layout, clone: Path) -> None:
    refused(layout, clone, crafted(clone, f"160000 commit {'1' * 40}\tlibrary"), "library is a repository of its own")


def test_too_many_files_are_refused(layout: Layout, clone: Path) -> None:
    content = blob(clone, "x")
    limit = tree.MAX_FILES
    enough = crafted(clone, *(f"100644 blob {content}\t{number:06d}" for number in range(limit)))
    intake.take_in(layout.hub, clone, enough, 1)
    too_many = crafted(clone, *(f"100644 blob {content}\t{number:06d}" for number in range(limit + 1)))
    refused(layout, clone, too_many, "more than 20,000 files")


@pytest.mark.parametrize("has_files", [True, False])
def test_a_tree_that_unfolds_without_end_is_refused(layout: Layout, clone: Path, has_files: bool) -> None:
    inner = git(clone, "mktree", data=f"100644 blob {blob(clone, 'x')}\tx\n" if has_files else "")
    for _ in range(9):
        inner = git(clone, "mktree", data="".join(f"040000 tree {inner}\t{number}\n" for number in range(10)))
    bomb = git(clone, "commit-tree", inner, "-m", "bomb")
    refused(layout, clone, bomb, "more than 20,000 files")


def test_too_many_bytes_are_refused_with_the_largest_files(layout: Layout, clone: Path) -> None:
    (clone / "part").write_bytes(b"\0" * 21_000_000)
    content = git(clone, "hash-object", "-w", "part")
    made = crafted(clone, *(f"100644 blob {content}\t{number}" for number in range(10)))
    refused(layout, clone, made, r"larger than 200 MB: 0 \(21 MB\)")


def test_what_unpacks_to_too_much_is_refused_even_in_the_past(layout: Layout, clone: Path, monkeypatch) -> None:
    monkeypatch.setattr(intake, "MAX_BYTES", 1_000_000)
    (clone / "huge").write_bytes(b"\0" * 2_000_000)
    commit(clone, "with a huge file that packs well")
    (clone / "huge").unlink()
    mine = commit(clone, "without")
    refused(layout, clone, mine, "adds more than 1 MB")


def test_names_that_no_folder_takes_are_refused(layout: Layout, clone: Path) -> None:
    refused(layout, clone, crafted(clone, f"100644 blob {blob(clone, 'x')}\t{'n' * 256}"), "too long")


def test_what_the_system_refuses_is_our_fault(layout: Layout, clone: Path) -> None:
    (clone / "big").write_bytes(os.urandom(300_000))
    mine = commit(clone, "one")
    # A limit on the size of files stands in for a full disk; it reaches git by inheritance.
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(GitError, match="unpack-objects"):
            intake.take_in(layout.hub, clone, mine, 1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert intake.take_in(layout.hub, clone, mine, 1).commit == mine


def test_a_damaged_hub_is_our_fault(layout: Layout, clone: Path) -> None:
    mine = commit(clone, "one")
    (layout.hub / "config").write_text("[core\n")
    with pytest.raises(GitError):
        intake.take_in(layout.hub, clone, mine, 1)


def test_pinning_is_checked(layout: Layout, clone: Path) -> None:
    seed = git(clone, "rev-parse", "HEAD")
    intake.pin(layout.hub, 0, seed)
    intake.pin(layout.hub, 0, seed)
    with pytest.raises(GitError, match="not a whole commit id"):
        intake.pin(layout.hub, 1, "HEAD")
    with pytest.raises(GitError, match="it is pinned at"):
        intake.pin(layout.hub, 0, commit(clone, "another"))
    assert Git(layout.hub).text("rev-parse", "refs/attempts/0") == seed
    assert Git(layout.hub).run("fsck", "--no-dangling") == b""


def test_what_a_killed_supervisor_left_of_a_pin_is_in_nobodys_way(layout: Layout, clone: Path) -> None:
    seed = git(clone, "rev-parse", "HEAD")
    (layout.hub / "refs" / "attempts").mkdir()
    os.mkfifo(layout.hub / "refs" / "attempts" / "5.lock")
    intake.pin(layout.hub, 5, seed)
    assert Git(layout.hub).text("for-each-ref", "--format=%(refname)", "refs/attempts") == "refs/attempts/5"


def test_a_commit_is_taken_in_by_three_git_processes(layout: Layout, clone: Path, tmp_path, monkeypatch) -> None:
    mine = commit(clone, "one")
    log = wrap_git(tmp_path, monkeypatch)
    intake.take_in(layout.hub, clone, mine, 1)
    assert verbs(log) == ["ls-tree", "pack-objects", "unpack-objects"]


def test_taking_in_walks_what_is_new_and_not_the_history(layout: Layout, clone: Path) -> None:
    # Git walks on through all that is as new as the newest: of one second, say.
    mine = [commit(clone, str(number), GIT_COMMITTER_DATE=f"{4_000_000_000 + number} +0000") for number in range(12)]
    for number, name in enumerate(mine, start=1):
        intake.take_in(layout.hub, clone, name, number)
    for store in (clone / ".git" / "objects", layout.hub / "objects"):
        spoiled = store / mine[1][:2] / mine[1][2:]
        spoiled.unlink()
        spoiled.write_text("who walks past this stumbles")
    last = commit(clone, "last", GIT_COMMITTER_DATE="4000000012 +0000")
    assert intake.take_in(layout.hub, clone, last, 13).parent == mine[-1]


def test_the_view_of_a_clone_is_put_right_where_it_leads_elsewhere(layout: Layout, clone: Path, tmp_path: Path) -> None:
    intake.take_in(layout.hub, clone, commit(clone, "one"), 1)
    view, mine = layout.hub / "views" / "agent-1", commit(clone, "two")
    shutil.rmtree(view)
    view.mkdir()
    (view / mine[:2]).symlink_to(tmp_path)
    (view / "pack").mkdir()
    (view / "info").mkdir()
    (view / "info" / "alternates").write_text("/nowhere\n")
    assert intake.take_in(layout.hub, clone, mine, 2).commit == mine
    assert {path.name for path in view.iterdir()} == {"pack"} | {
        path.name for path in (clone / ".git" / "objects").iterdir() if len(path.name) == 2
    }
    assert all(path.resolve().parent == (clone / ".git" / "objects").resolve() for path in view.iterdir())


@pytest.mark.parametrize("name", [".git", ".git/objects"])
def test_a_store_that_its_agent_has_closed_is_the_agents_fault(layout: Layout, clone: Path, name: str) -> None:
    """As a fault of ours, three of them would pause the grading of all."""
    mine = commit(clone, "one")
    with owning(layout.root):
        (clone / name).chmod(0)
        with pytest.raises(Unacceptable, match="cannot be read"):
            intake.take_in(layout.hub, clone, mine, 1)
        (clone / name).chmod(0o700)
    assert intake.take_in(layout.hub, clone, mine, 1).commit == mine


def test_a_copied_run_reads_its_own_clones(layout: Layout, clone: Path, tmp_path: Path) -> None:
    intake.take_in(layout.hub, clone, commit(clone, "one"), 1)
    copy = Layout(tmp_path / "copy")
    shutil.copytree(layout.root, copy.root, symlinks=True)
    mine = commit(copy.clone("agent-1"), "two")
    intake.take_in(copy.hub, copy.clone("agent-1"), mine, 2)
    shutil.rmtree(layout.root)
    again = commit(copy.clone("agent-1"), "three")
    assert intake.take_in(copy.hub, copy.clone("agent-1"), again, 3).parent == mine
