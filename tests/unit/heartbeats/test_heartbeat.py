"""Who may change what. A protected heartbeat survives every way to remove, rename, empty or starve it."""

import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from heartbeats.entry import from_entry
from heartbeats.heartbeat import (
    BUILT_IN,
    Delivery,
    Heartbeat,
    HeartbeatError,
    Scope,
    find,
    is_blank,
    remove_heartbeat,
    reset_heartbeats,
    set_heartbeat,
)
from heartbeats.trigger import Elapsed, Every, Stagnant, Trigger

OWN = tuple(heartbeat for heartbeat in BUILT_IN if heartbeat.scope is Scope.OWN)
FLEET = tuple(heartbeat for heartbeat in BUILT_IN if heartbeat.scope is Scope.FLEET)
REFLECT, CONSOLIDATE = BUILT_IN[0], BUILT_IN[1]
EVERYBODY = pytest.mark.parametrize("by", ["agent-1", "operator", "task"])
MINE = Heartbeat(name="plan", trigger=Every(3), prompt="Is the plan still right?")

# No heartbeat has one of these names.
NAMESAKES = ["Reflect", "REFLECT", " reflect", "reflect\n", "reflect\u200b", "ｒeflect", "rеflect", ""]
# To people all of these say nothing.
EMPTY = [
    *(" ", "\n\t", "...", "{# say nothing #}", "{#- a -#} {# b #}"),
    *("\u200b\u200b", "\ufeff", "\u2060\u00ad\u180e", "\u3164\u115f\uffa0\u1160", "\u2800", "\u0301"),
    *("\U000e0041\U000e0042", "\u202e \u202c"),
]


def refused(
    current: tuple[Heartbeat, ...], wanted: Heartbeat, by: str, match: str = "cannot", **change: object
) -> HeartbeatError:
    with pytest.raises(HeartbeatError, match=match) as caught:
        set_heartbeat(current, replace(wanted, **change), by)  # type: ignore[arg-type]
    assert caught.value.hint
    return caught.value


def test_for_a_misspelt_name_or_a_lookalike_the_hint_names_what_was_meant() -> None:
    assert "did you mean reflect?" in refused(OWN, replace(MINE, name="reflct"), "operator", prompt="").hint
    assert "did you mean" not in refused(OWN, MINE, "operator", prompt="").hint
    assert "did you mean reflect?" in str(refused(OWN, MINE, "agent-1", name="Ｒeflect "))


def test_the_built_in_set_is_what_is_promised() -> None:
    assert [(heartbeat.name, heartbeat.trigger, heartbeat.scope, heartbeat.protected) for heartbeat in BUILT_IN] == [
        ("reflect", Every(1), Scope.OWN, True),
        ("consolidate", Every(10), Scope.FLEET, True),
        ("redirect", Stagnant(5), Scope.OWN, False),
        ("checkpoint", Elapsed(1800), Scope.OWN, False),
    ]


# To remove.


@EVERYBODY
def test_nobody_removes_a_protected_heartbeat_and_a_reset_keeps_it_whatever_the_defaults_say(by: str) -> None:
    for current, name in ((OWN, "reflect"), (FLEET, "consolidate"), (BUILT_IN, "reflect")):
        with pytest.raises(HeartbeatError, match="protected"):
            remove_heartbeat(current, name, by)
    assert reset_heartbeats((), BUILT_IN) == (REFLECT, CONSOLIDATE)
    assert reset_heartbeats(OWN, set_heartbeat(OWN, MINE, by)) == OWN
    assert find(reset_heartbeats(OWN[1:], OWN), "reflect") == REFLECT


@pytest.mark.parametrize("name", [*NAMESAKES, "r*", "x" * 9999])
def test_a_similar_name_is_another_name(name: str) -> None:
    with pytest.raises(HeartbeatError, match="no such heartbeat"):
        remove_heartbeat(BUILT_IN, name, "agent-1")


@EVERYBODY
def test_the_limit_of_heartbeats_removes_none(by: str) -> None:
    current = OWN
    for number in range(20 - len(OWN)):
        current = set_heartbeat(current, replace(MINE, name=f"mine-{number}"), by)
    assert len(current) == 20
    refused(current, MINE, by, "20 already", name="one-more")
    assert find(current, "reflect") == REFLECT
    assert len(set_heartbeat(current, replace(MINE, name="mine-3", prompt="Other words"), by)) == 20


# To rename, or to hide behind one of the same name.


@EVERYBODY
@pytest.mark.parametrize(
    "name",
    [*(*NAMESAKES, "reflect ", "re flect", "-a", "1a", "a_b", "../a", "a/b"), *("x" * 41, "é", "\x00", "x" * 100_000)],
)
def test_a_name_is_a_plain_slug(name: str, by: str) -> None:
    message = refused(OWN, MINE, by, "cannot name", name=name)
    assert len(str(message)) < 200


@EVERYBODY
def test_no_heartbeat_of_the_same_name_hides_the_fleet_s(by: str) -> None:
    namesake = replace(CONSOLIDATE, scope=Scope.OWN, trigger=Every(1_000_000), prompt="Do nothing.")
    refused(OWN, namesake, by, "belongs to the fleet")
    refused(OWN, CONSOLIDATE, by, "belongs to the fleet")
    refused(FLEET, REFLECT, by, "belongs to each agent")


@EVERYBODY
def test_setting_keeps_the_protection_and_grants_none(by: str) -> None:
    changed = set_heartbeat(OWN, replace(REFLECT, trigger=Every(2), protected=False), by)
    assert changed[0] == replace(REFLECT, trigger=Every(2), by=by)
    added = set_heartbeat(OWN, replace(MINE, protected=True), by)
    assert not added[-1].protected
    assert remove_heartbeat(added, "plan", by) == OWN


# To empty.


@EVERYBODY
@pytest.mark.parametrize("prompt", EMPTY)
def test_nobody_empties_one(prompt: str, by: str) -> None:
    refused(OWN, REFLECT, by, prompt=prompt)
    refused(FLEET, CONSOLIDATE, by, prompt=prompt)
    refused(OWN, MINE, by, "says nothing", prompt=prompt)
    redirect = find(OWN, "redirect")
    assert redirect
    refusal = refused(OWN, redirect, by, "says nothing", prompt=prompt)
    assert "did you mean" not in refusal.hint


def test_a_prompt_of_nothing_but_beginnings_of_comments_is_checked_at_once() -> None:
    """Agents ask the supervisor to set heartbeats, as often as they like."""
    begun = time.process_time()
    for _ in range(20):
        set_heartbeat(BUILT_IN, Heartbeat(name="own", trigger=Every(2), prompt="{#a" * 6_600), by="agent-1")
    assert time.process_time() - begun < 5


def test_the_name_of_a_protected_one_is_not_doubted() -> None:
    refusal = refused(OWN, REFLECT, "operator", "its prompt says nothing", prompt="  ")
    assert "did you mean" not in refusal.hint


@pytest.mark.parametrize("prompt", ['{{ "" }}', "{% if false %}{% endif %}", "{{ message }}", "{% raw %}{% endraw %}"])
def test_a_protected_one_says_something_outside_the_tags(prompt: str) -> None:
    refused(OWN, REFLECT, "operator", "say", prompt=prompt)


def test_an_agent_does_not_change_its_words() -> None:
    refused(OWN, REFLECT, "agent-1", "prompt is fixed", prompt="Say OK.")
    reworded = set_heartbeat(OWN, replace(REFLECT, prompt="Say why."), "operator")
    # Not even back to the built-in ones, by leaving the prompt out.
    refused(reworded, REFLECT, "agent-1", "prompt is fixed", prompt="")
    retimed = set_heartbeat(reworded, from_entry({"name": "reflect", "every": 3}, reworded), "agent-1")
    assert retimed[0].prompt == "Say why."


@pytest.mark.parametrize("by", ["operator", "task"])
def test_the_operator_and_the_task_may_give_it_reworded(by: str) -> None:
    assert set_heartbeat(OWN, replace(REFLECT, prompt="Say why."), by)[0].prompt == "Say why."
    reworded = set_heartbeat(OWN, replace(REFLECT, prompt="Say why."), by)
    assert set_heartbeat(reworded, replace(REFLECT, prompt=""), by)[0].prompt == ""


@EVERYBODY
def test_a_prompt_has_a_size(by: str) -> None:
    refused(OWN, MINE, by, "over 20 kB", prompt="x" * 20_001)
    refused(OWN, MINE, by, "over 20 kB", prompt="é" * 10_001)
    set_heartbeat(OWN, replace(MINE, prompt="x" * 20_000), by)
    if by != "agent-1":
        refused(OWN, REFLECT, by, "over 20 kB", prompt="x" * 20_001)


# To starve.


@EVERYBODY
@pytest.mark.parametrize(
    ("current", "wanted", "trigger"),
    [
        (OWN, REFLECT, Every(11)),
        (OWN, REFLECT, Every(10**400)),
        (OWN, REFLECT, Stagnant(1)),
        (OWN, REFLECT, Elapsed(60)),
        (FLEET, CONSOLIDATE, Every(101)),
        (FLEET, CONSOLIDATE, Stagnant(10)),
        (FLEET, CONSOLIDATE, Elapsed(86_400)),
    ],
)
def test_its_trigger_stays_near_and_of_its_kind(
    current: tuple[Heartbeat, ...], wanted: Heartbeat, trigger: Trigger, by: str
) -> None:
    refused(current, wanted, by, "protected", trigger=trigger)


@EVERYBODY
def test_its_scope_and_delivery_stay_and_its_bound_is_not_measured_from_a_retimed_one(by: str) -> None:
    refused(OWN, REFLECT, by, "scope and its delivery", scope=Scope.FLEET)
    refused(OWN, REFLECT, by, "scope and its delivery", delivery=Delivery.INLINE)
    refused(FLEET, CONSOLIDATE, by, "scope and its delivery", scope=Scope.OWN)
    current = OWN
    for _ in range(5):
        current = set_heartbeat(current, replace(REFLECT, trigger=Every(10)), by)
        refused(current, REFLECT, by, "between 1 and 10", trigger=Every(11))
    fleet = set_heartbeat(set_heartbeat(FLEET, replace(CONSOLIDATE, trigger=Every(50)), "task"), CONSOLIDATE, by)
    refused(fleet, CONSOLIDATE, by, "between 1 and 100", trigger=Every(101))


# What agents may and may not do otherwise.


def test_an_agent_retimes_the_fleet_s_consolidation_and_nothing_else_of_the_fleet() -> None:
    assert set_heartbeat(FLEET, replace(CONSOLIDATE, trigger=Every(20)), "agent-1")[0].trigger == Every(20)
    fleet = set_heartbeat(FLEET, replace(MINE, scope=Scope.FLEET), "task")
    refused(fleet, MINE, "agent-1", "fleet", scope=Scope.FLEET)
    refused(fleet, MINE, "agent-1", "fleet")
    refused(OWN, MINE, "agent-1", "fleet", scope=Scope.FLEET)
    with pytest.raises(HeartbeatError, match="belongs to the fleet"):
        remove_heartbeat(fleet, "plan", "agent-1")
    assert remove_heartbeat(fleet, "plan", "operator") == FLEET


def test_agents_change_what_is_not_protected() -> None:
    current = set_heartbeat(OWN, MINE, "agent-1")
    assert current[-1] == replace(MINE, by="agent-1")
    assert set_heartbeat(current, replace(MINE, trigger=Stagnant(2)), "agent-1")[-1].trigger == Stagnant(2)
    assert find(remove_heartbeat(current, "redirect", "agent-1"), "redirect") is None
    without = remove_heartbeat(OWN, "redirect", "agent-1")
    assert set_heartbeat(without, BUILT_IN[2], "agent-1")[-1].trigger == Stagnant(5)


@pytest.mark.parametrize(
    ("trigger", "by", "fits"),
    [
        (Every(1_000_000), "agent-1", True),
        (Every(1_000_001), "operator", False),
        (Stagnant(10**5000), "agent-1", False),
        (Elapsed(59), "agent-1", False),
        (Elapsed(60), "agent-1", True),
        (Elapsed(0.5), "operator", False),
        (Elapsed(1), "operator", True),
        (Elapsed(30 * 86_400), "task", True),
        (Elapsed(30 * 86_400 + 1), "task", False),
    ],
)
def test_figures_have_limits(trigger: Trigger, by: str, fits: bool) -> None:
    if fits:
        assert set_heartbeat(OWN, replace(MINE, trigger=trigger), by)[-1].trigger == trigger
    else:
        refused(OWN, MINE, by, trigger=trigger)


@pytest.mark.parametrize(
    ("trigger", "scope", "words"),
    [
        (Every(1), Scope.OWN, "every attempt"),
        (Every(10), Scope.FLEET, "every 10 attempts of the fleet"),
        (Stagnant(5), Scope.OWN, "every 5 attempts in a row without improvement"),
        (Elapsed(1800), Scope.OWN, "every 30 minutes"),
        (Elapsed(3600), Scope.OWN, "every hour"),
        (Elapsed(90), Scope.OWN, "every 90 seconds"),
        (Elapsed(172_800), Scope.OWN, "every 2 days"),
    ],
)
def test_a_trigger_in_words(trigger: Trigger, scope: Scope, words: str) -> None:
    assert replace(MINE, trigger=trigger, scope=scope).when == words


def test_what_is_blank() -> None:
    assert not is_blank("a")
    assert not is_blank("\u200b7")
    assert not is_blank("読む")


makers: list[Callable[[int], Trigger]] = [Every, Stagnant, lambda n: Elapsed(float(n))]
wishes = st.builds(
    Heartbeat,
    name=st.sampled_from(["reflect", "consolidate", "redirect", "mine", "Reflect", ""]),
    trigger=st.builds(lambda make, n: make(n), st.sampled_from(makers), st.integers(1, 10**7)),
    scope=st.sampled_from(Scope),
    delivery=st.sampled_from(Delivery),
    prompt=st.sampled_from(["", " ", "words", "{# x #}"]),
    protected=st.booleans(),
)
actions = st.tuples(
    st.sampled_from(["set", "remove", "reset"]), wishes, st.sampled_from(["agent-1", "operator", "task"])
)


@given(st.lists(actions, max_size=30), st.sampled_from([BUILT_IN, OWN, FLEET]))
def test_whatever_is_asked_the_protected_ones_stay(
    asked: list[tuple[str, Heartbeat, str]], start: tuple[Heartbeat, ...]
) -> None:
    current = start
    for verb, wish, by in asked:
        try:
            match verb:
                case "set":
                    current = set_heartbeat(current, wish, by)
                case "remove":
                    current = remove_heartbeat(current, wish.name, by)
                case _:
                    current = reset_heartbeats(start, current)
        except HeartbeatError:
            pass
        for protected in (heartbeat for heartbeat in start if heartbeat.protected):
            now = find(current, protected.name)
            assert now is not None
            assert (now.protected, now.scope, now.delivery) == (True, protected.scope, protected.delivery)
            assert isinstance(now.trigger, Every)
            assert isinstance(protected.trigger, Every)
            assert now.trigger.n <= 10 * protected.trigger.n
            assert now.prompt in ("", "words")
        assert len({heartbeat.name for heartbeat in current}) == len(current) <= 20
        assert sum(heartbeat.protected for heartbeat in current) == sum(heartbeat.protected for heartbeat in start)
