"""The choice of the next search: a redirection holds for its episodes, what gains is chosen more often."""

from dataclasses import replace
from random import Random

import pytest
from native_situations import OBSERVATION, known, situation, trial
from sample import attempt

from attempts.record import Direction, Verdict
from coral.native.memory import Redirection
from coral.native.search.choose_family import choose_family, choose_start, compare_kinds


def chosen(*trials, **fields):
    return {choose_family(situation(*trials, **fields), Random(k)) for k in range(40)}


def test_a_redirection_decides_family_and_start():
    redirected = situation(trial(4, "rows", 1, 2), redirection=Redirection(start=9, family="cross", until=1))
    assert choose_family(redirected, Random(1)) == "cross"
    assert choose_start(redirected, Random(1)) == (9, "redirected to the best of the fleet")


def test_without_constraints_a_fleet_begins_with_a_descent_and_an_evolution():
    """From the same start: one of the two shows that the problem is smooth or rough."""

    def begun(agent, constraints, *trials):
        families = ("descent", "evolution", "rows")
        observation = replace(OBSERVATION, agent=agent, families=families, constraints=constraints)
        return choose_family(situation(*trials, observation=observation), Random(1))

    assert [begun(f"agent-{number}", 0) for number in (1, 2, 3)] == ["descent", "evolution", "descent"]
    assert begun("agent-1", 0, trial(4, "descent", 1, 2)) == "evolution"
    assert begun("agent-2", 0, trial(4, "evolution", 1, 2)) == "descent"
    assert {begun(f"agent-{number}", count) for number in (1, 2) for count in (None, 455)} == {"descent"}


def test_no_search_starts_from_files_that_cannot_be_searched():
    attempts = known(attempt(0, 1.0), attempt(2, 2.0), attempt(3, 9.0, agent="agent-2"))

    def starts(*unusable, **fields):
        behind = situation(trial(2, "rows", 3, 2), attempts=attempts, unusable=unusable, **fields)
        return {choose_start(behind, Random(k))[0] for k in range(40)}

    assert starts() == {2, 3}
    assert starts(3) == {2}
    assert starts(3, redirection=Redirection(start=3, until=1)) == {2}
    assert starts(2, 3) == {0}
    assert starts(0, 2, 3) == {None}


def test_a_redirection_ends_after_its_episodes():
    ended = Redirection(start=9, family="cross", until=3)
    assert "rows" in chosen(trial(4, "rows", 1, 2), redirection=ended, episodes=3)


def test_a_kind_that_leads_to_no_attempt_is_chosen_less():
    """No attempt of it can be compared."""
    families = ("descent", "tabu")
    observation = replace(OBSERVATION, families=families)
    fruitless = [replace(trial(4, "tabu", 1, None), number=None, verdict="")] * 10

    def picks(*trials):
        trials = (*trials, *[trial(4, "descent", 2, 1), trial(5, "descent", 1, 2)] * 2)
        return [choose_family(situation(*trials, observation=observation), Random(k)) for k in range(100)]

    assert picks().count("tabu") > 30
    assert picks(*fruitless).count("tabu") < 20


def test_a_kind_whose_attempts_gain_nothing_is_chosen_less():
    """Though its first attempt won against the other kind. With constraints the kind that follows them stays."""
    first = [
        attempt(0, 1.0),
        attempt(1, 5.0, title="descent from #0: x"),
        attempt(2, 9.0, title="evolution from #0: x"),
    ]
    fruitless = [attempt(k, 1.0, title="evolution from #2: x", verdict=Verdict.WORSE) for k in range(3, 11)]

    def evolutions(*records, constraints=0):
        observation = replace(OBSERVATION, families=("descent", "evolution"), constraints=constraints)
        here = situation(trial(2, "descent", 1, 2), observation=observation, attempts=known(*first, *records))
        return [choose_family(here, Random(k)) for k in range(100)].count("evolution")

    assert evolutions() > 70
    assert evolutions(*fruitless) < 65
    assert evolutions(*fruitless, constraints=3) == evolutions(constraints=3)


@pytest.mark.parametrize(
    ("last", "constraints", "anew"),
    [
        (trial(4, "rows", 1.0, 1.0), 0, True),
        (trial(4, "rows", 1.0, 1.0 + 1e-8), 0, True),
        (trial(4, "rows", 1.0, 1.1), 0, False),
        (trial(4, "rows", 1e-7, 2e-7), 0, False),  # a small score that was doubled
        (trial(4, "rows", 1.0, None), 0, False),  # it failed: no result
        (trial(4, "rows", 1.0, 1.0), 3, False),
        (trial(4, "rows", 1.0, 1.0), None, False),
        (trial(4, "evolution", 1.0, 1.0), 0, False),
    ],
)
def test_where_a_basin_is_exhausted_every_second_local_search_begins_anywhere(last, constraints, anew):
    families = ("descent", "rows", "shake", "jump", "scatter")
    observation = replace(OBSERVATION, families=families, constraints=constraints)
    begun = situation(trial(2, "descent", 1, 2), last, observation=observation, attempts=known(attempt(0, 1.0)))
    scattered = [choose_family(begun, Random(k)) for k in range(100)].count("scatter")
    assert (scattered > 40) is anew


def test_kinds_of_families_are_compared_from_the_same_start():
    """Each chosen as often as it came further from there; what was gained from other starts says nothing."""
    from_seed = [
        attempt(0, 1.0),
        attempt(1, 5.0, title="descent from #0: x"),
        attempt(2, 9.0, title="evolution from #0: x"),
    ]
    rough = known(*from_seed, attempt(3, 99.0, title="rows from #2: x"))
    assert compare_kinds(rough.recent, Direction.MAXIMIZE) == {"evolution": (1.0, 1), "local": (0.0, 1)}
    assert compare_kinds(rough.recent, Direction.MINIMIZE) == {"evolution": (0.0, 1), "local": (1.0, 1)}
    observation = replace(OBSERVATION, families=("descent", "evolution", "rows"))
    picks = [
        choose_family(situation(trial(2, "rows", 1, 2), observation=observation, attempts=rough), Random(k))
        for k in range(90)
    ]
    assert 60 < picks.count("evolution") < 90


def test_from_another_start_more_is_won_only_by_one_that_did_not_begin_better():
    attempts = [
        attempt(0, 1.0),
        attempt(1, 5.0, title="rows from #0: x"),
        attempt(2, 4.0, title="rows from #0: x"),
        attempt(3, 8.0, title="evolution from #2: x"),
        attempt(4, 9.0, title="rows from #3: x"),
    ]
    assert compare_kinds(attempts[:3], Direction.MAXIMIZE) == {}
    # #3 began better than #1 and #2: a start is worth something. #4 began better than #3.
    assert compare_kinds(attempts, Direction.MAXIMIZE) == {}
    # From #2, a worse start than that of #5, it reached more.
    fell = attempt(5, 6.0, title="rows from #1: x")
    assert compare_kinds([*attempts, fell], Direction.MAXIMIZE) == {"evolution": (1.0, 1), "local": (0.0, 1)}
    of_each = [attempt(6, 7.0, title="rows from #2: x"), attempt(7, 7.5, title="evolution from #1: x")]
    assert compare_kinds([*attempts, fell, *of_each], Direction.MAXIMIZE) == {"evolution": (2.0, 2), "local": (0.0, 2)}


def test_only_the_latest_attempts_are_compared():
    """What has gained at first need not gain later."""
    first = [attempt(0, 1.0), attempt(1, 5.0, title="rows from #0: x"), attempt(2, 9.0, title="evolution from #0: x")]
    later = [attempt(number, 1.0, title="rows from #0: x") for number in range(3, 30)]
    assert compare_kinds([*first, *later[:14]], Direction.MAXIMIZE) != {}
    assert compare_kinds([*first, *later], Direction.MAXIMIZE) == {}


def test_of_two_kinds_that_gained_nothing_none_is_better():
    """The one that begins anywhere ends farther from the start than the one that stays near it."""
    attempts = [
        attempt(0, 10.0),
        attempt(1, 9.9, title="rows from #0: x"),
        attempt(2, 1.0, title="evolution from #0: x"),
    ]
    assert compare_kinds(attempts, Direction.MAXIMIZE) == {}
    gained = attempt(3, 11.0, title="evolution from #0: x")
    assert compare_kinds([*attempts, gained], Direction.MAXIMIZE) == {"evolution": (1.0, 1), "local": (0.0, 1)}


def test_with_constraints_an_evolution_is_rare():
    families = ("descent", "evolution", "rows")
    observation = replace(OBSERVATION, families=families, constraints=455)
    once = trial(4, "descent", 1, 2)
    picks = [choose_family(situation(once, observation=observation), Random(k)) for k in range(90)]
    assert picks.count("evolution") < 10


def test_of_integers_and_orders_a_fleet_begins_with_annealing_and_tabu_search():
    observation = replace(OBSERVATION, families=("cross", "tabu", "anneal"), constraints=0)
    second = replace(observation, agent="agent-2")
    assert choose_family(situation(observation=observation), Random(1)) == "anneal"
    assert choose_family(situation(observation=second), Random(1)) == "tabu"


def test_who_is_behind_and_gained_nothing_sometimes_starts_from_the_best_of_the_fleet():
    records = [attempt(0, 1.0), attempt(1, 5.0, agent="agent-1"), attempt(2, 9.0, agent="agent-2")]

    def starts(verdict, own="agent-1"):
        observation = replace(OBSERVATION, agent=own)
        here = situation(trial(3, "rows", 5, 4, verdict=verdict), observation=observation, attempts=known(*records))
        return {choose_start(here, Random(k))[0] for k in range(30)}

    assert starts("worse") == {1, 2}
    assert starts("own best") == {1}
    assert starts("worse", own="agent-2") == {2}


def test_what_the_fleet_has_compared_is_not_tried_again():
    compared = known(
        attempt(0, 1.0),
        *(attempt(k, 5.0 + k, title=f"{name} from #0: x") for k, name in ((1, "descent"), (2, "evolution"))),
    )
    observation = replace(OBSERVATION, families=("descent", "evolution"), constraints=0)
    once = trial(1, "descent", 1, 6)
    picks = {choose_family(situation(once, observation=observation, attempts=compared), Random(k)) for k in range(40)}
    assert picks == {"descent", "evolution"}
