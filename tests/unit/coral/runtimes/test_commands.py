"""What runtimes say: how to start a program, what its lines mean, what its end means."""

import json
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coral.errors import CoralError
from coral.runtimes import registry
from coral.runtimes.command import AnyProgram
from coral.runtimes.coral_protocol import MESSAGE, REPLY
from coral.runtimes.model import (
    Ending,
    LaunchSpec,
    LaunchSummary,
    OutputEvent,
    Retry,
    Runtime,
)
from coral.runtimes.native import Native
from coral.runtimes.scripted.runtime import Scripted

OURS: tuple[Runtime, ...] = (Native({}), Scripted({"script": ["hang"]}), AnyProgram({"start": "true"}))
READ = {"claude": "CLAUDE.md", "gemini": "GEMINI.md"}  # where they look for instructions
KNOWN: Mapping[str, object] = {"start": "agent --new", "resume": "agent --go {session}"}


def job(session: str | None = None, launch: int = 3) -> LaunchSpec:
    root = Path("/runs/t/20250101-000000-abcd")
    return LaunchSpec(
        agent="agent-1",
        launch=launch,
        session=session,
        clone=root / "workspace/agents/agent-1",
        state=root / "workspace/state/agent-1",
        run_root=root,
        model="m-1",
        editable=("*.py", "data/*.json"),
        check="check.py:check",
        direction="minimize",
        seed=7,
    )


def test_every_name_is_a_runtime() -> None:
    for name in registry.RUNTIMES:
        runtime = registry.find(name, {"start": "true", "script": ["hang"]})
        assert runtime.name == name
        assert runtime.instruction_file == READ.get(name, "AGENTS.md")


def test_every_runtime_says_what_it_reports_and_what_it_was_tried_with() -> None:
    found = {name: registry.find(name, {"start": "true", "script": ["hang"]}) for name in registry.RUNTIMES}
    assert {name for name, runtime in found.items() if not runtime.reports} == {
        *("native", "command", "acp", "copilot", "cursor", "kiro")
    }
    assert {runtime.reports for runtime in found.values()} == {"money", "tokens", ""}
    no_one_program = {"native", "command", "scripted", "acp"}
    assert {name for name, runtime in found.items() if runtime.verified_version is None} == no_one_program
    assert {name for name, runtime in found.items() if runtime.verified_version == ""} == {"cursor", "kiro"}
    assert {name for name, runtime in found.items() if not runtime.account} == {"native", "scripted"}
    assert {name for name, runtime in found.items() if not runtime.can_research} == {"native"}
    assert {name for name, runtime in found.items() if not runtime.uses_model} == {"native", "scripted", "command"}


def test_the_registry_knows_every_instruction_file() -> None:
    found = [registry.find(name, {"start": "true", "script": ["hang"]}) for name in registry.RUNTIMES]
    assert {runtime.instruction_file for runtime in found} == set(registry.INSTRUCTION_FILES)


def test_an_unknown_name_is_refused_with_a_hint() -> None:
    with pytest.raises(CoralError, match="there is none of that name") as error:
        registry.find("nativ", {})
    assert error.value.hint == "did you mean native?"
    assert f"there are {', '.join(registry.RUNTIMES)}; " in registry.check("zzz", {})[0]


def test_a_runtime_of_ones_own_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "from coral.runtimes.native import Native\nclass Mine(Native):\n    name = 'mine'\nclass No:\n    pass\nN = 3\n"
    )
    (tmp_path / "my_runtime_module.py").write_text(
        code + "from coral.runtimes.model import Runtime\nclass Half(Runtime):\n    def read(self, line): return ()\n"
        "class Other:\n    def __init__(self, options): pass\n"
    )
    (tmp_path / "my_broken_module.py").write_text("def (")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert registry.find("my_runtime_module:Mine", {}).name == "mine"
    for name, reason in {
        "my_runtime_module:Yours": "no attribute 'Yours'",
        "no_such_module:Mine": "No module named 'no_such_module'",
        "my_broken_module:Mine": "invalid syntax",
        "my_runtime_module:No": "takes no arguments",
        "my_runtime_module:N": "cannot be called",
        "my_runtime_module:Half": "it has no command, judge, name",
        "my_runtime_module:Other": "it is no subclass of Runtime",
        ":Mine": "Empty module name",
    }.items():
        assert reason in registry.check(name, {})[0]


def test_the_native_agent_gets_its_session_and_its_task() -> None:
    new = Native({"brain": "search"}).command(job())
    assert new.argv[:6] == (sys.executable, "-P", "-m", "coral.native", "--session", new.session)
    assert "--resume" not in new.argv
    words = list(new.argv)
    assert words[words.index("--editable") + 1 :][:2] == ["*.py", "data/*.json"]
    assert words[words.index("--check") + 1] == "check.py:check"
    assert words[words.index("--direction") + 1] == "minimize"
    assert words[words.index("--seed") + 1] == "7"
    assert words[words.index("--state") + 1] == str(job().state)
    assert json.loads(words[words.index("--options") + 1]) == {"brain": "search"}
    resumed = Native({}).command(job(session="abc"))
    assert resumed.argv[4:7] == ("--session", "abc", "--resume")


def test_the_native_agent_has_the_brains_that_it_has() -> None:
    assert Native({"brain": "search"}).check() == []
    assert Native({"brain": "big"}).check() == ["brain must be search; got 'big'"]
    assert Native({"brian": "search"}).check() == ["there is no option 'brian'; did you mean brain?"]


def test_a_new_session_is_always_new_and_always_the_same() -> None:
    for runtime in OURS:
        assert runtime.command(job()).session == runtime.command(job()).session
        assert runtime.command(job()).session != runtime.command(job(launch=4)).session


def test_places_are_filled_once_and_other_braces_stay() -> None:
    template = ["a b", '{"m": "{model}"}', "{agent}/{session}", "{prompt_file}", "{state}{clone}", "{other} {}"]
    made = AnyProgram({"start": template}).command(job())
    assert made.argv == (
        "a b",
        '{"m": "m-1"}',
        f"agent-1/{made.session}",
        "/runs/t/20250101-000000-abcd/logs/agent-1/0003.prompt.md",
        f"{job().state}{job().clone}",
        "{other} {}",
    )
    strange = AnyProgram({"start": "x {session}", "resume": "x {session}"}).command(job(session="{model}"))
    assert strange.argv == ("x", "{model}")
    assert AnyProgram({"start": "x -m 'a b'"}).command(job()).argv == ("x", "-m", "a b")


def test_a_program_that_cannot_resume_starts_anew() -> None:
    runtime = AnyProgram({"start": "agent --id {session}"})
    assert not runtime.resumes
    assert runtime.command(job(session="old")).argv == ("agent", "--id", runtime.command(job()).session)
    resuming = AnyProgram({**KNOWN, "session_pattern": "id (?P<session>.+)"})
    assert resuming.resumes
    assert resuming.command(job(session="old")) == resuming.command(job(session="old", launch=9))
    assert resuming.command(job(session="old")).argv == ("agent", "--go", "old")
    assert resuming.command(job()).session == "", "it is the program that names the conversation"


def test_patterns_read_a_program() -> None:
    runtime = AnyProgram(
        {
            **KNOWN,
            "session_pattern": r'"thread": "(?P<session>[^"]+)"',
            "reply_pattern": r"^says: (?P<reply>.*)",
            "limit_pattern": r"limit reached(, retry in (?P<seconds>\d+) s|, until (?P<until>\S+))?",
        }
    )
    assert runtime.read(b'{"thread": "t-1"}\n')[0].session == "t-1"
    assert runtime.read(b"says: HEARTBEAT_OK\n")[0].reply == "HEARTBEAT_OK"
    assert runtime.read(b"thinking\n") == (OutputEvent(message="thinking"),)
    assert runtime.read(b" \n") == ()
    moment = datetime.fromtimestamp(time.time() + 3600, UTC)
    for text in (
        f", until {moment.isoformat()}",
        f", until {moment.timestamp()}",
        f", until {moment.timestamp() * 1000}",
    ):
        assert runtime.read(f"limit reached{text}".encode())[0].limit_until == pytest.approx(moment.timestamp(), abs=1)
    for line, seconds in ((b", retry in 60 s", 60), (b"", 900), (b", until never", 900)):
        before = time.time()
        until = runtime.read(b"limit reached" + line)[0].limit_until
        assert until is not None
        assert before + seconds <= until <= time.time() + seconds


def test_without_a_pattern_what_is_printed_is_what_it_says() -> None:
    assert AnyProgram({"start": "x"}).read("é\x1b[0m ok\n".encode())[0] == OutputEvent(
        message="é[0m ok", reply="é[0m ok"
    )


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"strat": "true"}, "there is no option 'strat'; did you mean start?"),
        ({}, "start is empty"),
        ({"start": []}, "start is empty"),
        ({"start": [1]}, "start must be a list of texts, or a line"),
        ({"start": 'true "x'}, "No closing quotation"),
        ({"start": "no-such-program-anywhere"}, "'no-such-program-anywhere' is not on PATH"),
        ({"start": "true", "resume": "/no/such/program"}, "'/no/such/program' is not on PATH"),
        ({"start": "true", "resume": "true {session}"}, "resume needs {session}"),
        ({"start": "true", "session_pattern": "(?P<session>"}, "session_pattern is no regular expression"),
        ({"start": "true", "session_pattern": "id"}, "session_pattern needs a group named session"),
        (
            {"start": "true", "limit_pattern": "(?P<when>.)"},
            "limit_pattern has a group 'when'; it knows until, seconds",
        ),
        ({"start": "true", "reply_pattern": 3}, "reply_pattern must be a pattern"),
        ({"start": "true", "instruction_file": "../X.md"}, "instruction_file must be a path inside the workspace"),
    ],
)
def test_wrong_options_are_found_before_anything_is_started(options: Mapping[str, object], problem: str) -> None:
    problems = AnyProgram(options).check()
    assert any(problem in each for each in problems), problems


def test_right_options_have_no_problems() -> None:
    full = {
        "start": ["true", "{session}"],
        "resume": "true {session}",
        "limit_pattern": "limit",
        "instruction_file": "X.md",
    }
    assert AnyProgram(full).check() == []
    assert AnyProgram(full).instruction_file == "X.md"
    assert AnyProgram({"start": "{clone}/agent.sh"}).check() == []
    assert Native({}).check() == []
    assert (
        Scripted(
            {"script": [{"repeat": {"times": 2, "steps": ["hang", {"edit": {"file": "a", "content": ""}}]}}]}
        ).check()
        == []
    )


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
def test_every_runtime_judges_an_end_alike(code: int, said: LaunchSummary, ending: Ending) -> None:
    assert {runtime.judge(code, said) for runtime in OURS} == {ending}


def test_our_programs_say_more_by_their_exit_code() -> None:
    assert Native({}).judge(4, LaunchSummary()) is Ending.UNKNOWN_SESSION
    assert Native({}).judge(2, LaunchSummary()) is Ending.TERMINAL


def test_any_program_is_judged_by_what_it_prints() -> None:
    runtime = AnyProgram({**KNOWN, "limit_pattern": "limit reached"})
    assert runtime.judge(127, LaunchSummary()) is Ending.TERMINAL
    assert runtime.judge(1, LaunchSummary(stderr="error: limit reached")) is Ending.LIMIT
    for text in ("No conversation found with session ID: x", "Error: thread x not found", "Unknown session x"):
        assert runtime.judge(1, LaunchSummary(stderr=text)) is Ending.UNKNOWN_SESSION
        assert runtime.judge(1, LaunchSummary(stderr=text, output=True)) is Ending.CRASHED
        assert AnyProgram({"start": "x"}).judge(1, LaunchSummary(stderr=text)) is Ending.CRASHED
    assert runtime.judge(1, LaunchSummary(stderr="out of memory in this session")) is Ending.CRASHED


def test_our_programs_lines_are_read_field_by_field() -> None:
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
        *OURS,
        AnyProgram({"start": "x", "session_pattern": "(?P<session>.*)", "limit_pattern": "(?P<until>.+)"}),
    ):
        for sign in runtime.read(line):
            f"{sign.session}{sign.message}{sign.reply}{sign.error}".encode()


def test_a_line_is_cut() -> None:
    for runtime in OURS:
        [sign] = runtime.read(b"x" * 10_000_000)
        assert len(sign.message) <= MESSAGE
        assert len(sign.reply) <= REPLY
    assert Native({}).read(b"[" * 60_000)[0].message
    late = AnyProgram({"start": "x", "session_pattern": "id (?P<session>.+)"}).read(b"x" * 30_000 + b"id 7")
    assert late[0].session == "", "a pattern never sees more than it can take in a moment"
    assert len(Native({}).read(json.dumps({"reply": "r" * 30_000}).encode())[0].reply) == REPLY


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ([], "script has no steps"),
        ("missing.json", "script cannot be read"),
        (["hnag"], "step 1: there is no option 'hnag'; did you mean hang?"),
        ([{"print": 3}], "step 1: print needs a text"),
        ([{"sleep": -1}], "sleep needs seconds"),
        ([{"busy": True}], "busy needs seconds"),
        ([{"hang": 3}], "hang takes no value"),
        ([{"edit": {"content": "x"}}], "edit needs a file"),
        ([{"edit": {"file": "x"}}], "edit needs one of content, append, replace"),
        ([{"edit": {"file": "x", "replace": "y"}}], "edit needs [old, new] in replace"),
        ([{"edit": {"file": "x", "content": "y", "mode": 1}}], "there is no option 'mode'"),
        ([{"submit": {"mesage": "x"}}], "did you mean message?"),
        ([{"fork": {"dead": True}}], "did you mean deaf?"),
        ([{"fork": 3}], "fork needs options"),
        ([{"ignore": ["SIGINT"]}], "ignore needs names of signals"),
        ([{"crash": 256}], "crash needs an exit code from 0 to 255"),
        ([{"crash": "BOOM"}], "crash needs names of signals"),
        ([{"crash": 1.5}], "crash needs an exit code or a signal"),
        ([{"repeat": []}], "step 1, repeat has no steps"),
        ([{"repeat": {"times": 0, "steps": ["hang"]}}], "times must be a whole number from 1"),
        ([{"repeat": {"time": 1, "steps": ["hang"]}}], "did you mean times?"),
        ([{"print": "a", "say": "b"}], "step 1 must be one name"),
        ([3], "step 1 must be one name"),
        ([{"print": "x" * 200_000}], "put it into a file"),
    ],
)
def test_wrong_scripts_are_found_before_anything_is_started(script: object, problem: str) -> None:
    problems = Scripted({"script": script}).check()
    assert any(problem in each for each in problems), problems


def test_scripts_may_be_files(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('["hang"]')
    (tmp_path / "s.yaml").write_text("- hang\n- sleep: 1e-3\n")
    (tmp_path / "bad.yaml").write_text("- [")
    assert Scripted({"script": str(tmp_path / "s.json")}).check() == []
    assert Scripted({"script": str(tmp_path / "s.yaml")}).check() == []
    assert "cannot be read" in Scripted({"script": str(tmp_path / "bad.yaml")}).check()[0]
    assert "no option 'scrip'" in Scripted({"scrip": 1}).check()[0]
