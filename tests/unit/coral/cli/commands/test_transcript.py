"""`coral transcript`: what was told, said and done, out of what the programs printed, however long it is."""

import json
import shutil
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import transcripts
from sample import agent_status, write_events, write_status

from coral.supervisor.lock import hold_lock
from coral.views.transcript import EntryKind, TranscriptEntry, entries, launches
from workspace.layout import Layout

Shown = Callable[..., str]
PROGRAMS = sorted({case.partition("-")[0] for case in transcripts.CASES})


@pytest.fixture
def bare(tmp_path: Path) -> Layout:
    """No more of a run than the logs of an agent."""
    made = Layout(tmp_path)
    made.logs("agent-1").mkdir(parents=True)
    return made


def driven_by(layout: Layout, runtime: str) -> None:
    write_status(layout, agents=[agent_status(name, runtime=runtime) for name in ("agent-1", "agent-2")])


def lay(layout: Layout, launch: int, case: str, prompt: str = "") -> None:
    shutil.copyfile(transcripts.FOLDER / f"{case}.jsonl", layout.output("agent-1", launch))
    layout.errors("agent-1", launch).write_text("\n".join(transcripts.meta(case)["stderr"]))
    layout.prompt("agent-1", launch).write_text(prompt)


def say(layout: Layout, launch: int, *lines: object) -> None:
    text = "".join(json.dumps(line) + "\n" for line in lines)
    layout.output("agent-1", launch).write_text(text)


def read(layout: Layout, case: str) -> list[TranscriptEntry]:
    lay(layout, 1, case)
    return list(entries(layout, "agent-1", 1, transcripts.runtime_of(case)))


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_program_is_read_as_the_same_conversation(program: str, bare: Layout) -> None:
    beside = (EntryKind.STEP, EntryKind.USAGE, EntryKind.EDIT)
    found = [entry for entry in read(bare, f"{program}-ok") if entry.kind not in beside]
    assert [str(entry.kind) for entry in found] == ["reply", "tool", "result", "reply", "end"]
    assert [entry.text for entry in found if entry.kind is EntryKind.REPLY] == ["Running.", "All done."]
    tool, result = found[1:3]
    assert "git commit -qm x" in tool.text
    assert (tool.tool, tool.id) == (result.tool, result.id) != ("", "")
    assert found[-1].ending == "clean"


@pytest.mark.parametrize("case", transcripts.CASES)
def test_every_transcript_has_one_end_and_no_repeated_step(case: str, bare: Layout) -> None:
    found = read(bare, case)
    assert [entry.kind for entry in found].count(EntryKind.END) == 1
    assert found[-1].kind is EntryKind.END
    assert all(one.kind is not EntryKind.STEP or one.text != two.text for one, two in pairwise(found))
    assert not any(entry.unknown for entry in found)


def test_compactions_retries_and_limits_are_shown(layout: Layout, shown: Shown) -> None:
    driven_by(layout, "claude")
    lay(layout, 1, "claude-compact")
    lay(layout, 2, "claude-err429")
    lay(layout, 3, "claude-limit")
    assert "compacted 985026 → 2539 tokens" in shown("transcript", "agent-1", "--launch", "1")
    assert "retry     retry 1: rate_limit" in shown("transcript", "agent-1", "--launch", "2")
    said = shown("transcript", "agent-1")
    assert "limit     limit reached: five_hour until 2026-11-21 04:26 UTC" in said
    assert "end       limit: You've hit your 5-hour limit · resets 4:26am (UTC)" in said


def test_the_last_launch_is_shown_with_how_to_see_more(layout: Layout, shown: Shown) -> None:
    driven_by(layout, "claude")
    lay(layout, 1, "claude-ok", "Go.\n")
    lay(layout, 2, "claude-sigint", "\n".join(f"line {n}" for n in range(20)))
    spawned = {"type": "spawned", "agent": "agent-1", "launch": 2, "heartbeats": ["reflect", "redirect"]}
    reason = {"kind": "heartbeat", "text": "heartbeat"}
    exited = {"type": "exited", "agent": "agent-2", "launch": 2, "ending": "crashed"}
    write_events(layout, {**spawned, "reason": reason}, exited)
    lines = shown("transcript", "agent-1").splitlines()
    assert lines[0].startswith("agent-1 · launch 2 of 2 · heartbeat: reflect, redirect · just now ─")
    assert lines[1] == "prompt    line 0"
    assert "          … 8 more lines (--full)" in lines
    assert "end       interrupted" in lines
    assert lines[-1].endswith(" transcript agent-1 has 2 launches: --launch N or --all")
    assert "line 19" in shown("transcript", "agent-1", "--full")
    assert "prompt    Go." in shown("transcript", "agent-1", "--all")
    last = shown("transcript", "agent-1", "--all", "-n", "1").splitlines()
    assert last[1] == "end       interrupted"
    assert " earlier entries: -n 0 shows all" in last[2]
    assert "there are 1 to 2" in shown("transcript", "agent-1", "--launch", "3", code=1)


def test_tools_usage_and_replies_in_words(layout: Layout, shown: Shown) -> None:
    driven_by(layout, "opencode")
    lay(layout, 1, "opencode-ok")
    said = shown("transcript", "agent-1")
    assert "says      Running." in said
    assert "tool      bash: " in said
    assert "  answer" in said
    assert "usage     1.0k in, 1.2k from cache, 59 out, $0.0011\n" in said


def test_scripted_and_native_agents_have_a_transcript(layout: Layout, shown: Shown) -> None:
    driven_by(layout, "scripted")
    working = {"phase": "tool", "message": "step 1"}
    say(layout, 1, working, working, {"reply": "done"}, {"error": "no such file"}, {"ended": True})
    write_events(layout, {"type": "exited", "agent": "agent-1", "launch": 1, "ending": "clean"})
    assert shown("transcript", "agent-1").splitlines()[1:] == [
        "step      step 1",
        "says      done",
        "error     no such file",
        "end       clean",
    ]
    driven_by(layout, "native")
    assert "step      step 1" in shown("transcript", "agent-1")


def test_a_running_launch_has_no_end(layout: Layout, shown: Shown) -> None:
    driven_by(layout, "native")
    say(layout, 1, {"reply": "hm"})
    assert shown("transcript", "agent-1").splitlines()[-1] == "end       not known"
    write_events(layout, {"type": "spawned", "agent": "agent-1", "launch": 1, "reason": {"text": "start"}})
    with hold_lock(layout.lock):
        assert shown("transcript", "agent-1").splitlines()[-1] == "end       not yet: it is running"


def test_json_is_one_object_a_line(layout: Layout, shown: Shown) -> None:
    driven_by(layout, "codex")
    lay(layout, 1, "codex-ok", "Go.")
    lay(layout, 2, "codex-resume")
    found = [json.loads(line) for line in shown("transcript", "agent-1", "--all", "--json").splitlines()]
    assert {entry["launch"] for entry in found} == {1, 2}
    assert found[0] == {"launch": 1, "kind": "prompt", "text": "Go."}
    usage = next(entry["usage"] for entry in found if entry["kind"] == "usage")
    assert usage == {"counted": "session", "input": 1000, "cached": 1200, "output": 59}


def measured(layout: Layout, of: Callable[[TranscriptEntry], Any] = lambda entry: entry) -> tuple[list[Any], int]:
    """Something of each entry of a native launch, and how many bytes reading them took at most."""
    runtime = transcripts.registry.find("native", {})
    tracemalloc.start()
    found = [of(entry) for entry in entries(layout, "agent-1", 1, runtime)]
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return found, most


def test_an_endless_line_is_left_out_and_memory_does_not_grow_with_the_log(bare: Layout) -> None:
    with bare.output("agent-1", 1).open("wb") as file:
        file.write(b'{"reply": "before"}\n')
        file.truncate(30_000_000)
        file.seek(0, 2)
        file.write(b'\n{"reply": "after"}\n')
    found, most = measured(bare)
    assert [entry.text for entry in found][:3] == ["before", "a line of more than 1 MB", "after"]
    assert most < 10_000_000
    line = json.dumps({"reply": "word " * 200}).encode() + b"\n"
    bare.output("agent-1", 1).write_bytes(line * 10_000)
    found, most = measured(bare, lambda entry: entry.kind is EntryKind.REPLY)
    assert (found.count(True), most < 6_000_000) == (10_000, True)


def test_damaged_and_missing_logs_are_read_as_far_as_possible(layout: Layout, shown: Shown) -> None:
    driven_by(layout, "claude")
    assert shown("transcript", "agent-1") == "agent-1 has not been launched yet"
    layout.output("agent-1", 7).write_bytes(b'garbage\n\xff\xfe\n{"type": "of tomorrow"}\n{"type":')
    layout.errors("agent-1", 7).write_text("Segmentation fault\n")
    write_events(layout, {"type": "exited", "agent": "agent-1", "launch": 7, "ending": "crashed"})
    with layout.events.open("ab") as file:
        file.write(b'"exited" garbage\n["exited"]\n')
    assert launches(layout, "agent-1") == [7]
    said = shown("transcript", "agent-1")
    assert "end       crashed: Segmentation fault (4 lines of a kind that Coral does not know)" in said
    layout.output("agent-1", 8).symlink_to(layout.output("agent-1", 7))
    assert "garbage" not in shown("transcript", "agent-1")


def test_the_agent_is_named_or_the_one_of_the_workspace(
    layout: Layout, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    driven_by(layout, "native")
    say(layout, 1, {"reply": "hm"})
    assert "there are agent-1, agent-2" in shown("transcript", code=1)
    assert "no such agent" in shown("transcript", "agent-9", code=1)
    assert "no such agent" in shown("transcript", "../agent-1", code=1)
    monkeypatch.chdir(layout.clone("agent-1"))
    assert "says      hm" in shown("transcript")
    for agent in ("agent-1", "agent-2"):
        layout.shared_of(agent, share=False).mkdir(parents=True)
    monkeypatch.chdir(layout.clone("agent-2"))
    assert "it is not yours" in shown("transcript", "agent-1", code=1)
    assert shown("transcript") == "agent-2 has not been launched yet"


def test_without_a_task_or_a_status_the_program_is_unknown(layout: Layout, shown: Shown) -> None:
    say(layout, 1, {"reply": "hm"})
    layout.status.unlink(missing_ok=True)
    assert "task.yaml" in shown("transcript", "agent-1", code=1)
