"""Real runs of agents that come to nothing: each step is taken, written down, and shown by `coral status`."""

import json
from typing import Any

import pytest
from real_runs import Run, coral_process, wait_until

from coral.fleet.actions import Interrupt, LogEvent, ScanEdits, Spawn
from coral.fleet.agent_state import Phase
from coral.fleet.events import EditsScanned
from coral.fleet.reasons import Finding
from coral.journal import Decision
from coral.journal.replay import replay
from coral.reading.beat_spans import Life
from coral.views.beats import WAITING
from heartbeats.archive import beats_in


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


# It says a word, computes in silence for longer than is allowed, and then stops as SIGSTOP, a hung tool or a closed
# pipe would have it.
COMPUTES = "echo at work; timeout 5 sh -c 'while :; do :; done'\n"


@pytest.mark.slow
@pytest.mark.parametrize("stops", ["kill -STOP $$", "sleep 600", "exec >&- 2>&-; sleep 600"])
def test_one_that_computes_in_silence_is_alive_and_one_that_stops_is_found_ended_and_resumed(start, stops):
    limits = ("agents.stall=2", "agents.no_progress=0", "run.interrupt_grace=1", "run.terminate_grace=1")
    run = start(f"{COMPUTES}{stops}\n", overrides=limits)
    (first, *_) = wait_until(lambda: reasons_of(run), what="the finding")
    assert (first["finding"], first["count"]) == (Finding.SILENT, 1)
    assert 5 + 1 < first["seconds"] < 5 + 2 + 15  # the allowed silence, a poll, and a busy machine
    wait_until(lambda: len(spawned(run)) == 2, what="its return")
    assert spawned(run)[1].launch == 2
    # Its silence, and that it was alive before, is what the archive tells.
    root = str(run.layout.root)
    wait_until(lambda: "launch 2  " in coral_process("replay", root, "--beats", "agent-1").stdout, what="its beats")
    lives = json.loads(coral_process("status", "--run", root, "--timeline", "--json").stdout)["agents"]["agent-1"]
    first_life = next(span for span in lives if span["life"] == Life.DEAD)
    assert first_life["start"] - lives[0]["start"] > 5
    assert "×" in coral_process("status", "--run", root, "--timeline", COLUMNS="120").stdout
    run.stop()
    assert run.left() == []
    assert replay(run.layout.journal).agrees


@pytest.mark.slow
def test_a_launch_that_never_says_a_word_is_found_by_the_ttl_of_its_start(start):
    run = start("exec sleep 600\n", overrides=("agents.ttl.starting=2", "run.interrupt_grace=1", "run.backoff=0.1"))
    (first, *_) = wait_until(lambda: reasons_of(run), what="the finding")
    assert (first["finding"], first["count"]) == (Finding.SILENT, 1)
    assert 2 <= first["seconds"] < 2 + 15
    wait_until(lambda: len(spawned(run)) == 2, what="its return")
    (beat, *_) = beats_in(run.layout.beats("agent-1"))
    assert (beat.phase, beat.ttl) == ("starting", 2)
    run.stop()
    assert run.left() == []


# Half of the silence that is allowed is over several times before the grade is there, and nobody suspects anything.
SLOW_GRADE = """
import time

def grade(workspace, attempt, kind, args):
    time.sleep(0 if kind == "baseline" else 8)
    return 1.0
"""


@pytest.mark.slow
def test_who_waits_for_a_slow_and_silent_grade_is_alive_and_is_found_when_it_hangs_afterwards(start):
    script = "echo at work; echo 5 > x.txt; coral eval -m try >/dev/null; exec sleep 600\n"
    limits = ("agents.stall=3", "agents.no_progress=0", "run.interrupt_grace=1", "grader.timeout=300")
    run = start(script, grade=SLOW_GRADE, extra="heartbeats:\n  - {name: reflect, every: 10}\n", overrides=limits)
    silences: set[float] = set()

    def is_published() -> bool:
        status = json.loads(run.layout.status.read_text()) if run.layout.status.exists() else {}
        if status and status["grading"]["running"]:
            silences.add(status["agents"][0]["beat"]["silent"])
        return bool(run.attempts())

    wait_until(is_published, what="the grade")
    assert silences == {0.0}
    (first, *_) = wait_until(lambda: reasons_of(run), what="the finding")
    assert first["finding"] == Finding.SILENT
    _, published, *_ = run.events("published")  # the first is of the seed
    (stalled, *_) = run.events("stalled")
    assert 2 < stalled["clock"] - published["clock"] < 3 + 10  # its `coral eval` would have waited for minutes
    beats = [beat for beat in beats_in(run.layout.beats("agent-1")) if beat.launch == 1]
    assert WAITING in [beat.phase for beat in beats]
    run.stop()
