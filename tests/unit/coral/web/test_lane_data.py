"""The lane of an agent's life: what became of each heartbeat that fell due, and how long it took."""

import pytest
from sample import agent_status, make_run, write_events, write_status

from coral.web import lane_data
from coral.web.reading import opened
from workspace.layout import Layout

AGENT = "agent-1"


@pytest.fixture
def layout(tmp_path):
    made = make_run(tmp_path / "runs")
    write_status(made, clock=90.0, agents=[agent_status(AGENT, pending=["redirect"])])
    return made


def event(type: str, clock: float, agent: str = AGENT, **more: object) -> dict[str, object]:
    return {"type": type, "agent": agent, "clock": clock, "text": f"{type} it", **more}


def message(name: str, since: float, attempt: int | None = None) -> dict[str, object]:
    return {"name": name, "since": since} | ({} if attempt is None else {"attempt": attempt})


LIFE = [
    event("spawned", 1.0, launch=1),
    event("published", 9.0, attempt=1),
    event("interrupted", 9.5),
    event("exited", 10.0, launch=1, ending="interrupted"),
    event("spawned", 10.0, launch=2),
    event("heartbeat", 12.0, messages=[message("reflect", 9.0, 1), message("checkpoint", 5.0)]),
    event("published", 13.0, "agent-2", attempt=2),
    event("published", 20.0, attempt=3),
    event("skipped", 30.0, messages=[{"name": "checkpoint"}], text="checkpoint: the last one is unanswered"),
    event("withdrawn", 40.0, messages=[message("redirect", 33.0, 3)], text="redirect is overtaken"),
]


def told(layout: Layout, *kinds: str) -> list[dict]:
    with opened(layout) as view:
        return [item for item in lane_data.lane(view, AGENT)["items"] if item["kind"] in kinds]


def test_a_lane_without_the_status_ends_with_its_last_event(layout: Layout) -> None:
    write_events(layout, *LIFE)
    layout.status.unlink()
    with opened(layout) as view:
        assert lane_data.lane(view, AGENT)["end"] == 40.0


def test_a_heartbeat_is_told_from_when_it_fell_due_to_the_end_of_the_work_on_it(layout: Layout) -> None:
    write_events(layout, *LIFE)
    checkpoint, reflect, skipped, withdrawn = told(layout, "heartbeat")
    assert (reflect["at"], reflect["received"], reflect["end"], reflect["launch"]) == (9.0, 12.0, 20.0, 2)
    assert (reflect["waited"], reflect["took"], reflect["attempt"], reflect["clocked"]) == ("3 s", "8 s", 1, False)
    assert reflect["interrupted"] == 9.5
    assert (checkpoint["at"], checkpoint["fate"], checkpoint["clocked"]) == (5.0, "received", True)
    assert (skipped["fate"], skipped["at"], skipped["text"]) == (
        "skipped",
        30.0,
        "checkpoint: the last one is unanswered",
    )
    assert (withdrawn["fate"], withdrawn["at"], withdrawn["end"]) == ("withdrawn", 33.0, 40.0)


def test_launches_have_their_ends_and_attempts_of_others_are_left_out(layout: Layout) -> None:
    write_events(layout, *LIFE)
    first, second = told(layout, "launch")
    assert (first["at"], first["end"], first["ending"], first["took"]) == (1.0, 10.0, "interrupted", "9 s")
    assert (second["launch"], second["end"]) == (2, None)
    assert [(item["number"], item["verdict"]) for item in told(layout, "attempt")] == [(1, "new best"), (3, "worse")]


def test_what_is_not_known_or_waits_is_said(layout: Layout) -> None:
    write_events(layout, event("heartbeat", 50.0, messages=[{"name": "land"}]), {"type": "heartbeat", "agent": AGENT})
    (land,) = told(layout, "heartbeat")
    assert (land["waited"], land["launch"], land["clocked"], land["interrupted"]) == ("", None, False, None)
    with opened(layout) as view:
        lane = lane_data.lane(view, AGENT)
    assert (lane["pending"], lane["whole"], lane["end"]) == (["redirect"], True, 90.0)


def test_of_a_long_life_the_end_is_told(layout: Layout, monkeypatch) -> None:
    monkeypatch.setattr(lane_data, "EVENTS", 3)
    write_events(layout, *LIFE)
    with opened(layout) as view:
        lane = lane_data.lane(view, AGENT)
    assert (lane["whole"], lane["begin"], len(lane["items"])) == (False, 20.0, 3)
