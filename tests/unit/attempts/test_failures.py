"""Failures of one kind are counted together, whatever figures their reasons hold."""

import pytest

from attempts.failures import KINDS, OTHERS, counted, kind_of


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("circles 3 and 17 overlap by 1.5e-09", "circles N and N overlap by N"),
        ("object at 0x7f2a is no number", "object at N is no number"),
        ("", "no reason was given"),
        ("two\nlines", "two lines"),
    ],
)
def test_the_kind_of_a_failure(reason: str, kind: str) -> None:
    assert kind_of(reason) == kind


def test_kinds_are_counted_one_by_one_up_to_a_number() -> None:
    counts: dict[str, int] = {}
    for letter in "abcdefghijklmnopqrstuvwxyz":
        _, counts = counted(counts, letter)
    assert len(counts) == KINDS + 1
    assert counts[OTHERS] == 26 - KINDS
    assert counted(counts, "a") == ("a", {**counts, "a": 2})
