"""Messages carry bytes, and the socket lies in a folder whose path may be longer than that of a socket."""

import sys
from pathlib import Path

import pytest

from coral.cluster import wire

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a socket is reached through /proc")


def test_bytes_come_out_as_they_were() -> None:
    message = {"events": [{"output": {"stdout": b"\x00\xff\n"}}], "seen": 3}
    assert wire.decoded(wire.encoded(message)) == message
    with pytest.raises(ValueError):
        wire.decoded(b"[1]\n")


def test_what_a_user_names_base64_is_no_bytes() -> None:
    message = {"order": {"spec": {"args": {"base64": "no bytes"}}}}
    assert wire.decoded(wire.encoded(message)) == message


def test_a_socket_in_a_deep_folder_answers(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    with pytest.raises(OSError):
        wire.connect(folder, 1)
    with wire.listen(folder) as listening, wire.connect(folder, 1) as client:
        client.sendall(wire.encoded({"submit": "a"}))
        with listening.accept()[0] as server, server.makefile("rb") as lines:
            assert wire.decoded(lines.readline()) == {"submit": "a"}


def test_trouble_is_what_the_bridge_wrote(tmp_path: Path) -> None:
    assert wire.trouble(tmp_path) == ""
    (tmp_path / wire.TROUBLE).write_text("no head\n")
    assert wire.trouble(tmp_path) == "no head"


def test_the_room_is_what_the_bridge_measured(tmp_path: Path) -> None:
    assert wire.capacity(tmp_path) is None
    (tmp_path / wire.CAPACITY).write_text("12\n")
    assert wire.capacity(tmp_path) == 12
