"""What the words of an error mean: known wordings, clock times in their zones, patterns of the user's."""

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from coral.runtimes.limits import Meaning, Patterns, own
from coral.runtimes.model import Ending
from coral.runtimes.registry import find

NOW = datetime(2026, 11, 21, 3, 30, tzinfo=UTC).timestamp()
OURS = Patterns({})


def at(*moment: int) -> float:
    return datetime(*moment, tzinfo=UTC).timestamp()  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    ("text", "until"),
    [
        ("You've hit your 5-hour limit · resets 4:26am (UTC)", at(2026, 11, 21, 4, 26)),
        ("You've hit your weekly limit · resets Nov 22, 4:26am (UTC)", at(2026, 11, 22, 4, 26)),
        ("You've hit your Opus limit · resets Jul 13, 2028, 10:16am (UTC)", at(2028, 7, 13, 10, 16)),
        ("You've hit your usage limit · resets Jan 2, 10pm", at(2027, 1, 2, 22, 0)),
        ("You’ve hit your session limit · resets 3am (UTC)", at(2026, 11, 22, 3, 0)),
        ("You've hit your limit · resets 4:26am (America/New_York)", at(2026, 11, 21, 9, 26)),
        ("You've hit your limit · resets 4:26am (Mars/Olympus)", None),
        ("Claude AI usage limit reached|1795235164", 1795235164.0),
        ("Claude AI usage limit reached|1795235164000", 1795235164.0),
        (
            "You’ve hit your usage limit. Upgrade to Pro (https://x.y/z) or try again at 4:26 AM.",
            at(2026, 11, 21, 4, 26),
        ),
        ("You’ve hit your usage limit, or try again at Nov 24th, 2026 4:26 AM.", at(2026, 11, 24, 4, 26)),
        ("You've hit your usage limit. Try again in 2 days 17 hours 14 minutes.", NOW + 2 * 86400 + 17 * 3600 + 840),
        ("You've hit your usage limit, try again at 10 de jul. de 2026, 11:52", None),
        ("You’ve hit your usage limit. Try again later.", None),
        ('429 {"type": "usage_limit_reached", "resets_at": 1795235164}', 1795235164.0),
        ('429 {"type": "usage_limit_reached", "resets_in_seconds": 90}', NOW + 90),
        ("[API Error: You have exhausted your daily quota on this model.]\nPlease wait", None),
        ("You exceeded your current quota. Suggested retry after 3600s.", NOW + 3600),
        ("Your quota will reset after 2h5m10s.", NOW + 7510),
        ("You have reached your plan capacity", None),
        ("Weekly limit reached. Resets in 2d 4h", NOW + 2 * 86400 + 4 * 3600),
        ("Limit reached · resets Nov 25 at 9am (UTC)", at(2026, 11, 25, 9, 0)),
        ("Limit reached · resets at 5pm (UTC)", at(2026, 11, 21, 17, 0)),
        ("5-hour limit reached ∙ resets 3am", at(2026, 11, 22, 3, 0)),
        ("Opus weekly limit reached ∙ resets Oct 6, 1pm", at(2027, 10, 6, 13, 0)),
        ("Session limit reached. Resets at 5pm (UTC)", at(2026, 11, 21, 17, 0)),
        ("You have exceeded your monthly included requests.", None),
        ("You've exceeded your monthly included premium requests. Resets in 3 days.", NOW + 3 * 86400),
        ("Daily request limit exceeded", None),
        ("Daily request limit exceeded. Try again in 5 hours and 20 minutes.", NOW + 5 * 3600 + 1200),
        ("You exceeded your current quota, please check your plan and billing details.", None),
        ("Quota exceeded. Check your plan and billing details.", None),
        ("Rate limit reached for gpt on requests per min. Limit: 3, Used: 3. Please try again in 20s.", NOW + 20),
        ("Rate limit reached on tokens per min (TPM): Limit 30000, Used 29000. Please try again in 1.2s.", NOW + 1.2),
        ("Rate limit exceeded. Please try again in 850ms.", NOW + 0.85),
        ("429 Too Many Requests", None),
        ("exceeded retry limit, last status: 429 Too Many Requests", None),
        ("exceeded retry limit, last status: 429", None),
        ("API Error: Request rejected (429) · Rate limit reached", None),
        ("Too many requests. Please wait 30 seconds before trying again.", NOW + 30),
        ("429 rate_limit_error: Number of request tokens has exceeded your per-minute rate limit", None),
        ("RESOURCE_EXHAUSTED: Quota exceeded for quota metric 'Generate requests'", None),
        ('{"code": 429, "status": "RESOURCE_EXHAUSTED", "details": [{"retryDelay": "34.074824224s"}]}', NOW + 34.07482),
        ("Quota exceeded for metric: generate_content_free_tier_requests. Please retry in 41.2s.", NOW + 41.2),
        ("Usage limit reached. Your limit resets at 2026-11-21 17:00 UTC", at(2026, 11, 21, 17, 0)),
        ("Your limit will reset at 2026-11-25T09:00:00Z", at(2026, 11, 25, 9, 0)),
        ("Your usage limit will reset on 2026-11-25T09:00:00+02:00.", at(2026, 11, 25, 7, 0)),
        ("Your limit resets 2026-13-25 09:00 UTC", None),
        ("Free tier exhausted for today", None),
        ("Forbidden: quota", None),
        ("You've reached your usage limit. It resets in 4 hours.", NOW + 4 * 3600),
        ("You've used all of your free usage. Usage limit renews in 1 day.", NOW + 86400),
        ("You have hit your rate limit. Retry-After: 120", NOW + 120),
        ("rate limited, retry after 60 seconds", NOW + 60),
        ("The model has reached its capacity limit. Available again in 10 min.", NOW + 600),
        ("Monthly usage limit exceeded", None),
        ("Hourly limit reached, back in 12 minutes", NOW + 720),
        ("Your plan limit has been reached", None),
        ("Message limit reached: wait 3 hours", NOW + 3 * 3600),
        ("quota has been exhausted", None),
        ("Your allowance is used up", None),
        ("You are out of quota for this model", None),
        ("You've hit your limit. Refreshes in 2 weeks.", NOW + 2 * 604_800),
        ("HTTP 429", None),
        ("error code: 429 - slow down", None),
        ("Request failed with status code 429", None),
        ("usage_limit_reached", None),
        ("Copilot: you have been rate-limited. Please wait 1 hour.", NOW + 3600),
        ("Request was throttled. Expected available in 57 seconds.", NOW + 57),
        ("Request was throttled.", None),
        ("You've reached the limit of messages for your plan. Try again tomorrow.", None),
        ("Too Many Requests: quota per minute, retry after 12s", NOW + 12),
        ("The usage limit for your organization has been reached", None),
        ("Your team has used up its monthly quota", None),
        ("per-minute quota exceeded for project x", None),
        ('{"error": {"code": 429, "message": "Quota exceeded for the service"}}', None),
        ("You have reached the free-tier daily request cap", None),
        ("AI_APICallError: Too Many Requests", None),
        ("Requests rate limit exceeded, please try again later", None),
        ("status code: 429, reason: rate_limited", None),
        ("tokens per day limit reached (TPD)", None),
        ("Limit 100000, Used 99999, Requested 1200. Please try again in 17m16.8s.", NOW + 1036.8),
        ("You are being rate limited.", None),
        ("429 status code (no body)", None),
        ('429 {"type":"rate_limit_error","message":"would exceed your rate limit of 30,000 tokens per minute"}', None),
        ("Your included usage is used up until the next billing cycle", None),
        ("You've hit the limit for this model; it resets in 45 minutes", NOW + 2700),
        ("Maximum number of requests per hour reached, try again in 20 min", NOW + 1200),
        ("Concurrency limit exceeded for account, please retry later", None),
    ],
)
def test_a_limit_is_recognised_with_the_time_when_it_ends(text: str, until: float | None) -> None:
    found = OURS.meaning(text, NOW)
    assert found is not None
    assert found.ending is Ending.LIMIT
    assert found.until == (None if until is None else pytest.approx(until, abs=0.001))


@pytest.mark.parametrize(
    ("text", "ending"),
    [
        ("Credit balance is too low", Ending.TERMINAL),
        ("402 This request requires more credits, or fewer max_tokens.", Ending.TERMINAL),
        ("Insufficient credits. Add more using https://x.y/credits", Ending.TERMINAL),
        ("Insufficient Balance", Ending.TERMINAL),
        ('{"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}', Ending.TERMINAL),
        ("HTTP status 402: Payment Required", Ending.TERMINAL),
        ("You have no credits remaining.", Ending.TERMINAL),
        ("unexpected status 401 Unauthorized: Incorrect API key provided", Ending.TERMINAL),
        ("Invalid API key · Please run /login", Ending.TERMINAL),
        ("prompt is too long: 210000 tokens > 200000 maximum", Ending.UNKNOWN_SESSION),
        ("Codex ran out of room in the model's context window.", Ending.UNKNOWN_SESSION),
        ("Context is too large to send safely after automatic compression.", Ending.UNKNOWN_SESSION),
        ("400 Your input exceeds the context window of this model.", Ending.UNKNOWN_SESSION),
        ("The provider rejected the prompt as too long, but could not reduce it.", Ending.UNKNOWN_SESSION),
        # An error that passes is neither fatal nor a limit.
        *((text, None) for text in ("Overloaded", "Connection error.", "", "stack overflow")),
        *((text, None) for text in ("Connection lost, retrying in 5 s", "fetch failed: ECONNREFUSED 127.0.0.1:4290")),
        *(
            (text, None)
            for text in ("500 Internal Server Error", "529 overloaded_error", "terminated", "read ECONNRESET")
        ),
        *((text, None) for text in ("maximum number of turns reached", "time limit of 30 s exceeded: tests failed")),
        *((text, None) for text in ("line 429: unexpected token", "403 Forbidden", "the file size limit was exceeded")),
        *(
            (text, None)
            for text in ("recursion limit of 1000 reached", "No response was returned", "Expected property name")
        ),
        # Lines of a program's own source, and errors of other things than the model.
        ("401 | let a = b\n402 |   throw new TypeError('x')", None),
        ("401 | let a = b\n429 |   throw new TypeError('x')", None),
        ("error 402: tests failed", None),
        ("write failed: Disk quota exceeded (os error 122)", None),
        ("deadline exceeded, try again in 30s", None),
        ("memory exhausted; try again in 5m", None),
        ("MCP server github: Invalid access token", None),
        ("MCP server github failed: Missing API key GITHUB_TOKEN", None),
        ("warning: skill x: please log in to npm", None),
        ("input length and `max_tokens` exceed context limit: 195000 + 32000 > 200000", Ending.UNKNOWN_SESSION),
        ("Input is too long for requested model.", Ending.UNKNOWN_SESSION),
        ("This model's maximum prompt length is 131072 tokens", Ending.UNKNOWN_SESSION),
        ("ThrottlingException: Too many tokens per day", Ending.LIMIT),
        ("You have run out of premium requests.", Ending.LIMIT),
        ("API key not valid. Please pass a valid API key.", Ending.TERMINAL),
        ("OAuth token has expired", Ending.TERMINAL),
        ("Key limit exceeded (total limit).", Ending.TERMINAL),
        ("Key limit exceeded (daily limit).", Ending.LIMIT),
        ("Billing hard limit has been reached", Ending.TERMINAL),
        ("Your account has been suspended", Ending.TERMINAL),
        ("This organization has been disabled.", Ending.TERMINAL),
        ("Your subscription has expired", Ending.TERMINAL),
        ("Your payment method was declined", Ending.TERMINAL),
        ("No auth credentials found", Ending.TERMINAL),
        ("x-api-key header is required", Ending.TERMINAL),
        ("Missing Authentication header", Ending.TERMINAL),
        ("You must be logged in to use this model", Ending.TERMINAL),
        ("Free usage exceeded, add credits", Ending.TERMINAL),
        ("Your credit balance is exhausted", Ending.TERMINAL),
        ("Your credits have been exhausted", Ending.TERMINAL),
        ("Your prepayment credits are depleted", Ending.TERMINAL),
        ("You've used all of your credits", Ending.TERMINAL),
        ("You do not have enough credits", Ending.TERMINAL),
        ("Credit limit reached", Ending.TERMINAL),
        ("HTTP/1.1 402", Ending.TERMINAL),
        ("HTTP/1.1 429", Ending.LIMIT),
        ("Error 429 in file.py", None),
        ("MCP server tracker: you must be logged in", None),
        ("Request too large for model: context window of 200,000 tokens exceeded", Ending.UNKNOWN_SESSION),
        ("This model's maximum context length is 128000 tokens. You requested 140000", Ending.UNKNOWN_SESSION),
        *((text, None) for text in ("503 Service Unavailable", "502 Bad Gateway", "socket hang up")),
        *(
            (text, None)
            for text in ("The model is overloaded. Please try again later.", "connect ETIMEDOUT 10.0.0.1:443")
        ),
        *((text, None) for text in ("stream disconnected before completion", "tool call limit of 50 reached")),
        *(
            (text, None)
            for text in ("getaddrinfo ENOTFOUND x.y", "context deadline exceeded", "npm ERR! 429 is no version")
        ),
        ("the rate of change is limited by friction; the cap of the pen", None),
    ],
)
def test_fatal_errors_full_conversations_and_errors_that_pass_are_told_apart(text: str, ending: Ending | None) -> None:
    assert OURS.meaning(text, NOW) == (Meaning(ending) if ending else None)


@pytest.mark.parametrize(
    ("status", "text", "ending", "until"),
    [
        (429, "Hold your horses.", Ending.LIMIT, None),
        (429, "You have insufficient credits", Ending.LIMIT, None),
        (429, "Prompt is too long", Ending.LIMIT, None),
        (429, "Rate limit reached. Please try again in 20s.", Ending.LIMIT, 20.0),
        (402, "Quota exceeded. Try again in 20s.", Ending.TERMINAL, None),
        (401, "Who are you?", Ending.TERMINAL, None),
        (403, "Not today.", Ending.DENIED, None),
        (403, "Usage limit reached", Ending.LIMIT, None),
        (400, "Prompt is too long", Ending.UNKNOWN_SESSION, None),
        (500, "Hold your horses.", Ending.CRASHED, None),
    ],
)
def test_two_statuses_mean_the_same_whatever_the_words(
    status: int, text: str, ending: Ending, until: float | None
) -> None:
    claude = find("claude", {})
    claude.now = lambda: NOW  # type: ignore[attr-defined]
    event = claude.failed(text, status)  # type: ignore[attr-defined]
    assert (event.ending, event.limit_until) == (ending, until and pytest.approx(NOW + until))


def test_patterns_of_the_task_are_tried_first(tmp_path: Path) -> None:
    file = tmp_path / "limits.yaml"
    file.write_text(
        "limit:\n  - 'Kontingent erschöpft bis (?P<at>[0-9:]+) \\((?P<tz>[^)]+)\\)'\n  - 'incorrect api key'\n"
    )
    patterns = Patterns(own(str(file)))
    assert patterns.meaning("Kontingent erschöpft bis 6:00 (Europe/Berlin)", NOW) == Meaning(
        Ending.LIMIT, at(2026, 11, 21, 5, 0)
    )
    assert patterns.meaning("Incorrect API key", NOW) == Meaning(Ending.LIMIT)
    assert patterns.meaning("Credit balance is too low", NOW) == Meaning(Ending.TERMINAL)
    assert Patterns(own({"fresh": ["zu lang"]})).meaning("Viel ZU LANG.", NOW) == Meaning(Ending.UNKNOWN_SESSION)


@pytest.mark.parametrize(
    ("given_", "problem"),
    [
        ({"limits": ["x"]}, "must hold lists of patterns under terminal, fresh, limit"),
        ({"limit": "x"}, "limit must be a list of patterns"),
        ({"limit": [3]}, "limit must be a list of patterns"),
        ({"limit": ["("]}, "limit: '(' is no regular expression"),
        ({"limit": ["(?P<when>x)"]}, "has a group 'when'; it knows at, dur, epoch, secs, tz"),
        ("limits.yaml", "must be an absolute path"),
        ("/no/such/file.yaml", "cannot be read"),
        (3, "must hold lists of patterns"),
    ],
)
def test_wrong_patterns_are_refused(given_: object, problem: str) -> None:
    with pytest.raises(ValueError) as caught:
        own(given_)
    assert problem in str(caught.value)


def test_a_file_of_patterns_that_is_no_yaml_is_refused(tmp_path: Path) -> None:
    for name, data in {"a": b"limit: [", "b": b"\xff\xfe", "c": b"# " + b"x" * 200_000}.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ValueError, match="cannot be read"):
            own(str(tmp_path / name))


@given(
    text=st.text(max_size=200), hint=st.sampled_from(["", "try again at ", "hit your limit · resets ", "reset after "])
)
def test_no_error_text_makes_the_patterns_raise(text: str, hint: str) -> None:
    OURS.meaning(hint + text, NOW)


@pytest.mark.parametrize("moment", ["99:99", "31:61am", "Feb 31, 2027, 4am", "9" * 400 + "am"])
def test_an_unreadable_time_gives_no_end_of_the_limit(moment: str) -> None:
    assert OURS.meaning(f"You've hit your limit · resets {moment} (UTC)", NOW) == Meaning(Ending.LIMIT)
    assert OURS.meaning(f"limit reached|{'9' * 13}", NOW) == Meaning(Ending.LIMIT)


@pytest.mark.parametrize(
    "text",
    [
        f"limit resets {'1' * 3900}(",
        "limit resets 1" * 160 + "(",
        "limit " * 30 + "resets 1 " * 400 + "(",
        f"limit resets {'1 ' * 1900}(",
        f"limit resets 1{' ' * 3900}(",
        f"limit resets 1 ({'a' * 3900}",
        "resets 1\n" * 400 + "(",
        "\n" * 3900 + "resets 1(",
        f"resets {'1' * 3900}(",
    ],
)
def test_no_error_text_takes_long(text: str) -> None:
    """The supervisor's loop reads what agents print: a text that takes minutes stops the fleet."""
    begun = time.process_time()
    OURS.meaning(text, NOW)
    assert time.process_time() - begun < 3
