"""What curves and family trees are made of: every record of the present epoch, and who built on whom."""

from contextlib import closing
from itertools import pairwise

from sample import attempt

from attempts.index import file, history, query
from attempts.index.file import NO_FILE, row_of
from attempts.record import Attempt, Direction, Kind, Verdict


def rows_of(*records: Attempt):
    return closing(file.create_in_memory((record.number, row_of(record, NO_FILE)) for record in records))


def test_records_come_in_the_order_of_publication() -> None:
    records = (
        attempt(0, 1.0),
        attempt(1, 2.0, order=2),
        attempt(2, None, order=1),
        attempt(3, 2.5, kind=Kind.CONFIRM, of=1, order=3),
    )
    with rows_of(*records) as rows:
        found = history.graded(rows)
        assert [(one.number, one.score, one.of) for one in found] == [
            (0, 1.0, None), (2, None, None), (1, 2.0, None), (3, 2.5, 1)
        ]  # fmt: skip
        assert found[1].verdict is Verdict.FAILED
        assert [one.number for one in history.graded(rows, most=2)] == [1, 3]
        assert [one.number for one in history.graded(rows, "agent-1")] == [0, 2]


def test_only_the_present_epoch_counts() -> None:
    seed = attempt(2, 5.0, kind=Kind.BASELINE, agent="", epoch=2)
    with rows_of(attempt(0, 1.0), attempt(1, 2.0), seed, attempt(3, 6.0, epoch=2)) as rows:
        assert [one.number for one in history.graded(rows)] == [2, 3]
        assert [(child.number, child.parent) for child in history.family(rows)] == [(2, None), (3, 2)]


def test_a_sample_has_each_new_best_and_an_even_choice_of_the_others() -> None:
    many = [attempt(number, 1.0, verdict=Verdict.WORSE) for number in range(4, 1004)]
    few = (
        attempt(0, 1.0),
        attempt(1, 2.0, verdict=Verdict.NEW_BEST),
        attempt(2, None, verdict=Verdict.VOID),
        attempt(3, 2.0, kind=Kind.CONFIRM, of=1),
    )
    with rows_of(*few, *many) as rows:
        found = history.sampled(rows, 100)
        numbers = [one.number for one in found.records]
        assert found.total == 1001
        assert numbers[0] == 1
        assert 80 <= len(numbers) <= 120
        assert max(after - before for before, after in pairwise(numbers)) < 40
        assert len(history.sampled(rows, 5000).records) == 1001
        own = history.sampled(rows, 5000, agent="agent-1")
        assert own.total == len(own.records) == 500
        assert history.sampled(rows, 5000, agent="agent-1", only_agent="agent-2").total == 0
        assert [one.number for one in history.new_bests(rows)] == [0, 1]


def test_a_child_was_built_on_the_first_attempt_with_that_commit() -> None:
    records = (
        attempt(0, 1.0),
        attempt(1, 2.0, commit="a" * 40, parent=f"{0:040x}"),
        attempt(2, 2.0, commit="a" * 40, parent=f"{0:040x}"),
        attempt(3, 3.0, parent="a" * 40),
        attempt(4, 3.0, parent="b" * 40),  # a commit that nobody had graded
        attempt(5, 3.0, kind=Kind.CONFIRM, of=3),
        attempt(6, 3.0, commit="c" * 40, parent="c" * 40),
    )
    with rows_of(*records) as rows:
        parents = {child.number: child.parent for child in history.family(rows)}
        assert parents == {0: None, 1: 0, 2: 0, 3: 1, 4: None, 6: None}
        assert query.lineage(rows, 3, 9) == [0, 1, 3], "one definition"


def test_the_own_bests_of_all_agents_are_those_with_the_best_medians() -> None:
    records = (
        attempt(0, 9.0),
        attempt(1, 2.0),
        attempt(3, 1.5),
        attempt(2, 1.0),
        attempt(4, 1.0),
        attempt(5, 0.0, kind=Kind.CONFIRM, of=1),
        attempt(6, 8.0, kind=Kind.TUNE),
        attempt(8, None),
        attempt(10, 9.5, of=3),
    )
    with rows_of(*records) as rows:
        assert history.own_bests(rows, Direction.MAXIMIZE) == [("agent-2", 3), ("agent-1", 2)]
        assert history.own_bests(rows, Direction.MINIMIZE) == [("agent-2", 1), ("agent-1", 2)]
        assert history.own_bests(rows, Direction.MAXIMIZE, "agent-1") == [("agent-1", 2)]
