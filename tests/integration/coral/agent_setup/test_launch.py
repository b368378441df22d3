"""What an agent's state folder is prepared by, whatever the agent has put there."""

from pathlib import Path

import pytest

from coral.agent_setup.launch import set_aside


def test_the_files_of_an_old_program_are_kept_in_a_folder_of_their_own(tmp_path: Path) -> None:
    state = tmp_path / "state"
    (state / "sessions").mkdir(parents=True)
    (state / "sessions" / "one").write_text("x")
    set_aside(state, 3)
    (state / "new").write_text("y")
    set_aside(state, 5)
    kept = sorted(str(path.relative_to(state)) for path in state.rglob("*") if path.is_file())
    assert kept == [".before-4/sessions/one", ".before-6/new"]
    set_aside(tmp_path / "none", 1)
    assert not (tmp_path / "none").exists()


def test_no_file_is_moved_through_a_link_that_the_agent_has_laid(tmp_path: Path) -> None:
    state, elsewhere = tmp_path / "state", tmp_path / "elsewhere"
    for folder in (state, elsewhere):
        folder.mkdir()
    (state / "evil").write_text("x")
    (state / ".before-4").symlink_to(elsewhere)
    with pytest.raises(OSError):
        set_aside(state, 3)
    assert not list(elsewhere.iterdir())
    assert (state / "evil").exists()
