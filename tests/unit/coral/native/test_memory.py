"""Memory as a value: blocks that are edited, trials that are marked."""

from coral.native.memory import LONGEST_BLOCK, AgentMemory, Trial

TRIAL = Trial(title="rows from #8: ...", family="rows", number=9, score=1.3)


def test_blocks_are_edited_and_bounded():
    memory = AgentMemory(session="s").edit("plan", "one").edit("plan", "two", add=True)
    assert memory.blocks["plan"] == "one\ntwo"
    assert memory.edit("plan", "three").blocks["plan"] == "three"
    assert len(memory.edit("learned", "x" * 99_999).blocks["learned"]) == LONGEST_BLOCK


def test_an_attempt_with_a_note_is_marked():
    memory = AgentMemory(session="s", trials=(TRIAL,))
    assert memory.mark_noted((9,)).trials[0].noted
    assert not memory.mark_noted((8,)).trials[0].noted


def test_a_discarded_trial_is_a_failed_try_of_its_family():
    memory = AgentMemory(session="s", pending=TRIAL).discard(TRIAL)
    assert memory.pending is None
    assert (memory.stats["rows"].tries, memory.stats["rows"].wins) == (1.0, 0.0)


def test_a_result_ends_the_wait_for_it():
    memory = AgentMemory(session="s", pending=TRIAL).add_result(TRIAL)
    assert (memory.pending, memory.trials, memory.graded_numbers) == (None, (TRIAL,), {9})
