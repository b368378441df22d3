"""The choice of the next search: a redirection holds for its episodes, a family that gains nothing rests."""

from dataclasses import replace
from random import Random

from native_situations import OBSERVATION, situation, trial

from coral.native.memory import Redirection
from coral.native.search.choose_family import choose_family, choose_start


def chosen(*trials, **fields):
    return {choose_family(situation(*trials, **fields), Random(k)) for k in range(40)}


def test_a_redirection_decides_family_and_start():
    redirected = situation(trial(4, "rows", 1, 2), redirection=Redirection(start=9, family="cross", episodes=1))
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


def test_a_redirection_ends_after_its_episodes():
    ended = Redirection(start=9, avoid="rows", family="cross", episodes=0)
    assert "rows" in chosen(trial(4, "rows", 1, 2), redirection=ended)


def test_the_family_that_a_redirection_avoids_is_not_chosen():
    assert "rows" not in chosen(trial(4, "rows", 1, 2), redirection=Redirection(avoid="rows", episodes=1))


def test_a_family_that_gained_nothing_twice_in_a_row_rests():
    assert "rows" not in chosen(trial(4, "rows", 2, 1), trial(6, "rows", 2, 1))
    assert "rows" in chosen(trial(4, "shake", 2, 1), trial(6, "rows", 2, 1))
