"""A conversation that was compacted often, or is long, is not resumed: the next launch begins a new one."""

from dataclasses import replace

import pytest
from stage import REFLECTING, Stage, brief

from coral.fleet import events as on
from coral.fleet.agent_state import Conversation, OutputCounts, Spent
from coral.fleet.events import Ending

RULES = replace(REFLECTING, fresh_compactions=2, fresh_tokens=1000)


def compacted(stage: Stage, count: int) -> on.OutputSeen:
    return stage.heard("ann", count=OutputCounts(compactions=count))


def used(stage: Stage, tokens: int) -> on.Used:
    return on.Used(agent="ann", launch=stage["ann"].launch, figure=Spent(input=tokens - 1, cached=9999, output=1))


def next_launch(stage: Stage, clock: float) -> str:
    """After an attempt, and the heartbeat that follows it."""
    stage.tried(clock, "ann", 1.0)
    said = stage.at(clock, stage.exited("ann", Ending.INTERRUPTED))[-1]
    stage.at(clock + 1, stage.heard("ann"))
    return said


def test_after_so_many_compactions_a_heartbeat_opens_a_fresh_session_that_carries_it() -> None:
    stage = Stage(rules=RULES)
    assert stage.at(2, compacted(stage, 1)) == []
    assert next_launch(stage, 3) == "spawn ann/2: heartbeat, session of ann, told 0, owed reflect:h1"
    # Nobody is interrupted for it: it waits for a launch that comes anyway.
    assert stage.at(5, compacted(stage, 1)) == []
    assert next_launch(stage, 6) == "spawn ann/3: session compacted (2), told 1, owed reflect:h2"
    assert stage["ann"].conversation == Conversation()
    assert next_launch(stage, 9) == "spawn ann/4: heartbeat, session of ann, told 2, owed reflect:h3"


@pytest.mark.parametrize(("most", "count"), [(1, 1), (2, 3)])
def test_compactions_of_one_launch_count_together(most: int, count: int) -> None:
    stage = Stage(rules=replace(RULES, fresh_compactions=most))
    stage.at(2, compacted(stage, count))
    stage.at(3, compacted(stage, count))  # told again
    assert stage["ann"].conversation.compactions == count
    assert f"session compacted ({count})," in next_launch(stage, 4)


def test_after_so_many_tokens_the_end_of_a_turn_opens_a_fresh_session() -> None:
    stage = Stage(rules=RULES)
    stage.at(2, used(stage, 999))
    assert "session of ann" in next_launch(stage, 3)
    stage.at(5, used(stage, 1))
    stage.at(70, stage.exited("ann", Ending.CLEAN))
    stage.at(70, stage.heard("ann"))
    assert brief(stage["ann"].reason) == "session long (1000)"
    assert stage["ann"].conversation == Conversation(tokens_before=1000)
    # What was used before is not held against it.
    stage.at(71, used(stage, 999))
    assert "session of ann" in next_launch(stage, 72)
    stage.at(74, used(stage, 2))
    assert "session long (1001)" in next_launch(stage, 75)
    stage = Stage(rules=replace(RULES, fresh_compactions=None, fresh_tokens=None))
    stage.at(2, compacted(stage, 99), used(stage, 10**9))
    assert "session of ann" in next_launch(stage, 3)


def test_the_counts_survive_a_supervisor_and_begin_anew_with_a_lost_session() -> None:
    stage = Stage(rules=RULES)
    stage.at(2, compacted(stage, 1), used(stage, 500))
    stage.at(3, stage.exited("ann", Ending.UNKNOWN_SESSION))
    stage.until(20)
    assert stage["ann"].conversation == Conversation(tokens_before=500)
    stage = Stage(rules=RULES)
    stage.at(2, compacted(stage, 1))
    stage.at(3, on.Resumed(), compacted(stage, 1))
    stage.at(4, compacted(stage, 2))
    stage.at(5, on.Resumed(), stage.exited("ann", Ending.LOST))
    assert brief(stage["ann"].reason) == "session compacted (2)"
