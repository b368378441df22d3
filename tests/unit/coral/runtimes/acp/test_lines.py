"""What our client prints is read as every other program's output; options are checked before anything is started."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from launch_specs import launch_spec

from coral import extras
from coral.cli import main
from coral.config.load import load
from coral.errors import CoralError
from coral.preflight.task_check import quick_findings
from coral.runs.create import create_run
from coral.runtimes import registry
from coral.runtimes.acp import runtime
from coral.runtimes.acp.tracking import CostMeter, StepUsage, ToolCalls, cut
from coral.runtimes.json_object import REPLY, JsonObject
from coral.runtimes.messages import ReplyParts
from coral.runtimes.model import Counted, Ending, LaunchSummary, OutputEvent, Usage

KNOWN: dict[str, object] = {"command": [sys.executable, "agent.py"]}
CLEAN, CRASHED, TERMINAL = Ending.CLEAN, Ending.CRASHED, Ending.TERMINAL
LIMIT, UNKNOWN, INTERRUPTED = Ending.LIMIT, Ending.UNKNOWN_SESSION, Ending.INTERRUPTED


def read(**event: object) -> tuple[OutputEvent, ...]:
    return registry.find("acp", {}).read(json.dumps(event).encode())


# --- the end of a turn --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "ending"),
    [
        ({"type": "result", "stop": "end_turn", "reply": None}, CLEAN),
        ({"type": "result", "stop": "end_turn", "reply": "I am done with it."}, CLEAN),
        ({"type": "result", "stop": "max_turn_requests"}, CLEAN),
        ({"type": "result", "stop": "cancelled"}, INTERRUPTED),
        ({"type": "result", "stop": "refusal"}, CRASHED),
        # Some say an error as if it were an answer.
        ({"type": "result", "stop": "end_turn", "reply": "You've hit your usage limit. Try again later."}, LIMIT),
        ({"type": "result", "stop": "end_turn", "reply": "Error: (HTTP 401) bad credentials"}, CRASHED),
        ({"type": "result", "stop": "end_turn", "reply": "prompt is too long: 9 tokens > 8 maximum"}, UNKNOWN),
        ({"type": "error", "during": "prompt", "code": -32603, "message": "Internal error", "data": None}, CRASHED),
        ({"type": "error", "during": "prompt", "code": -32000, "message": "Authentication required"}, TERMINAL),
        ({"type": "error", "during": "new", "code": -32000, "message": "Authentication required"}, TERMINAL),
        ({"type": "error", "during": "prompt", "code": 401, "message": "nope"}, TERMINAL),
        ({"type": "error", "during": "prompt", "code": 429, "message": "nope"}, LIMIT),
        ({"type": "error", "during": "prompt", "code": 1, "message": "x", "data": {"statusCode": 403}}, Ending.DENIED),
        ({"type": "error", "during": "prompt", "code": 1, "message": "x", "data": {"details": "usage limit"}}, LIMIT),
        ({"type": "error", "during": "prompt", "code": 1, "message": "x", "data": "quota exceeded"}, LIMIT),
        ({"type": "error", "during": "prompt", "code": -32002, "message": "Session not found: s"}, UNKNOWN),
        ({"type": "error", "during": "load", "code": -32603, "message": "Internal error"}, UNKNOWN),
        ({"type": "error", "during": "load", "code": 1, "message": "x", "data": {"message": "usage limit"}}, LIMIT),
        ({"type": "error", "during": "load", "message": "the agent ended", "gone": True, "exit": 0}, UNKNOWN),
        ({"type": "error", "during": "load", "message": "the agent ended", "gone": True, "exit": 1}, None),
        ({"type": "error", "during": "prompt", "message": "the agent ended", "gone": True, "exit": 0}, None),
        ({"type": "error", "during": "start", "message": "x cannot be started", "gone": True}, None),
        ({"type": "error", "during": "choice", "kind": "not_offered", "message": "have timeout-503"}, TERMINAL),
        ({"type": "error", "during": "authenticate", "kind": "timeout", "message": "403"}, CRASHED),
        ({"type": "error", "during": "load", "kind": "timeout", "message": "too late"}, CRASHED),
        ({"type": "error", "during": "prompt", "code": 1, "message": "401 Unauthorized", "stopped": True}, TERMINAL),
        ({"type": "interrupted"}, INTERRUPTED),
    ],
)
def test_the_end_of_a_turn_has_its_ending(event: dict[str, Any], ending: Ending | None) -> None:
    sign = read(**event)[-1]
    assert sign.ending is ending
    assert sign.ended == (ending is not None)
    if event["type"] == "error":
        assert event["message"] in sign.error
        assert sign.error.startswith(f"{event['during']}: ") == (event["during"] != "prompt")


@pytest.mark.parametrize(
    "trouble",
    [
        {"message": "it does not answer session/x within 120 seconds", "code": 0, "kind": "timeout"},
        {"message": "Internal error", "code": -32603, "data": {"details": "read ECONNRESET"}},
        {"message": "Authentication failed: fetch failed", "code": -32000},
        {"message": "Internal error", "code": -32603, "data": {"status": 503}},
        {"message": "429 Too Many Requests", "code": -32603},
        {"message": "Service temporarily unavailable", "code": -32602},
    ],
)
@pytest.mark.parametrize("during", ["initialize", "authenticate", "new", "load", "choice", "prompt"])
def test_an_error_that_passes_retires_no_agent(during: str, trouble: dict[str, Any]) -> None:
    expected = LIMIT if "429" in trouble["message"] else CRASHED
    assert read(type="error", during=during, **trouble)[-1].ending is expected


@pytest.mark.parametrize(
    ("during", "code", "message", "data", "ending"),
    [
        ("authenticate", -32602, "Invalid params", {"details": "no such method"}, TERMINAL),
        ("authenticate", -32603, "Authentication failed", None, TERMINAL),
        ("authenticate", -32603, "Internal error", None, CRASHED),
        ("authenticate", -32603, "x", {"status": 401}, TERMINAL),
        ("choice", -32601, "Method not found", None, TERMINAL),
        ("choice", -32603, "Internal error", None, CRASHED),
        ("new", -32000, "x", None, TERMINAL),
        ("load", -32603, "403 Forbidden", None, TERMINAL),
        ("load", -32000, "cannot be restored", None, UNKNOWN),
        ("load", -32602, "Invalid params", None, UNKNOWN),
        ("load", 404, "x", None, UNKNOWN),
        ("prompt", -32000, "Server error", None, CRASHED),
        ("prompt", -32000, "Server error", {"authMethods": []}, CRASHED),
        ("prompt", -32000, "Server error", {"authMethods": [{"id": "a"}]}, TERMINAL),
        ("prompt", -32000, "You are not authenticated", None, TERMINAL),
        ("prompt", -32603, "403 Forbidden", None, CRASHED),
    ],
)
def test_an_error_that_needs_a_person_is_fatal(
    during: str, code: int, message: str, data: object, ending: Ending
) -> None:
    assert read(type="error", during=during, code=code, message=message, data=data)[-1].ending is ending


@pytest.mark.parametrize(
    "reply",
    [
        "HEARTBEAT_OK - I saw 'usage limit' in the log of yesterday, and it is over.",
        "**HEARTBEAT_OK**\nNobody is told: (HTTP 401)",
        "ALERT: the grader says: quota exceeded",
        "The service of the task says: not logged in.\nALERT: it wants a login",
        "prompt is too long, says a note.\n\nHEARTBEAT_OK",
        # A report, and no answer to a checkpoint: errors are shorter.
        f"I tried a queue with a rate limit, and found that {'it waits too long, ' * 50}so I took it out again.",
    ],
)
def test_an_answer_of_the_model_is_no_error(reply: str) -> None:
    assert read(type="result", stop="end_turn", reply=reply)[-1].ending is CLEAN


def test_an_error_after_a_cancelled_turn_is_an_interrupt() -> None:
    (sign,) = read(type="error", during="prompt", code=-32603, message="The operation was aborted", stopped=True)
    assert (sign.ending, sign.error, sign.early, sign.message) == (INTERRUPTED, "", True, "The operation was aborted")


def test_the_details_of_an_error_are_part_of_its_message() -> None:
    nested = {"error": {"message": "limit reached, try again in 2 hours"}}
    (sign,) = read(type="error", during="prompt", code=-32603, message="Internal error", data=nested)
    assert sign.error == "Internal error: limit reached, try again in 2 hours"
    assert sign.limit_until is not None
    (sign,) = read(type="error", during="new", code=1, message="it says so", data="it says so")
    assert sign.error == "new: it says so"


def test_the_stderr_of_an_agent_that_exited_gives_the_reason() -> None:
    runtime = registry.find("acp", {})
    said = LaunchSummary(error="the agent ended with exit code 1", stderr="Error: no such session s-1")
    assert runtime.judge(1, said) is UNKNOWN
    assert runtime.judge(1, LaunchSummary(stderr="Please log in first")) is TERMINAL
    assert runtime.judge(1, LaunchSummary(stderr="panic")) is CRASHED
    assert runtime.judge(130, LaunchSummary()) is INTERRUPTED
    assert runtime.judge(-9, LaunchSummary(output=True)) is CRASHED


# --- before and during a turn -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "event",
    [
        {"type": "agent", "name": "a", "version": "1"},
        {"type": "session", "session": "s"},
        {"type": "notice", "message": "x"},
        {"type": "prompted"},
        {"type": "usage", "cost": 0.5},
        {"type": "other", "method": "_x/y"},
        {"type": "update", "update": {"sessionUpdate": "available_commands_update", "availableCommands": []}},
        {"type": "update", "update": {"sessionUpdate": "user_message_chunk", "content": {"text": "go"}}},
        {"type": "result", "stop": "cancelled", "usage": {"inputTokens": 3}},
        {"type": "error", "during": "prompt", "message": "gone", "gone": True, "exit": 1},
    ],
)
def test_events_before_the_first_answer_are_early(event: dict[str, object]) -> None:
    assert [sign.early for sign in read(**event)] == [True] * len(read(**event))


def update(**fields: object) -> tuple[OutputEvent, ...]:
    return read(type="update", update=fields)


def test_a_tool_call_is_read_from_its_beginning_to_its_end() -> None:
    call = {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "List", "kind": "execute", "begins": True}
    (sign,) = update(**call, status="in_progress", rawInput={"command": "ls -l"})
    assert (sign.phase, sign.message, sign.tool and sign.tool.text) == ("tool", "shell: ls -l", "ls -l")
    (sign,) = update(**call, status="in_progress")
    assert sign.tool is not None
    assert sign.tool.text == "List"
    (sign,) = update(**{**call, "begins": False}, status="in_progress")
    assert (sign.phase, sign.tool) == ("tool", None)
    signs = update(**call, status="failed", rawOutput={"output": "no such file"})
    assert [(sign.tool.over, sign.tool.failed, sign.tool.text) for sign in signs if sign.tool] == [
        (False, False, "List"),
        (True, True, "no such file"),
    ]


@pytest.mark.parametrize(
    ("fields", "edited"),
    [
        ({"content": [{"type": "diff", "path": "a.py", "newText": "x"}], "status": "completed"}, ["a.py"]),
        ({"locations": [{"path": name} for name in ("a.py", "a.py", "b.py")], "status": "completed"}, ["a.py", "b.py"]),
        ({"content": [{"type": "diff", "path": "a.py", "newText": "x"}], "status": "failed"}, []),
        ({"content": [{"type": "diff", "path": "a.py", "newText": "x"}], "status": "in_progress"}, []),
        ({"locations": [{"path": "a.py"}], "kind": "read", "status": "completed"}, []),
    ],
)
def test_a_file_counts_as_edited_when_the_tool_call_is_over(fields: dict[str, object], edited: list[str]) -> None:
    signs = update(**{"sessionUpdate": "tool_call_update", "toolCallId": "t", "kind": "edit", **fields})
    assert [sign.edited for sign in signs if sign.edited] == edited


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        # What was read from a cache is part of the input, or stands beside it: the sum shows.
        ((100, 10, 60, 0, 0, 110), (40, 60, 10)),
        ((40, 10, 60, 0, 0, 110), (40, 60, 10)),
        ((40, 10, 60, 5, 7, 122), (45, 60, 17)),
        ((40, 17, 60, 0, 7, 117), (40, 60, 17)),
        ((100, 10, 0, 0, 0, 0), (100, 0, 10)),
    ],
)
def test_cached_and_thought_tokens_are_counted_once(usage: tuple[int, ...], expected: tuple[int, int, int]) -> None:
    names = ("input", "output", "cachedRead", "cachedWrite", "thought", "total")
    told = {f"{name}Tokens": count for name, count in zip(names, usage, strict=True)}
    sign, _ = read(type="result", stop="end_turn", usage=told, cost=0.5)
    assert sign.usage is not None
    assert (sign.usage.input, sign.usage.cached, sign.usage.output) == expected
    assert (sign.usage.cost, sign.usage.counted) == (0.5, Counted.LAUNCH)
    assert len(read(type="result", stop="end_turn", usage=None, cost=None)) == 1
    assert read(type="usage", cost=0.25)[0].usage == Usage(counted=Counted.LAUNCH, cost=0.25)


def test_a_plan_names_the_step_in_progress_and_a_session_is_read_as_soon_as_it_is_open() -> None:
    entries = [{"content": "Look", "status": "completed"}, {"content": "Tune it", "status": "in_progress"}]
    assert update(sessionUpdate="plan", entries=entries)[0].message == "Tune it"
    assert update(sessionUpdate="plan", entries=[])[0].message == ""
    assert update(sessionUpdate="of_tomorrow")[0].unknown == "of_tomorrow"
    assert [sign.session for sign in read(type="session", session="ses_1", resumed=False)] == ["ses_1"]


# --- what our client keeps ----------------------------------------------------------------------------------------


def test_the_updates_of_a_tool_call_are_merged() -> None:
    tools = ToolCalls()
    first = tools.merge(JsonObject({"toolCallId": "t", "title": "Shell", "kind": "execute", "status": "pending"}))
    assert first.raw("begins") is False, "it does not say yet what it does"
    second = tools.merge(JsonObject({"toolCallId": "t", "status": "in_progress", "rawInput": {"command": "ls"}}))
    assert (second.raw("begins"), second.raw("title"), second.raw("kind")) == (True, "Shell", "execute")
    third = tools.merge(JsonObject({"toolCallId": "t", "status": "completed", "title": None, "content": []}))
    assert (third.raw("begins"), third.raw("rawInput"), third.raw("title")) == (False, {"command": "ls"}, "Shell")
    assert tools.merge(JsonObject({"toolCallId": "t", "status": "completed"})).raw("title") is None, "it was forgotten"
    hardly = {"toolCallId": "u", "status": "pending", "rawInput": {"cwd": "/x"}}
    assert tools.merge(JsonObject(hardly)).raw("begins") is False
    assert tools.merge(JsonObject({**hardly, "rawInput": {"cwd": "/x", "command": "ls"}})).raw("begins") is True
    for number in range(3000):
        tools.merge(JsonObject({"toolCallId": f"t{number}", "status": "in_progress"}))
    assert len(tools._known) == len(tools._begun) == 1000


def cost(amount: float, currency: str = "USD") -> JsonObject:
    return JsonObject({"amount": amount, "currency": currency})


def test_the_cost_of_earlier_launches_is_not_counted_again(tmp_path: Path) -> None:
    first = CostMeter(tmp_path)
    first.open("s", new=True)
    assert first.spent is None
    first.take(cost(0.5))
    first.take(cost(0.75))
    first.take(cost(9, "EUR"))
    first.take(JsonObject(None))
    assert first.spent == 0.75
    told_when_loaded, silent, other = CostMeter(tmp_path), CostMeter(tmp_path), CostMeter(tmp_path)
    told_when_loaded.take(cost(1.0))
    for bill, session in ((told_when_loaded, "s"), (silent, "s"), (other, "of another")):
        bill.open(session, new=False)
    told_when_loaded.take(cost(1.25))
    assert told_when_loaded.spent == 0.25
    silent.take(cost(1.5))
    assert silent.spent == 0.75, "by what was told last before"
    other.take(cost(2.0))
    assert other.spent == 0.0, "nobody knows what of it is new"
    other.take(cost(2.5))
    assert other.spent == 0.5
    (tmp_path / "acp-cost.json").write_text("{")
    broken = CostMeter(tmp_path / "none")
    broken.open("s", new=False)
    broken.take(cost(3.0))
    assert broken.spent == 0.0
    first, second = CostMeter(tmp_path), CostMeter(tmp_path)
    first.open("s", new=True)
    first.take(cost(0.5))
    second.open("s", new=False)
    second.take(cost(0.25))
    assert second.spent == 0.25


def test_the_usage_of_answers_is_added_up() -> None:
    steps = StepUsage()
    steps.take(JsonObject(None))
    assert steps.sum is None
    for count in (1, 2):
        steps.take(
            JsonObject({"inputTokens": 100 * count, "outputTokens": count, "totalTokens": 101 * count, "other": 1})
        )
    assert steps.sum is not None
    assert (steps.sum["inputTokens"], steps.sum["outputTokens"], steps.sum["totalTokens"]) == (300, 3, 303)


def test_values_are_shortened_for_the_log() -> None:
    deep: Any = "x"
    for _ in range(50):
        deep = [deep]
    whole = {"text": "x" * 100_000, "items": list(range(1000)), "deep": deep, "number": 3, "none": None}
    found = cut(whole)
    assert isinstance(found, dict)
    assert (len(found["text"]), len(found["items"]), found["number"], found["none"]) == (REPLY, 200, 3, None)
    assert len(json.dumps(found["deep"])) < 100


# --- options ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "command is empty"),
        ({"command": ["no-such-agent", "acp"]}, "command: the program 'no-such-agent' is not on PATH"),
        ({**KNOWN, "modle": "x"}, "there is no option 'modle'; did you mean mode?"),
        ({**KNOWN, "mode": 3}, "mode must be a text"),
        ({**KNOWN, "resumes": "no"}, "resumes must be true or false"),
        ({**KNOWN, "reports": "all"}, "reports must be money or tokens; got 'all'"),
        ({**KNOWN, "env": {"A": 1}}, "env must hold texts by the name of a variable"),
        ({**KNOWN, "env": ["A=1"]}, "env must hold texts by the name of a variable"),
        ({**KNOWN, "instruction_file": "../x"}, "instruction_file must be a path inside the workspace"),
        ({**KNOWN, "limits": {"limit": ["("]}}, "limits limit: '(' is no regular expression"),
    ],
)
def test_wrong_options_are_found_before_anything_is_started(options: Mapping[str, object], problem: str) -> None:
    assert registry.check("acp", KNOWN) == []
    (found,) = registry.check("acp", options)
    assert found.startswith(problem)


def test_the_clients_command_line_holds_the_choices_of_the_task() -> None:
    options = {"command": "my-agent acp --log {state}/log", "mode": "yolo", "env": {"HOME_OF_IT": "{state}/home"}}
    runtime = registry.find("acp", options)
    new, state = runtime.command(launch_spec(model="m-1")), str(launch_spec().state)
    assert new.argv[:4] == (sys.executable, "-P", "-m", "coral.runtimes.acp.program")
    agent = ("my-agent", "acp", "--log", f"{state}/log")
    assert new.argv[4:] == (f"--state={state}", "--model=m-1", "--mode=yolo", "--", *agent)
    assert (new.session, new.env["HOME_OF_IT"], new.env["TZ"]) == ("", f"{state}/home", "UTC")
    resumed = runtime.command(launch_spec("s-1"))
    assert resumed.session == "s-1"
    assert "--session=s-1" in resumed.argv
    named = registry.find("acp", {"command": ["a", "--model={model}"]}).command(launch_spec(model="m-1"))
    assert named.argv[-2:] == ("a", "--model=m-1")
    assert "--model=m-1" not in named.argv[: named.argv.index("--")]
    always_new = registry.find("acp", {**KNOWN, "resumes": False})
    assert always_new.resumes is False
    assert not any("s-1" in word for word in always_new.command(launch_spec("s-1")).argv)
    assert registry.find("acp", {**KNOWN, "instruction_file": "GEMINI.md"}).instruction_file == "GEMINI.md"


def write_task(folder: Path, agents: Mapping[str, object]) -> Path:
    (folder / "seed").mkdir(parents=True)
    (folder / "grade.py").write_text("def grade(workspace):\n    return 1.0\n")
    task = f"task: {{name: t, description: d}}\ngrader: {{entry: grade.py:grade}}\nagents: {json.dumps(agents)}\n"
    (folder / "task.yaml").write_text(task)
    return folder


def test_a_missing_sdk_is_named_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runtime, "find_spec", lambda name: None)
    (problem,) = registry.check("acp", KNOWN)
    assert problem == f"the SDK of the Agent Client Protocol is not installed; `{extras.installs('acp')}` installs it"
    folder = write_task(tmp_path / "t", {"runtime": "acp", "options": KNOWN})
    assert main(("validate", str(folder))) == 1
    assert f"{sys.executable} -m pip install 'agent-client-protocol>=" in capsys.readouterr().out
    with pytest.raises(CoralError, match="cannot start acp: the SDK of the Agent Client Protocol is not installed"):
        create_run(load(folder), tmp_path / "runs", lambda _: None)


# --- programs that are driven by it -------------------------------------------------------------------------------


def test_cursor_and_kiro_are_started_as_their_documentation_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CURSOR_API_KEY", raising=False)
    cursor = registry.find("cursor", {"args": ["--sandbox", "disabled"]}).command(launch_spec("s-1", model="m-1"))
    assert cursor.argv[cursor.argv.index("--") + 1 :] == (
        *("cursor-agent", "--trust", "--model", "m-1", "--sandbox", "disabled", "acp"),
    )
    assert {"--session=s-1", "--auth=cursor_login"} <= set(cursor.argv)
    monkeypatch.setenv("CURSOR_API_KEY", "k")
    assert "--auth=cursor_login" not in registry.find("cursor", {}).command(launch_spec()).argv
    kiro = registry.find("kiro", {"effort": "high"}).command(launch_spec(model="m-1"))
    assert kiro.argv[kiro.argv.index("--") + 1 :] == (
        *("kiro-cli", "acp", "--trust-all-tools", "--model", "m-1", "--effort", "high"),
    )
    assert kiro.session == ""
    (tmp_path / "kiro-cli").touch(mode=0o755)
    (found,) = [
        item
        for item in quick_findings(load(write_task(tmp_path / "t", {"runtime": "kiro"})), tmp_path)
        if item.name == "runtime"
    ]
    assert found.ok
    assert found.details == ("unverified: Coral follows its documentation, and was never tried with it",)


def test_an_agent_that_keeps_its_state_at_home_may_change_the_folders_of_its_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    any_other = registry.find("acp", {"command": ["/opt/bin/agent", "acp"]}).command(launch_spec()).writes
    places = (tmp_path / ".config/agent", Path("/data/agent"), tmp_path / ".local/state/agent", tmp_path / ".agent")
    assert any_other == places
    assert {tmp_path / ".config/cursor", tmp_path / ".cursor"} <= {
        *registry.find("cursor", {}).command(launch_spec()).writes
    }


def test_a_reply_is_joined_across_early_events() -> None:
    chunks = [
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": part}}
        for part in ("HEART", "BEAT_OK")
    ]
    told: list[dict[str, Any]] = [{"type": "update", "update": chunks[0]}, {"type": "usage", "cost": 0.5}]
    told += [{"type": "update", "update": {"sessionUpdate": "session_info_update"}}]
    told += [{"type": "update", "update": chunks[1]}, {"type": "result", "stop": "cancelled"}]
    speech = ReplyParts()
    signs = [sign for event in told for sign in speech.join(read(**event))]
    assert [sign.reply for sign in signs if sign.reply] == ["HEARTBEAT_OK"]
    assert [sign.usage.cost for sign in signs if sign.usage] == [0.5]
