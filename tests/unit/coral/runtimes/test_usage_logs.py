"""What programs have used, by the logs that they keep of their conversations."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from files import write_files

from coral.runtimes.claude import Claude
from coral.runtimes.codex import Codex
from coral.runtimes.copilot import Copilot
from coral.runtimes.gemini import Gemini
from coral.runtimes.model import Counted, Usage, highest

THREAD = "01a1ffa1-d2d8-7a33-8265-40f45bb321ce"  # it began on 21 November 2026, as its first figures say


def record(state: Path, *lines: str, thread: str = THREAD) -> Path:
    """What codex writes down of a thread."""
    name = f"rollout-2026-11-21T19-42-37-{thread}.jsonl"
    text = "".join(f"{line}\n" for line in lines)
    return write_files(state / "sessions/2026/11/21", {name: text}) / name


def total(read: int, cached: int, written: int) -> str:
    usage = {"input_tokens": read, "cached_input_tokens": cached, "output_tokens": written, "total_tokens": 0}
    info = {"total_token_usage": usage, "last_token_usage": {**usage, "input_tokens": 1}}
    return json.dumps({"type": "event_msg", "payload": {"type": "token_count", "info": info}})


def test_the_usage_of_a_claude_conversation_is_read_from_its_log(tmp_path: Path) -> None:
    claude = Claude({})
    one = {"inputTokens": 1, "cacheCreationInputTokens": 2, "cacheReadInputTokens": 4, "outputTokens": 8}
    states = [{"type": "cost-state", "totalCostUSD": n / 2, "modelUsage": {"m": one}} for n in (1, 3)]
    log = "".join(f"{json.dumps(entry)}\n" for entry in (*states, {"type": "user"}))
    write_files(tmp_path / "projects/clone", {"c.jsonl": f'{log}{{"type":"cost-state"', "d.jsonl": "{}"})
    assert claude.usage(tmp_path, "c") == Usage(counted=Counted.SESSION, input=3, cached=4, output=8, cost=1.5)
    assert [claude.usage(tmp_path, session) for session in ("d", "*", "")] == [None] * 3


def test_the_usage_of_a_codex_thread_is_read_from_its_log(tmp_path: Path) -> None:
    codex = Codex({})
    said = '{"type": "event_msg", "payload": {"type": "agent_message", "message": "\\"token_count\\""}}'
    limits = '{"type": "event_msg", "payload": {"type": "token_count", "info": null, "rate_limits": {}}}'
    record(tmp_path, total(1000, 900, 17), said, total(3000, 2700, 51), said, limits, '{"type": "token_count')
    used = Usage(counted=Counted.SESSION, input=300, cached=2700, output=51)
    assert codex.usage(tmp_path, THREAD) == used
    # Another thread's record is not its own, and only the end of a long one is read.
    other = THREAD.replace("7a33", "7a34")
    assert codex.usage(tmp_path, other) is None
    record(tmp_path, total(1, 0, 1), "x" * (1 << 20), thread=other)
    assert codex.usage(tmp_path, other) is None
    path = record(tmp_path)
    for occupy in (os.mkfifo, os.mkdir):
        path.unlink()
        occupy(path)
        assert codex.usage(tmp_path, THREAD) is None


@pytest.mark.parametrize("session", ["", "no thread", "../../../etc", "*", "f" * 32, f"{THREAD}/x"])
def test_an_invalid_thread_id_of_codex_has_no_log(tmp_path: Path, session: str) -> None:
    record(tmp_path, total(1000, 900, 17))
    assert Codex({}).usage(tmp_path, session) is None


def lines(*entries: Mapping[str, object]) -> str:
    return "".join(f"{json.dumps(entry)}\n" for entry in entries)


def answer(name: str, read: int, cached: int, written: int) -> dict[str, object]:
    """An answer as gemini writes it down."""
    tokens = {"input": read, "output": written, "cached": cached, "thoughts": 2, "tool": 1, "total": 0}
    return {"id": name, "type": "gemini", "content": "the tokens", "tokens": tokens}


def test_the_usage_of_a_gemini_conversation_is_the_sum_of_its_answers(tmp_path: Path) -> None:
    chats, session = tmp_path / ".gemini/tmp/agent-1/chats", "0d34931e-5770-5a13-bd85-185ddb60bd82"
    first = lines(answer("a", 10, 4, 8), answer("a", 100, 90, 17), {"$set": {"messages": [answer("a", 1, 1, 1)]}})
    second = lines(answer("b", 200, 100, 20), {"id": "c", "type": "user", "content": '"tokens"'})
    files = {f"session-2026-11-23T07-4{n}-0d34931e.jsonl": text for n, text in enumerate((first, second))}
    write_files(chats, {**files, "session-2026-11-23T07-49-ffffffff.jsonl": lines(answer("d", 1, 1, 1))})
    used = Usage(counted=Counted.SESSION, input=112, cached=190, output=41)
    assert Gemini({}).usage(tmp_path, session) == used
    assert [Gemini({}).usage(tmp_path, other) for other in ("", "*", "00000000-0000")] == [None] * 3


def test_logs_with_many_names_are_read_in_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The supervisor's loop reads them whenever a launch ends, and one large file may have thousands of names."""
    for number in range(50):
        log = {"session-2026-0d34931e.jsonl": lines(answer(str(number), 10, 0, 1))}
        write_files(tmp_path / f".gemini/tmp/{number}/chats", log)
        write_files(tmp_path / f"projects/{number}", {"c.jsonl": '{"type": "cost-state", "totalCostUSD": 1}'})
    whole = Gemini({}).usage(tmp_path, "0d34931e")
    assert whole is not None
    assert Claude({}).usage(tmp_path, "c") is not None
    monkeypatch.setattr("coral.runtimes.gemini.WHOLE_LOG", 1000)
    monkeypatch.setattr("coral.runtimes.claude.LOGS", 0)
    part = Gemini({}).usage(tmp_path, "0d34931e")
    assert part is not None
    assert 0 < part.output < whole.output / 2
    assert Claude({}).usage(tmp_path, "c") is None


def test_of_a_log_of_countless_answers_the_last_ones_are_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coral.runtimes.json_lines.ENTRIES", 3)
    monkeypatch.setattr("coral.runtimes.gemini.ENTRIES", 3)
    write_files(tmp_path / "session-state/c", {"events.jsonl": lines(*[call(10, 0, 1)] * 10)})
    for number in range(5):
        write_files(
            tmp_path / f".gemini/tmp/{number}/chats",
            {"session-2026-0d34931e.jsonl": lines(answer(str(number), 10, 0, 1), answer(f"{number}b", 10, 0, 1))},
        )
    copilot, gemini = Copilot({}).usage(tmp_path, "c"), Gemini({}).usage(tmp_path, "0d34931e")
    assert copilot is not None
    assert gemini is not None
    assert (copilot.input, gemini.input) == (30, 44)  # of gemini: two whole files


def call(read: int, cached: int, written: int) -> dict[str, object]:
    """An answer as copilot writes it down."""
    usage = {"inputTokens": read, "outputTokens": written, "cacheReadTokens": cached, "cacheWriteTokens": 0}
    return {"type": "session.usage_record", "data": {"usage": usage}}


def end(**models: tuple[int, int, int]) -> dict[str, object]:
    """The end of a launch of copilot: what the conversation has used, by model."""
    metrics = {name: {"usage": call(*figures)["data"]["usage"]} for name, figures in models.items()}  # type: ignore[index]
    return {"type": "session.shutdown", "data": {"accountingSnapshot": {"modelMetrics": metrics}}}


@pytest.mark.parametrize(
    ("entries", "used"),
    [
        ([call(1000, 900, 17)], (100, 900, 17)),
        ([call(1000, 900, 17), end(a=(1000, 900, 17))], (100, 900, 17)),
        ([call(1000, 900, 17), end(a=(1000, 900, 17)), call(50, 0, 5)], (150, 900, 22)),
        ([end(a=(1000, 900, 17), b=(10, 0, 1)), call(50, 0, 5), {"type": "x", "data": "outputTokens"}], (160, 900, 23)),
    ],
)
def test_the_usage_of_a_copilot_conversation_is_read_from_its_log(
    tmp_path: Path, entries: list[Mapping[str, object]], used: tuple[int, int, int]
) -> None:
    write_files(tmp_path / "session-state/one", {"events.jsonl": lines(*entries)})
    input, cached, output = used
    assert Copilot({}).usage(tmp_path, "one") == Usage(
        counted=Counted.SESSION, input=input, cached=cached, output=output
    )
    assert Copilot({}).usage(tmp_path, "two") is None


def test_of_what_a_program_prints_and_what_it_logs_the_higher_counts() -> None:
    printed = Usage(counted=Counted.SESSION, input=7, cached=1, output=3, cost=1.0)
    logged = Usage(counted=Counted.SESSION, input=5, cached=2, output=9)
    assert highest(printed, logged) == Usage(counted=Counted.SESSION, input=7, cached=2, output=9, cost=1.0)
    assert highest(None, logged) == logged
    # Figures of another period cannot be compared.
    assert highest(Usage(counted=Counted.LAUNCH, input=99), logged) == logged


def test_a_long_log_of_copilot_is_read_back_to_its_last_end(tmp_path: Path) -> None:
    noise = {"type": "tool.output", "data": "x" * 1000}
    text = lines(end(a=(1000, 900, 17)), *[noise] * 2000, call(50, 0, 5))
    write_files(tmp_path / "session-state/one", {"events.jsonl": text})
    used = Usage(counted=Counted.SESSION, input=150, cached=900, output=22)
    assert Copilot({}).usage(tmp_path, "one") == used
