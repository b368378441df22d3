"""An agent's conversation as the live view follows it."""

import io
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console
from sample import agent_status, write_status

from coral.cli.ui.live_transcript import KEPT, LiveTranscript
from coral.reading.lenient_json import LenientJson
from coral.reading.run_view import RunView
from coral.runtimes.line_tail import PIECE
from coral.views.transcript import PIECES
from workspace.layout import Layout


@pytest.fixture
def logs(layout: Layout) -> Layout:
    write_status(layout, agents=[agent_status("agent-1", runtime="claude")])
    layout.logs("agent-1").mkdir(parents=True, exist_ok=True)
    return layout


def say(layout: Layout, launch: int, *texts: str) -> None:
    blocks = [{"message": {"content": [{"type": "text", "text": text}]}, "type": "assistant"} for text in texts]
    with layout.output("agent-1", launch).open("a") as file:
        file.writelines(json.dumps(block) + "\n" for block in blocks)


def shown(talk: LiveTranscript, layout: Layout, events: Sequence[dict[str, object]] = (), width: int = 80) -> list[str]:
    talk.update(RunView(layout), map(LenientJson, events))
    out = Console(file=io.StringIO(), width=width)
    positions, rows = talk.rows(out, width)
    assert positions == sorted(set(positions))
    assert max((row.cell_len for row in rows), default=0) <= width
    return [row.plain.rstrip() for row in rows]


def test_what_is_said_while_one_looks_comes_at_the_end(logs: Layout) -> None:
    talk = LiveTranscript("agent-1")
    assert shown(talk, logs) == []
    logs.prompt("agent-1", 1).write_text("Begin.")
    say(logs, 1, "one")
    lines = ["── launch 1 ──", "prompt    Begin.", "says      one"]
    assert shown(talk, logs) == lines
    say(logs, 1, "two\nthree")
    assert shown(talk, logs) == [*lines, "says      two", "          three"]


def test_the_next_launch_follows_and_says_why_it_began(logs: Layout) -> None:
    for launch in (1, 2, 3):
        say(logs, launch, f"in {launch}")
    talk = LiveTranscript("agent-1")
    begun = {"type": "spawned", "agent": "agent-1", "reason": {"text": "heartbeat"}, "heartbeats": ["reflect"]}
    ended = {"type": "exited", "agent": "agent-1", "ending": "interrupted"}
    events = [{**begun, "launch": 3}, {**ended, "launch": 2}, {**begun, "launch": 4, "agent": "agent-2"}]
    lines = ["── launch 2 ──", "says      in 2", "end       interrupted"]
    lines += ["── launch 3 · heartbeat: reflect ──", "says      in 3"]
    assert shown(talk, logs, events) == lines
    say(logs, 4, "in 4")
    assert shown(talk, logs, events) == [*lines, "end       not known", "── launch 4 ──", "says      in 4"]


def test_the_end_of_the_last_launch_is_shown_once(logs: Layout) -> None:
    talk = LiveTranscript("agent-1")
    logs.errors("agent-1", 1).write_text("no such model")
    say(logs, 1, "one")
    ended = [{"type": "exited", "agent": "agent-1", "ending": "crashed", "launch": 1}]
    assert "end" not in " ".join(shown(talk, logs))
    write_status(logs, agents=[agent_status("agent-1", runtime="claude", phase="waiting")])
    for _ in range(2):
        assert shown(talk, logs, ended)[-2:] == ["says      one", "end       crashed: no such model"]


def test_long_lines_are_wrapped_and_a_row_keeps_its_place(logs: Layout) -> None:
    talk = LiveTranscript("agent-1")
    say(logs, 1, "word " * 60, "end")
    wide, narrow = shown(talk, logs), shown(talk, logs, width=40)
    assert len(wide) < len(narrow)
    assert wide[1].startswith("says      word word")
    assert all(line.startswith(("──", "says", "          word")) for line in narrow)


def test_of_a_long_conversation_the_end_is_read(logs: Layout) -> None:
    say(logs, 1, *(f"{number} {'x' * 1000}" for number in range(PIECES * PIECE // 1000)))
    talk = LiveTranscript("agent-1")
    lines = shown(talk, logs, width=4000)
    assert lines[-1].startswith(f"says      {PIECES * PIECE // 1000 - 1} x")
    assert len(lines) < 600
    say(logs, 1, *("y" for _ in range(KEPT + 10)))
    assert len(shown(talk, logs, width=4000)) == KEPT


def test_what_an_agent_prints_runs_nothing(logs: Layout) -> None:
    say(logs, 1, "a\x1b[2J\x1b]0;title\x07b")
    assert not any("\x1b" in line or "\x07" in line for line in shown(LiveTranscript("agent-1"), logs))


def test_a_run_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.logs("agent-1").mkdir(parents=True)
    layout.prompt("agent-1", 1).write_text("Begin.")
    talk = LiveTranscript("agent-1")
    talk.update(RunView(layout), [])
    assert talk.problem.startswith("cannot read it: ")
