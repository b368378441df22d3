"""What agent programs really printed is read as it was understood once, line by line; garbage is read as nothing."""

import json
import re
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest
import transcripts
from hypothesis import given, strategies as st

from coral.runtimes import registry
from coral.runtimes.json_lines import Reader
from coral.runtimes.line_tail import LineTail
from coral.runtimes.messages import ReplyParts
from coral.runtimes.model import Ending, LaunchSummary
from coral.supervisor.output_monitor import OutputMonitor

PROGRAMS = sorted({case.partition("-")[0] for case in transcripts.CASES})
# Recorded with the scripted model, in the same turn: what npm installs, and an agent of the protocol.
SCRIPTED = [name for name in PROGRAMS if getattr(registry.find(name, {}), "package", "the protocol")]
OBJECTS = [json.loads(line) for case in transcripts.CASES for line in transcripts.lines(case)]


@pytest.mark.parametrize("case", transcripts.CASES)
def test_a_recorded_transcript_is_read_as_its_golden_file_says(case: str, tmp_path: Path) -> None:
    assert transcripts.text(transcripts.read(case, tmp_path)) == transcripts.golden(case).read_text()


ENDINGS = {"ok": Ending.CLEAN, "resume": Ending.CLEAN, "sigint": Ending.INTERRUPTED, "err401": Ending.TERMINAL}


@pytest.mark.parametrize(("case", "ending"), [*ENDINGS.items(), ("limit", Ending.LIMIT)])
def test_all_programs_end_their_turns_alike(case: str, ending: Ending, tmp_path: Path) -> None:
    known = [name for name in PROGRAMS if f"{name}-{case}" in transcripts.CASES]
    found = {name: transcripts.read(f"{name}-{case}", tmp_path)["end"]["ending"] for name in known}
    assert found == dict.fromkeys(known, ending)


@pytest.mark.parametrize("program", SCRIPTED)
def test_a_turn_with_a_tool_call_is_read_alike_for_all_programs(program: str, tmp_path: Path) -> None:
    found = transcripts.read(f"{program}-ok", tmp_path)
    signs = [sign for _, sign in found["events"]]
    tools = [sign["tool"] for sign in signs if "tool" in sign]
    assert "git commit -qm x" in tools[0]["text"]
    assert tools[-1]["over"]
    assert {tool["id"] for tool in tools} == {tools[0]["id"]}
    speech, runtime = ReplyParts(), registry.find(program, {})
    said = [sign.reply for line in transcripts.lines(f"{program}-ok") for sign in speech.join(runtime.read(line))]
    assert [text for text in said if text] == ["Running.", "All done."]
    assert found["end"]["session"]
    assert "unknown" not in found["end"]


# The lines before which a program's log of the conversation has the prompt, or which show that its model has read it.
PROMPT_TAKEN = {
    "acp": '"type": "(says|thinks|tool|update|plan)"',
    "claude": '"type":"(assistant|user|stream_event|result)"',
    "codex": '"(agent_message|command_execution|todo_list|file_change|web_search|mcp_tool_call)"|Reconnecting',
    "copilot": '"assistant.(message|reasoning|tool_call)|"tool.execution_start"',
    "gemini": '"role":"assistant"|"tool_use"',
    "opencode": '"step_start"',
    "pi": '"turn_end"|"tool_execution_start"|"auto_retry_start"',
    "qwen": '"type":"assistant"',
}


@pytest.mark.parametrize("case", transcripts.CASES)
def test_nothing_acknowledges_a_prompt_before_the_program_has_it(case: str, tmp_path: Path) -> None:
    """Line by line, and with lines that nobody knows yet before all others."""
    program, runtime, output = case.partition("-")[0], transcripts.runtime_of(case), tmp_path / "out.jsonl"
    listening = OutputMonitor("agent-1", 1, runtime, LineTail(output), tmp_path / "err", "a session")
    unknown = [b"", b"Warning: something new", b'{"type": "brand_new", "data": {}}', b'{"data": {"type": "x"}}']
    for line in [*unknown, *transcripts.lines(case)]:
        with output.open("ab") as file:
            file.write(line + b"\n")
        listening.read(1.0)
        if listening.has_prompt:
            assert re.search(PROMPT_TAKEN[program], line.decode())
            return


def check(line: bytes) -> None:
    """Whatever a program reads in it, every text can be written, and is no longer than it may be."""
    readers = [runtime for name in PROGRAMS if isinstance(runtime := registry.find(name, {}), Reader)]
    for event in (event for reader in readers for event in reader.read(line)):
        for value in (getattr(event, field.name) for field in fields(event)):
            if isinstance(value, str):
                value.encode()
                assert len(value) <= 20_000
            elif is_dataclass(value):
                assert all(len(str(getattr(value, inner.name)).encode()) <= 80_000 for inner in fields(value))


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(line=st.binary(max_size=300) | anything.map(lambda value: json.dumps(value).encode()))
def test_garbage_raises_nothing(line: bytes) -> None:
    check(line)


@given(data=st.data())
def test_a_known_event_with_any_field_replaced_raises_nothing(data: st.DataObject) -> None:
    event = json.loads(json.dumps(data.draw(st.sampled_from(OBJECTS))))
    place = event
    while True:
        name = data.draw(st.sampled_from(sorted(place))) if isinstance(place, dict) else 0
        inner = place[name]
        if isinstance(inner, dict | list) and inner and data.draw(st.booleans()):
            place = inner
            continue
        place[name] = data.draw(anything)
        break
    check(json.dumps(event).encode())


@pytest.mark.parametrize("until", [-1, 0, 1_795_235_164_000])
def test_a_limit_without_a_credible_end_has_none(until: int) -> None:
    """Milliseconds for seconds would hold the account for ever."""
    event = {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": until}}
    [found] = registry.find("claude", {}).read(json.dumps(event).encode())
    assert (found.limit_until, found.exact) == (None, False)


@pytest.mark.parametrize(
    ("program", "event"),
    [
        ("claude", {"type": "result", "subtype": "success", "total_cost_usd": -1}),
        ("claude", {"type": "system", "subtype": "api_retry", "retry_delay_ms": -1}),
        ("opencode", {"type": "step_finish", "part": {"cost": -1}}),
        ("pi", {"type": "message_end", "message": {"role": "assistant", "usage": {"cost": {"total": -1}}}}),
        ("pi", {"type": "auto_retry_start", "delayMs": -1}),
    ],
)
def test_a_price_or_a_delay_below_zero_is_unknown(program: str, event: object) -> None:
    found = registry.find(program, {}).read(json.dumps(event).encode())
    assert [sign.usage.cost for sign in found if sign.usage] in ([], [None])
    assert [sign.retry.seconds for sign in found if sign.retry] in ([], [None])


@pytest.mark.parametrize("program", PROGRAMS)
def test_unknown_events_are_named_and_long_ones_shortened(program: str) -> None:
    runtime = registry.find(program, {})
    [sign] = runtime.read(b'{"type": "of tomorrow", "data": {"x": 1}}')
    assert sign.unknown == "of tomorrow" or (program not in SCRIPTED and sign.unknown)
    assert runtime.read(b"[" * 100_000)[0].unknown == "no JSON object"
    assert runtime.read(b"Warning: something\n")[0].message == "Warning: something"
    assert runtime.read(b"  \n") == ()


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_exit_without_an_end_of_the_turn_is_an_interrupt_or_a_crash(program: str) -> None:
    runtime = registry.find(program, {})
    for code in (0, 130, -2, 143, -15):
        assert runtime.judge(code, LaunchSummary(output=True)) is Ending.INTERRUPTED
    assert runtime.judge(-9, LaunchSummary(output=True)) is Ending.CRASHED
    assert runtime.judge(1, LaunchSummary(stderr="panic")) is Ending.CRASHED
    assert runtime.judge(1, LaunchSummary(stderr="Error: Invalid API key")) is Ending.TERMINAL
    assert runtime.judge(1, LaunchSummary(output=True, ending=Ending.CLEAN)) is Ending.CLEAN
    assert runtime.judge(0, LaunchSummary(limit_until=5.0)) is Ending.LIMIT


LOST = {
    "claude": "No conversation found with session ID: x",
    "codex": "Error: no rollout found for thread id x",
    "opencode": "Error: Session not found: x",
    "gemini": "Error resuming session: x",
    "qwen": "No saved session found with ID x",
    "copilot": "Error: No session, task, or name matched 'x'.",
    "pi": "No session found matching 'x'",
}


@pytest.mark.parametrize("program", LOST)
def test_a_session_that_the_program_does_not_know_is_recognised(program: str) -> None:
    assert (
        registry.find(program, {}).judge(42, LaunchSummary(output=True, stderr=LOST[program])) is Ending.UNKNOWN_SESSION
    )
