"""Heartbeats of real runs: each arrives in its own agent's session, once, whatever happens at the same time."""

import pytest
from levels import params
from real_runs import TRY, Run, tries, wait_until

from coral.cli import main
from coral.fleet.actions import CheckOut
from coral.fleet.events import Graded
from coral.fleet.policy import MAX_CHAIN
from coral.fleet.reasons import ReasonKind
from coral.journal.replay import replay
from workspace.seal import Level

AT_ONCE = 8
# Holds every grade until as many of them run, so that they settle in the same instant.
BARRIER = f"""
import os, pathlib, time

def grade(workspace, attempt, kind, args):
    if kind != "baseline":
        here = pathlib.Path(args["barrier"])
        (here / str(attempt)).touch()
        deadline = time.monotonic() + 100
        while len(list(here.iterdir())) < {AT_ONCE} and time.monotonic() < deadline:
            time.sleep(0.002)
    return float((workspace / "x.txt").read_text())
"""


def most_grades_at_once(run: Run) -> int:
    """How many attempts were between the decision to grade them and the news of their grade, at most."""
    running: set[int] = set()
    most = 0
    for decision in run.decisions():
        running -= {event.number for event in decision.events if isinstance(event, Graded)}
        running |= {action.number for action in decision.actions if isinstance(action, CheckOut)}
        most = max(most, len(running))
    return most


@pytest.mark.parametrize("level", params(*Level))
def test_attempts_that_settle_in_the_same_instant_are_as_many_heartbeats(start, tmp_path, level):
    barrier = tmp_path / "barrier"
    barrier.mkdir()
    barrier.chmod(0o777)  # for graders that run as users of their own
    script = [{"edit": {"file": "x.txt", "content": "1"}}, {"submit": "try"}, "hang"]
    overrides = (
        f"agents.count={AT_ONCE}",
        f"grader.slots={AT_ONCE}",
        "grader.timeout=120",
        f"grader.args.barrier={barrier}",
        f"grader.writable=[{barrier}]",
        f"workspace.seal={level}",
    )
    run = start(script, grade=BARRIER, overrides=overrides)
    agents = [f"agent-{number}" for number in range(1, AT_ONCE + 1)]
    wait_until(lambda: all(len(run.prompts(agent)) == 2 for agent in agents), what="a resume of each")
    wait_until(lambda: not any(agent.pending_messages for agent in run.fleet().agents.values()), what="acknowledgement")
    # None of them gave up waiting for the others: all were held until the last one came.
    assert len(list(barrier.iterdir())) == AT_ONCE
    assert most_grades_at_once(run) == AT_ONCE
    fleet = run.fleet()
    assert [attempt.seal for attempt in run.attempts()] == [level] * AT_ONCE
    assert fleet.run.progress.evals == AT_ONCE
    for agent in agents:
        assert fleet.agents[agent].progress.evals == 1
        assert len(run.received(agent, "reflect")) == 1
        first, second = run.prompts(agent)
        assert first["session"] == second["session"]
    run.stop()
    assert replay(run.layout.journal).agrees


def test_prompts_that_cannot_be_rendered_arrive_as_they_are_written(start):
    prompts = ['answer with {"json": 1}', "say {{ nothing.like.that }}", "{% for a in b %}{% for c in d %}bomb"]
    bomb = "{{ 'x' * 10000000000 }} boom"
    entries = "".join(
        f"  - {{name: own-{place}, every: 1, prompt: {__import__('json').dumps(text)}}}\n"
        for place, text in enumerate([*prompts, bomb])
    )
    run = start([*TRY, "hang"], extra="heartbeats:\n" + entries)
    wait_until(lambda: len(run.prompts("agent-1")) == 2, what="the resume")
    text = run.prompts("agent-1")[1]["text"]
    for place, written in enumerate([*prompts, bomb]):
        assert f"## Heartbeat: own-{place} (id " in text
        assert written in text
    assert run.supervisor.poll() is None


def test_an_agent_changes_its_own_heartbeats_alone_and_hears_the_operator(start):
    run = start([*tries(1, 2), "hang"], overrides=("run.max_defer=0.1",))
    entry = {"name": "mine", "every": 1, "prompt": "look at {{ attempt.number }} again"}
    assert run.ask({"type": "set_heartbeat", "owner": "agent-1", "heartbeat": entry}, "agent-1")["ok"] is True
    wait_until(lambda: "mine" in (run.layout.heartbeats / "agent-1.yaml").read_text())
    wait_until(lambda: run.received("agent-1", "mine"), what="its own heartbeat")
    assert any("look at" in prompt["text"] and "again" in prompt["text"] for prompt in run.prompts("agent-1"))
    gone = {"type": "remove_heartbeat", "owner": "agent-1", "name": "mine"}
    assert run.ask(gone, "agent-1")["ok"] is True
    for refused in (
        {**gone, "name": "reflect"},
        {**gone, "owner": "fleet", "name": "consolidate"},
        {"type": "stop", "reason": "no"},
    ):
        assert run.ask(refused, "agent-1")["ok"] is False
    run.ask({"type": "tell", "to": "*", "text": "mind the border"})
    wait_until(lambda: "mind the border" in run.prompts("agent-1")[-1]["text"], what="the message")


def test_an_inline_heartbeat_is_printed_by_eval_and_not_repeated(start):
    extra = "heartbeats:\n  - {name: hint, every: 1, delivery: inline, prompt: 'think of the border'}\n"
    extra += "  - {name: reflect, every: 10}\n"
    run = start([*TRY, {"sleep": 3}, "hang"], extra=extra)
    output = run.layout.output("agent-1", 1)
    wait_until(lambda: output.exists() and "think of the border" in output.read_text(), what="the printed hint")
    wait_until(lambda: not run.fleet().agents["agent-1"].pending_messages, what="its acknowledgement")
    assert len(run.prompts("agent-1")) == 1


@pytest.mark.slow
def test_a_chain_of_heartbeats_ends_at_its_limit_with_one_alert_and_work_begins_anew(start):
    again, total = {"submit": {"message": "the same again", "again": True}}, MAX_CHAIN + 6
    run = start([*TRY, *[again] * (total - 2), *tries(7), "hang"])
    run.wait_for_attempts(total, 120)

    def received_and_skipped() -> tuple[int, list[str]]:
        skipped = [event for event in run.events("skipped") if event["text"].startswith("reflect")]
        return len(run.received("agent-1", "reflect")), [event["reason"]["kind"] for event in skipped]

    def answered() -> bool:
        received, skipped = received_and_skipped()
        return received + len(skipped) == total

    wait_until(answered, what="the heartbeat of new work")
    assert [alert["reason"]["kind"] for alert in run.events("alert")] == [ReasonKind.CHAIN]
    # Handed in before the interrupt for the one before came, it answers nothing, and is no link of the chain.
    received, skipped = received_and_skipped()
    assert set(skipped) == {ReasonKind.CHAIN}
    assert len(skipped) <= total - MAX_CHAIN - 1
    assert received == total - len(skipped)
    assert run.fleet().agents["agent-1"].progress.evals == total
    run.stop()
    assert replay(run.layout.journal).agrees


# --- agents that read first, until their heartbeat to begin ----------------------------------------------------------


READS = [*tries(5), {"crash": 0}, {"submit": "the same at last"}, *tries(6), "hang"]


def test_nothing_is_graded_until_the_agent_has_read(start, capsys) -> None:
    run = start(READS, overrides=("agents.research=600", "agents.count=1"))
    first, second = run.wait_for_attempts(2)
    # The one that was refused is no attempt; handed in again, unchanged, it is.
    assert [(note.number, note.title, note.score) for note in (first, second)] == [
        (1, "the same at last", 5.0),
        (2, "value 6", 6.0),
    ]
    prompts = run.prompts("agent-1")
    assert "**Research first.** For 10 h you read and think" in prompts[0]["text"]
    assert "You are at research: for " in prompts[0]["text"]
    assert run.received("agent-1", "begin") == ["h1"]
    begun = next(prompt["text"] for prompt in prompts if "## Heartbeat: begin" in prompt["text"])
    assert "Your research is over" in begun
    assert "You are at research" not in begun
    assert "You begin with research: for your first 10 h" in (run.layout.clone("agent-1") / "AGENTS.md").read_text()
    errors = run.layout.errors("agent-1", 1).read_text()
    assert "coral: cannot grade this submission: you read and think first" in errors
    run.stop()
    assert main(("replay", "--run", str(run.layout.root))) == 0


def test_the_status_says_who_reads_and_for_how_long(start, capsys) -> None:
    run = start(["hang"], overrides=("agents.research=30",))

    def research() -> object:
        shown = run.status() or {"agents": []}
        return next((agent["research"] for agent in shown["agents"]), None)

    seconds = wait_until(research, what="the research")
    assert 0 < seconds <= 1800
    assert main(("status", "--run", str(run.layout.root))) == 0
    assert "begin " in capsys.readouterr().out
