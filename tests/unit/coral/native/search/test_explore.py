"""The tool `search` in a clone without a public check: a step, its opposite, and files that offer nothing."""

import json
import os
import pickle
from collections.abc import Mapping
from dataclasses import replace

import pytest
from native_agent import LocalAgent
from sample import attempt

from coral.native.calls import Search
from coral.native.memory import KnownAttempts, Trial
from coral.native.options import Options
from coral.native.run_view import AgentRunView
from coral.native.search import episode, explore
from coral.native.search.episode import Episode
from coral.native.search.explore import THREADS, Explorer
from coral.native.search.numeric import problem
from coral.native.search.numeric.evolution import Evolution, save_evolution
from coral.native.tool_error import ToolError
from coral.public_check.candidate import Measurement
from coral.search_space.space import MOST_VARIABLES

SHAKE = Search(family="shake", start=None, why="")


def test_without_a_check_the_candidate_is_one_step_away_and_is_remembered(agent: LocalAgent):
    found = agent.bench.explorer.search(SHAKE).candidate
    memory = agent.snapshots.memory
    assert memory.unsubmitted == found
    assert found.texts["p.json"] != '{"x": 1.5}'
    assert found.trial.title.startswith("shake from the files: 1 of 1 values differ; most of all x 1.5 -> ")
    assert found.trial.change.startswith("1 of 1 values differ; most of all x 1.5 -> ")
    assert memory.episodes == 1


def test_searches_are_the_same_when_they_are_repeated(agent: LocalAgent):
    """What an episode draws depends on the seed, the session and the number of the episode."""
    first = agent.bench.explorer.search(SHAKE)
    second = agent.bench.explorer.search(SHAKE)
    agent.snapshots.memory = replace(agent.snapshots.memory, episodes=0)
    assert agent.bench.explorer.search(SHAKE) == first != second


@pytest.mark.parametrize(
    ("scores", "opposite"),
    [([0.5], True), ([2.0], False), ([0.5, 0.5], False), ([0.5, 2.0], False), ([2.0, 0.5], True), ([None], True)],
)
def test_the_opposite_of_a_step_follows_only_if_the_step_gained_nothing(
    agent: LocalAgent, monkeypatch: pytest.MonkeyPatch, scores: list[float | None], opposite: bool
):
    """Each attempt began where the score is 1, and x 1.5."""
    attempts = [attempt(number, score) for number, score in enumerate(scores, 1)]
    trials = [
        Trial(title="t", family="shake", before=1.0, number=number, score=score)
        for number, score in enumerate(scores, 1)
    ]
    known = KnownAttempts(recent=tuple(attempts))
    agent.snapshots.memory = replace(agent.snapshots.memory, trials=tuple(trials), known=known)
    monkeypatch.setattr(AgentRunView, "files", lambda *_: {"p.json": '{"x": 2.0}'})
    found = agent.bench.explorer.search(SHAKE).candidate
    assert (json.loads(found.texts["p.json"])["x"] == 1.0) is opposite


def test_without_a_check_the_step_of_a_family_follows_its_results(agent: LocalAgent):
    first = agent.bench.explorer.search(SHAKE).candidate.trial
    graded = replace(first, before=1.0, score=2.0, number=3)
    agent.snapshots.memory = replace(agent.snapshots.memory, trials=(graded,))
    assert agent.bench.explorer.search(SHAKE).candidate.trial.step > first.step > 0


class Clock:
    """A clock of its own, which only measurements advance: how busy the machine is changes no episode."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


class MeasuredFiles:
    """A check in this process: the best x is 3. A measurement takes a millisecond."""

    clock = Clock()

    def warm_up(self) -> None: ...

    def close(self) -> None: ...

    def measure(self, candidates):
        values = [json.loads(texts["p.json"])["x"] if texts else 1.5 for texts in candidates]
        self.clock.now += 1e-3 * len(values)
        return [Measurement(-((x - 3.0) ** 2)) for x in values]


@pytest.fixture
def checked(agent: LocalAgent, monkeypatch: pytest.MonkeyPatch) -> LocalAgent:
    """An agent with a public check, whose episodes are short."""
    explorer = agent.bench.explorer
    monkeypatch.setenv(THREADS, "1")
    monkeypatch.setattr(AgentRunView, "tracked", lambda _: {"p.json": "blob 1"})
    monkeypatch.setattr(explore, "PublicCheck", lambda *_: MeasuredFiles())
    explorer.options, explorer.check = Options(seconds=0.05), "check.py"
    for module in (episode, problem):
        monkeypatch.setattr(module, "time", MeasuredFiles.clock)
    agent.snapshots.memory = replace(agent.snapshots.memory, known=KnownAttempts(recent=(attempt(1, 0.5),)))
    return agent


def test_what_the_check_rejects_is_submitted_without_a_score_to_expect(
    checked: LocalAgent, monkeypatch: pytest.MonkeyPatch
):
    def reject(check, candidates):
        check.clock.now += 1e-3 * len(candidates)
        return [Measurement(error="rejected") for _ in candidates]

    monkeypatch.setattr(MeasuredFiles, "measure", reject)
    assert checked.bench.explorer.search(SHAKE).candidate.trial.expected is None


def test_episodes_become_longer_up_to_twice_the_first(checked: LocalAgent, monkeypatch: pytest.MonkeyPatch):
    """In units of `seconds`: with one real variable, a descent takes half of one."""
    lasted, run = list[float](), Episode.run
    monkeypatch.setattr(Episode, "run", lambda self: lasted.append(self.seconds) or run(self))
    checked.bench.explorer.options = Options(seconds=1.0)
    for _ in range(6):
        checked.bench.explorer.search(Search(family="shake", start=None, why=""))
    assert lasted == [1.0, 1.25, 1.5, 1.75, 2.0, 2.0]


@pytest.mark.parametrize("text", ['"none"', str([0.5] * (MOST_VARIABLES + 1))])
def test_from_files_that_cannot_be_searched_the_clone_goes_back(
    checked: LocalAgent, monkeypatch: pytest.MonkeyPatch, text: str
):
    texts = {"before": '{"x": 1.5}', attempt(1, 0.5).commit: text}
    monkeypatch.setattr(AgentRunView, "head", lambda _: "before")
    monkeypatch.setattr(
        Explorer, "_check_out", lambda _, commit, number: (checked.clone / "p.json").write_text(texts[commit])
    )
    with pytest.raises(ToolError, match="cannot start from #1: the editable files hold"):
        checked.bench.explorer.search(Search(family="shake", start=1, why=""))
    assert checked.bench.explorer.families()
    assert checked.snapshots.memory.unusable == (1,)


def test_a_family_that_needs_another_form_of_files_is_an_error(checked: LocalAgent, monkeypatch: pytest.MonkeyPatch):
    """The families are those of the files before the clone was put on the start, which may be another program."""
    monkeypatch.setattr(AgentRunView, "head", lambda _: "before")
    monkeypatch.setattr(Explorer, "_check_out", lambda *_: None)
    with pytest.raises(ToolError, match="rows does not suit the files of #1"):
        checked.bench.explorer.search(Search(family="rows", start=1, why=""))
    assert checked.snapshots.memory.unusable == ()


@pytest.mark.parametrize("changed", [False, True])
def test_an_evolution_goes_on_in_the_same_program_alone(
    checked: LocalAgent, monkeypatch: pytest.MonkeyPatch, changed: bool
):
    (checked.clone / "p.json").write_text('{"x": 1.5, "y": 0.5}')
    search, kept = Search(family="evolution", start=None, why=""), checked.state / "evolution-1"
    checked.bench.explorer.search(search)
    program, evolution = pickle.loads(kept.read_bytes())
    evolution.record = -1e9
    save_evolution(kept, evolution, program)
    if changed:
        monkeypatch.setattr(AgentRunView, "tracked", lambda _: {"p.json": "blob 1", "model.py": "blob 2"})
    checked.bench.explorer.search(search)
    _, evolution = pickle.loads(kept.read_bytes())
    assert (evolution.record > -1e9) is changed


def test_an_evolution_that_is_interrupted_is_kept(checked: LocalAgent, monkeypatch: pytest.MonkeyPatch):
    """An interrupt ends the process in the middle of an episode."""
    (checked.clone / "p.json").write_text('{"x": 1.5, "y": 0.5}')
    monkeypatch.setattr(explore, "SAVE_SECONDS", 0.0)
    checked.bench.explorer.options = Options(seconds=1.0)
    search = Search(family="evolution", start=None, why="")
    generations, make = list[int](), Evolution._make_generation

    def interrupted(evolution, problem):
        if len(generations) == 5:
            raise KeyboardInterrupt
        generations.append(1)
        return make(evolution, problem)

    monkeypatch.setattr(Evolution, "_make_generation", interrupted)
    with pytest.raises(KeyboardInterrupt):
        checked.bench.explorer.search(search)
    _, evolution = pickle.loads((checked.state / "evolution-1").read_bytes())
    assert evolution.strategy.countiter == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [('"none"', "no number and no choice"), (str([0.5] * (MOST_VARIABLES + 1)), "more than the 3000")],
)
def test_files_with_nothing_or_too_much_to_vary_are_an_error(agent: LocalAgent, text, message):
    (agent.clone / "p.json").write_text(text)
    assert agent.bench.explorer.families() == ()
    with pytest.raises(ToolError, match=message):
        agent.bench.explorer.search(SHAKE)


def test_the_constraints_of_files_with_nothing_to_vary_are_unknown(checked: LocalAgent):
    explorer = checked.bench.explorer
    assert explorer.constraints() == 0
    explorer._public_check = explorer._constraints = None
    (checked.clone / "p.json").write_text('"none"')
    assert explorer.constraints() is None


@pytest.mark.parametrize("mine", [None, "2"])
def test_numpy_is_loaded_for_one_thread_and_the_check_is_not_told(
    checked: LocalAgent, monkeypatch: pytest.MonkeyPatch, mine: str | None
):
    """Unless the user has said how many."""
    told = list[Mapping[str, str]]()
    monkeypatch.setattr(explore, "PublicCheck", lambda *given: told.append(given[-1]) or MeasuredFiles())
    monkeypatch.delenv(THREADS)
    if mine is not None:
        monkeypatch.setenv(THREADS, mine)
    replace(checked.bench.explorer, environment=dict(os.environ)).search(SHAKE)
    assert os.environ[THREADS] == (mine or "1")
    assert [environment.get(THREADS) for environment in told] == [mine]
