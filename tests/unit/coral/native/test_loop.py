"""The loop: chains, failures that are passed on, limits, and a memory that contradicts the run."""

from dataclasses import replace

from native_agent import LocalAgent
from sample import attempt

from attempts.record import Direction
from coral.native.loop import MAX_DEPTH, MAX_FAILURES, TurnEnd, act
from coral.native.memory import AgentMemory, KnownAttempts
from coral.native.situation import Call, CallDone, CallFailed, Event, Idle, Prompted, Remember, Say, Signal, Situation
from coral.native.snapshots import Snapshots


def test_a_call_that_requests_a_heartbeat_chains_and_one_that_does_not_yields(agent: LocalAgent):
    def once(situation: Situation, event: Event) -> tuple[Call, ...]:
        return (Remember(block="plan", text="x", request_heartbeat=isinstance(event, Idle)),)

    end, events = agent.run(once, steps=6)
    assert end is TurnEnd.STEPS
    assert [type(event) for event in events] == [Idle, CallDone] * 3


def test_a_chain_beyond_the_greatest_depth_is_dropped(agent: LocalAgent):
    _, events = agent.run(lambda *_: (Remember(block="plan", text="x", request_heartbeat=True),), steps=MAX_DEPTH + 4)
    assert [type(event) for event in events[: MAX_DEPTH + 1]] == [Idle] + [CallDone] * MAX_DEPTH
    assert isinstance(events[MAX_DEPTH + 1], Idle)
    assert "was dropped" in str(agent.printed("error"))


def test_the_brain_is_told_of_every_call_that_fails(agent: LocalAgent):
    def wrong_once(situation: Situation, event: Event) -> tuple[Call, ...]:
        if isinstance(event, CallFailed):
            return (Remember(block="learned", text=event.message),)
        return (Remember(block="diary", text="x"),)

    _, events = agent.run(wrong_once, steps=2)
    assert [type(event) for event in events] == [Idle, CallFailed]
    assert "there is no block 'diary'" in agent.snapshots.memory.blocks["learned"]
    assert len(agent.printed("error")) == 1


def test_what_follows_from_a_call_stands_one_deeper():
    signal = Signal(Idle(), 3)
    call = Say(text="x")
    failed = CallFailed(call, "busy", transient=True)
    assert act(signal, call, failed) == [Signal(failed, 4)]
    assert act(signal, call, CallDone()) == []


def test_failures_in_a_row_end_the_turn(agent: LocalAgent):
    end, events = agent.run(lambda *_: (Remember(block="diary", text="x"),))
    assert end is TurnEnd.FAILURES
    assert len(events) == MAX_FAILURES


def test_each_section_is_answered_in_order_and_the_answer_is_saved(agent: LocalAgent):
    prompt = "## Heartbeat: b (id h2)\n\nx\n\n## Heartbeat: a (id h1)\n\ny\n"
    _, events = agent.run(lambda *_: (), prompt=prompt, steps=3)
    assert [event.sections[0].name for event in events if isinstance(event, Prompted)] == ["b", "a"]
    saved = Snapshots.resume(agent.state, "s-1", AgentMemory)
    assert saved is not None
    assert saved.memory.answered == ("h2", "h1")


def test_a_memory_that_contradicts_the_records_is_rolled_back(agent: LocalAgent):
    """The run was restored from an older copy: the snapshot that agrees with the records is taken."""
    snapshots = agent.snapshots
    known = KnownAttempts().add([attempt(0, 1.0)], Direction.MAXIMIZE)
    snapshots.memory = replace(snapshots.memory, episodes=3, known=known)
    snapshots.save()
    later = snapshots.memory.known.add([attempt(1, 5.0)], Direction.MAXIMIZE)
    snapshots.memory = replace(snapshots.memory, episodes=9, known=later)
    snapshots.save()
    agent.run(lambda *_: (), steps=1)
    assert snapshots.memory.episodes == 3
    assert "#1, which I remember, is not there" in str(agent.printed("error"))


def test_all_records_are_read_again_where_no_snapshot_agrees_with_them(agent: LocalAgent):
    snapshots = agent.snapshots
    for old in list(snapshots.folder.iterdir()):
        old.unlink()
    wrong = replace(attempt(0, 7.0), commit="f" * 40)
    known = KnownAttempts().add([wrong], Direction.MAXIMIZE)
    snapshots.memory = replace(snapshots.memory, episodes=9, known=known)
    snapshots.save()
    agent.run(lambda *_: (), steps=1)
    assert snapshots.memory.episodes == 9
    assert snapshots.memory.known.best[""].score == 1.0


def test_a_turn_ends_where_nothing_can_be_varied(agent: LocalAgent):
    (agent.clone / "p.json").write_text('"no number"')
    end, events = agent.run(lambda *_: ())
    assert (end, events) == (TurnEnd.NOTHING_TO_VARY, [])
