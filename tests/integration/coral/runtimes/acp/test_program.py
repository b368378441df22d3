"""Any agent of the Agent Client Protocol: a real one, written with the SDK's other side, driven as a run drives it."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import driven
import pytest
import whole_runs
from driven import Desk
from real_runs import wait_until

from coral.fleet.reasons import Budget, BudgetKey, RunEnd, RunEndKind
from coral.journal import fold
from coral.runtimes import registry
from coral.runtimes.model import Counted, Ending, LaunchSummary, OutputEvent, Usage

pytestmark = pytest.mark.slow

AGENT = Path(__file__).parents[4] / "support" / "acp_agent.py"
RAW = AGENT.with_name("acp_raw.py")
LARGE = "A line of the long story.\n" * 20_000  # half a megabyte: more than any pipe holds
LONG = 120.0


def command(folder: Path, script: Mapping[str, Any] | str) -> list[str]:
    """Of the agent that follows a script, or of the one that has a way of its own."""
    if isinstance(script, str):
        return [sys.executable, "-P", str(RAW), str(folder), script]
    return [sys.executable, "-P", str(AGENT), str(folder), json.dumps(script)]


@pytest.fixture
def begin(tmp_path, monkeypatch) -> Iterator[Callable[..., Desk]]:
    """A desk of an agent that follows a script; its own files are in `tmp_path/kept`."""
    monkeypatch.setattr(driven, "GRACE", LONG)
    desks: list[Desk] = []

    def open_desk(script: Mapping[str, Any] | str, model: str = "", **options: object) -> Desk:
        runtime = registry.find("acp", {"command": command(tmp_path / "kept", script), **options})
        assert runtime.check() == []
        desks.append(Desk(tmp_path, runtime, model))
        return desks[-1]

    yield open_desk
    for desk in desks:
        desk.clean()


def turns(*steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"turns": steps}


def notes(tmp_path: Path) -> list[list[str]]:
    return [json.loads(line) for line in (tmp_path / "kept" / "notes.jsonl").read_text().splitlines()]


def conversation(tmp_path: Path, session: str) -> list[dict[str, Any]]:
    return list(json.loads((tmp_path / "kept" / f"{session}.json").read_text()))


# --- a launch -----------------------------------------------------------------------------------------------------


def test_a_conversation_is_resumed_in_another_process(begin, tmp_path) -> None:
    used = {"totalTokens": 1700, "inputTokens": 1000, "outputTokens": 100, "cachedReadTokens": 600}
    tomorrow = {"sessionUpdate": "of_tomorrow", "x": [1]}
    first = [{"think": "hm"}, {"say": "I look around."}, {"run": "pwd; echo in $PWD"}, {"edit": ["x.txt", "1"]}]
    first += [{"raw": tomorrow}, {"cost": 0.5}, {"say": "All done."}, {"use": used}]
    desk = begin(turns(first, [{"ask": "cursor/question"}, {"ask": "_of/another"}, {"cost": 0.25}, {"say": "Again."}]))
    prompt = "-- It begins like an option.\n" + "A line of the long story.\n" * 8000 + "Its last word is MARK-END."
    ended = desk.launch(prompt).end()
    assert (ended.ending, ended.code) == (Ending.CLEAN, 0)
    assert ended.replies == "I look around.\nAll done."
    tools = [sign.tool for sign in ended.signs if sign.tool is not None]
    assert [(tool.name, tool.over, tool.failed) for tool in tools] == [
        ("shell", False, False),
        ("shell" if tools[1].name else "", True, False),
        ("edit", False, False),
        ("", True, False),
    ]
    assert tools[0].text == "pwd; echo in $PWD"
    assert tools[1].text == f"{desk.clone}\nin {desk.clone}\n".strip()
    assert [sign.edited for sign in ended.signs if sign.edited] == ["x.txt"]
    assert [sign.unknown for sign in ended.signs if sign.unknown] == ["of_tomorrow"]
    figures = [sign.usage for sign in ended.signs if sign.usage is not None]
    assert figures[-1] == Usage(counted=Counted.LAUNCH, input=1000, cached=600, output=100, cost=0.5)
    assert figures[0].cost == 0.5
    assert ["permitted", "o-allow_once"] in notes(tmp_path), "what is allowed for good outlives the run"

    again = desk.launch("The second prompt.", ended.session).end()
    assert (again.ending, again.session, again.replies) == (Ending.CLEAN, ended.session, "Again.")
    assert [sign.usage.cost for sign in again.signs if sign.usage is not None] == [0.25, 0.25]
    told = conversation(tmp_path, ended.session)
    assert [turn["prompt"] for turn in told] == [prompt, "The second prompt."]
    assert told[1]["said"] == "{}error -32601Again."
    assert told[0]["pid"] != told[1]["pid"]


def test_an_interrupt_cancels_the_turn_and_the_conversation_goes_on(begin, tmp_path) -> None:
    long = "touch started; sleep 300"
    desk = begin(turns([{"say": "This takes long."}, {"run": long}], [{"wait": "waits"}], [{"say": "Here."}]))
    launch = desk.launch("MARK-ONE")
    launch.wait_for((desk.clone / "started").exists, "the tool's start")
    launch.interrupt()
    assert launch.leaves_nothing()
    ended = launch.end()
    assert (ended.ending, ended.code) == (Ending.INTERRUPTED, 0)
    assert ended.heard
    launch = desk.launch("MARK-TWO", ended.session)
    launch.wait_for((tmp_path / "kept" / "waits").exists, "the prompt")
    launch.interrupt()
    silent = launch.end()
    # Nothing came of that prompt: it may not be kept, and is owed still.
    assert (silent.ending, silent.heard) == (Ending.INTERRUPTED, False)
    again = desk.launch("MARK-THREE", ended.session).end()
    assert (again.ending, again.replies) == (Ending.CLEAN, "Here.")
    told = conversation(tmp_path, ended.session)
    assert [(turn["prompt"], turn["ended"]) for turn in told] == [
        ("MARK-ONE", "cancelled"),
        ("MARK-TWO", "cancelled"),
        ("MARK-THREE", "end_turn"),
    ]


def talk(
    tmp_path: Path, script: Mapping[str, Any], *words: str, into: int = subprocess.PIPE
) -> subprocess.Popen[bytes]:
    """Our client alone, with little patience."""
    tmp_path.joinpath("state").mkdir(exist_ok=True)
    argv = [sys.executable, "-P", "-m", "coral.runtimes.acp.program", f"--state={tmp_path / 'state'}"]
    argv += ["--patience=0.5", *words, "--", *command(tmp_path / "kept", script)]
    return subprocess.Popen(argv, cwd=tmp_path, stdin=subprocess.PIPE, stdout=into, stderr=subprocess.PIPE)


def last(said: bytes) -> OutputEvent:
    return registry.find("acp", {}).read(said.splitlines()[-1])[-1]


def test_an_agent_that_does_not_answer_is_not_waited_for(tmp_path) -> None:
    said, _ = talk(tmp_path, {"mute": True, "turns": []}).communicate(b"go", LONG)
    sign = last(said)
    assert sign.error == "initialize: it does not answer initialize within 0.5 seconds"
    assert sign.ending is Ending.CRASHED


def test_an_agent_that_ignores_an_interrupt_is_left_to_the_supervisor(tmp_path) -> None:
    out = tmp_path / "said"
    with out.open("wb") as file:
        client = talk(tmp_path, {"deaf": True, **turns([{"wait": "waits"}])}, "--patience=60", into=file.fileno())
    client.stdin.write(b"go")
    client.stdin.close()
    client.stdin = None
    wait_until((tmp_path / "kept" / "waits").exists, LONG, "the prompt")
    client.send_signal(signal.SIGINT)
    # What it says once it was asked to end its turn is heard: the client is there, and waits.
    wait_until(lambda: b"Not yet." in out.read_bytes(), LONG, "a word after the cancelling")
    assert notes(tmp_path)[-1][0] == "cancel"
    client.send_signal(signal.SIGTERM)
    client.communicate(timeout=LONG)
    assert client.returncode == -signal.SIGTERM
    assert registry.find("acp", {}).judge(client.returncode, LaunchSummary()) is Ending.INTERRUPTED
    assert b"Not yet." in out.read_bytes().splitlines()[-1]


def test_an_agent_that_reads_no_more_and_dies_is_not_waited_for(begin, tmp_path) -> None:
    launch = begin("stalls").launch(LARGE)
    launch.wait_for((tmp_path / "kept" / "stalled").exists, "the prompt's beginning")
    launch.interrupt()
    (tmp_path / "kept" / "die").touch()
    ended = launch.end()
    assert (ended.ending, ended.heard) == (Ending.INTERRUPTED, False)
    assert '"interrupted"' in launch.output, "it ended by itself"


def test_a_permission_asked_for_after_an_interrupt_is_not_granted(begin, tmp_path) -> None:
    launch = begin("asks").launch("go")
    launch.wait_for((tmp_path / "kept" / "waits").exists, "the prompt")
    launch.interrupt()
    assert launch.end().ending is Ending.INTERRUPTED
    assert json.loads((tmp_path / "kept" / "answer").read_text()) == {"outcome": {"outcome": "cancelled"}}


def test_lines_that_are_no_messages_are_skipped(begin, tmp_path) -> None:
    ended = begin("prints").launch("go").end()
    assert (ended.ending, ended.replies) == (Ending.CLEAN, "New.")


def test_an_error_of_the_wrong_type_is_an_error(begin) -> None:
    ended = begin("refuses").launch("go").end()
    assert (ended.ending, ended.signs[-1].error) == (Ending.CRASHED, "boom")


def test_a_replay_of_the_conversation_is_no_part_of_the_turn(begin) -> None:
    ended = begin("replays").launch("go", "s-1").end()
    assert (ended.ending, ended.replies) == (Ending.CLEAN, "New.")


def test_the_crash_of_an_agent_is_reported_with_its_stderr(begin) -> None:
    desk = begin({"noise": ["not JSON", "Starting ..."], **turns([{"say": "Wait."}, {"exit": 7}])})
    ended = desk.launch("go").end()
    assert (ended.ending, ended.code) == (Ending.CRASHED, 1)
    assert ended.signs[-1].error == "the agent ended with exit code 7"
    assert "it went wrong here" in desk.layout.errors("agent-1", 1).read_text()
    assert "Traceback" not in desk.layout.errors("agent-1", 1).read_text()


def test_an_agent_that_dies_while_it_is_written_to_is_a_crash(begin) -> None:
    desk = begin("dies")
    launch = desk.launch(LARGE)
    ended = launch.end()
    assert (ended.ending, ended.code, ended.heard) == (Ending.CRASHED, 1, False), launch.words
    assert ended.signs[-1].error == "the agent ended with exit code 7"
    assert desk.layout.errors("agent-1", 1).read_text() == ""


@pytest.mark.parametrize("how", [{}, {"leaves_at_load": True}])
def test_an_unknown_conversation_is_told_from_a_crash(begin, how: Mapping[str, Any]) -> None:
    ended = begin({**how, **turns([{"say": "No."}])}).launch("go", "s-unknown").end()
    assert (ended.ending, ended.heard) == (Ending.UNKNOWN_SESSION, False)


def test_the_choices_of_the_task_are_set_if_the_agent_offers_them(begin, tmp_path) -> None:
    offers = {
        "modes": ["ask", "bypassPermissions", "plan"],
        "choices": {"model": ["m-1", "m-2"], "thought_level": ["low", "high"]},
    }
    script = {**offers, **turns([{"say": "Yes."}])}
    desk = begin(script, model="m-2", effort="high", auth="a-login")
    assert desk.launch("go").end().ending is Ending.CLEAN
    assert [note for note in notes(tmp_path) if note[0] != "new"] == [
        ["authenticated", "a-login"],
        ["c-model", "m-2"],
        ["c-thought_level", "high"],
        ["mode", "bypassPermissions"],
    ]
    ended = begin(script, mode="of-mine").launch("go").end()
    assert ended.ending is Ending.TERMINAL
    assert ended.signs[-1].error == "choice: it offers no mode 'of-mine'; there is ask, bypassPermissions, plan"


# --- a whole run --------------------------------------------------------------------------------------------------


def test_every_heartbeat_of_a_run_arrives_in_the_one_conversation(tmp_path) -> None:
    attempt = "echo {n} > x.txt && coral eval -m 'try {n}'"
    folder, options = tmp_path / "task", {"command": command(tmp_path / "kept", turns([{"run": attempt}]))}
    whole_runs.write_task(folder, {"runtime": "acp", "options": options}, {"attempts": 3})
    (tmp_path / "kept").mkdir()
    kept = f"workspace.writable=[{tmp_path / 'kept'}]"
    layout = whole_runs.start(folder, tmp_path, "run.interrupt_grace=60", kept)
    fleet = fold(layout.journal).fleet
    assert fleet.run.finished == RunEnd(RunEndKind.BUDGET, budget=Budget(BudgetKey.ATTEMPTS, 3))
    agent = fleet.agents["agent-1"]
    told = conversation(tmp_path, agent.session or "")
    assert [note[0] for note in notes(tmp_path)].count("new") == 1
    prompts = [turn["prompt"] for turn in told]
    heads = [
        line for prompt in prompts for line in prompt.splitlines() if line.startswith("## Heartbeat: reflect (id ")
    ]
    assert len(heads) == len(set(heads)) == 2
    assert [turn["ended"] for turn in told[:2]] == ["cancelled"] * 2, (
        "each was interrupted while it waited in coral eval"
    )
    assert [(layout.logs("agent-1") / f"{number:04}.prompt.md").read_text() for number in range(1, 4)] == prompts
