"""What the index knows of metrics is what the records say, however they come and go."""

from contextlib import closing
from dataclasses import replace

import pytest
from sample import attempt

from attempts.index import file, metrics
from attempts.index.file import NO_FILE, content, row_in, row_of
from attempts.index.index import Index
from attempts.index.listing import ListOrder, Sought, page
from attempts.index.metrics import MetricRange
from attempts.index.query import Wanted
from attempts.record import Attempt, Kind
from attempts.store import Store


def rows_of(*records: Attempt):
    return closing(file.create_in_memory((record.number, row_of(record, NO_FILE)) for record in records))


def test_a_row_is_what_its_record_says_and_goes_with_it() -> None:
    record = attempt(1, 1.0, metrics={"b": 2, "a": 0.1, "flag": True, "text": "3", "none": None, "huge": 2**62})
    with rows_of(record) as rows:
        assert row_in(rows, 1) == row_of(record, NO_FILE)
        assert row_of(record, NO_FILE)[-2] == (("a", 0.1), ("b", 2.0), ("huge", float(2**62)))
        file.put(rows, [(1, row_of(attempt(1, 1.0, metrics={"c": 1}), NO_FILE))])
        assert metrics.names(rows, 9) == ["c"]
        file.drop(rows, [1])
        assert metrics.names(rows, 9) == []


def test_another_value_of_a_metric_is_another_content() -> None:
    record = attempt(1, 1.0, metrics={"a": 1})
    other = replace(record, metrics={"a": 2})
    assert content(row_of(record, (1, 2, 3))) != content(row_of(other, (1, 2, 3)))
    assert content(row_of(record, (1, 2, 3))) == content(row_of(record, NO_FILE))


def test_of_very_many_metrics_the_first_are_kept() -> None:
    record = attempt(1, 1.0, metrics={f"m{number:03}": number for number in range(300)})
    with rows_of(record) as rows:
        assert metrics.names(rows, 999) == [f"m{number:03}" for number in range(100)]
        assert metrics.names(rows, 2) == ["m000", "m001"]


def test_an_agent_that_works_alone_sees_its_own_metrics() -> None:
    with rows_of(attempt(0, 1.0, metrics={"seed": 1}), attempt(1, 1.0, metrics={"b": 1}), attempt(2, 1.0)) as rows:
        assert metrics.names(rows, 9, "agent-1") == ["seed"]
        assert metrics.names(rows, 9, "agent-2") == ["b", "seed"]
        assert metrics.pairs(rows, "b", "", 9, "agent-1") == ([], 0)


def test_a_metric_that_somebody_altered_in_the_index_is_found(tmp_path) -> None:
    store = Store(tmp_path)
    store.publish(attempt(1, 1.0, metrics={"a": 1}))
    with closing(Index(tmp_path)) as index:
        index.refresh()
        file.write(tmp_path, lambda rows: rows.execute("UPDATE metrics SET value = 9"))
    with closing(Index(tmp_path)) as index:
        assert not index.agrees(store.read(1))


def test_to_sort_by_a_metric_that_is_not_asked_for_is_an_error() -> None:
    with rows_of(attempt(1, 1.0)) as rows, pytest.raises(ValueError, match="no metric"):
        page(rows, Sought(Wanted()), ListOrder.METRIC, down=True, offset=0, most=1)


def test_a_range_holds_its_ends() -> None:
    records = [attempt(number, 1.0, metrics={"a": number}) for number in range(5)]
    with rows_of(*records) as rows:
        sought = Sought(Wanted(), metric=MetricRange("a", 1, 3))
        found = page(rows, sought, ListOrder.METRIC, down=False, offset=0, most=9)
        assert [one.number for one in found.numbers] == [1, 2, 3]


def test_the_score_of_a_point_is_the_median_of_its_attempt_s_grades() -> None:
    again = [attempt(number, score, kind=Kind.CONFIRM, of=1) for number, score in ((3, 4.0), (4, 3.0))]
    once = attempt(2, 5.0, metrics={"a": 2})
    with rows_of(attempt(1, 1.0, metrics={"a": 1}), once, *again, attempt(5, None, metrics={"a": 3})) as rows:
        points, total = metrics.pairs(rows, "a", metrics.SCORE, 9)
        assert [(point.number, point.x, point.y) for point in points] == [(1, 1.0, 3.0), (2, 2.0, 5.0)]
        assert total == 2
        points, _ = metrics.pairs(rows, metrics.SCORE, metrics.SCORE, 9)
        assert [(point.x, point.y) for point in points] == [(3.0, 3.0), (5.0, 5.0)]
