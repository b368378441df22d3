"""`coral transcript`: what was told, said and done, out of what the programs printed, however long it is."""

import json
import shutil
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import transcripts
from sample import agent_status, make_run, write_events, write_status

from coral.cli import main
from coral.supervisor.lock import hold_lock
from coral.views.transcript import Entry, Kind, entries, launches
from workspace.layout import Layout

Run = Callable[..., str]
PROGRAMS = sorted({case.partition("-")[0] for case in transcripts.CASES})


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("CORAL_AGENT", raising=False)
    monkeypatch.chdir(tmp_path)
    return make_run(tmp_path / "runs")


@pytest.fixture
def coral(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*command: str, code: int = 0) -> str:
        assert main(command) == code
        said = capsys.readouterr()
        return "\n".join(line.rstrip() for line in (said.err if code else said.out).splitlines())

    return run


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


def read(layout: Layout, case: str) -> list[Entry]:
    lay(layout, 1, case)
    return list(entries(layout, "agent-1", 1, transcripts.runtime_of(case)))


@pytest.mark.parametrize("program", PROGRAMS)
def test_all_programs_have_the_same_conversation(program: str, bare: Layout) -> None:
    found = [each for each in read(bare, f"{program}-ok") if each.kind not in (Kind.STEP, Kind.USAGE, Kind.EDIT)]
    assert [each.kind for each in found] == [Kind.REPLY, Kind.TOOL, Kind.RESULT, Kind.REPLY, Kind.END]
    assert [each.text for each in found if each.kind is Kind.REPLY] == ["Running.", "All done."]
    tool, result = found[1:3]
    assert "git commit -qm x" in tool.text
    assert (tool.tool, tool.id) == (result.tool, result.id) != ("", "")
    assert found[-1].ending == "clean"


@pytest.mark.parametrize("case", transcripts.CASES)
def test_every_transcript_has_an_end_and_nothing_that_repeats_itself(case: str, bare: Layout) -> None:
    found = read(bare, case)
    assert [each.kind for each in found].count(Kind.END) == 1
    assert found[-1].kind is Kind.END
    assert all(one.kind is not Kind.STEP or one.text != two.text for one, two in pairwise(found))
    assert not any(each.unknown for each in found)


def test_what_happens_to_a_program_is_told(layout: Layout, coral: Run) -> None:
    driven_by(layout, "claude")
    lay(layout, 1, "claude-compact")
    lay(layout, 2, "claude-err429")
    lay(layout, 3, "claude-limit")
    assert "compacted 985026 → 2539 tokens" in coral("transcript", "agent-1", "--launch", "1")
    assert "retry     retry 1: rate_limit" in coral("transcript", "agent-1", "--launch", "2")
    said = coral("transcript", "agent-1")
    assert "limit     limit reached: five_hour until 2026-11-21 04:26 UTC" in said
    assert "end       limit: You've hit your 5-hour limit · resets 4:26am (UTC)" in said


def test_the_last_launch_is_shown_and_how_to_see_more(layout: Layout, coral: Run) -> None:
    driven_by(layout, "claude")
    lay(layout, 1, "claude-ok", "Go.\n")
    lay(layout, 2, "claude-sigint", "\n".join(f"line {n}" for n in range(20)))
    write_events(
        layout,
        {
            "type": "spawned",
            "agent": "agent-1",
            "launch": 2,
            "reason": {"kind": "heartbeat", "text": "heartbeat"},
            "heartbeats": ["reflect", "redirect"],
        },
        {"type": "exited", "agent": "agent-2", "launch": 2, "ending": "crashed"},
    )
    lines = coral("transcript", "agent-1").splitlines()
    assert lines[0].startswith("agent-1 · launch 2 of 2 · heartbeat: reflect, redirect · just now ─")
    assert lines[1] == "prompt    line 0"
    assert "          … 8 more lines (--full)" in lines
    assert "end       interrupted" in lines
    assert lines[-1].endswith(" transcript agent-1 has 2 launches: --launch N or --all")
    assert "line 19" in coral("transcript", "agent-1", "--full")
    assert "prompt    Go." in coral("transcript", "agent-1", "--all")
    last = coral("transcript", "agent-1", "--all", "-n", "1").splitlines()
    assert last[1] == "end       interrupted"
    assert " earlier entries: -n 0 shows all" in last[2]
    assert "there are 1 to 2" in coral("transcript", "agent-1", "--launch", "3", code=1)


def test_tools_usage_and_replies_as_people_read_them(layout: Layout, coral: Run) -> None:
    driven_by(layout, "opencode")
    lay(layout, 1, "opencode-ok")
    said = coral("transcript", "agent-1")
    assert "says      Running." in said
    assert "tool      bash: " in said
    assert "  answer" in said
    assert "usage     1.0k in, 1.2k from cache, 59 out, $0.0011\n" in said


def test_a_script_and_the_native_agent_are_read_too(layout: Layout, coral: Run) -> None:
    driven_by(layout, "scripted")
    working = {"phase": "tool", "message": "step 1"}
    say(layout, 1, working, working, {"reply": "done"}, {"error": "no such file"}, {"ended": True})
    write_events(layout, {"type": "exited", "agent": "agent-1", "launch": 1, "ending": "clean"})
    assert coral("transcript", "agent-1").splitlines()[1:] == [
        "step      step 1",
        "says      done",
        "error     no such file",
        "end       clean",
    ]
    driven_by(layout, "native")
    assert "step      step 1" in coral("transcript", "agent-1")


def test_a_launch_that_goes_on_has_no_end(layout: Layout, coral: Run) -> None:
    driven_by(layout, "native")
    say(layout, 1, {"reply": "hm"})
    assert coral("transcript", "agent-1").splitlines()[-1] == "end       not known"
    write_events(layout, {"type": "spawned", "agent": "agent-1", "launch": 1, "reason": {"text": "start"}})
    with hold_lock(layout.lock):
        assert coral("transcript", "agent-1").splitlines()[-1] == "end       not yet: it is running"


def test_for_programs_it_is_an_object_a_line(layout: Layout, coral: Run) -> None:
    driven_by(layout, "codex")
    lay(layout, 1, "codex-ok", "Go.")
    lay(layout, 2, "codex-resume")
    found = [json.loads(line) for line in coral("transcript", "agent-1", "--all", "--json").splitlines()]
    assert {each["launch"] for each in found} == {1, 2}
    assert found[0] == {"launch": 1, "kind": "prompt", "text": "Go."}
    usage = next(each["usage"] for each in found if each["kind"] == "usage")
    assert usage == {"counted": "session", "input": 1000, "cached": 1200, "output": 59}


@pytest.mark.slow
def test_a_line_without_end_does_no_harm(bare: Layout) -> None:
    with bare.output("agent-1", 1).open("wb") as file:
        file.write(b'{"reply": "before"}\n')
        file.truncate(100_000_000)
        file.seek(0, 2)
        file.write(b'\n{"reply": "after"}\n')
    runtime = transcripts.registry.find("native", {})
    tracemalloc.start()
    found = list(entries(bare, "agent-1", 1, runtime))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [each.text for each in found][:3] == ["before", "a line of more than 1 MB", "after"]
    assert most < 10_000_000


@pytest.mark.slow
def test_what_is_held_of_a_long_log_does_not_grow_with_it(bare: Layout) -> None:
    line = json.dumps({"reply": "word " * 200}).encode() + b"\n"
    bare.output("agent-1", 1).write_bytes(line * 10_000)
    runtime = transcripts.registry.find("native", {})
    tracemalloc.start()
    assert sum(each.kind is Kind.REPLY for each in entries(bare, "agent-1", 1, runtime)) == 10_000
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 6_000_000


def test_unfinished_strange_and_missing_files_are_read_for_what_they_are(layout: Layout, coral: Run) -> None:
    driven_by(layout, "claude")
    assert coral("transcript", "agent-1") == "agent-1 has not been launched yet"
    layout.output("agent-1", 7).write_bytes(b'garbage\n\xff\xfe\n{"type": "of tomorrow"}\n{"type":')
    layout.errors("agent-1", 7).write_text("Segmentation fault\n")
    write_events(layout, {"type": "exited", "agent": "agent-1", "launch": 7, "ending": "crashed"})
    with layout.events.open("ab") as file:
        file.write(b'"exited" garbage\n["exited"]\n')
    assert launches(layout, "agent-1") == [7]
    said = coral("transcript", "agent-1")
    assert "end       crashed: Segmentation fault (4 lines of a kind that Coral does not know)" in said
    layout.output("agent-1", 8).symlink_to(layout.output("agent-1", 7))
    assert "garbage" not in coral("transcript", "agent-1")


def test_who_is_meant(layout: Layout, coral: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    driven_by(layout, "native")
    say(layout, 1, {"reply": "hm"})
    assert "there are agent-1, agent-2" in coral("transcript", code=1)
    assert "no such agent" in coral("transcript", "agent-9", code=1)
    assert "no such agent" in coral("transcript", "../agent-1", code=1)
    monkeypatch.chdir(layout.clone("agent-1"))
    assert "says      hm" in coral("transcript")


def test_who_works_alone_sees_only_its_own(layout: Layout, coral: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    driven_by(layout, "native")
    say(layout, 1, {"reply": "hm"})
    for agent in ("agent-1", "agent-2"):
        layout.shared_of(agent, share=False).mkdir(parents=True)
    monkeypatch.chdir(layout.clone("agent-2"))
    assert "it is not yours" in coral("transcript", "agent-1", code=1)
    assert coral("transcript") == "agent-2 has not been launched yet"


def test_without_a_task_or_a_view_of_it_nobody_knows_the_program(layout: Layout, coral: Run) -> None:
    say(layout, 1, {"reply": "hm"})
    layout.status.unlink(missing_ok=True)
    assert "task.yaml" in coral("transcript", "agent-1", code=1)
