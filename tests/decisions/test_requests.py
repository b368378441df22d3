"""What agents and the operator ask for, as transcripts: done once, answered, and at no protected heartbeat's cost."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from stage import QUIET_RULES, Stage, on_request, setting

from coral.fleet import events as on
from coral.fleet.events import Ending
from coral.fleet.run_state import FLEET
from heartbeats.heartbeat import BUILT_IN, CHANGEABLE, Heartbeat, Scope
from heartbeats.trigger import Every

RULES = replace(QUIET_RULES, heartbeats=BUILT_IN, stall=9e9)


DEFAULT = {
    "reflect": "every attempt",
    "redirect": "every 5 attempts in a row without improvement",
    "checkpoint": "every 30 minutes",
}
OF_FLEET = {"consolidate": "every 10 attempts of the fleet"}
QUEUED = "queued: it is delivered when a turn or an eval ends"
REMOVE_REFLECT = on.RemoveHeartbeat(owner="ann", name="reflect")


# --- an agent and its own -----------------------------------------------------------------------------------------


def test_an_agent_sets_changes_and_removes_heartbeats_of_its_own() -> None:
    stage = Stage(2, RULES)
    assert stage.ask("ann", setting("ann", name="breathe", every=3, prompt="in and out")) == [
        "show ann",
        "answer ann: yes, breathe: every 3 attempts",
    ]
    assert stage.fleet.heartbeats["ann"][-1] == Heartbeat(
        name="breathe", trigger=Every(3), prompt="in and out", by="ann"
    )
    assert stage.ask("ann", setting("ann", name="breathe", stagnant=2)) == [
        "show ann",
        "answer ann: yes, breathe: every 2 attempts in a row without improvement",
    ]
    assert stage.in_force("ann") == {**DEFAULT, "breathe": "every 2 attempts in a row without improvement"}
    assert stage["ann"].targets["breathe"] == 2
    assert stage.ask("ann", on.RemoveHeartbeat(owner="ann", name="redirect")) == [
        "show ann",
        "answer ann: yes, redirect is removed",
    ]
    assert "redirect" not in stage["ann"].targets
    assert stage.ask("ann", on.ResetHeartbeats(owner="ann")) == [
        "show ann",
        "answer ann: yes, heartbeats are as the run started with",
    ]
    assert stage.in_force("ann") == stage.in_force("ben") == DEFAULT
    assert set(stage["ann"].targets) == set(DEFAULT)


@pytest.mark.parametrize("off", [{"every": "0m"}, {"every": 0}, {"minutes": 0}, {"enabled": False}])
def test_a_heartbeat_is_switched_off_and_another_time_brings_it_back(off: dict[str, str | int | bool]) -> None:
    stage = Stage(2, RULES)
    assert stage.ask("ann", setting("ann", name="redirect", **off)) == [
        "show ann",
        "answer ann: yes, redirect is removed",
    ]
    assert "redirect" not in stage.in_force("ann")
    stage.ask("ann", setting("ann", name="redirect", every="30m"))
    assert stage.in_force("ann")["redirect"] == "every 30 minutes"
    assert stage.ask("ann", setting("ann", name="reflect", **off))[0].startswith(
        "answer ann: no, cannot remove reflect"
    )


def test_a_refused_request_changes_nothing_and_nobody_is_not_answered_as_somebody() -> None:
    stage = Stage(rules=RULES)
    before = stage.fleet
    assert stage.ask("ann", on.RemoveHeartbeat(owner="ann", name="breathe")) == [
        "answer ann: no, cannot remove 'breathe': there is no such heartbeat (there are: reflect, redirect, checkpoint)"
    ]
    assert stage.fleet == before
    # And it may be asked again.
    assert len(stage.ask("ann", on.RemoveHeartbeat(owner="ann", name="breathe"))) == 1
    stage = Stage(rules=RULES)
    assert stage.ask("eve", on.RaiseAlert(text="hello")) == [
        "answer eve: no, cannot answer eve: there is no such agent"
    ]


@pytest.mark.parametrize(
    "request_",
    [
        setting("ben", name="breathe", every=3, prompt="in and out"),
        setting("*", name="breathe", every=3, prompt="in and out"),
        on.RemoveHeartbeat(owner="ben", name="redirect"),
        on.RemoveHeartbeat(owner="*", name="redirect"),
        on.RemoveHeartbeat(owner=FLEET, name="consolidate"),
        on.ResetHeartbeats(owner="ben"),
        on.ResetHeartbeats(owner=FLEET),
        on.ResetHeartbeats(owner="*"),
    ],
)
def test_an_agent_changes_nobody_else_s(request_: on.Request) -> None:
    stage = Stage(2, RULES)
    before = stage.fleet
    assert stage.ask("ann", request_) == [
        "answer ann: no, cannot change the heartbeats of somebody else (leave out the owner)"
    ]
    assert stage.fleet == before


@pytest.mark.parametrize("request_", [on.Stop(end=on_request("enough")), on.Tell(to="ben", text="hello")])
def test_an_agent_neither_stops_the_run_nor_speaks_as_the_operator(request_: on.Request) -> None:
    stage = Stage(2, RULES)
    assert stage.ask("ann", request_) == ["answer ann: no, cannot do this for an agent (only the operator can)"]
    assert stage.fleet.run.stopping is None


def test_an_agent_alerts_the_operator() -> None:
    stage = Stage(rules=RULES)
    assert stage.ask("ann", on.RaiseAlert(text="no disk left")) == [
        "alert run-alert-1 of ann: no disk left",
        "answer ann: yes, the operator gets this alert",
    ]
    assert stage.ask("operator", on.RaiseAlert(text="test")) == [
        "alert run-alert-2: test",
        "answer operator: yes, the operator gets this alert",
    ]


# --- the operator -------------------------------------------------------------------------------------------------


def test_the_operator_changes_one_agent_s_everybody_s_and_the_fleet_s() -> None:
    stage = Stage(2, RULES)
    assert stage.ask("operator", setting("ben", name="redirect", stagnant=3)) == [
        "show ben",
        "answer operator: yes, redirect: every 3 attempts in a row without improvement",
        "asked: heartbeats of ben: redirect: every 3 attempts in a row without improvement",
    ]
    assert stage.ask("operator", setting("*", name="reflect", every=2)) == [
        "show ann",
        "show ben",
        "answer operator: yes, reflect: every 2 attempts",
        "asked: heartbeats of everybody: reflect: every 2 attempts",
    ]
    assert stage.ask("operator", setting("*", name="consolidate", every=5)) == [
        "show fleet",
        "answer operator: yes, consolidate: every 5 attempts of the fleet",
        "asked: heartbeats of everybody: consolidate: every 5 attempts of the fleet",
    ]
    assert stage.ask("operator", setting("*", name="pool", every=5, prompt="pool", scope="fleet")) == [
        "show fleet",
        "answer operator: yes, pool: every 5 attempts of the fleet",
        "asked: heartbeats of everybody: pool: every 5 attempts of the fleet",
    ]
    assert stage.ask("operator", setting("*", name="own", every=5, prompt="own", scope="own"))[:2] == [
        "show ann",
        "show ben",
    ]
    assert stage.in_force(FLEET) == {
        "consolidate": "every 5 attempts of the fleet",
        "pool": "every 5 attempts of the fleet",
    }
    assert stage.fleet.run.targets == {"consolidate": 5, "pool": 5}
    assert {heartbeat.scope for heartbeat in stage.fleet.heartbeats[FLEET]} == {Scope.FLEET}
    assert list(stage.in_force("ann")) == ["reflect", "redirect", "checkpoint", "own"]


def test_a_new_heartbeat_of_the_fleet_and_its_interval_are_the_fleet_s() -> None:
    stage = Stage(2, RULES)
    stage.ask("operator", setting(FLEET, name="pool", every=2, prompt="pool", scope=None))
    assert stage.in_force(FLEET)["pool"] == "every 2 attempts of the fleet"
    assert stage.ask("operator", setting("ann", name="mine", every=2, prompt="mine", scope="fleet")) == [
        "answer operator: no, cannot set mine for ann: its scope is fleet (leave out the scope)",
        "refused: heartbeats of ann: cannot set mine for ann: its scope is fleet",
    ]
    stage = Stage(2, RULES)
    stage.tried(2, "ann", 1.0)
    stage.tried(2, "ben", 1.0)
    stage.ask("ann", setting(FLEET, name="consolidate", every=20))
    assert stage.fleet.run.targets == {"consolidate": 10}
    stage.ask("operator", setting(FLEET, name="pool", every=3, prompt="pool"))
    assert stage.fleet.run.targets == {"consolidate": 10, "pool": 5}


def test_removing_and_resetting_for_everybody_and_resetting_one_owner_leaves_the_others() -> None:
    stage = Stage(2, RULES)
    stage.ask("operator", on.RemoveHeartbeat(owner="ann", name="redirect"))
    # Who has it loses it; that ann has it no more is no reason to refuse.
    assert stage.ask("operator", on.RemoveHeartbeat(owner="*", name="redirect")) == [
        "show ben",
        "answer operator: yes, redirect is removed",
        "asked: heartbeats of everybody: redirect is removed",
    ]
    assert stage.ask("operator", on.RemoveHeartbeat(owner="*", name="redirect"))[0].startswith(
        "answer operator: no, cannot remove 'redirect': there is no such heartbeat"
    )
    stage.ask("operator", setting("*", name="consolidate", every=5))
    assert stage.ask("operator", on.ResetHeartbeats(owner="*")) == [
        "show fleet",
        "show ann",
        "show ben",
        "answer operator: yes, heartbeats are as the run started with",
        "asked: heartbeats of everybody: heartbeats are as the run started with",
    ]
    assert stage.in_force(FLEET) == OF_FLEET
    assert stage.in_force("ann") == stage.in_force("ben") == DEFAULT
    stage = Stage(2, RULES)
    for owner in ("ann", FLEET):
        stage.ask("operator", setting("*", name="consolidate", every=5))
        stage.ask("operator", setting("*", name="redirect", stagnant=3))
        assert stage.ask("operator", on.ResetHeartbeats(owner=owner))[0] == f"show {owner}"
    assert stage.in_force(FLEET) == OF_FLEET
    assert stage.in_force("ann")["redirect"] == "every 3 attempts in a row without improvement"


def test_a_change_for_everybody_is_made_for_all_or_for_none() -> None:
    stage = Stage(2, RULES)
    for place in range(17):
        stage.ask("operator", setting("ben", name=f"own-{place}", every=1, prompt="more"))
    before = stage.fleet
    assert "there are 20 already" in stage.ask("operator", setting("*", name="one-more", every=1, prompt="more"))[0]
    assert stage.fleet == before


def test_what_makes_no_sense_of_the_operator_is_refused_with_a_hint() -> None:
    stage = Stage(2, RULES)
    assert stage.ask("operator", on.ResetHeartbeats(owner="eve")) == [
        "answer operator: no, cannot find the owner 'eve' (there are: ann, ben, and fleet)",
        "refused: heartbeats of eve: cannot find the owner 'eve'",
    ]
    stage = Stage(rules=RULES)
    assert stage.ask("operator", setting("ann", name="reflect", every=1, stagnant=2)) == [
        "answer operator: no, cannot set the heartbeat 'reflect': it has every and stagnant "
        "(a heartbeat has one trigger)",
        "refused: heartbeats of ann: cannot set the heartbeat 'reflect': it has every and stagnant",
    ]
    # This ended the loop: there is no agent named operator.
    stage = Stage(rules=RULES)
    assert stage.ask("operator", on.Acknowledge(messages=("h1",))) == [
        "answer operator: no, cannot acknowledge a heartbeat for an agent (an agent does so when it has read it)"
    ]


# --- messages -----------------------------------------------------------------------------------------------------


def test_a_message_reaches_one_or_everybody_who_is_there() -> None:
    stage = Stage(3, RULES)
    assert stage.ask("operator", on.Tell(to="ann", text="one")) == [
        f"answer operator: yes, {QUEUED}",
        f'asked: tell ann "one": {QUEUED}',
    ]
    stage.at(2, stage.exited("ben", Ending.TERMINAL))
    stage.ask("operator", on.Tell(to="*", text="two"))
    assert [[message.prompt for message in stage[name].pending_messages] for name in stage.names] == [
        ["one", "two"],
        [],
        ["two"],
    ]
    assert stage.owed("cid") == ["message h3"]
    assert stage.ask("operator", on.Tell(to="ben", text="three")) == [
        "answer operator: no, cannot tell 'ben': it has retired (coral status shows who is at work)",
        "refused: tell ben \"three\": cannot tell 'ben': it has retired",
    ]


@pytest.mark.parametrize(
    ("to", "text", "answer"),
    [
        ("eve", "hello", "cannot tell 'eve': there is no such agent (there are: ann, ben)"),
        ("ann", " \n", "cannot send an empty message (say something)"),
    ],
)
def test_a_message_to_nobody_or_without_words_is_refused(to: str, text: str, answer: str) -> None:
    stage = Stage(2, RULES)
    said = stage.ask("operator", on.Tell(to=to, text=text))
    assert said[0] == f"answer operator: no, {answer}"
    assert said[1].startswith(f"refused: tell {to} ")
    assert len(said) == 2
    assert stage["ann"].pending_messages == ()


# --- what the operator reads of it --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (on.Tell(to="ann", text="be\nbold"), f'asked: tell ann "be bold": {QUEUED}'),
        (on.Tell(to="*", text="x" * 99), f'asked: tell everybody "{"x" * 79}…": {QUEUED}'),
        (on.Tell(to="eve", text="hi"), "refused: tell eve \"hi\": cannot tell 'eve': there is no such agent"),
        (setting("*", name="redirect", every=3), "asked: heartbeats of everybody: redirect: every 3 attempts"),
        (REMOVE_REFLECT, "refused: heartbeats of ann: cannot remove reflect: it is protected"),
        (on.ResetHeartbeats(owner="ben"), "asked: heartbeats of ben: heartbeats are as the run started with"),
        (on.ResetHeartbeats(owner=FLEET), "asked: heartbeats of the fleet: heartbeats are as the run started with"),
        (on.StopJob(number=7), "refused: job: cannot stop job 7: there is none that runs"),
        (on.RunJob(agent="eve", argv=("train",)), "refused: job: cannot start a job of 'eve': there is no such agent"),
    ],
)
def test_the_timeline_says_what_came_of_a_request_that_the_operator_made_while_nobody_supervised(
    asked: on.Request, told: str
) -> None:
    stage = Stage(2, RULES)
    stage.stop(2)
    said = stage.at(3, on.Resumed(), stage.asks("operator", asked))
    assert [line for line in said if line.startswith(("asked: ", "refused: "))] == [told]


def test_the_timeline_repeats_nothing_that_it_tells_anyway_and_no_agent_s_requests() -> None:
    stage = Stage(2, RULES)
    for clock, (sender, asked) in enumerate(
        (
            ("ann", setting("ann", name="redirect", every=3)),
            ("ann", on.Tell(to="ben", text="no")),
            ("operator", on.RunJob(agent="ann", argv=("train",))),
            ("operator", on.StopJob(number=1)),
            ("operator", on.RaiseAlert(text="look")),
            ("operator", on.Acknowledge(messages=("h1",))),
            ("operator", on.Leave(end=on_request())),
            ("operator", on.Stop(end=on_request("enough"))),
        ),
        start=2,
    ):
        said = stage.at(clock, stage.asks(sender, asked))
        assert not [line for line in said if line.startswith(("asked: ", "refused: "))]


# --- once ---------------------------------------------------------------------------------------------------------


def test_a_request_that_is_seen_twice_at_once_is_answered_once() -> None:
    stage = Stage(rules=RULES)
    request = stage.asks("operator", on.Tell(to="ann", text="hello"))
    other = replace(request, sender="ann")
    assert stage.at(2, request, request, other, replace(request, id="2")) == [
        f"answer operator/1: yes, {QUEUED}",
        f'asked: tell ann "hello": {QUEUED}',
        "answer ann/1: no, cannot do this for an agent (only the operator can)",
        f"answer operator/2: yes, {QUEUED}",
        f'asked: tell ann "hello": {QUEUED}',
    ]
    assert stage.owed("ann") == ["message h1", "message h2"]


def test_a_request_whose_answer_was_lost_is_answered_again_and_not_done_again() -> None:
    # It stayed where it was and was read at every poll; whoever had asked waited in vain.
    stage = Stage(rules=RULES)
    request = stage.asks("operator", on.Tell(to="ann", text="hello"))
    stage.at(2, request)
    assert stage.at(3, on.Resumed(), request)[-1] == "answer operator/1: yes, this was done before"
    assert stage.at(4, request) == ["answer operator/1: yes, this was done before"]
    assert stage.owed("ann") == ["message h1"]
    stage = Stage(rules=RULES)
    requests = [stage.asks("operator", on.RaiseAlert(text="x")) for _ in range(129)]
    stage.at(2, *requests)
    assert len(stage.fleet.run.requests) == 128
    assert stage.at(3, requests[1]) == ["answer operator/2: yes, this was done before"]
    assert stage.at(3, requests[0])[1] == "answer operator/1: yes, the operator gets this alert"


# --- protected --------------------------------------------------------------------------------------------------------


PROTECTED: list[tuple[str, Mapping[str, str | int | float | None]]] = [
    ("ann", {"name": "reflect", "every": 11}),
    ("ann", {"name": "reflect", "stagnant": 1}),
    ("ann", {"name": "reflect", "seconds": 60}),
    ("ann", {"name": "reflect", "prompt": "say OK"}),
    ("ann", {"name": "reflect", "prompt": " \n"}),
    ("ann", {"name": "reflect", "delivery": "inline"}),
    ("ann", {"name": "reflect", "scope": "fleet"}),
    ("ann", {"name": "Reflect", "every": 1, "prompt": "namesake"}),
    ("ann", {"name": "consolidate", "every": 1000, "prompt": "a harmless namesake"}),
    (FLEET, {"name": "consolidate", "every": 101}),
    (FLEET, {"name": "consolidate", "prompt": "say OK"}),
    (FLEET, {"name": "consolidate", "scope": "own"}),
    (FLEET, {"name": "consolidate", "delivery": "inline"}),
    (FLEET, {"name": "reflect", "every": 1000, "prompt": "a harmless namesake"}),
]


@pytest.mark.parametrize(("owner", "entry"), PROTECTED)
def test_a_protected_heartbeat_is_neither_emptied_starved_nor_replaced(
    owner: str, entry: Mapping[str, str | int | float | None]
) -> None:
    stage = Stage(rules=RULES)
    before = stage.fleet
    assert stage.ask("ann", on.SetHeartbeat(owner=owner, entry=entry))[0].startswith("answer ann: no, cannot")
    assert stage.fleet == before


@pytest.mark.parametrize(("owner", "name"), [("ann", "reflect"), (FLEET, "consolidate"), ("*", "reflect")])
def test_a_protected_heartbeat_is_removed_by_nobody(owner: str, name: str) -> None:
    stage = Stage(rules=RULES)
    assert stage.ask("operator", on.RemoveHeartbeat(owner=owner, name=name))[0] == (
        f"answer operator: no, cannot remove {name}: it is protected ({CHANGEABLE})"
    )


def test_retiming_again_and_again_starves_no_heartbeat() -> None:
    stage = Stage(rules=RULES)
    for clock in range(2, 12):
        assert stage.ask("ann", setting("ann", name="reflect", every=10), clock)[1][:15] == "answer ann: yes"
        assert stage["ann"].targets["reflect"] == 1
        assert stage.ask("ann", setting(FLEET, name="consolidate", every=100), clock)[1][:15] == "answer ann: yes"
        assert stage.fleet.run.targets["consolidate"] == 10
    stage.tried(12, "ann", 1.0)
    assert stage.owed("ann") == ["reflect h1"]
    assert stage["ann"].targets["reflect"] == 11


def test_an_agent_lays_nothing_of_its_own_under_the_fleet() -> None:
    # With the scope left out it was taken for its own: and then spoke to everybody.
    stage = Stage(2, RULES)
    assert stage.ask("ann", setting(FLEET, name="join-me", every=1, prompt="Copy ann.")) == [
        "answer ann: no, cannot set join-me: it would be the fleet's (set one with the scope own)"
    ]
    assert stage.ask("ann", setting(FLEET, name="join-me", every=1, prompt="Copy ann.", scope="own")) == [
        "answer ann: no, cannot set join-me for fleet: its scope is own (leave out the scope)"
    ]
    assert stage.in_force(FLEET) == OF_FLEET


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("message", "what the operator sends"),
        *((name, "what Coral sends itself") for name in ("land", "begin", "stalled")),
    ],
)
def test_no_heartbeat_may_have_the_name_of_what_the_operator_or_coral_sends(name: str, what: str) -> None:
    assert Stage(rules=RULES).ask("ann", setting("ann", name=name, every=1, prompt="You may stop now.")) == [
        f"answer ann: no, cannot name a heartbeat {name}: that is {what} (choose another name)"
    ]


# --- intervals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["retimed", "graded"])
def test_a_crossing_and_a_retiming_in_one_batch_are_taken_in_their_order(first: str) -> None:
    stage = Stage(rules=replace(RULES, heartbeats=(Heartbeat(name="breathe", trigger=Every(2), prompt="in"),)))
    stage.tried(2, "ann", 1.0)
    (number,) = stage.in_grading(2, "ann")
    graded = stage.graded(number, 2.0)
    retimed = stage.asks("ann", setting("ann", name="breathe", every=1))
    stage.at(3, *([retimed, graded] if first == "retimed" else [graded, retimed]))
    # Once in either order; from here on after every attempt.
    assert stage.owed("ann") == ["breathe h1"]
    assert stage["ann"].targets == {"breathe": 3}
