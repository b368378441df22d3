"""Real runs of agents that come to nothing: each step is taken, written down, and shown by `coral status`."""

import json
from typing import Any

from files import write_files
from real_runs import READ_NUMBER, TRY, Run, coral_process, wait_until

from coral.cli import main
from coral.fleet import actions as do
from coral.fleet import events as on
from coral.fleet.actions import Interrupt, LogEvent, ScanEdits, Spawn
from coral.fleet.agent_state import Phase
from coral.fleet.events import EditsScanned
from coral.fleet.reasons import Finding, Reason, ReasonKind
from coral.journal import Decision
from coral.journal.replay import replay
from coral.views.reasons import reason_data


def reasons_of(run: Run) -> list[dict[str, Any]]:
    return [event["reason"] for event in run.events("stalled")]


def status_of(run: Run) -> str:
    return coral_process("status", "--run", str(run.layout.root), COLUMNS="200").stdout


def spawned(run: Run) -> list[Spawn]:
    return [action for decision in run.decisions() for action in decision.actions if isinstance(action, Spawn)]


def test_a_silent_agent_goes_up_the_ladder_and_status_says_where_it_stands(start):
    run = start(["hang"] * 9, overrides=("agents.stall=2",))
    wait_until(lambda: len(reasons_of(run)) == 4, what="the last step")
    assert [(reason["count"], reason["finding"]) for reason in reasons_of(run)] == [
        (step, Finding.SILENT) for step in (1, 2, 3, 4)
    ]
    steps = ["nudged", "interrupted", "fresh session", "parked"]
    assert [reason["text"].split(": silent for ")[0] for reason in reasons_of(run)] == steps
    wait_until(lambda: run.fleet().agents["agent-1"].phase is Phase.PARKED, what="its rest")
    wait_until(lambda: "parked: silent for" in status_of(run), what="its place in the status")
    assert [event["reason"]["count"] for event in run.events("alert")] == [4]
    # The last conversation is given up, too: the next launch is handed the story so far.
    assert run.fleet().agents["agent-1"].session is None
    run.stop()
    # A stop takes it back, and what was found is handed on.
    run.supervise()
    wait_until(lambda: len(spawned(run)) >= 5, what="its return")
    last = spawned(run)[4]
    assert last.session is None
    assert "stalled" in [message.name for message in last.messages]
    prompt = run.layout.prompt("agent-1", 5)
    wait_until(prompt.exists, what="its prompt")
    assert "this is a new session" in prompt.read_text()
    run.stop()
    assert run.left() == []
    assert replay(run.layout.journal).agrees


def test_work_that_edits_nothing_is_nudged_in_its_own_conversation(start):
    script = [{"repeat": {"steps": [{"say": "let me think"}, {"sleep": 0.3}]}}]
    run = start(script, overrides=("agents.no_progress=3", "run.max_defer=0"))
    (id, *_) = wait_until(lambda: run.received("agent-1", "stalled"), what="the nudge")
    (first, *_) = reasons_of(run)
    assert (first["count"], first["finding"]) == (1, Finding.NO_PROGRESS)
    assert first["text"].startswith("nudged: no progress for")
    assert id in [message.id for spawn in spawned(run) for message in spawn.messages]
    sessions = {prompt["session"] for prompt in run.prompts("agent-1")[:2]}
    assert len(sessions) == 1


def test_a_file_that_is_edited_without_a_word_is_progress(start):
    script = "while :; do date +%N > notes.txt; echo at work; sleep 0.2; done\n"
    run = start(script, overrides=("agents.no_progress=4",))

    def answered() -> list[Decision]:
        return [
            decision
            for decision in run.decisions()
            if any(isinstance(event, EditsScanned) for event in decision.events)
        ]

    first, *_ = wait_until(answered, what="the answer to a look")
    assert any(isinstance(action, ScanEdits) for decision in run.decisions() for action in decision.actions)
    # It has waited for that answer, and then done nothing.
    assert [action for action in first.actions if isinstance(action, LogEvent) and action.type == "stalled"] == []
    assert [action for action in first.actions if isinstance(action, Interrupt)] == []


def test_a_program_that_only_retries_is_ended_and_waits(start):
    run = start([{"retry": 0.1}] * 9, overrides=("agents.retries=5", "run.backoff=60"))
    (outage,) = wait_until(lambda: run.events("outage"), what="the outage")
    assert outage["text"].startswith("launch 1: outage: ")
    assert outage["text"].endswith(" retries in a row")
    wait_until(lambda: run.fleet().agents["agent-1"].phase is Phase.WAITING, what="its end")
    agent = run.fleet().agents["agent-1"]
    assert (agent.crashes, reason_data(agent.reason)) == (1, outage["reason"])
    wait_until(lambda: "outage: " in status_of(run), what="its place in the status")


def test_a_conversation_that_was_compacted_is_followed_by_a_fresh_one_that_is_owed_the_same(start):
    script = [{"print": '{"compacted": true}'}, *TRY, "hang"]
    run = start(script, overrides=("session.fresh_after.compactions=1",))
    prompts = wait_until(lambda: len(found := run.prompts("agent-1")) > 1 and found, what="its second prompt")
    assert spawned(run)[1].reason == Reason(ReasonKind.SESSION_COMPACTED, count=1)
    assert prompts[1]["session"] != prompts[0]["session"]
    assert not prompts[1]["resumed"]
    assert "this is a new session" in prompts[1]["text"]
    assert len(run.received("agent-1", "reflect")) >= 1


# --- programs of no use: one meets a limit and exits 0, one crashes, one has nothing to say --------------------------


LAUNCHES = 5
PROGRAMS = {
    "agent-1": "echo the limit is reached until 1000000000",
    "agent-2": "echo oh no; exit 3",
    "agent-3": "echo all is well",
}
TASK = f"""\
task: {{name: useless, description: Do nothing.}}
grader: {{entry: grade.py:grade}}
run: {{backoff: 0.2, backoff_max: 1.6, breaker_crashes: 1000}}
agents:
  assignments:
    - runtime: command
      account: one
      options: {{start: [/bin/sh, -c, {json.dumps(PROGRAMS["agent-1"])}], limit_pattern: 'until (?P<until>\\d+)'}}
    - {{runtime: command, account: two, options: {{start: [/bin/sh, -c, {json.dumps(PROGRAMS["agent-2"])}]}}}}
    - {{runtime: command, account: two, options: {{start: [/bin/sh, -c, {json.dumps(PROGRAMS["agent-3"])}]}}}}
"""


def test_each_is_started_again_after_a_pause_that_grows(start, tmp_path) -> None:
    run = start(write_files(tmp_path, {"seed/x.txt": "0", "grade.py": READ_NUMBER, "task.yaml": TASK}))
    again = [(agent, LAUNCHES) for agent in PROGRAMS]
    wait_until(lambda: all(run.layout.output(*each).exists() for each in again), what="launches of each")
    run.stop()
    pauses = pauses_of(run)
    for agent in PROGRAMS:
        assert len(pauses[agent]) >= LAUNCHES - 1
        for failures, pause in enumerate(pauses[agent]):
            assert pause > min(0.2 * 2**failures, 1.6) - 1e-6, f"{agent} after {failures + 1} launches for nothing"
    assert main(("replay", "--run", str(run.layout.root))) == 0


def pauses_of(run: Run) -> dict[str, list[float]]:
    """Between the ends of an agent's launches and its starts, on the run's clock."""
    ended, pauses = dict[str, float](), {agent: list[float]() for agent in PROGRAMS}
    for decision in run.decisions():
        for event in decision.events:
            if isinstance(event, on.Exited):
                ended[event.agent] = decision.now.run_time
        for action in decision.actions:
            if isinstance(action, do.Spawn) and action.agent in ended:
                pauses[action.agent].append(decision.now.run_time - ended[action.agent])
    return pauses
