"""Which users a run has, and what others reach; whom files belong to is shown in integration."""

from pathlib import Path

import pytest

from workspace.layout import Layout
from workspace.owner import closed_to_others, number_of, open_to_others, user_of_agent, user_of_grade
from workspace.plain_file import OWN_USERS


@pytest.fixture
def open_path(tmp_path: Path) -> Path:
    """A temporary folder that others can pass, as are those above it."""
    for folder in (tmp_path, *tmp_path.parents[:-1]):
        if not folder.stat().st_mode & 0o001:
            folder.chmod(0o711)
    return tmp_path


def test_a_run_has_its_own_users_and_another_run_others(tmp_path: Path) -> None:
    layouts = [Layout(tmp_path / name) for name in ("first", "second")]
    for layout in layouts:
        layout.root.mkdir()
    users = [user_of_agent(layout, agent) for layout in layouts for agent in ("ann", "bob")]
    users += [user_of_grade(layout.root, layout.grading(n), layout.grader) for layout in layouts for n in (1, 2)]
    numbers = [user.number for user in users]
    assert len(set(numbers)) == len(numbers)
    assert all(number in OWN_USERS for user in users for number in (user.number, *user.groups))
    assert numbers[0] == number_of(layouts[0].root, "agent ann")  # stored nowhere, and always the same
    ann, bob, *_, grade = users[0], users[1], users[4]
    assert ann.groups == bob.groups
    assert set(ann.groups) & set(grade.groups) == {ann.groups[0]}  # both pass the run's folder, and no more


def test_the_graders_of_attempts_and_of_the_hold_out_read_their_own_files(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    grader, holdout = (user_of_grade(tmp_path, layout.grading(1), files) for files in (layout.grader, layout.holdout))
    assert grader.groups[:2] == holdout.groups[:2]
    assert grader.groups[2] != holdout.groups[2]


def test_the_first_closed_folder_on_a_way_is_named(open_path: Path) -> None:
    inner = open_path / "a" / "b"
    inner.mkdir(parents=True)
    (inner / "file").touch()
    assert closed_to_others(inner / "file") is None
    (inner / "file").chmod(0o600)
    assert closed_to_others(inner / "file") == inner / "file"
    (open_path / "a").chmod(0o750)
    assert closed_to_others(inner) == open_path / "a"
    (open_path / "link").symlink_to(inner)
    assert closed_to_others(open_path / "link") == open_path / "a"


def test_what_all_can_read_of_a_task_is_named(open_path: Path) -> None:
    task = open_path / "task"
    for name in ("data", "runs"):
        (task / name).mkdir(parents=True)
    assert open_to_others(task, ()) == task
    assert open_to_others(task, [task / "runs"]) == task / "data"
    (task / "data").chmod(0o700)
    assert open_to_others(task, [task / "runs"]) is None
    task.chmod(0o700)
    (task / "data").chmod(0o755)
    assert open_to_others(task, ()) is None
    (task / "data").chmod(0o755)
    assert open_to_others(task / "data", ()) is None  # behind a closed folder
    assert open_to_others(open_path / "absent", ()) is None
