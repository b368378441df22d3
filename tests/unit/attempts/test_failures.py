"""Failures of one kind are counted together, whatever figures their reasons hold."""

import pytest

from attempts.failures import KINDS, OTHERS, FailureGroup, counted, kind_of


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("circles 3 and 17 overlap by 1.5e-09", "circles … and … overlap by …"),
        ("object at 0x7f2a is no number", "object at … is no number"),
        ("", "no reason was given"),
        ("two\nlines", "two lines"),
    ],
)
def test_the_kind_of_a_failure(reason: str, kind: str) -> None:
    assert kind_of(reason) == kind


def groups_of(*reasons: str) -> dict[str, FailureGroup]:
    groups: dict[str, FailureGroup] = {}
    for reason in reasons:
        _, groups = counted(groups, reason)
    return groups


def test_a_reason_keeps_its_figures_while_all_have_the_same() -> None:
    assert list(groups_of("row 17 is 3.5 too high", "row 17 is 3.5 too high").values()) == [
        FailureGroup(2, "row 17 is 3.5 too high")
    ]
    assert list(groups_of("row 17 is high", "row 3 is high", "row 17 is high").values()) == [
        FailureGroup(3, "row … is high")
    ]
    assert list(groups_of("", "").values()) == [FailureGroup(2, "no reason was given")]


def test_kinds_are_counted_one_by_one_up_to_a_number_and_a_frequent_one_always() -> None:
    letters = [letter * 3 for letter in "abcdefghijklmnopqrstuvwxyz"] + [
        letter * 4 for letter in "abcdefghijklmnopqrstuvwxyz"
    ]
    groups = groups_of(*letters, "it has no score", "it has no score", *letters[:3], "it has no score")
    assert len(groups) == KINDS + 1
    assert groups["it has no score"] == FailureGroup(3, "it has no score")
    assert sum(group.count for group in groups.values()) == len(letters) + 6
    assert groups[OTHERS].count == len(letters) + 6 - sum(
        group.count for kind, group in groups.items() if kind != OTHERS
    )
