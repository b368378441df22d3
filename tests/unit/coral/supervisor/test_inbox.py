"""What lies in inboxes and folders of requests: an event or set aside, a little at a time, and told of in measure."""

import json
from pathlib import Path

import pytest
from sample import submission

from attempts.record import to_dict
from coral.fleet import events as on
from coral.fleet.members import WantedMember
from coral.fleet.reasons import RunEnd, RunEndKind
from coral.supervisor.event_queue import AT_FIRST, MAX_REMEMBERED, QUIET_SECONDS, AlertLimit, SeenFailures
from coral.supervisor.inbox import AT_ONCE, Inbox
from coral.supervisor.perform import answer_request
from workspace.layout import OPERATOR, Layout, create, new_run

AGENTS = ("ann", "ben")
ROOM = {"ann": 4, "ben": 4}


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    found = new_run(tmp_path / "runs", "task")
    create(found, AGENTS)
    for agent in AGENTS:
        (found.attempts / "inbox" / agent).mkdir(parents=True)
    return found


@pytest.fixture
def post(layout: Layout) -> Inbox:
    return Inbox(layout, AGENTS)


def hand_in(layout: Layout, agent: str, *numbers: int) -> None:
    for number in numbers:
        path = layout.attempts / "inbox" / agent / f"{number:020d}.json"
        path.write_text(json.dumps(to_dict(submission(agent, number))))


def test_of_a_fleet_only_the_folders_are_read_that_something_came_into(layout: Layout, post: Inbox) -> None:
    hand_in(layout, "ann", 1)
    hand_in(layout, "ben", 2)
    ask(layout, "ann", "it", b'{"type": "alert", "text": "look"}')
    inbox = layout.attempts / "inbox"
    assert taken(list(post.collect(0, ROOM, frozenset({inbox / "ben"})))) == [("ben", 2)]
    (asked,) = post.collect(0, ROOM, frozenset({layout.requests_of("ann"), layout.requests}))
    assert isinstance(asked, on.Requested)
    assert len(list(post.collect(0, ROOM))) == 3


def ask(layout: Layout, sender: str, name: str, content: bytes) -> None:
    (layout.requests_of(sender) / f"{name}.json").write_bytes(content)


def taken(events: list[on.Event]) -> list[tuple[str, int]]:
    found = [event.submission for event in events if isinstance(event, on.Submitted)]
    return [(submitted.agent, int(submitted.id)) for submitted in found]


def test_what_was_seen_is_named_by_its_ids_and_numbers(layout: Layout, post: Inbox) -> None:
    ask(layout, "ann", f"{1:020d}", b'{"type": "acknowledge", "jobs": [1, 2]}')
    ask(layout, "ann", f"{2:020d}", b'{"type": "acknowledge", "jobs": [true]}')
    (asked,) = [event for event in post.collect(0, ROOM) if isinstance(event, on.Requested)]
    assert asked.request == on.Acknowledge(jobs=(1, 2))


@pytest.mark.parametrize(
    "options", [b"[]", b'{"x": 1e999}', b'{"x": [{"y": -1e999}]}', b'{"x":' * 600 + b"1" + b"}" * 600]
)
def test_options_that_the_journal_could_not_hold_are_refused(layout: Layout, post: Inbox, options: bytes) -> None:
    ask(layout, "ann", f"{1:020d}", b'{"type": "add_agent", "options": %s}' % options)
    refused, reported = post.collect(0, ROOM)
    assert isinstance(refused, on.RequestUnreadable)
    assert refused.reason.startswith("options: ")
    assert isinstance(reported, on.Broken)


def test_options_of_an_agent_may_hold_lists_and_objects(layout: Layout, post: Inbox) -> None:
    ask(layout, "operator", f"{1:020d}", b'{"type": "add_agent", "options": {"x": [1.5, {"y": null}]}}')
    (asked,) = post.collect(0, ROOM)
    assert asked == on.Requested(
        sender=OPERATOR,
        id=f"{1:020d}",
        request=on.AddAgent(name="", wanted=WantedMember(options={"x": [1.5, {"y": None}]})),
    )


def test_a_flood_of_submissions_is_taken_up_a_few_at_a_time_and_delays_nobody(layout: Layout, post: Inbox) -> None:
    hand_in(layout, "ann", *range(100, 700))
    hand_in(layout, "ben", 9000, 9001)
    first = taken(list(post.collect(0, ROOM)))
    assert first == [("ann", 100), ("ann", 101), ("ann", 102), ("ann", 103), ("ben", 9000), ("ben", 9001)]
    # Who has enough in hand hands in no more; all of it stays where it is.
    assert taken(list(post.collect(0, {"ann": 0, "ben": 1}))) == [("ben", 9000)]
    assert len(list((layout.attempts / "inbox" / "ann").iterdir())) == 600


def collected(layout: Layout, post: Inbox, clock: float) -> list[on.Event]:
    """What is read, once the supervisor has refused the requests that cannot be."""
    events = list(post.collect(clock, ROOM))
    for event in events:
        if isinstance(event, on.RequestUnreadable):
            answer_request(layout, event.sender, event.id, {"ok": False})
    return events


def test_garbage_is_cleared_at_a_pace_and_told_of_in_measure(layout: Layout, post: Inbox) -> None:
    inbox = layout.attempts / "inbox" / "ann"
    for number in range(200):
        (inbox / f"{number:020d}.json").write_bytes(b"\0\xff")
        ask(layout, "ann", f"{number:020d}", b"[")
    ask(layout, OPERATOR, "stop", json.dumps({"type": "stop"}).encode())
    events = collected(layout, post, 0)
    assert post.more
    assert len(list(inbox.iterdir())) == 200 - ROOM["ann"]
    assert on.Requested(sender=OPERATOR, id="stop", request=on.Stop(end=RunEnd(RunEndKind.REQUEST))) in events
    told = [event for event in events if isinstance(event, on.Broken)]
    for _ in range(200):
        told += [event for event in collected(layout, post, 1) if isinstance(event, on.Broken)]
    assert not post.more or layout.requests_of(OPERATOR).exists()
    assert not list(inbox.iterdir())
    assert not list(layout.requests_of("ann").glob("*.json"))
    assert len(told) == AT_FIRST
    (summary,) = [event for event in post.collect(QUIET_SECONDS, ROOM) if isinstance(event, on.Broken)]
    assert summary.item == f"{400 - AT_FIRST} more things of ann"


def test_when_there_is_no_more_it_says_so(layout: Layout, post: Inbox) -> None:
    for number in range(AT_ONCE + 1):
        ask(layout, "ann", f"{number:020d}", json.dumps({"type": "alert", "text": "x"}).encode())
    assert len(list(post.collect(0, ROOM))) == AT_ONCE
    assert post.more
    answer_request(layout, "ann", f"{0:020d}", {"ok": True})
    answer_request(layout, "ann", f"{1:020d}", {"ok": True})
    assert len(list(post.collect(0, ROOM))) == AT_ONCE - 1
    assert not post.more


def test_of_strangers_too_only_so_much_is_read(layout: Layout, post: Inbox) -> None:
    for stranger in range(10):
        (layout.attempts / "inbox" / f"nobody-{stranger}").mkdir()
        hand_in(layout, f"nobody-{stranger}", *range(10))
    hand_in(layout, "ben", 99)
    events = list(post.collect(0, ROOM))
    assert taken(events) == [("ben", 99)]
    assert sum(isinstance(event, on.Broken) for event in events) == AT_FIRST
    assert sum(1 for _ in layout.attempts.glob("inbox/nobody-*/*")) == 100 - AT_ONCE


def test_a_folder_of_requests_that_leads_elsewhere_is_not_followed(layout: Layout, post: Inbox, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "keep.json").write_text("[")
    folder = layout.requests_of("ann")
    folder.rmdir()
    folder.symlink_to(elsewhere)
    assert list(post.collect(0, ROOM)) == []
    assert (elsewhere / "keep.json").exists()


def test_complaints_start_anew_after_a_quiet_time_and_each_sender_has_its_own() -> None:
    complaints = AlertLimit()
    for number in range(AT_FIRST):
        assert len(list(complaints.report("ann", str(number), "why", 0))) == 1
    assert list(complaints.report("ann", "one more", "why", 1)) == []
    assert list(complaints.report("ben", "his", "why", 1)) == [on.Broken(item="his", reason="why")]
    assert list(complaints.overdue_summaries(QUIET_SECONDS - 1)) == []
    assert list(complaints.overdue_summaries(QUIET_SECONDS)) == [
        on.Broken(item="1 more thing of ann", reason="the last one: why")
    ]
    assert list(complaints.overdue_summaries(9 * QUIET_SECONDS)) == []
    assert list(complaints.report("ann", "later", "why", 9 * QUIET_SECONDS)) == [on.Broken(item="later", reason="why")]


def test_the_same_is_told_once_as_long_as_it_goes_on_and_what_is_over_is_forgotten() -> None:
    told = SeenFailures()
    assert told.is_new("a record", "it always fails")
    for moment in range(3 * MAX_REMEMBERED):
        assert told.is_new("a record", f"kept as {moment}")
        assert not told.is_new("a record", "it always fails")
        assert told.is_new("another record", f"kept as {moment}")
        assert len(told._known) <= MAX_REMEMBERED
    assert not told.is_new("a record", f"kept as {3 * MAX_REMEMBERED - 1}")
    assert told.is_new("a record", "kept as 0")
