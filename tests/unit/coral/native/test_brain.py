"""The brain `search`: what it does about each event."""

from dataclasses import replace

from native_situations import OBSERVATION, known, said, situation, trial
from sample import attempt

from coral.native.brain import SearchBrain
from coral.native.calls import Search, Submit
from coral.native.memory import Candidate
from coral.native.shared_skills import SearchSkill
from coral.native.situation import CallFailed, CandidateFound, Idle, ResultReceived

BRAIN = SearchBrain()


def test_what_was_found_is_submitted_and_its_result_is_reported():
    candidate = Candidate(trial=trial(9, "rows", 1.0, 1.2), texts={"a": "b"})
    assert BRAIN.reason(situation(), CandidateFound(candidate)) == (Submit(candidate=candidate),)
    assert said(BRAIN.reason(situation(), ResultReceived(candidate.trial))).startswith("#9 own best, 1 -> 1.2: rows")


def test_the_first_attempt_descends_from_the_seed():
    (call,) = BRAIN.reason(situation(attempts=known(attempt(0, 1.0))), Idle())
    assert isinstance(call, Search)
    assert (call.family, call.start) == ("descent", 0)


def test_a_failed_call_is_repeated_or_replaced_by_another_family():
    search = Search(family="rows", start=1, why="")
    assert BRAIN.reason(situation(), CallFailed(search, "the disk was busy", transient=True)) == (search,)
    calls = BRAIN.reason(situation(), CallFailed(search, "no table", transient=False))
    assert "no table" in said(calls)
    assert isinstance(calls[-1], Search)
    assert calls[-1].family != "rows"


def test_a_skill_is_loaded_and_used():
    """An agent prefers what has paid for others."""
    skill = SearchSkill("agent-2", 30, {"shake": (30.0, 30.0)})
    observation = replace(OBSERVATION, skill=skill)
    done = trial(4, "rows", 1.0, 1.1)
    chosen = [BRAIN.reason(situation(done, observation=observation, episodes=k), Idle())[0] for k in range(200)]
    alone = [BRAIN.reason(situation(done, episodes=k), Idle())[0] for k in range(200)]
    searches = [call for call in chosen if isinstance(call, Search)]
    assert all("loaded the skill by agent-2, up to #30" in call.why for call in searches)
    without = sum(isinstance(call, Search) and call.family == "shake" for call in alone)
    assert sum(call.family == "shake" for call in searches) > without + 20
