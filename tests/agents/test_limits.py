"""A plan's limit, as each provider tells it: recognised at once, with the moment at which it ends where it is told."""

import time

import pytest
from driven import Drive
from model_server import Step

from coral.fleet.events import Ending

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

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


PLANS = {"claude": _claude, "codex": _codex, "gemini": _gemini}  # the others' plans were never seen at their end
# codex says the minute, in words; gemini does not say when its day ends.
CLOSE = {"claude": 0, "codex": 60, "gemini": None}


def test_a_limit_is_recognised_with_its_end(program: str, drive: Drive, monkeypatch: pytest.MonkeyPatch) -> None:
    if program not in PLANS:
        pytest.skip("how it tells of a plan's limit is not known")
    reset = int(time.time()) + 3 * HOUR
    server, desk = drive(program, [PLANS[program](reset), Step(say="Welcome back.")])
    # A subscription is used by a login; a key would be billed by use, and has no plan.
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-scripted")
    ended = desk.launch("The prompt: MARK-ONE.").end()
    assert (ended.ending, len(server.turns)) == (Ending.LIMIT, 1)
    close = CLOSE[program]
    assert (ended.until is None) if close is None else (ended.until is not None and abs(ended.until - reset) <= close)
    prompt = "It is later now: MARK-TWO." if ended.heard else "The prompt: MARK-ONE. It is later now: MARK-TWO."
    again = desk.launch(prompt, ended.session).end()
    if again.ending is Ending.UNKNOWN_SESSION:
        assert not ended.heard
        again = desk.launch(prompt).end()
    assert again.ending is Ending.CLEAN
    assert server.turns[-1].has("MARK-ONE", "MARK-TWO")
