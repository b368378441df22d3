"""A plan's limit, as each provider tells it: recognised at once, with the moment at which it ends where it is told."""

import time

import pytest
from driven import Desk, Drive, Ended
from model_server import ModelServer, Step

from coral.fleet.events import Ending

pytestmark = pytest.mark.timeout(900)

HOUR = 3600


def _claude(reset: int) -> Step:
    head = "anthropic-ratelimit-unified-"
    words = {"status": "rejected", "representative-claim": "five_hour", "reset": reset, "5h-status": "rejected"}
    words |= {"5h-reset": reset, "5h-utilization": "1.0", "7d-status": "allowed", "7d-reset": reset + 9 * HOUR}
    headers = {head + name: str(value) for name, value in words.items()}
    return Step(error="too many", headers={**headers, "retry-after": str(HOUR), "x-should-retry": "false"})


def _codex(reset: int) -> Step:
    error = {"type": "usage_limit_reached", "message": "The usage limit has been reached", "plan_type": "plus"}
    body = {"error": {**error, "resets_at": reset, "resets_in_seconds": reset - int(time.time())}}
    return Step(error="too many", body=body)


def _gemini(reset: int) -> Step:
    violation = {"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier", "quotaValue": "100"}
    details = [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "36s"},
    ]
    message = "You exceeded your current quota, please check your plan and billing details."
    error = {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED", "details": details}
    return Step(error="too many", body={"error": error})


PLANS = {"claude": _claude, "codex": _codex, "gemini": _gemini}
ASK_AGAIN = ("opencode", "qwen", "copilot", "pi")  # without a word, whatever the endpoint says of a quota
# codex says the minute, in words; gemini does not say when its day ends.
CLOSE = {"claude": 0, "codex": 60, "gemini": None}


@pytest.mark.parametrize("program", PLANS, indirect=True)
def test_a_limit_is_recognised_with_its_end(program: str, drive: Drive, monkeypatch: pytest.MonkeyPatch) -> None:
    reset = int(time.time()) + 3 * HOUR
    server, desk = drive(program, [PLANS[program](reset), Step(say="Welcome back.")])
    # A subscription is used by a login; a key would be billed by use, and has no plan.
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-scripted")
    ended = desk.launch("The prompt: MARK-ONE.").end()
    assert (ended.ending, len(server.turns)) == (Ending.LIMIT, 1)
    close = CLOSE[program]
    assert (ended.until is None) if close is None else (ended.until is not None and abs(ended.until - reset) <= close)
    _assert_it_goes_on(server, desk, ended)


@pytest.mark.parametrize("program", ASK_AGAIN, indirect=True)
def test_a_limit_that_a_program_keeps_to_itself_costs_no_prompt(program: str, drive: Drive) -> None:
    words = {"message": "You exceeded your current quota.", "type": "insufficient_quota", "code": "insufficient_quota"}
    server, desk = drive(program, [Step(error="too many", body={"error": words}, times=1000)])
    launch = desk.launch("The prompt: MARK-ONE.")
    launch.wait_for(lambda: len(server.turns) > 1, "another try")
    launch.interrupt()
    ended = launch.end()
    assert ended.ending is Ending.INTERRUPTED
    server.then(Step(say="Welcome back."))
    _assert_it_goes_on(server, desk, ended)


def _assert_it_goes_on(server: ModelServer, desk: Desk, ended: Ended) -> None:
    """In its conversation; a prompt of which nothing was heard is said again."""
    prompt = "It is later now: MARK-TWO." if ended.heard else "The prompt: MARK-ONE. It is later now: MARK-TWO."
    again = desk.launch(prompt, ended.session).end()
    if again.ending is Ending.UNKNOWN_SESSION:
        assert not ended.heard
        again = desk.launch(prompt).end()
    assert again.ending is Ending.CLEAN
    assert server.turns[-1].has("MARK-ONE", "MARK-TWO")
