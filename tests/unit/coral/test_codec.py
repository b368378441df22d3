"""Whatever a decision hears, says or remembers survives being written as JSON and read again."""

import json
import types
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, strategies as st

from attempts.record import Verdict
from coral.codec import decode, encode
from coral.fleet.actions import Action, Spawn
from coral.fleet.agent_state import Agent, PendingMessage, Phase
from coral.fleet.events import Ending, Event, Exited, Graded, Outcome, OutputSeen, Requested, SetHeartbeat, Stop
from coral.fleet.reasons import START, RunEnd, RunEndKind
from coral.fleet.rules import Rules
from coral.fleet.run_state import PendingAttempt, Run
from coral.processes.process_tree import Identity
from heartbeats.heartbeat import BUILT_IN, Heartbeat
from heartbeats.trigger import Elapsed, Every, Stagnant

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=8)  # lone surrogates, too
PLAIN = {
    str: ANY_TEXT,
    bool: st.booleans(),
    int: st.integers(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    object: st.one_of(st.booleans(), st.integers(), ANY_TEXT, st.lists(st.integers())),  # as JSON has it
    type(None): st.none(),
    Every: st.builds(Every, st.integers(1)),
    Stagnant: st.builds(Stagnant, st.integers(1)),
    Elapsed: st.builds(Elapsed, st.floats(0.5, 1e9)),
}


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of a field's type."""
    if kind in PLAIN:
        return PLAIN[kind]
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return st.one_of(*map(values_of, get_args(kind)))
    if origin is tuple:
        return st.lists(values_of(get_args(kind)[0]), max_size=3).map(tuple)
    if origin is not None and issubclass(origin, Mapping):
        return st.dictionaries(ANY_TEXT, values_of(get_args(kind)[1]), max_size=3)
    if issubclass(kind, Enum):
        return st.sampled_from(list(kind))
    assert is_dataclass(kind), kind
    hints = get_type_hints(kind)
    held = {part.name: values_of(hints[part.name]) for part in fields(kind)}
    defaults = {part.name for part in fields(kind) if (part.default, part.default_factory) != (MISSING, MISSING)}
    required = {name: values for name, values in held.items() if name not in defaults}
    # Most fields of a record are at their default most of the time.
    return st.fixed_dictionaries({}, optional=held).flatmap(
        lambda given: st.builds(kind, **(required | {name: st.just(value) for name, value in given.items()}))
    )


def through_json(value: object) -> Any:
    return json.loads(json.dumps(encode(value), allow_nan=False).encode())


@pytest.mark.parametrize("kind", [Event, Action, Agent, PendingAttempt, Run, Rules, Heartbeat, Identity], ids=str)
def test_everything_survives(kind: Any) -> None:
    @given(values_of(kind))
    def survives(value: object) -> None:
        back = decode(kind, through_json(value))
        assert back == value
        assert type(back) is type(value)

    survives()


def test_what_is_at_its_default_is_left_out_and_what_is_missing_takes_it() -> None:
    assert encode(Agent(name="ann")) == {"is": "Agent", "name": "ann"}
    assert encode(Agent(name="ann", targets={"reflect": 1.0}, launch=2)) == {
        "is": "Agent",
        "name": "ann",
        "launch": 2,
        "targets": {"reflect": 1.0},
    }
    assert decode(Agent, {"is": "Agent", "name": "ann"}) == Agent(name="ann")
    one, two = (decode(Agent, {"is": "Agent", "name": "ann"}) for _ in range(2))
    assert one.targets is not two.targets


def test_enums_nested_records_and_metrics_keep_their_types() -> None:
    agent = Agent(
        name="ann", phase=Phase.PARKED, pending_messages=(PendingMessage(id="h1", name="reflect", since=1.0, due=2.0),)
    )
    back = decode(Agent, through_json(agent))
    assert back.phase is Phase.PARKED
    assert isinstance(back.pending_messages, tuple)
    assert isinstance(back.pending_messages[0], PendingMessage)
    assert isinstance(decode(PendingAttempt | None, None), type(None))
    assert decode(tuple[Heartbeat, ...], through_json(BUILT_IN)) == BUILT_IN
    rules = replace(Rules(), heartbeats=BUILT_IN[:2])
    assert decode(Rules, through_json(rules)) == rules
    back = decode(PendingMessage, {"is": "PendingMessage", "id": "h1", "name": "x", "since": 1, "due": 2})
    assert isinstance(back.since, float)
    metrics = {"is": "Graded", "n": 1, "x": 1.0, "ok": True, "none": None, "text": "1"}
    graded = Graded(number=1, launch=1, outcome=Outcome.SCORED, score=1.0, metrics=metrics)
    read = decode(Event, through_json(graded))
    assert {name: (type(value), value) for name, value in read.metrics.items()} == {
        name: (type(value), value) for name, value in metrics.items()
    }


def test_the_union_s_member_is_told_by_its_tag() -> None:
    for event in (
        OutputSeen(agent="ann", launch=1, has_prompt=True),
        Exited(agent="ann", launch=1, ending=Ending.LOST),
        Requested(sender="ann", id="1", request=Stop(end=RunEnd(RunEndKind.REQUEST))),
        Requested(sender="ann", id="1", request=SetHeartbeat(owner="ann", entry={"is": "Stop", "every": 1})),
    ):
        assert decode(Event, through_json(event)) == event
    spawn = Spawn(agent="ann", launch=1, session=None, messages=(), last_result_seen=0, reason=START)
    assert decode(Action, through_json(spawn)) == spawn


@pytest.mark.parametrize(
    ("kind", "plain", "why"),
    [
        (Agent, {"is": "Agent", "name": "ann", "wings": 2}, "not a Agent of this version: 'wings'"),
        (Agent, {"is": "Agent"}, "not a Agent of this version: .*name"),
        (Agent, {"is": "Run"}, "expected a Agent, got {'is': 'Run'}"),
        (Agent, {"name": "ann"}, "expected a Agent"),
        (Agent, [], r"expected a Agent, got \[\]"),
        (
            Event,
            {"is": "Agent", "name": "ann"},
            "expected one of RequestUnreadable, .*, Opened, Resumed, .*, got {'is': 'Agent'",
        ),
        (Event, {"is": "os.system"}, "expected one of"),
        (Event, "Opened", "expected one of"),
        (Event, {"is": "OutputSeen", "agent": "ann"}, "not a OutputSeen of this version"),
        (Phase, "flying", "flying"),
        (Agent, {"is": "Agent", "name": "ann", "phase": "flying"}, "flying"),
        (float, "x", "could not convert"),
    ],
)
def test_what_does_not_fit_is_refused(kind: Any, plain: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        decode(kind, plain)


@dataclass(frozen=True)
class Older:
    name: str
    tags: Mapping[str, int] = field(default_factory=dict)


def test_a_record_is_known_by_the_name_of_its_class_alone() -> None:
    assert through_json(Older(name="x", tags={})) == {"is": "Older", "name": "x"}
    assert decode(Older, {"is": "Older", "name": "x", "tags": {"a": 1}}) == Older(name="x", tags={"a": 1})
    assert through_json({1: Verdict.TIED, "a": (1, [2, 3])}) == {"1": "tied", "a": [1, [2, 3]]}
