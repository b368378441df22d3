"""The output and the exits of our own agent programs, and what all runtimes but those of foreign programs share."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from launch_specs import launch_spec

from coral.runtimes.command import AnyProgram
from coral.runtimes.coral_protocol import MESSAGE, REPLY
from coral.runtimes.model import Ending, LaunchSummary, OutputEvent, Retry, Runtime
from coral.runtimes.native import Native
from coral.runtimes.scripted.runtime import Scripted

RUNTIMES: tuple[Runtime, ...] = (Native({}), Scripted({"script": ["hang"]}), AnyProgram({"start": "true"}))


def test_each_launch_has_a_session_of_its_own_which_does_not_change() -> None:
    for runtime in RUNTIMES:
        assert runtime.command(launch_spec()).session == runtime.command(launch_spec()).session
        assert runtime.command(launch_spec()).session != runtime.command(launch_spec(launch=4)).session


@pytest.mark.parametrize(
    ("code", "said", "ending"),
    [
        (0, LaunchSummary(output=True), Ending.CLEAN),
        (1, LaunchSummary(), Ending.CRASHED),
        (-9, LaunchSummary(), Ending.CRASHED),
        (130, LaunchSummary(), Ending.INTERRUPTED),
        (-2, LaunchSummary(), Ending.INTERRUPTED),
        (-15, LaunchSummary(), Ending.INTERRUPTED),
        (143, LaunchSummary(), Ending.INTERRUPTED),
        (1, LaunchSummary(limit_until=5.0), Ending.LIMIT),
    ],
)
def test_all_runtimes_judge_an_exit_code_alike(code: int, said: LaunchSummary, ending: Ending) -> None:
    assert {runtime.judge(code, said) for runtime in RUNTIMES} == {ending}


def test_exit_codes_of_our_programs_tell_a_lost_session_and_wrong_options() -> None:
    assert Native({}).judge(4, LaunchSummary()) is Ending.UNKNOWN_SESSION
    assert Native({}).judge(2, LaunchSummary()) is Ending.TERMINAL


def test_each_field_of_our_protocol_is_read_by_itself() -> None:
    line = {
        "session": "s",
        "phase": "thinking",
        "message": "a\nb",
        "progress": 2,
        "reply": "x\ny",
        "ended": True,
        "error": "e",
    }
    assert Native({}).read(json.dumps(line).encode()) == (
        OutputEvent(session="s", phase="thinking", message="a b", progress=1.0, reply="x\ny", ended=True, error="e"),
    )
    assert Native({}).read(b"Traceback (most recent call last):\n") == (
        OutputEvent(message="Traceback (most recent call last):"),
    )
    assert Native({}).read(b"\n") == ()
    told = b'{"edited": "a.py", "compacted": true, "retry": {"attempt": 2, "seconds": 1.5, "reason": "busy"}}'
    retry = Retry(attempt=2, seconds=1.5, reason="busy")
    assert Native({}).read(told) == (OutputEvent(edited="a.py", compacted=True, retry=retry),)
    assert Native({}).read(b'{"retry": {"attempt": "x", "seconds": [], "reason": 3}}') == (OutputEvent(retry=Retry()),)
    assert Native({}).read(b'{"edited": 1, "compacted": "yes", "retry": true}') == (OutputEvent(),)
    wrong = {"session": 3, "phase": None, "progress": "NaN", "reply": [], "ended": 1, "limit_until": True}
    assert Native({}).read(json.dumps(wrong).encode()) == (OutputEvent(),)
    assert Native({}).read(b'{"progress": NaN, "limit_until": 1' + b"0" * 400 + b"}") == (
        OutputEvent(limit_until=1e11),
    )


@given(line=st.binary(max_size=300) | st.text(max_size=100).map(lambda text: json.dumps({"reply": text}).encode()))
def test_no_line_raises(line: bytes) -> None:
    for runtime in (
        *RUNTIMES,
        AnyProgram({"start": "x", "session_pattern": "(?P<session>.*)", "limit_pattern": "(?P<until>.+)"}),
    ):
        for event in runtime.read(line):
            f"{event.session}{event.message}{event.reply}{event.error}".encode()


def test_a_long_line_is_shortened() -> None:
    for runtime in RUNTIMES:
        [event] = runtime.read(b"x" * 10_000_000)
        assert len(event.message) <= MESSAGE
        assert len(event.reply) <= REPLY
    assert Native({}).read(b"[" * 60_000)[0].message
    late = AnyProgram({"start": "x", "session_pattern": "id (?P<session>.+)"}).read(b"x" * 30_000 + b"id 7")
    assert late[0].session == "", "a pattern never sees more than it can take in a moment"
    assert len(Native({}).read(json.dumps({"reply": "r" * 30_000}).encode())[0].reply) == REPLY
