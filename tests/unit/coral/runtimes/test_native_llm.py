"""The built-in agent with the brain `llm`, as a runtime: its options, its command, what its output and its end mean."""

import json

import pytest
from launch_specs import launch_spec

from coral.runtimes.model import Ending, LaunchSummary, Retry, Tool, Usage
from coral.runtimes.native_llm import NativeLlm
from coral.runtimes.registry import check, find


def runtime(**options: object) -> NativeLlm:
    found = find("native", {"brain": "llm", **options})
    assert isinstance(found, NativeLlm)
    return found


def test_the_options_choose_the_brain_and_are_checked() -> None:
    assert check("native", {"brain": "llm", "window": 50_000}, "some-model") == []
    assert check("native", {"brain": "llm", "limits": {"limit": ["slow down"]}}) == []
    assert check("native", {"brain": "llm", "wire": "x"})[0].startswith("wire must be chat or messages")
    assert check("native", {"brain": "lm"}) == ["brain must be search or llm, or module:Class of your own; got 'lm'"]
    assert check("native", {}, "some-model") == ["native uses no model; agents.model is 'some-model'"]
    found = runtime()
    assert (found.account, found.costs_money, found.reports, found.uses_model) == ("native", True, "tokens", True)


def test_a_key_is_missed_only_where_one_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    assert "OPENAI_API_KEY" in runtime().missing_login()
    assert runtime(base_url="http://localhost:11434/v1").missing_login() == ""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert runtime().missing_login() == ""


def test_the_command_holds_the_session_the_model_and_the_options() -> None:
    command = runtime(limits={}, effort="low").command(launch_spec("s-1", model="m-1"))
    assert command.session == "s-1"
    words = command.argv
    assert "--resume" in words
    assert words[words.index("--model") + 1] == "m-1"
    assert json.loads(words[words.index("--options") + 1]) == {"brain": "llm", "effort": "low"}


def read(**data: object) -> object:
    (event,) = runtime().read(json.dumps(data).encode())
    return event


def test_its_output_is_understood() -> None:
    tool = {"id": "c1", "name": "run", "text": "ls", "over": False, "failed": False}
    assert read(type="tool", tool=tool).tool == Tool(id="c1", name="run", text="ls")
    assert read(usage={"input": 3, "cached": 1, "output": 2, "cost": 0.5}).usage == Usage(
        input=3, cached=1, output=2, cost=0.5
    )
    assert read(retry={"attempt": 2, "seconds": 4, "reason": "x"}).retry == Retry(attempt=2, seconds=4, reason="x")
    assert read(compacted=True).compacted


@pytest.mark.parametrize(
    ("status", "text", "after", "ending", "until"),
    [
        (401, "invalid_api_key Incorrect API key provided.", None, Ending.TERMINAL, None),
        (402, "insufficient_quota", None, Ending.TERMINAL, None),
        (429, "Rate limit reached for requests.", 3600, Ending.LIMIT, 4600.0),
        (429, "Rate limit reached for requests.", None, Ending.LIMIT, None),
        (429, "Rate limit reached for requests.", 0, Ending.LIMIT, None),
        (400, "prompt is too long: 250000 tokens > 200000 maximum", None, Ending.UNKNOWN_SESSION, None),
        (529, "overloaded_error Overloaded", None, Ending.CRASHED, None),
        (529, "overloaded_error Overloaded", 5, Ending.CRASHED, None),
        (529, "overloaded_error Overloaded", 3600, Ending.LIMIT, 4600.0),
        (503, "Service Unavailable", 61, Ending.LIMIT, 1061.0),
        (0, "the answer broke off", None, Ending.CRASHED, None),
    ],
)
def test_the_models_errors_mean_what_those_of_other_programs_mean(
    status: int, text: str, after: float | None, ending: Ending, until: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = runtime()
    monkeypatch.setattr(found, "now", lambda: 1000.0)
    failed = {"text": text, "status": status, "retry_after": after}
    (event,) = found.read(json.dumps({"type": "failed", "failed": failed}).encode())
    assert (event.ending, event.limit_until) == (ending, until)
    summary = LaunchSummary(output=True, ending=event.ending, limit_until=event.limit_until)
    assert found.judge(1, summary) is ending


def test_its_exit_codes() -> None:
    found = runtime()
    codes = {0: Ending.CLEAN, 2: Ending.TERMINAL, 4: Ending.UNKNOWN_SESSION, 130: Ending.INTERRUPTED, 1: Ending.CRASHED}
    assert {code: found.judge(code, LaunchSummary(output=True)) for code in codes} == codes
    early = LaunchSummary(stderr="Traceback ...\nKeyboardInterrupt")
    assert found.judge(1, early) is Ending.INTERRUPTED
