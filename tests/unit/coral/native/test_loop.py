"""The loop: chains, failures that are passed on, and limits."""

import pytest
from native_agent import LocalAgent
from sample import attempt

from coral.native.brain import SearchBrain
from coral.native.calls import Remember, Say, Search
from coral.native.loop import MAX_DEPTH, MAX_FAILURES, TurnEnd
from coral.native.memory import AgentMemory
from coral.native.prompt import heartbeat_sections
from coral.native.search.explore import Explorer
from coral.native.situation import Call, CallDone, CallFailed, Event, Idle, Prompted, Situation
from coral.native.snapshots import Snapshots
from coral.native.tool_error import ToolError


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


def test_a_search_that_fails_is_followed_by_one_of_another_family(agent: LocalAgent, monkeypatch: pytest.MonkeyPatch):
    searched: list[str] = []

    def fails(_: Explorer, call: Search) -> None:
        searched.append(call.family)
        raise ToolError(f"no {call.family} here")

    monkeypatch.setattr(Explorer, "search", fails)
    agent.run(SearchBrain().reason, steps=2)
    assert len(searched) == 2
    assert searched[0] != searched[1]
    assert f"That did not work: no {searched[0]} here" in str(agent.printed("text"))


def test_failures_in_a_row_end_the_turn(agent: LocalAgent):
    end, events = agent.run(lambda *_: (Remember(block="diary", text="x"),))
    assert end is TurnEnd.FAILURES
    assert len(events) == MAX_FAILURES


def test_each_section_is_answered_in_order_and_the_answer_is_saved(agent: LocalAgent):
    prompt = "## Heartbeat: b (id h2)\n\nx\n\n## Heartbeat: a (id h1)\n\ny\n"
    _, events = agent.run(lambda *_: (), prompt=prompt, steps=3)
    assert [event.section.name for event in events if isinstance(event, Prompted)] == ["b", "a"]
    saved = Snapshots.resume(agent.state, "s-1", AgentMemory)
    assert saved is not None
    assert saved.memory.answered == ("h2", "h1")
    assert Prompted not in {type(event) for event in agent.run(lambda *_: (), prompt=prompt, steps=3)[1]}


def test_a_heartbeat_waits_in_the_memory_until_it_is_answered(agent: LocalAgent):
    """Of an earlier launch, and one that `coral eval` printed, too; none is answered twice."""

    def sections(*ids: str) -> str:
        return "".join(f"## Heartbeat: reflect (id {one})\n\nThink.\n\n" for one in ids)

    def asked(events: list[Event]) -> list[str]:
        return [event.section.id for event in events if isinstance(event, Prompted)]

    _, events = agent.run(lambda *_: (Say(text="x"),), sections("h1", "h2", "h3"), steps=1)
    assert asked(events) == ["h1"]
    assert [section.id for section in agent.snapshots.memory.waiting] == ["h2", "h3"]
    agent.bench.take(attempt(1, 1.0), heartbeat_sections(sections("h4")))
    resumed = Snapshots.resume(agent.state, "s-1", AgentMemory)
    assert resumed is not None
    assert [section.id for section in resumed.memory.waiting] == ["h2", "h3", "h4"]
    _, events = agent.run(lambda *_: (Say(text="x"),), sections("h1", "h3", "h5"), steps=6)
    assert asked(events) == ["h2", "h3", "h4", "h5"]
    assert agent.snapshots.memory.waiting == ()


def test_a_heartbeat_at_which_a_brain_fails_is_not_met_again(agent: LocalAgent):
    def fails(situation: Situation, event: Event) -> tuple[Call, ...]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        agent.run(fails, "## Heartbeat: reflect (id h1)\n\nThink.\n")
    resumed = Snapshots.resume(agent.state, "s-1", AgentMemory)
    assert resumed is not None
    assert (resumed.memory.waiting, resumed.memory.answered) == ((), ("h1",))


def test_a_turn_ends_where_nothing_can_be_varied(agent: LocalAgent):
    (agent.clone / "p.json").write_text('"no number"')
    end, events = agent.run(lambda *_: ())
    assert (end, events) == (TurnEnd.NOTHING_TO_VARY, [])
