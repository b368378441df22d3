"""Which answer a heartbeat gets by its name."""

import pytest
from native_situations import said, situation, trial

from coral.native.answers.answer import LONGEST_QUOTE, answer
from coral.native.calls import Remember, WriteNote
from coral.native.prompt import HeartbeatSection


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("reflect", {WriteNote}),
        ("consolidate", {WriteNote}),
        ("conclude", {WriteNote}),
        ("redirect", {Remember}),
        ("checkpoint", set()),
    ],
)
def test_built_in_heartbeats_are_answered_by_doing_what_they_ask(name, kinds):
    calls = answer(
        situation(trial(9, "rows", 1.2, 1.3, expected=1.25, verdict="new best")), HeartbeatSection(name, "h1", "...")
    )
    assert kinds <= {type(call) for call in calls}
    assert said(calls)


def test_any_other_heartbeat_is_answered_and_remembered():
    section = HeartbeatSection("simplify", "h3", "Make it simpler.\n" * 99)
    calls = answer(situation(trial(9, "rows", 1.2, 1.3)), section)
    assert "simplify" in said(calls)
    (remembered,) = [call for call in calls if isinstance(call, Remember)]
    assert "Make it simpler" in remembered.text
    assert len(remembered.text) < LONGEST_QUOTE + 100
