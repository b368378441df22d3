"""The brain `search`: what it does about each event."""

from dataclasses import replace

from native_situations import OBSERVATION, known, said, situation, trial
from sample import attempt

from coral.native.answers.skill import SearchSkill
from coral.native.brain import SearchBrain
from coral.native.memory import Candidate
from coral.native.prompt import HeartbeatSection
from coral.native.search.bandit import FamilyStats
from coral.native.situation import (
    AwaitResult,
    CallFailed,
    CandidateFound,
    Idle,
    Prompted,
    ResultReceived,
    Search,
    Submit,
)

BRAIN = SearchBrain()


def test_a_heartbeat_that_is_repeated_is_answered_once():
    asked = Prompted((HeartbeatSection("checkpoint", "h5", ""),))
    assert BRAIN.reason(situation(), asked)
    assert BRAIN.reason(situation(answered=("h5",)), asked) == ()


def test_what_is_unfinished_comes_first():
    half = trial(9, "rows", 1.0, None)
    assert BRAIN.reason(situation(pending=half), Idle()) == (AwaitResult(trial=half),)
    candidate = Candidate(trial=half, texts={"a": "b"})
    assert BRAIN.reason(situation(unsubmitted=candidate), Idle()) == (Submit(candidate=candidate),)
    assert BRAIN.reason(situation(), CandidateFound(candidate)) == (Submit(candidate=candidate),)
    assert said(BRAIN.reason(situation(), ResultReceived(half)))


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
    """An agent that is behind starts from the best that the skill names, and prefers what has paid for others."""
    skill = SearchSkill("where-the-search-pays", "agent-2", {"shake": FamilyStats(30.0, 30.0, 1.0)}, 9, 30)
    observation = replace(OBSERVATION, skills=(skill,))
    done = trial(4, "rows", 1.0, 1.1)
    chosen = [BRAIN.reason(situation(done, observation=observation, episodes=k), Idle())[0] for k in range(60)]
    alone = [BRAIN.reason(situation(done, episodes=k), Idle())[0] for k in range(60)]
    searches = [call for call in chosen if isinstance(call, Search)]
    assert sum(call.start == 9 for call in searches) > 15
    assert sum(call.start == 9 for call in alone if isinstance(call, Search)) == 0
    assert all("where-the-search-pays by agent-2" in call.why for call in searches)
    without = sum(isinstance(call, Search) and call.family == "shake" for call in alone)
    assert sum(call.family == "shake" for call in searches) > without + 10
