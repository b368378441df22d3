"""A hand-over: what is tuned next, how often, and the note that gives it back."""

from dataclasses import replace
from random import Random

from native_situations import OBSERVATION, known, situation, trial
from sample import attempt

from attempts.record import Direction
from coral.native.brain import SearchBrain
from coral.native.calls import Search
from coral.native.memory import Redirection, Trial
from coral.native.search.choose_family import choose_start
from coral.native.search.hand_over import TRIES, report, start_from
from coral.native.shared_skills import HandOver
from coral.native.situation import CallFailed, Idle

HANDED = replace(OBSERVATION, hand_overs=(HandOver("agent-2", 3),))
RECORDS = [attempt(0, 1.0), attempt(2, 5.0), attempt(3, 2.0, agent="agent-2")]


def tuned(*scores: float, observation=HANDED, **fields):
    """A situation after tries with these scores, each from the best of the line so far; numbers from 4 on."""
    trials, records, start = [], list(RECORDS), 3
    values = {3: 2.0}
    for number, score in enumerate(scores, 4):
        trials.append(trial(number, "shake", values[start], score, start=start))
        records.append(attempt(number, score))
        values[number] = score
        start = max(values, key=lambda held: (values[held], -held))
    return situation(*trials, observation=observation, attempts=known(*records), **fields)


def test_what_is_handed_over_is_tuned_although_the_own_best_is_better() -> None:
    assert choose_start(tuned(), Random(1)) == (3, f"agent-2 hands #3 over, try 1 of {TRIES}")
    assert start_from(tuned(2.5)) == (4, f"agent-2 hands #3 over, try 2 of {TRIES}")
    assert start_from(tuned(2.5, 2.2)) == (4, f"agent-2 hands #3 over, try 3 of {TRIES}")
    least = replace(HANDED, direction=Direction.MINIMIZE)
    assert start_from(tuned(2.5, observation=least)) == (3, f"agent-2 hands #3 over, try 2 of {TRIES}")


def test_after_its_tries_the_agent_goes_on_from_its_own_best_and_gives_it_back() -> None:
    after = tuned(2.5, 2.2, 2.7, 2.6)
    assert start_from(after) is None
    assert choose_start(after, Random(1))[0] == 2
    (note,) = report(after)
    assert (note.name, note.title) == ("tuned-3-by-agent-1", "The numbers of #3 are tuned: 2 -> 2.7")
    assert note.attempts == (3, 4, 5, 6, 7)
    assert "agent-2 handed over" in note.body
    assert report(tuned(2.5, 2.2, 2.7)) == ()
    done = replace(HANDED, hand_overs=(HandOver("agent-2", 3, given_back=True),))
    assert report(tuned(2.5, 2.2, 2.7, 2.6, observation=done)) == ()
    assert start_from(tuned(observation=done)) is None
    (first, then) = SearchBrain().reason(after, Idle())
    assert (first, isinstance(then, Search)) == (note, True)


def fruitless(count: int, *trials):
    """A situation after so many searches from the attempt that led to no attempt, and these trials."""
    failed = [Trial(title="shake from #3", family="shake", start=3)] * count
    return situation(*failed, *trials, observation=HANDED, attempts=known(*RECORDS, attempt(4, 2.5)))


def test_searches_that_lead_to_no_attempt_are_tries_too() -> None:
    """As where the public check rejects what is handed over: else every search would begin there."""
    assert start_from(fruitless(3)) == (3, f"agent-2 hands #3 over, try 4 of {TRIES}")
    after = fruitless(4)
    assert start_from(after) is None
    (note,) = report(after)
    assert (note.name, note.title) == ("tuned-3-by-agent-1", "The numbers of #3 could not be tuned")
    assert note.attempts == (3,)
    assert report(fruitless(3)) == ()
    (note,) = report(fruitless(3, trial(4, "shake", 2.0, 2.5, start=3)))
    assert note.title == "The numbers of #3 are tuned: 2 -> 2.5"


def test_what_cannot_be_searched_is_given_back_at_once() -> None:
    unusable = situation(observation=HANDED, attempts=known(*RECORDS), unusable=(3,))
    assert start_from(unusable) is None
    assert [note.title for note in report(unusable)] == ["The numbers of #3 could not be tuned"]


def test_a_search_that_failed_is_not_repeated_from_where_the_tries_are_over() -> None:
    failed = CallFailed(Search(family="shake", start=3, why=""), "found nothing", transient=False)
    assert [SearchBrain().reason(fruitless(count), failed)[-1].start for count in (3, 4)] == [3, 2]


def test_a_redirection_goes_first_and_what_cannot_be_tuned_is_left_alone() -> None:
    redirected = tuned(redirection=Redirection(start=2, family="cross", until=1))
    assert choose_start(redirected, Random(1))[0] == 2
    own = replace(HANDED, hand_overs=(HandOver("agent-1", 3),))
    unknown = replace(HANDED, hand_overs=(HandOver("agent-2", 99),))
    assert start_from(tuned(observation=own)) is None
    assert start_from(tuned(observation=unknown)) is None
