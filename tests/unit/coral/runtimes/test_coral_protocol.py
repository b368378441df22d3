"""The command lines, output and exits of our own agent programs; what they share with any; how lines are read."""

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from launch_specs import launch_spec

from coral import extras
from coral.native import options
from coral.runtimes.command import AnyProgram
from coral.runtimes.json_object import MESSAGE, REPLY
from coral.runtimes.line_tail import LONGEST_LINE, LineTail
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
    said = LaunchSummary(stderr="Fatal Python error: init_sys_streams: cannot initialize sys standard streams")
    assert Native({}).judge(1, said) is Ending.INTERRUPTED


def test_each_field_of_our_protocol_is_read_by_itself() -> None:
    line: dict[str, object] = {"session": "s", "phase": "thinking", "message": "a\nb", "progress": 2}
    line |= {"reply": "x\ny", "ended": True, "error": "e"}
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


def test_the_native_command_line_holds_the_session_and_the_task() -> None:
    editable = ("*.py", "data/*.json")
    spec = launch_spec(editable=editable, check="check.py:check", direction="minimize", seed=7)
    new = Native({"brain": "search"}).command(spec)
    assert new.argv[:6] == (sys.executable, "-P", "-m", "coral.native", "--session", new.session)
    assert "--resume" not in new.argv
    words = list(new.argv)
    assert words[words.index("--editable") + 1 :][:2] == ["*.py", "data/*.json"]
    assert words[words.index("--check") + 1] == "check.py:check"
    assert words[words.index("--direction") + 1] == "minimize"
    assert words[words.index("--seed") + 1] == "7"
    assert words[words.index("--state") + 1] == str(spec.state)
    assert json.loads(words[words.index("--options") + 1]) == {"brain": "search"}
    resumed = Native({}).command(launch_spec("abc"))
    assert resumed.argv[4:7] == ("--session", "abc", "--resume")


def test_an_unknown_brain_or_option_of_native_is_refused() -> None:
    assert Native({}).check() == []
    assert Native({"brain": "search"}).check() == []
    assert Native({"brain": "big"}).check() == ["brain must be search or llm, or module:Class of your own; got 'big'"]
    assert Native({"brian": "search"}).check() == ["there is no option 'brian'; did you mean brain?"]


def test_a_missing_library_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "find_spec", lambda name: None if name == "cma" else name)
    assert Native({}).check() == [f"cma is not installed; `{extras.installs('search')}` installs it"]


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "0001.jsonl"


def test_a_line_is_read_when_it_is_whole_and_once(output):
    tail = LineTail(output)
    assert list(tail.lines()) == []
    output.write_bytes(b"one\ntw")
    assert list(tail.lines()) == [b"one"]
    with output.open("ab") as file:
        file.write(b"o\nthree\n")
    assert list(tail.lines()) == [b"two", b"three"]
    assert list(tail.lines()) == []
    assert not tail.has_more
    output.unlink()
    output.write_bytes(b"x" * (3 * LONGEST_LINE) + b"\nafter\n")
    tail = LineTail(output)
    lines = []
    while tail.has_more:
        lines += list(tail.lines())
    assert lines == [b"after"]
