"""What lies in inboxes and folders of requests: an event or set aside, a little at a time, and told of in measure."""

import json
from pathlib import Path
from typing import Any

import pytest
from cases import trying
from hypothesis import example, given
from hypothesis import strategies as st
from stage import Stage

from attempts.record import Kind, Submission, to_dict
from coral.codec import decode, encode
from coral.fleet import actions as do
from coral.fleet import events as on
from coral.fleet.decide import decide
from coral.fleet.run_state import FLEET, Fleet
from coral.journal import difference, fold_lines
from coral.supervisor.alert_limit import AT_FIRST, QUIET_SECONDS, AlertLimit
from coral.supervisor.inbox import AT_ONCE, Inbox
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


def submission(number: int, agent: str = "ann", **other: Any) -> dict[str, object]:
    made = Submission(
        id=f"{number:020d}", agent=agent, commit="1" * 40, tree="2" * 40, title="try", kind=Kind.REAL, of=None,
        wait=0.0, submitted_at="now",
    )  # fmt: skip
    return {**to_dict(made), **other}


def hand_in(layout: Layout, agent: str, *numbers: int) -> None:
    for number in numbers:
        path = layout.attempts / "inbox" / agent / f"{number:020d}.json"
        path.write_text(json.dumps(submission(number, agent)))


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
    found = [each.submission for each in events if isinstance(each, on.Submitted)]
    return [(each.agent, int(each.id)) for each in found]


def test_what_was_seen_is_named_by_its_ids_and_numbers(layout: Layout, post: Inbox) -> None:
    ask(layout, "ann", f"{1:020d}", b'{"type": "acknowledge", "jobs": [1, 2]}')
    ask(layout, "ann", f"{2:020d}", b'{"type": "acknowledge", "jobs": [true]}')
    (asked,) = [each for each in post.collect(0, ROOM) if isinstance(each, on.Requested)]
    assert asked.request == on.Acknowledge(jobs=(1, 2))


def test_a_flood_of_submissions_is_taken_up_a_few_at_a_time_and_delays_nobody(layout: Layout, post: Inbox) -> None:
    hand_in(layout, "ann", *range(100, 700))
    hand_in(layout, "ben", 9000, 9001)
    first = taken(list(post.collect(0, ROOM)))
    assert first == [("ann", 100), ("ann", 101), ("ann", 102), ("ann", 103), ("ben", 9000), ("ben", 9001)]
    # Who has enough in hand hands in no more; all of it stays where it is.
    assert taken(list(post.collect(0, {"ann": 0, "ben": 1}))) == [("ben", 9000)]
    assert len(list((layout.attempts / "inbox" / "ann").iterdir())) == 600


def test_garbage_is_cleared_at_a_pace_and_told_of_in_measure(layout: Layout, post: Inbox) -> None:
    inbox = layout.attempts / "inbox" / "ann"
    for number in range(600):
        (inbox / f"{number:020d}.json").write_bytes(b"\0\xff")
        ask(layout, "ann", f"{number:020d}", b"[")
    ask(layout, OPERATOR, "stop", json.dumps({"type": "stop"}).encode())
    events = list(post.collect(0, ROOM))
    assert post.more
    assert len(list(inbox.iterdir())) == 600 - ROOM["ann"]
    assert on.Requested(sender=OPERATOR, id="stop", request=on.Stop(reason="")) in events
    told = [each for each in events if isinstance(each, on.Broken)]
    for _ in range(600):
        told += [each for each in post.collect(1, ROOM) if isinstance(each, on.Broken)]
    assert not post.more or layout.requests_of(OPERATOR).exists()
    assert not list(inbox.iterdir())
    assert not list(layout.requests_of("ann").glob("*.json"))
    assert len(told) == AT_FIRST
    (summary,) = [each for each in post.collect(QUIET_SECONDS, ROOM) if isinstance(each, on.Broken)]
    assert summary.item == f"{1200 - AT_FIRST} more things of ann"


def test_when_there_is_no_more_it_says_so(layout: Layout, post: Inbox) -> None:
    for number in range(AT_ONCE + 1):
        ask(layout, "ann", f"{number:020d}", json.dumps({"type": "alert", "text": "x"}).encode())
    assert len(list(post.collect(0, ROOM))) == AT_ONCE
    assert post.more
    post.answer("ann", f"{0:020d}", {"ok": True})
    post.answer("ann", f"{1:020d}", {"ok": True})
    assert len(list(post.collect(0, ROOM))) == AT_ONCE - 1
    assert not post.more


def test_of_strangers_too_only_so_much_is_read(layout: Layout, post: Inbox) -> None:
    for stranger in range(10):
        (layout.attempts / "inbox" / f"nobody-{stranger}").mkdir()
        hand_in(layout, f"nobody-{stranger}", *range(10))
    hand_in(layout, "ben", 99)
    events = list(post.collect(0, ROOM))
    assert taken(events) == [("ben", 99)]
    assert sum(isinstance(each, on.Broken) for each in events) == AT_FIRST
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
        assert len(list(complaints.about("ann", str(number), "why", 0))) == 1
    assert list(complaints.about("ann", "one more", "why", 1)) == []
    assert list(complaints.about("ben", "his", "why", 1)) == [on.Broken(item="his", reason="why")]
    assert list(complaints.left(QUIET_SECONDS - 1)) == []
    assert list(complaints.left(QUIET_SECONDS)) == [on.Broken(item="1 more thing of ann", reason="the last one: why")]
    assert list(complaints.left(9 * QUIET_SECONDS)) == []
    assert list(complaints.about("ann", "later", "why", 9 * QUIET_SECONDS)) == [on.Broken(item="later", reason="why")]


# --- whatever is written there ----------------------------------------------------------------------------------------

scalar = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
scalar |= st.sampled_from([10**400, -(10**400), 1e308, "\ud800", "\x00", "9" * 20, "agent-1", "*", FLEET, "1" * 40])
plain = st.recursive(
    scalar,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
TYPES = ["set_heartbeat", "remove_heartbeat", "reset_heartbeats", "tell", "stop", "acknowledge", "alert"]
TYPES += ["start_job", "stop_job", "", None]
entries = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["reflect", "redirect", "mine", "", "a/b", "x" * 300]) | plain,
        **{key: st.integers(-1, 5) | plain for key in ("every", "stagnant", "minutes", "seconds")},
        "scope": st.sampled_from(["own", "fleet"]) | plain,
        "delivery": st.sampled_from(["inline", "interrupt"]) | plain,
        "prompt": st.sampled_from(["go", "{{ x", "{% for i in range(10**9) %}{% endfor %}"]) | plain,
        "protected": plain,
    },
)
fields: dict[str, st.SearchStrategy[Any]] = {
    "owner": st.sampled_from([*AGENTS, FLEET, "*", "nobody"]) | plain,
    "heartbeat": entries | plain,
    "name": st.sampled_from(["reflect", "redirect"]) | plain,
    "to": st.sampled_from([*AGENTS, "*"]) | plain,
    "text": plain,
    "reason": plain,
    "owed": st.lists(st.text(max_size=3), max_size=3) | plain,
    "agent": st.sampled_from([*AGENTS, "nobody"]) | plain,
    "command": st.lists(st.text(max_size=3), max_size=3) | plain,
    "what": plain,
    "folder": plain,
    "number": st.integers(-1, 3) | plain,
    "more": plain,
}
requests = st.fixed_dictionaries({"type": st.sampled_from(TYPES) | plain}, optional=fields)
texts = requests.map(lambda data: json.dumps(data).encode("utf-8", "surrogatepass"))
texts |= plain.map(lambda data: json.dumps(data, ensure_ascii=False).encode("utf-8", "surrogatepass"))
texts |= st.binary(max_size=40)


def decided(stage: Stage, events: list[on.Event]) -> None:
    """Decide about it twice, write it down as the journal does, and read it again."""
    now = on.Moment(run_time=2.0, wall_time="w")
    before = stage.fleet
    after, actions = decide(before, events, now, stage.rules)
    line = {"at": 2.0, "events": encode(tuple(events)), "actions": encode(actions), "set": difference(before, after)}
    read = json.loads(json.dumps(line, allow_nan=False).encode())
    assert decode(tuple[on.Event, ...], read["events"]) == tuple(events)
    assert decode(tuple[do.Action, ...], read["actions"]) == actions
    base = json.loads(json.dumps({"at": 1.0, "set": difference(Fleet(), before)}))
    assert fold_lines([base, read]).fleet == after
    again, same = decide(before, events, now, stage.rules)
    assert (again, same) == (after, actions)


@pytest.mark.slow
@trying("requests", "any")
@example(sender="ann", content=b"[" * 60_000)
@example(sender="ann", content=b'{"type": "tell", "text": "' + b"x" * 60_000 + b'"}')
@example(sender="operator", content=b'{"type":"set_heartbeat","heartbeat":{"name":"a","every":1e999}}')
@given(sender=st.sampled_from([*AGENTS, OPERATOR]), content=texts)
def test_any_request_is_answered(tmp_path_factory: pytest.TempPathFactory, sender: str, content: bytes) -> None:
    layout = run_of(tmp_path_factory)
    stage = Stage(agents=2)
    ask(layout, sender, "it", content)
    events = list(Inbox(layout, AGENTS).collect(0, ROOM))
    assert len(events) == 1
    decided(stage, events)
    left = (layout.requests_of(sender) / "it.json").exists()
    if isinstance(events[0], on.Requested):
        assert left
        _, actions = decide(stage.fleet, events, on.Moment(run_time=2.0, wall_time="w"), stage.rules)
        (answer,) = [each for each in actions if isinstance(each, do.Answer)]
        Inbox(layout, AGENTS).answer(sender, "it", {"ok": answer.ok, "message": answer.message, "hint": answer.hint})
    else:
        assert not left
    json.loads((layout.replies_to(sender) / "it.json").read_text())


wrong = st.sampled_from(list(submission(1))) | st.text(max_size=5)


@pytest.mark.slow
@trying("submissions", "any")
@example(content=b"")
@given(
    content=st.dictionaries(wrong, plain, max_size=3).map(
        lambda other: json.dumps({**submission(1), **other}).encode("utf-8", "surrogatepass")
    )
    | texts
)
def test_any_submission_is_taken_up_or_set_aside(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    layout = run_of(tmp_path_factory)
    path = layout.attempts / "inbox" / "ann" / f"{1:020d}.json"
    path.write_bytes(content)
    events = list(Inbox(layout, AGENTS).collect(0, ROOM))
    assert len(events) == 1
    assert isinstance(events[0], on.Submitted | on.Broken)
    assert path.exists() == isinstance(events[0], on.Submitted)
    decided(Stage(agents=2), events)


def run_of(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """The folders of one run, emptied: making them anew for each case would take most of the time."""
    root = tmp_path_factory.getbasetemp() / "fuzzed" / "runs" / "task" / "20300101-000000-aaaa"
    found = Layout(root)
    if not root.exists():
        create(found, AGENTS)
        for agent in AGENTS:
            (found.attempts / "inbox" / agent).mkdir(parents=True)
    for folder in (*(found.requests_of(each) for each in (*AGENTS, OPERATOR)), found.attempts / "inbox" / "ann"):
        for path in folder.glob("*.json"):
            path.unlink()
    for sender in (*AGENTS, OPERATOR):
        (found.replies_to(sender) / "it.json").unlink(missing_ok=True)
    return found
