"""What a child hands over: nothing before it is sealed, and nobody changes it afterwards."""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from coral.grading.runner import ResultWriter
from coral.processes.result_channel import ResultChannel


@pytest.fixture
def channel() -> Iterator[ResultChannel]:
    made = ResultChannel()
    yield made
    made.close()


def test_a_result_is_there_once_it_is_whole(channel: ResultChannel, tmp_path: Path) -> None:
    memory, _ = channel.given
    assert channel.result(100) is None
    os.write(memory, b'{"score": 1')
    if hasattr(fcntl, "F_SEAL_WRITE"):
        assert channel.result(100) is None
    ResultWriter(tmp_path / "result.json", memory).write({"score": 2})
    assert channel.result(100) == b'{"score": 2}' == (tmp_path / "result.json").read_bytes()
    assert channel.result(3) == b'{"sc'


@pytest.mark.skipif(not hasattr(fcntl, "F_SEAL_WRITE"), reason="no seals on this system")
def test_nobody_changes_it_afterwards_and_a_forgery_stops_the_grader(channel: ResultChannel, tmp_path: Path) -> None:
    memory, _ = channel.given
    ResultWriter(tmp_path / "result.json", memory).write({"score": 2})
    attacks = (lambda: os.pwrite(memory, b"9", 10), lambda: os.ftruncate(memory, 0), lambda: os.ftruncate(memory, 99))
    for attack in attacks:
        with pytest.raises(PermissionError):
            attack()
    assert channel.result(100) == b'{"score": 2}'
    with pytest.raises(PermissionError):
        ResultWriter(tmp_path / "result.json", memory).write({"score": 3})


def test_notices_stay_when_the_child_closes_the_pipe(channel: ResultChannel) -> None:
    _, notices = channel.given
    assert channel.notices() == ""
    os.write(notices, b"it runs solution.py\nand more\n")
    channel.close_given()
    assert channel.notices() == "it runs solution.py\nand more\n"
    assert channel.notices() == ""
