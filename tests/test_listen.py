"""What an agent's program prints: only what is new, in whole lines, at a bounded cost."""

from pathlib import Path

import pytest

from coral.fleet.events import Heard
from coral.listen import LONGEST_LINE, REMIND_SECONDS, Ear, Tail
from coral.runtimes import find


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "0001.jsonl"


def ear(output: Path, runtime: str = "scripted", session: str | None = None) -> Ear:
    options = {"script": ["hang"]} if runtime == "scripted" else {"start": ["true"]}
    return Ear("agent-1", 1, find(runtime, options), Tail(output), output.with_suffix(".err"), session)


def test_a_line_is_read_when_it_is_whole_and_once(output):
    tail = Tail(output)
    assert list(tail.lines()) == []
    output.write_bytes(b"one\ntw")
    assert list(tail.lines()) == [b"one"]
    with output.open("ab") as file:
        file.write(b"o\nthree\n")
    assert list(tail.lines()) == [b"two", b"three"]
    assert list(tail.lines()) == []
    assert not tail.is_behind


def test_a_line_that_is_too_long_is_passed_over_and_the_next_one_is_read(output):
    output.write_bytes(b"x" * (3 * LONGEST_LINE) + b"\nafter\n")
    tail = Tail(output)
    lines = []
    while tail.is_behind:
        lines += list(tail.lines())
    assert lines == [b"after"]


def test_nothing_is_heard_before_a_session_and_a_first_output_exist(output):
    listening = ear(output)
    assert listening.listen(1.0) is None
    output.write_bytes(b'{"phase": "thinking"}\n')
    assert listening.listen(2.0) is None
    with output.open("ab") as file:
        file.write(b'{"session": "abc"}\n')
    assert listening.listen(3.0) == Heard(agent="agent-1", launch=1, session="abc", busy="thinking")


def test_a_program_without_sessions_is_heard_at_its_first_word(output):
    output.write_bytes(b"hello\n")
    assert ear(output, "command").listen(1.0) == Heard(agent="agent-1", launch=1, reply="hello")


def test_what_says_nothing_new_is_only_a_reminder_now_and_then(output):
    listening = ear(output, session="abc")
    output.write_bytes(b'{"phase": "busy"}\n')
    assert listening.listen(100.0) is not None
    for seconds, expected in ((1.0, False), (REMIND_SECONDS, True), (REMIND_SECONDS + 1, False)):
        with output.open("ab") as file:
            file.write(b'{"phase": "busy"}\n')
        assert (listening.listen(100.0 + seconds) is not None) is expected
    assert listening.listen(1000.0) is None  # silence is no sign of life


def test_an_answer_is_passed_on(output):
    listening = ear(output, session="abc")
    output.write_bytes(b'{"reply": "HEARTBEAT_OK"}\n')
    heard = listening.listen(1.0)
    assert heard is not None
    assert heard.reply == "HEARTBEAT_OK"


def test_garbage_is_a_sign_of_life_and_nothing_more(output):
    listening = ear(output, session="abc")
    output.write_bytes(b"\xff\xfe\x00\n[[[[\n{}\n")
    assert listening.listen(1.0) == Heard(agent="agent-1", launch=1, session="abc")
