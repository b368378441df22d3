"""Memory as a value: blocks that are edited, trials that are marked, and the attempts of the fleet, in any order."""

from dataclasses import replace

from hypothesis import given, strategies as st
from sample import attempt

from attempts.record import Direction, Kind, Verdict
from coral.native.memory import LONGEST_BLOCK, RECENT, AgentMemory, KnownAttempts, Redirection, Trial

TRIAL = Trial(title="rows from #8: ...", family="rows", number=9, score=1.3)


def test_blocks_are_edited_and_bounded():
    memory = AgentMemory(session="s").edit("plan", "one").edit("plan", "two", add=True)
    assert memory.blocks["plan"] == "one\ntwo"
    assert memory.edit("plan", "three").blocks["plan"] == "three"
    assert len(memory.edit("learned", "x" * 99_999).blocks["learned"]) == LONGEST_BLOCK


def test_a_redirection_to_a_family_that_finds_nothing_ends():
    redirection = Redirection(start=3, family=TRIAL.family, until=3)
    memory = AgentMemory(session="s", pending=TRIAL, redirection=redirection)
    assert memory.discard(TRIAL) == replace(
        memory, pending=None, trials=(TRIAL,), redirection=replace(redirection, family="")
    )
    other = replace(redirection, family="cross")
    assert replace(memory, redirection=other).discard(TRIAL).redirection == other


def test_a_result_ends_the_wait_for_it():
    memory = AgentMemory(session="s", pending=TRIAL).add_result(TRIAL)
    assert (memory.pending, memory.trials, memory.graded) == (None, (TRIAL,), {9: TRIAL})
    assert memory.add_result(replace(TRIAL, number=None)).graded == {9: TRIAL}


@given(st.permutations(list(range(8))), st.lists(st.integers(1, 3)))
def test_the_order_of_the_records_makes_no_difference(order, sizes):
    records = [attempt(number, float(number * 7 % 5)) for number in range(8)]
    whole = KnownAttempts().add(records, Direction.MAXIMIZE)
    known, rest = KnownAttempts(), list(order)
    for size in [*sizes, 8]:
        part, rest = rest[:size], rest[size:]
        published = [number for number in order if number not in rest]
        known = known.add([records[number] for number in known.unread(published)], Direction.MAXIMIZE)
        assert set(part) <= set(published)
    assert known == whole
    assert known.awaited == ()


def test_of_equals_the_earliest_is_the_best_of_the_fleet():
    records = [attempt(0, 1.0), attempt(1, 3.0), attempt(2, 2.0), attempt(4, 3.0)]
    records.append(attempt(3, None, verdict=Verdict.FAILED))
    known = KnownAttempts().add(records, Direction.MAXIMIZE)
    best = known.leader(Direction.MAXIMIZE)
    assert best is not None
    assert best.number == 1
    assert [other.number for other in known.best_of_others("agent-1", Direction.MAXIMIZE)] == [1]
    lowest = known.leader(Direction.MINIMIZE)
    assert lowest is not None
    assert lowest.number == 0
    rounded = known.add([attempt(5, 3.0 - 1e-13), attempt(6, 3.0 + 1e-13)], Direction.MAXIMIZE)
    assert rounded.leader(Direction.MAXIMIZE) == best


def test_attempts_are_found_while_they_are_recent_or_the_best_of_their_agent():
    known = KnownAttempts().add([attempt(0, 1.0), attempt(1, 9.0)], Direction.MAXIMIZE)
    known = known.add([attempt(number, 2.0) for number in range(2, RECENT + 4)], Direction.MAXIMIZE)
    assert [found.number for number in (0, 1, RECENT) if (found := known.find(number))] == [0, 1, RECENT]
    assert (known.find(3), known.find(None), known.find(999)) == (None, None, None)


def test_an_attempt_that_was_measured_again_stands_at_its_median():
    records = [attempt(1, 2.6, agent="agent-1"), attempt(2, 2.9, agent="agent-1")]
    again = [attempt(number, 2.4, kind=Kind.CONFIRM, of=2, agent="agent-1") for number in (3, 4)]
    known = KnownAttempts().add([*records, *again], Direction.MAXIMIZE)
    assert [(held.number, held.score) for held in known.recent] == [(1, 2.6), (2, 2.4)]
    assert known.best["agent-1"].number == 1


def test_a_confirming_measurement_is_no_best():
    known = KnownAttempts().add([attempt(1, 9.0, kind=Kind.CONFIRM, of=0)], Direction.MAXIMIZE)
    assert (dict(known.best), known.recent) == ({}, ())


def test_another_epoch_forgets_the_scores_of_the_one_before():
    old = [attempt(0, 5.0), attempt(1, 9.0)]
    new = [attempt(2, 1.0, kind=Kind.BASELINE, agent=""), attempt(3, 2.0)]
    new = [replace(record, epoch=2) for record in new]
    known = KnownAttempts().add(old, Direction.MAXIMIZE).add(new, Direction.MAXIMIZE)
    assert (known.epoch, known.leader(Direction.MAXIMIZE).number, known.best[""].number) == (2, 3, 2)
    assert [held.number for held in known.recent] == [3]
    late = known.add([attempt(4, 99.0)], Direction.MAXIMIZE)
    assert late.leader(Direction.MAXIMIZE).number == 3
    assert late.unread([3, 4]) == []


def test_without_attempts_there_is_only_text():
    memory = AgentMemory(session="s", blocks={"plan": "rows"}, trials=(TRIAL,), pending=TRIAL, reflected=9, episodes=4)
    memory = replace(memory, answered=("h1",), known=KnownAttempts().add([attempt(0, 5.0)], Direction.MAXIMIZE))
    kept = AgentMemory(session="s", blocks={"plan": "rows"}, episodes=4, answered=("h1",))
    assert memory.without_attempts() == kept
