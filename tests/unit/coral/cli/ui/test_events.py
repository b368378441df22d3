"""The timeline for people: a line for each heartbeat, its steps only on request."""

import pytest

from coral.cli.ui.events import event_line, is_step
from coral.reading.lenient_json import LenientJson


def line(verbose: bool = False, **event: object) -> str:
    return event_line(LenientJson({"clock": 3.2, "agent": "agent-2", **event}), verbose=verbose).plain[20:]


def message(name: str, attempt: int | None = None) -> dict[str, object]:
    return {"name": name, "id": "h1", **({} if attempt is None else {"attempt": attempt})}


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        ([message("reflect", 7)], "reflects on #7"),
        ([message("reflect", 7), message("redirect", 7)], "reflects on #7, changes direction after #7"),
        ([message("checkpoint")], "goes through its checklist"),
        ([message("simplify", 4)], "gets simplify after #4"),
        ([message("message"), message("message")], "gets a message"),
        ([], "heartbeat reflect (h1) received"),
    ],
)
def test_a_heartbeat_is_one_line(messages: list[dict[str, object]], says: str) -> None:
    event = {"type": "heartbeat", "text": "reflect (h1) received", "messages": messages}
    assert line(**event) == says
    assert line(verbose=True, **event) == "heartbeat reflect (h1) received"


def test_an_attempt_is_named_once() -> None:
    assert line(type="published", text="new best 2: x", attempt=4) == "#4 new best 2: x"
    assert line(type="verified", text="#4 is verified", attempt=4) == "#4 is verified"


@pytest.mark.parametrize(
    ("event", "hidden"),
    [
        ({"type": "interrupted"}, True),
        ({"type": "exited", "ending": "interrupted"}, True),
        ({"type": "withdrawn"}, True),
        ({"type": "spawned", "reason": {"kind": "heartbeat"}}, True),
        ({"type": "spawned", "reason": {"kind": "start"}}, False),
        ({"type": "spawned", "reason": {"kind": "crashed"}}, False),
        ({"type": "published"}, False),
        ({"type": "crashed"}, False),
        ({"type": "heartbeat"}, False),
        ({}, False),
    ],
)
def test_steps_that_every_heartbeat_takes_are_hidden(event: dict[str, object], hidden: bool) -> None:
    assert is_step(LenientJson(event)) is hidden
