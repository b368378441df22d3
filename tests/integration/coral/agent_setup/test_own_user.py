"""Copies of the logins that agents with users of their own have: the newer of the two wins."""

import os
from pathlib import Path

import pytest

from coral.agent_setup.own_user import copy_folder, keep_copy


@pytest.fixture
def login(tmp_path: Path) -> Path:
    path = tmp_path / "home" / "login.json"
    path.parent.mkdir()
    path.write_text("first")
    path.chmod(0o600)
    (tmp_path / "state").mkdir()
    return path


def set_time(path: Path, seconds: int) -> None:
    os.utime(path, (seconds, seconds))


def test_the_newer_login_replaces_the_other(tmp_path: Path, login: Path) -> None:
    state, copy = tmp_path / "state", tmp_path / "state" / "inner" / "login.json"
    set_time(login, 1000)
    keep_copy(state, "inner/login.json", login)
    assert copy.read_text() == "first"
    copy.write_text("refreshed by the agent's program")
    set_time(copy, 2000)
    keep_copy(state, "inner/login.json", login)
    assert login.read_text() == "refreshed by the agent's program"
    assert login.stat().st_mode & 0o777 == 0o600
    login.write_text("a new login")
    set_time(login, 3000)
    keep_copy(state, "inner/login.json", login)
    assert copy.read_text() == "a new login"


def test_a_link_in_the_place_of_a_copy_is_replaced_and_never_read(tmp_path: Path, login: Path) -> None:
    state, secret = tmp_path / "state", tmp_path / "secret"
    secret.write_text("secret")
    set_time(login, 1000)
    (state / "login.json").symlink_to(secret)
    keep_copy(state, "login.json", login)
    assert not (state / "login.json").is_symlink()
    assert ((state / "login.json").read_text(), login.read_text(), secret.read_text()) == ("first", "first", "secret")


def test_a_login_that_is_not_there_is_left_out(tmp_path: Path, login: Path) -> None:
    keep_copy(tmp_path / "state", "other.json", login.with_name("other.json"))
    assert list((tmp_path / "state").iterdir()) == []


def test_settings_are_copied_as_the_user_has_them_and_what_an_agent_added_stays(tmp_path: Path) -> None:
    state, source, secret = tmp_path / "state", tmp_path / "config", tmp_path / "secret"
    copy = state / ".config" / "program"
    (source / "plugins").mkdir(parents=True)
    (source / "plugins" / "one.js").write_text("one")
    (source / "settings.json").write_text("first")
    state.mkdir()
    copy_folder(state, ".config/program", source)
    assert (copy / "plugins" / "one.js").read_text() == "one"
    (copy / "added").write_text("by the agent")
    (copy / "settings.json").write_text("changed by the agent")
    secret.write_text("secret")
    (copy / "plugins" / "one.js").unlink()
    (copy / "plugins" / "one.js").symlink_to(secret)
    copy_folder(state, ".config/program", source)
    assert (copy / "settings.json").read_text() == "first"
    assert ((copy / "plugins" / "one.js").read_text(), secret.read_text()) == ("one", "secret")
    assert (copy / "added").read_text() == "by the agent"


def test_settings_that_are_not_there_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    copy_folder(tmp_path / "state", ".config/program", tmp_path / "none")
    assert list((tmp_path / "state").iterdir()) == []
