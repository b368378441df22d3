"""Whom the files of a run belong to, and what is never given away. Root alone can change that."""

import os
import stat
from pathlib import Path

import pytest
from files import write_files

from workspace import owner
from workspace.layout import OPERATOR, Layout, create
from workspace.plain_file import OWN_USERS, link_below, write_below
from workspace.seal import Level

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: it needs root")
AGENTS = ("ann", "bob")


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(tmp_path / "runs" / "task" / "run-1")
    create(made, AGENTS)
    for agent in AGENTS:
        for folder in (made.clone(agent) / ".git", made.attempts / "inbox" / agent, made.attempts / "replies" / agent):
            folder.mkdir(parents=True)
        (made.clone(agent) / "x.txt").write_text(agent)
    (made.hub / "objects").mkdir(parents=True)
    for file in (made.hub / "config", made.private / "task.yaml", made.status, made.shared / "note.md"):
        file.write_text("text")
    made.grader.mkdir()
    (made.grader / "data.txt").write_text("hidden")
    return made


def mode(path: Path) -> tuple[int, int, int]:
    found = path.lstat()
    return found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)


def test_each_agent_has_its_part_and_nobody_the_rest(layout: Layout) -> None:
    owner.divide(layout, AGENTS, share=True)
    for agent in AGENTS:
        user = owner.user_of_agent(layout, agent)
        run, agents = user.groups
        own = (layout.clone(agent), layout.state(agent), layout.attempts / "inbox" / agent, layout.requests_of(agent))
        assert {mode(folder) for folder in own} == {(user.number, user.number, 0o700)}
        assert mode(layout.clone(agent) / "x.txt")[:2] == (user.number, user.number)
        assert mode(layout.logs(agent)) == (0, user.number, 0o2750)
        assert mode(layout.replies_to(agent)) == (0, user.number, 0o750)
    assert mode(layout.root) == (0, run, 0o710)
    assert {mode(folder) for folder in (layout.attempts, layout.heartbeats, layout.hub / "objects")} == {
        (0, agents, 0o750)
    }
    assert mode(layout.shared) == (0, agents, 0o2770)
    assert mode(layout.shared / "note.md") == (0, agents, 0o660)
    closed = (layout.hub / "config", layout.private / "task.yaml", layout.status, layout.requests_of(OPERATOR))
    assert not any(mode(path)[2] & 0o077 for path in closed)
    grade = owner.user_of_grade(layout.root, layout.grading(1), layout.grader)
    assert mode(layout.private) == (0, grade.groups[1], 0o710)
    assert mode(layout.grader) == (0, grade.groups[2], 0o2750)
    assert mode(layout.grader / "data.txt") == (0, grade.groups[2], 0o640)


def test_done_again_it_changes_nothing(layout: Layout) -> None:
    owner.divide(layout, AGENTS, share=True)
    before = {path: path.lstat().st_ctime_ns for path in layout.root.rglob("*")}
    owner.divide(layout, AGENTS, share=True)
    assert {path: path.lstat().st_ctime_ns for path in layout.root.rglob("*")} == before


def test_another_run_is_closed_and_a_copy_has_other_users(layout: Layout) -> None:
    other = layout.root.parent / "run-2"
    (other / "attempts").mkdir(parents=True)
    owner.divide(layout, AGENTS, share=True)
    assert not mode(other)[2] & 0o007
    first = owner.user_of_agent(layout, "ann")
    copy = Layout(layout.root.rename(layout.root.with_name("moved")))
    assert owner.user_of_agent(copy, "ann") == first  # the same folder
    again = Layout(layout.root)
    create(again, AGENTS)
    (copy.clone("ann")).rename(again.root / "workspace" / "agents" / "ann")
    owner.divide(again, AGENTS, share=True)
    second = owner.user_of_agent(again, "ann")
    assert second.number != first.number
    assert mode(again.clone("ann") / "x.txt")[:2] == (second.number, second.number)


def test_at_another_level_all_of_it_is_roots_again(layout: Layout) -> None:
    owner.divide(layout, AGENTS, share=True)
    owner.divide_for(Level.BUBBLEWRAP, layout, AGENTS, share=True)
    folders = [layout.shared, *(layout.clone(agent) for agent in AGENTS), *(layout.state(agent) for agent in AGENTS)]
    below = [path for folder in folders for path in (folder, *folder.rglob("*"))]
    assert {mode(path)[:2] for path in below} == {(0, 0)}


def test_no_link_is_followed_and_no_file_of_others_is_given_away(layout: Layout, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    clone = layout.clone("ann")
    (clone / "link").symlink_to(outside)
    (clone / "file").symlink_to(outside / "secret")
    os.chown(clone, OWN_USERS[5], OWN_USERS[5])  # as of the run that this one was copied from
    (clone / "same").hardlink_to(outside / "secret")
    (layout.shared / "same").hardlink_to(outside / "secret")
    (layout.shared / "link").symlink_to(outside)
    before = mode(outside), mode(outside / "secret")
    owner.divide(layout, AGENTS, share=True)
    assert (mode(outside), mode(outside / "secret")) == before
    assert mode(clone / "link")[0] == owner.user_of_agent(layout, "ann").number


def test_a_grades_user_writes_its_folder_and_cannot_replace_the_graders_files_in_it(tmp_path: Path) -> None:
    folder, files = tmp_path / "grade", tmp_path / "grade" / "grader"
    files.mkdir(parents=True)
    (files / "data.txt").write_text("hidden")
    write_files(folder, {"candidate/x.py": "", "spec.json": "{}"})
    (folder / "spec.json").chmod(0o644)
    user = owner.user_of_grade(folder, folder, files)
    owner.give_grade(folder, user, files, folder, folder / "candidate")
    assert mode(folder) == (0, user.number, 0o3771)  # what is root's in it, nobody else removes
    other = owner.candidate_of(user)
    assert (other.number, other.groups) == (user.number + 1, user.groups[:2])
    assert mode(folder / "candidate") == (user.number, other.number, 0o2750)
    assert mode(folder / "candidate" / "x.py") == (user.number, other.number, 0o640)
    assert mode(folder / owner.CANDIDATES) == (other.number, other.number, 0o700)
    assert mode(folder / "spec.json") == (user.number, user.number, 0o600)
    assert mode(files) == (0, user.groups[2], 0o2750)
    assert mode(files / "data.txt") == (0, user.groups[2], 0o640)


def test_what_root_writes_belongs_to_whom_the_folder_belongs(layout: Layout) -> None:
    owner.divide(layout, AGENTS, share=True)
    clone, user = layout.clone("ann"), owner.user_of_agent(layout, "ann")
    write_below(clone, "inner/AGENTS.md", b"text")
    link_below(clone, "mount", "/etc")
    assert {mode(clone / name)[:2] for name in ("inner", "inner/AGENTS.md", "mount")} == {(user.number, user.number)}
    write_below(layout.shared, "roles/ann.md", b"text")
    assert mode(layout.shared / "roles" / "ann.md") == (0, user.groups[1], 0o664)


def test_what_an_agent_has_closed_to_the_others_is_opened(layout: Layout) -> None:
    owner.divide(layout, AGENTS, share=True)
    user = owner.user_of_agent(layout, "ann")
    note = layout.shared / "closed.md"
    note.touch(mode=0o600)
    os.chown(note, user.number, user.number)
    owner.open_knowledge(layout)
    assert mode(note) == (user.number, user.groups[1], 0o660)
