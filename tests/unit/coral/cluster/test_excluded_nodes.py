"""How long a node gets no grade."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from coral.cluster import excluded_nodes, wire
from coral.cluster.excluded_nodes import FIRST_SECONDS, LONGEST_SECONDS, ExcludedNodes


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that have passed, as one number that a test adds to."""
    seconds = [0.0]
    monkeypatch.setattr(excluded_nodes, "time", SimpleNamespace(monotonic=lambda: seconds[0]))
    return seconds


def test_it_is_excluded_for_longer_each_time_until_a_grade_has_ended_there(tmp_path: Path, passed: list[float]) -> None:
    (tmp_path / wire.EXCLUDED).write_text('{"g": "of an earlier bridge"}')
    nodes = ExcludedNodes(tmp_path)
    assert wire.excluded(tmp_path) == {}
    for seconds in (FIRST_SECONDS, 2 * FIRST_SECONDS, 4 * FIRST_SECONDS, 8 * FIRST_SECONDS, LONGEST_SECONDS):
        nodes.add("n1", "h", "its disk\nis full")
        passed[0] += seconds - 1
        nodes.add("n1", "h", "a grade that was there already")
        nodes.forget("n1")  # so was this
        assert nodes.now() == {"n1": "its disk is full"}
        assert wire.excluded(tmp_path) == {"h": "its disk is full"}
        passed[0] += 1
        assert nodes.now() == {}
    nodes.report()
    assert wire.excluded(tmp_path) == {}
    nodes.forget("n1")
    nodes.add("n1", "h", "again")
    passed[0] += FIRST_SECONDS
    assert nodes.now() == {}
