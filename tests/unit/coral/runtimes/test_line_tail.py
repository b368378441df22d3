"""Lines of a file that grows: each once, when it is whole, at a bounded cost."""

from pathlib import Path

import pytest

from coral.runtimes.line_tail import LONGEST_LINE, LineTail


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "0001.jsonl"


def test_a_line_is_read_when_it_is_whole_and_once(output):
    tail = LineTail(output)
    assert list(tail.lines()) == []
    output.write_bytes(b"one\ntw")
    assert list(tail.lines()) == [b"one"]
    with output.open("ab") as file:
        file.write(b"o\nthree\n")
    assert list(tail.lines()) == [b"two", b"three"]
    assert list(tail.lines()) == []
    assert not tail.has_more


def test_a_line_that_is_too_long_is_passed_over_and_the_next_one_is_read(output):
    output.write_bytes(b"x" * (3 * LONGEST_LINE) + b"\nafter\n")
    tail = LineTail(output)
    lines = []
    while tail.has_more:
        lines += list(tail.lines())
    assert lines == [b"after"]
