"""What the live view asks for is asked beside it, and answered there."""

from pathlib import Path

import pytest
from real_runs import wait_until
from sample import requests_of

from coral.cli.ui.live_requests import LiveAnswer, LiveRequests
from coral.cli.ui.live_state import Request
from workspace.layout import Layout

TELL: Request = {"type": "tell", "to": "*", "text": "be bold"}


def answer(requests: LiveRequests, request: Request) -> LiveAnswer:
    requests.send(request)
    assert requests.waiting == 1
    (found,) = wait_until(requests.answers)
    assert requests.waiting == 0
    return found  # type: ignore[no-any-return]


@pytest.mark.usefixtures("operators_shell")
def test_a_request_is_that_of_the_command(layout: Layout) -> None:
    said = answer(LiveRequests(layout), TELL)
    assert said.text.startswith("requested; nobody supervises this run")
    assert not said.refused
    assert requests_of(layout) == [TELL]


def test_a_mistake_is_answered_with_what_to_do(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORAL_AGENT", "agent-1")
    said = answer(LiveRequests(layout), TELL)
    assert said.text.startswith("cannot steer the agents: that is for the operator, and you are agent-1 · ask")
    assert said.refused
    assert requests_of(layout) == []


@pytest.mark.usefixtures("operators_shell")
def test_what_the_disk_refuses_is_said(tmp_path: Path) -> None:
    said = answer(LiveRequests(Layout(tmp_path / ("x" * 300))), TELL)
    assert said.refused
    assert said.text.startswith("cannot send it: ")
