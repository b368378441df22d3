"""Whatever is written into an inbox or a folder of requests is answered, taken up, or set aside."""

import json
from typing import Any

import pytest
from cases import trying
from hypothesis import example, given, strategies as st
from sample import submission
from stage import Stage

from attempts.record import to_dict
from coral.codec import decode, encode
from coral.fleet import actions as do, events as on
from coral.fleet.decide import decide
from coral.fleet.run_state import FLEET, Fleet
from coral.journal import difference, fold_lines
from coral.supervisor import request_format
from coral.supervisor.inbox import Inbox
from coral.supervisor.perform import answer_request
from workspace.layout import OPERATOR, Layout, create

AGENTS = ("ann", "ben")
CAPACITY = {"ann": 4, "ben": 4}
SUBMISSION = to_dict(submission("ann"))


def ask(layout: Layout, sender: str, name: str, content: bytes) -> None:
    (layout.requests_of(sender) / f"{name}.json").write_bytes(content)


scalar = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
scalar |= st.sampled_from([10**400, -(10**400), 1e308, "\ud800", "\x00", "9" * 20, "agent-1", "*", FLEET, "1" * 40])
plain = st.recursive(
    scalar,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
TYPES = [*request_format._KINDS, "", None]
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
    "messages": st.lists(st.text(max_size=3), max_size=3) | plain,
    "agent": st.sampled_from([*AGENTS, "nobody"]) | plain,
    "command": st.lists(st.text(max_size=3), max_size=3) | plain,
    "what": plain,
    "folder": plain,
    "number": st.integers(-1, 3) | plain,
    "options": st.dictionaries(st.text(max_size=3) | st.just("is"), plain, max_size=3) | plain,
    "key": st.sampled_from(["attempts", "money"]) | plain,
    **dict.fromkeys(
        ("runtime", "model", "role", "limit", "as_task", "through", "fresh", "after_grades", "more"), plain
    ),
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
@example(sender="ann", content=b'{"type":"add_agent","options":{"a":1e999}}')
@example(sender="ann", content=b'{"type":"move_agent","agent":"ann","options":{"a":[[1e999]]}}')
@example(sender="ann", content=b'{"type":"add_agent","options":' + b'{"a":' * 700 + b"1" + b"}" * 701)
@example(sender="ann", content=b'{"type":"add_agent","options":{"is":[]}}')
@given(sender=st.sampled_from([*AGENTS, OPERATOR]), content=texts)
def test_any_request_is_answered(tmp_path_factory, sender: str, content: bytes) -> None:
    layout = run_of(tmp_path_factory)
    stage = Stage(agents=2)
    ask(layout, sender, "it", content)
    events = list(Inbox(layout, AGENTS).collect(0, CAPACITY))
    assert isinstance(events[0], on.Requested | on.RequestUnreadable)
    assert len(events) == 1 + isinstance(events[0], on.RequestUnreadable)
    decided(stage, events)
    _, actions = decide(stage.fleet, events, on.Moment(run_time=2.0, wall_time="w"), stage.rules)
    (answer,) = [action for action in actions if isinstance(action, do.Answer)]
    answer_request(layout, sender, "it", {"ok": answer.ok, "message": answer.message, "hint": answer.hint})
    assert not (layout.requests_of(sender) / "it.json").exists()
    json.loads((layout.replies_to(sender) / "it.json").read_text())


wrong = st.sampled_from(list(SUBMISSION)) | st.text(max_size=5)


@pytest.mark.slow
@trying("submissions", "any")
@example(content=b"")
@given(
    content=st.dictionaries(wrong, plain, max_size=3).map(
        lambda other: json.dumps({**SUBMISSION, **other}).encode("utf-8", "surrogatepass")
    )
    | texts
)
def test_any_submission_is_taken_up_or_set_aside(tmp_path_factory, content: bytes) -> None:
    layout = run_of(tmp_path_factory)
    path = layout.attempts / "inbox" / "ann" / f"{1:020d}.json"
    path.write_bytes(content)
    events = list(Inbox(layout, AGENTS).collect(0, CAPACITY))
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
    for folder in (*(found.requests_of(sender) for sender in (*AGENTS, OPERATOR)), found.attempts / "inbox" / "ann"):
        for path in folder.glob("*.json"):
            path.unlink()
    for sender in (*AGENTS, OPERATOR):
        (found.replies_to(sender) / "it.json").unlink(missing_ok=True)
    return found
