"""What a node tells of itself."""

import errno
import fcntl
import os
import platform
import socket
from pathlib import Path
from typing import Any

import pytest

from coral.cluster import node_report
from coral.cluster.node_report import report


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of this user's on the node, with an archive and the mirrors of two runs."""
    monkeypatch.setattr(node_report, "own_folder", lambda: tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    for folder in (tmp_path / socket.gethostname() / "archives", *(tmp_path / "agents" / run / "a" for run in "12")):
        folder.mkdir(parents=True)
        (folder / "used").write_bytes(bytes(100))
        (folder / "left").write_bytes(bytes(1000))
    return tmp_path


def kept(archives: list[str] | None = None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = report({}, archives)["kept"]
    return found


def test_what_no_run_uses_is_told_from_what_one_does(base: Path) -> None:
    held = os.open(base / "agents" / "1", os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_SH)
    archives, mirrors = kept(["used", "never sent here"])
    assert archives == {
        "folder": str(base / socket.gethostname() / "archives"),
        "bytes": 1100, "unused": 1000, "unread": [], "partial": False,
    }  # fmt: skip
    assert (mirrors["folder"], mirrors["bytes"], mirrors["unused"]) == (str(base / "agents"), 2200, 1100)
    os.close(held)
    assert kept()[1]["unused"] == 2200
    assert kept()[0]["unused"] == 0, "it is not known what runs use"


def test_a_node_that_keeps_nothing_yet_has_nothing_to_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_report, "own_folder", lambda: tmp_path)
    assert [(part["bytes"], part["unread"]) for part in kept()] == [(0, []), (0, [])]


def test_what_cannot_be_read_is_named(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Path.open

    def fail(path: Path, *arguments: Any, **named: Any) -> Any:
        if path.name == "left":
            raise OSError(errno.EIO, "the disk fails", str(path))
        return opened(path, *arguments, **named)

    monkeypatch.setattr(Path, "open", fail)
    archives, mirrors = kept()
    assert archives["unread"] == [str(base / socket.gethostname() / "archives" / "left")]
    monkeypatch.setattr(Path, "iterdir", lambda path: fail(path / "left"))
    assert kept()[1]["unread"] == [str(base / "agents")]
    assert mirrors["unread"] == []


def test_a_large_mirror_is_not_measured_for_long(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_report, "SIZE_SECONDS", -1.0)
    assert [(part["bytes"], part["partial"]) for part in kept()] == [(0, True), (0, True)]


def test_a_port_that_cannot_be_reached_is_named(base: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as open_port, socket.socket() as closed_port:
        closed_port.bind(("127.0.0.1", 0))  # and does not listen
        first, second = (f"127.0.0.1:{one.getsockname()[1]}" for one in (open_port, closed_port))
        found = report({"the raylet": first, "the object manager": second})
    assert found["closed"] == [f"the object manager at {second} (Connection refused)"]
    assert found["python"] == platform.python_version()
    assert found["disk"] > 0


def test_a_token_that_others_can_read_is_named(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (report({})["asks_token"], report({})["open_token"]) == (False, "")
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    (base / ".ray").mkdir()
    for path in (base / ".ray" / "auth_token", base / "token"):
        path.touch(0o640)
        assert (report({})["asks_token"], report({})["open_token"]) == (True, str(path))
        monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(base / "token"))
    (base / "token").chmod(0o600)
    assert report({})["open_token"] == ""
