"""Standings kept one record at a time say what a look at all records would say."""

from dataclasses import replace

import sample
from hypothesis import given
from hypothesis import strategies as st

from attempts.record import Attempt, Direction, Kind, Verdict
from coral.records.standings import RECENT, TOP, Standings


def record(number: int, agent: str, score: float | None, kind: Kind = Kind.REAL) -> Attempt:
    verdict = Verdict.FAILED if score is None else Verdict.TIED
    return sample.attempt(number, score, agent=agent, kind=kind, verdict=verdict)


SCORES = st.lists(
    st.tuples(
        st.sampled_from(["agent-1", "agent-2", "agent-3"]),
        st.none() | st.integers(-5, 5).map(float),
        st.sampled_from([Kind.REAL, Kind.TUNE, Kind.CONFIRM]),
    ),
    max_size=40,
)


@given(SCORES, st.sampled_from(list(Direction)))
def test_they_agree_with_a_look_at_everything(rows, direction):
    attempts = [record(place, *row) for place, row in enumerate(rows, 1)]
    standings = Standings(direction)
    for attempt in attempts:
        standings.add(attempt)
        standings.add(attempt)
    sign = -1 if direction is Direction.MAXIMIZE else 1
    ranked = sorted(
        (attempt for attempt in attempts if attempt.score is not None and attempt.kind is not Kind.TUNE),
        key=lambda attempt: (sign * (attempt.score or 0.0), attempt.order),
    )
    assert standings.top == ranked[:TOP]
    assert standings.best == (ranked[0] if ranked else None)
    for agent in {attempt.agent for attempt in attempts}:
        mine = [attempt for attempt in attempts if attempt.agent == agent]
        assert list(standings.recent_of[agent]) == mine[-RECENT:]
        best = [attempt for attempt in ranked if attempt.agent == agent]
        assert standings.best_of.get(agent) == (best[0] if best else None)
        assert standings.results_since(agent, 0) == mine[-RECENT:]
    first_bests = {attempt.agent: attempt.score for attempt in reversed(ranked)}
    for agent, score in first_bests.items():
        better = sum(direction.better(other, score) for other in first_bests.values())
        assert standings.rank(agent) == 1 + better


def test_a_result_says_how_far_it_is_from_the_best_before():
    seed = replace(record(0, "", 1.0, Kind.BASELINE), agent="")
    standings = Standings(Direction.MAXIMIZE, [seed])
    for attempt in (record(1, "agent-1", 3.0), record(2, "agent-1", 2.5), record(3, "agent-1", None)):
        standings.add(attempt)
    recent = list(standings.recent_of["agent-1"])
    assert [standings.delta(attempt) for attempt in recent] == ["+2 against #0", "-0.5 against #1", ""]


def test_the_last_improvement_is_kept_for_each_agent() -> None:
    standings = Standings(Direction.MAXIMIZE)
    assert standings.last_improvement("agent-1") is None
    seed = replace(record(0, "", 0.0, Kind.BASELINE), submission="", verdict=Verdict.IMPROVED)
    standings.add(seed)
    assert standings.last_improvement("agent-1") == 0
    for number, verdict, kind in (
        (1, Verdict.IMPROVED, Kind.REAL),
        (2, Verdict.TIED, Kind.REAL),
        (3, Verdict.IMPROVED, Kind.TUNE),
    ):
        standings.add(replace(record(number, "agent-1", float(number), kind), verdict=verdict))
    assert (standings.last_improvement("agent-1"), standings.last_improvement("agent-2")) == (1, 0)
