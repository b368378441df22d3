"""When a heartbeat is owed, as transcripts: each crossing once, attempt by attempt, to whom it falls."""

from collections.abc import Sequence
from dataclasses import replace

from stage import REFLECT, Stage, rules_with

from attempts.noise import NoiseSetting
from attempts.progress import Progress
from attempts.record import Kind
from attempts.standing import Scoring
from coral.fleet.events import Ending
from heartbeats.heartbeat import BUILT_IN, Delivery, Heartbeat, Scope
from heartbeats.trigger import Every, Stagnant

CONSOLIDATE = Heartbeat(name="consolidate", trigger=Every(10), scope=Scope.FLEET, protected=True)
REDIRECT = Heartbeat(name="redirect", trigger=Stagnant(5))
NOISY = Scoring(noise=NoiseSetting(deviation=0.2))


def crossings(heartbeats: Sequence[Heartbeat], scores: Sequence[float | None]) -> list[str]:
    """Which heartbeats one agent is owed after each of these scores, as `number name`. Nobody takes them up."""
    stage, seen = Stage(rules=rules_with(*heartbeats)), []
    for score in scores:
        known = {message.id for message in stage["ann"].pending_messages}
        stage.tried(2, "ann", score)
        number = stage.fleet.run.order
        seen += [f"{number} {message.name}" for message in stage["ann"].pending_messages if message.id not in known]
    return seen


# --- how often ----------------------------------------------------------------------------------------------------


def test_four_agents_settle_in_the_same_instant() -> None:
    stage = Stage(4, rules_with(*BUILT_IN))
    stage.in_grading(2, *stage.names, wait=60)
    assert stage.at(3, *[stage.graded(number, float(number)) for number in (1, 2, 3, 4)]) == [
        "publish #1 new best 1, then reflect",
        "publish #2 new best 2, then reflect",
        "publish #3 new best 3, then reflect",
        "publish #4 new best 4, then reflect",
        "interrupt ann/1",
        "interrupt ben/1",
        "interrupt cid/1",
        "interrupt dot/1",
    ]
    assert stage.at(4, *[stage.exited(name, Ending.INTERRUPTED) for name in stage.names])[4:] == [
        "spawn ann/2: heartbeat, session of ann, told 0, owed reflect:h1",
        "spawn ben/2: heartbeat, session of ben, told 0, owed reflect:h2",
        "spawn cid/2: heartbeat, session of cid, told 0, owed reflect:h3",
        "spawn dot/2: heartbeat, session of dot, told 0, owed reflect:h4",
    ]
    assert stage.at(5, *[stage.heard(name) for name in stage.names]) == [
        "heartbeat ann: reflect (h1) received",
        "heartbeat ben: reflect (h2) received",
        "heartbeat cid: reflect (h3) received",
        "heartbeat dot: reflect (h4) received",
    ]
    assert [stage[name].progress for name in stage.names] == [Progress(1, 0, 1) for number in (1, 2, 3, 4)]
    assert [stage[name].pending_messages for name in stage.names] == [()] * 4
    assert stage.fleet.run.progress == Progress(4, 0, 4)


def test_stagnant_5_fires_at_5_10_and_15_and_is_armed_anew_by_an_improvement() -> None:
    assert crossings([REDIRECT], [-1.0] * 17) == ["5 redirect", "10 redirect", "15 redirect"]
    assert crossings([REDIRECT], [-1.0] * 7 + [1.0] + [0.5] * 11) == ["5 redirect", "13 redirect", "18 redirect"]
    assert crossings([REDIRECT], [None] * 5) == ["5 redirect"]
    assert crossings([REDIRECT], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) == []
    assert crossings([REDIRECT], [-1.0] * 4 + [1.0] + [0.0] * 4) == []


def test_every_n_fires_at_n_whatever_the_score() -> None:
    heartbeats = [replace(REFLECT, trigger=Every(3))]
    assert crossings(heartbeats, [1.0, None, 0.0, -1.0, 5.0, 6.0, 7.0]) == ["3 reflect", "6 reflect"]
    assert crossings([replace(REDIRECT, trigger=Stagnant(2)), REFLECT], [-1.0] * 2) == [
        "1 reflect",
        "2 redirect",
        "2 reflect",
    ]


def test_every_10_of_the_fleet_is_neither_skipped_nor_doubled_in_one_batch() -> None:
    stage = Stage(3, rules_with(CONSOLIDATE))
    authors = ["ann", "ben", "cid", "ben"] * 6
    numbers = stage.in_grading(2, *authors[:20]) + stage.in_grading(2, *authors[20:])
    said = stage.at(3, *[stage.graded(number, float(number)) for number in numbers[:19]])
    # The tenth attempt is ben's; of the first nineteen there is no other tenth.
    assert [line for line in said if "publish" not in line and "grade" not in line] == ["interrupt ben/1"]
    assert stage.owed("ben") == ["consolidate h1"]
    assert stage["ben"].pending_messages[0].attempt == 10
    # The twentieth is ben's again; whoever comes after it crosses nothing.
    stage.at(3, *[stage.graded(number, float(number)) for number in numbers[19:]])
    assert [stage.owed(name) for name in stage.names] == [[], ["consolidate h1", "consolidate h2"], []]
    assert stage.fleet.run.targets == {"consolidate": 30}


def test_what_is_void_or_tried_out_crosses_nothing() -> None:
    stage = Stage(rules=rules_with(REFLECT, replace(CONSOLIDATE, trigger=Every(1))))
    stage.in_grading(2, "ann")
    stage.voided(2, 1)
    (number,) = stage.in_grading(2, "ann", kind=Kind.TUNE)
    assert stage.at(2, stage.graded(number, 9.0))[1:] == []
    assert stage.owed("ann") == []
    stage.tried(3, "ann", None)
    assert stage.owed("ann") == ["reflect h1", "consolidate h2"]


def test_the_fleet_stagnates_by_its_own_best() -> None:
    stage = Stage(2, rules_with(Heartbeat(name="stuck", trigger=Stagnant(2), scope=Scope.FLEET, prompt="look up")))
    stage.tried(2, "ann", 5.0)
    stage.tried(2, "ben", 1.0)
    assert stage.fleet.run.targets == {"stuck": 2}
    stage.tried(2, "ben", 2.0)
    # Both of ben's attempts improved on ben's best, and neither on the fleet's.
    assert stage.owed("ben") == ["stuck h1"]
    assert stage["ben"].progress.stagnant == 0
    owed = stage["ben"].pending_messages[0]
    assert (owed.scope, owed.stagnant, owed.prompt, owed.since, owed.due) == (Scope.FLEET, True, "look up", 2, 2)


def test_what_is_owed_says_what_it_is() -> None:
    stage = Stage(rules=rules_with(replace(REFLECT, delivery=Delivery.INLINE), REDIRECT))
    stage.tried(7, "ann", 1.0)
    (owed,) = stage["ann"].pending_messages
    assert (owed.id, owed.name, owed.since, owed.due, owed.prompt) == ("h1", "reflect", 7, 7, "")
    assert (owed.attempt, owed.scope, owed.stagnant, owed.defers) == (1, Scope.OWN, False, False)
    assert (owed.inline, owed.printed) == (True, False)


# --- to whom ------------------------------------------------------------------------------------------------------


def retire(stage: Stage, clock: float, agent: str) -> None:
    stage.at(clock, stage.exited(agent, Ending.TERMINAL, "no more ideas"))


def test_what_the_fleet_crossed_falls_to_the_next_submitter_if_the_author_has_retired() -> None:
    stage = Stage(2, rules_with(replace(CONSOLIDATE, trigger=Every(2))))
    stage.in_grading(2, "ann", "ann")
    retire(stage, 3, "ann")
    assert stage.at(4, stage.graded(1, 1.0), stage.graded(2, 2.0)) == ["publish #1 new best 1", "publish #2 new best 2"]
    assert [message.id for message in stage.fleet.run.unassigned_messages] == ["h1"]
    assert stage.owed("ann") == []
    # A void attempt counts for nothing and hands nothing on.
    stage.in_grading(5, "ben")
    stage.voided(5, 3)
    assert stage.owed("ben") == []
    assert stage.tried(5, "ben", 1.5) == ["publish #4 own best 1.5", "interrupt ben/1"]
    assert stage.owed("ben") == ["consolidate h1"]
    assert stage.fleet.run.unassigned_messages == ()
    # The fourth attempt crosses again, once.
    stage.tried(5, "ben", 1.0)
    assert stage.owed("ben") == ["consolidate h1", "consolidate h2"]
    stage = Stage(3, rules_with(replace(CONSOLIDATE, trigger=Every(1))))
    stage.in_grading(2, "ann", "ben", "cid")
    retire(stage, 3, "ann")
    retire(stage, 3, "ben")
    stage.at(4, stage.graded(1, 1.0), stage.graded(2, 1.0), stage.graded(3, 1.0))
    assert stage.owed("cid") == ["consolidate h1", "consolidate h2", "consolidate h3"]


def test_an_author_who_retired_still_owes_its_own() -> None:
    stage = Stage(2, rules_with(REFLECT, CONSOLIDATE))
    stage.in_grading(2, "ann")
    retire(stage, 3, "ann")
    assert stage.at(4, stage.graded(1, 1.0)) == ["publish #1 new best 1"]
    assert stage.owed("ann") == ["reflect h1"]
    assert stage.fleet.run.targets == {"consolidate": 10}


def test_what_an_agent_owes_of_the_fleet_s_is_handed_on_when_it_retires() -> None:
    # It was lost with the agent: nobody consolidated until ten attempts later.
    stage = Stage(2, rules_with(REFLECT, replace(CONSOLIDATE, trigger=Every(1))))
    stage.tried(2, "ann", 1.0)
    assert stage.owed("ann") == ["reflect h1", "consolidate h2"]
    retire(stage, 3, "ann")
    assert stage.owed("ann") == ["reflect h1"]
    assert [message.id for message in stage.fleet.run.unassigned_messages] == ["h2"]
    stage.tried(4, "ben", 1.0)
    assert stage.owed("ben") == ["reflect h3", "consolidate h2", "consolidate h4"]
    inline = Heartbeat(name="pooled", trigger=Every(1), scope=Scope.FLEET, delivery=Delivery.INLINE, prompt="pool")
    stage = Stage(2, rules_with(inline))
    assert stage.tried(2, "ann", 1.0, wait=9) == ["publish #1 new best 1, printing pooled:h1"]
    retire(stage, 3, "ann")
    assert not stage.fleet.run.unassigned_messages[0].printed


# --- overtaken ----------------------------------------------------------------------------------------------------


def test_a_stagnation_that_an_improvement_overtakes_is_withdrawn() -> None:
    stage = Stage(2, rules_with(replace(REDIRECT, trigger=Stagnant(1)), REFLECT))
    stage.in_grading(2, "ann", "ann", "ben")
    assert stage.at(3, stage.graded(1, -1.0), stage.graded(3, -1.0))[2:] == ["interrupt ann/1", "interrupt ben/1"]
    assert stage.at(4, stage.graded(2, 1.0)) == [
        "withdrawn ann: redirect (h1) is overtaken by an improvement",
        "publish #2 new best 1",
    ]
    # Only the stagnation, and only the author's.
    assert stage.owed("ann") == ["reflect h2", "reflect h5"]
    assert stage.owed("ben") == ["redirect h3", "reflect h4"]


def test_a_stagnation_that_is_on_its_way_or_overtaken_by_a_tie_within_the_noise_is_not_withdrawn() -> None:
    stage = Stage(rules=rules_with(replace(REDIRECT, trigger=Stagnant(1))))
    stage.in_grading(2, "ann", "ann", "ann")
    stage.at(3, stage.graded(1, -1.0))
    stage.at(3, stage.graded(2, -1.0), stage.exited("ann", Ending.INTERRUPTED))
    assert stage["ann"].in_flight == ("h1", "h2")
    assert stage.at(4, stage.graded(3, 1.0)) == ["publish #3 new best 1"]
    assert stage.at(4, stage.heard("ann")) == ["heartbeat ann: redirect (h1, h2) received"]
    noisy = replace(rules_with(replace(REDIRECT, trigger=Stagnant(1))), scoring=NOISY)
    stage = Stage(rules=noisy)
    stage.tried(2, "ann", 0.2)
    stage.tried(2, "ann", 0.4)
    assert stage.owed("ann") == ["redirect h1", "redirect h2"]


def test_a_stagnation_of_the_fleet_is_overtaken_by_anybody_s_improvement_of_the_fleet_s_best() -> None:
    stuck = Heartbeat(name="stuck", trigger=Stagnant(3), scope=Scope.FLEET, prompt="look up")
    stage = Stage(2, rules_with(stuck, replace(REDIRECT, trigger=Stagnant(2))))
    stage.tried(2, "ann", 5.0)
    numbers = stage.in_grading(2, "ann", "ann", "ann", "ben", "ben")
    stage.at(3, *[stage.graded(number, 0.5) for number in numbers[:3]])
    assert stage.owed("ann") == ["redirect h1", "stuck h2"]
    # ben's own improvement is none of the fleet's, nor of ann's.
    assert stage.at(4, stage.graded(numbers[3], 1.0)) == ["publish #5 own best 1"]
    assert stage.at(4, stage.graded(numbers[4], 9.0)) == [
        "withdrawn ann: stuck (h2) is overtaken by an improvement",
        "publish #6 new best 9",
    ]
    assert stage.owed("ann") == ["redirect h1"]


def test_a_stagnation_that_waits_for_the_next_submitter_is_overtaken_too() -> None:
    # It reached the very agent whose improvement had made it pointless.
    stuck = Heartbeat(name="stuck", trigger=Stagnant(1), scope=Scope.FLEET, prompt="look up")
    stage = Stage(2, rules_with(stuck, replace(CONSOLIDATE, trigger=Every(1))))
    stage.in_grading(2, "ann")
    retire(stage, 3, "ann")
    stage.at(4, stage.graded(1, -1.0))
    assert [message.name for message in stage.fleet.run.unassigned_messages] == ["stuck", "consolidate"]
    assert stage.tried(5, "ben", 1.0)[0] == "withdrawn: stuck (h1) is overtaken by an improvement"
    assert stage.owed("ben") == ["consolidate h2", "consolidate h3"]
