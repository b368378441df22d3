"""A run's curve: own bests as the standings have them at each moment, gaps, gains, the time to the best."""

import math
from contextlib import closing
from dataclasses import replace

from hypothesis import given, strategies as st
from sample import attempt

from attempts.index import file
from attempts.index.file import NO_FILE, row_of
from attempts.index.history import GradedRecord, deciding_own_best
from attempts.record import Attempt, Direction, Kind, Verdict
from attempts.standing import Confirmation, Scoring, Standing, advance, judge, judge_confirmation, own_bests
from coral.views.curve import BestStep, Curve, Point, curve_of, linear_axis, own_steps, reach

AGENTS = ("ann", "bob", "cid")


def graded(record: Attempt) -> GradedRecord:
    return GradedRecord(
        record.number, record.agent, record.kind, record.verdict, record.score, record.published_at, record.of
    )


moves = st.tuples(
    st.sampled_from(AGENTS),
    st.one_of(st.none(), st.integers(0, 6).map(float)),  # few values: many are equal
    st.sampled_from(["real", "real", "tune", "confirm", "copy"]),
)


def history(given_moves: list[tuple[str, float | None, str]], scoring: Scoring) -> tuple[list[Attempt], Standing]:
    """Records as a supervisor publishes them, judged by the real standings."""
    records = [attempt(0, 3.0)]
    standing = advance(Standing(), records[0], scoring)
    for number, (agent, score, kind) in enumerate(given_moves, start=1):
        earlier = [one for one in records if one.kind is Kind.REAL and one.of is None and one.score is not None]
        record = attempt(number, score, agent=agent, kind=Kind.TUNE if kind == "tune" else Kind.REAL)
        if kind in ("confirm", "copy") and earlier:
            of = earlier[number % len(earlier)]
            record = replace(record, of=of.number, tree=of.tree)
            if kind == "confirm":
                record = replace(record, kind=Kind.CONFIRM, agent=of.agent)
        if score is not None and record.kind is Kind.CONFIRM:
            verdict = judge_confirmation(standing, Confirmation(record.of or 0), score, scoring).verdict
            record = replace(record, verdict=verdict)
        elif score is not None:
            record = replace(record, verdict=judge(standing, agent, score, scoring).verdict)
        standing = advance(standing, record, scoring)
        records.append(record)
    return records, standing


@given(st.lists(moves, max_size=40), st.sampled_from(Direction))
def test_an_own_best_is_what_the_standings_say(
    given_moves: list[tuple[str, float | None, str]], direction: Direction
) -> None:
    scoring = Scoring(direction=direction)
    records, standing = history(given_moves, scoring)
    steps = own_steps(direction, map(graded, records), float)
    expected = {agent: best.value for agent, best in own_bests(standing, scoring).items() if agent}
    held = {agent: own[-1].value for agent, own in steps.items() if agent in expected}
    assert held == expected
    assert all([step.at for step in own] == sorted(step.at for step in own) for own in steps.values())


@given(st.lists(moves, max_size=40))
def test_what_the_index_names_decides_an_agents_own_best(given_moves: list[tuple[str, float | None, str]]) -> None:
    records, _ = history(given_moves, Scoring())
    steps = own_steps(Direction.MAXIMIZE, map(graded, records), float)
    with closing(file.create_in_memory((record.number, row_of(record, NO_FILE)) for record in records)) as rows:
        for agent in AGENTS:
            deciding = deciding_own_best(rows, agent)
            assert own_steps(Direction.MAXIMIZE, deciding, float).get(agent) == steps.get(agent)


def test_a_curve_counts_what_agents_tried() -> None:
    records = [
        graded(attempt(0, 1.0)),
        graded(attempt(1, 2.0, agent="ann")),
        graded(attempt(2, None, agent="bob")),
        graded(attempt(3, None, agent="bob", verdict=Verdict.VOID)),
        graded(attempt(4, 2.5, agent="bob", kind=Kind.TUNE, verdict=Verdict.WORSE)),
        graded(attempt(5, 2.2, agent="ann", kind=Kind.CONFIRM, of=1, verdict=Verdict.NEW_BEST)),
    ]
    bests = [("", 0, 1.0), ("", 5, 2.1)]
    curve = curve_of(Direction.MAXIMIZE, bests, records, lambda number: number * 10.0, end=70.0)
    assert list(curve.steps) == [BestStep(0.0, 0, 1.0), BestStep(50.0, 1, 2.1)], "the attempt, when it was proven"
    assert [(point.number, point.score) for point in curve.points] == [(1, 2.0), (2, None), (4, 2.5)]
    assert curve.own["ann"] == [BestStep(0.0, 0, 1.0), BestStep(10.0, 1, 2.0), BestStep(50.0, 1, 2.1)]
    assert (curve.best, curve.to_best, curve.end) == (2.1, 50.0, 70.0)


def test_a_curve_may_begin_without_the_seed_which_has_failed() -> None:
    first = attempt(1, 2.0, agent="ann", verdict=Verdict.NEW_BEST)
    for seed, has_seed, to_best in ((None, False, 10.0), (1.0, True, 10.0)):
        bests = [("", 0, 1.0), ("", 1, 2.0)] if has_seed else [("", 1, 2.0)]
        records = [graded(attempt(0, seed)), graded(first)]
        curve = curve_of(Direction.MAXIMIZE, bests, records, lambda number: number * 10.0)
        assert (curve.has_seed, curve.to_best) == (has_seed, to_best)
        assert list(curve.gained) == [BestStep(10.0, 1, 2.0)]


def test_the_seed_as_the_best_again_is_no_gain_of_an_attempt() -> None:
    records = [graded(attempt(0, 1.0)), graded(attempt(1, 1.5, agent="ann", verdict=Verdict.NEW_BEST))]
    records.append(graded(attempt(2, 0.5, agent="ann", kind=Kind.CONFIRM, of=1, verdict=Verdict.WORSE)))
    records.append(graded(attempt(9, 1.0, agent="", kind=Kind.CONFIRM, of=0, verdict=Verdict.NEW_BEST)))
    bests = [("", 0, 1.0), ("", 1, 1.0), ("", 9, 1.0)]
    curve = curve_of(Direction.MAXIMIZE, bests, records, float)
    assert [step.number for step in curve.steps] == [0, 1, 0], "the seed, and not the grade that has proven it"
    assert (list(curve.gained), curve.to_best) == ([BestStep(1.0, 1, 1.0)], None)
    later = replace(curve, steps=[*curve.steps, BestStep(11.0, 11, 2.0)])
    assert ([step.number for step in later.gained], later.to_best) == ([1, 11], 11.0)


def test_a_gap_is_how_much_worse_it_is() -> None:
    steps = [BestStep(0.0, 0, 5.0), BestStep(9.0, 1, 3.0)]
    assert Curve(Direction.MINIMIZE, steps).gap(3.5) == 0.5
    assert Curve(Direction.MAXIMIZE, steps).gap(3.5) == -0.5
    assert Curve(Direction.MINIMIZE, steps[:1]).to_best is None
    assert Curve(Direction.MINIMIZE).best is None


def test_an_attempt_that_fails_when_it_is_repeated_is_no_own_best_unless_it_is_proven() -> None:
    records = [attempt(0, 1.0), attempt(1, 5.0, agent="ann", verdict=Verdict.OWN_BEST), attempt(2, 3.0, agent="ann")]
    records += [attempt(number, None, agent="ann", kind=Kind.CONFIRM, of=1) for number in (3, 4)]
    steps = own_steps(Direction.MAXIMIZE, map(graded, records), float)["ann"]
    assert [(step.at, step.number) for step in steps] == [(0.0, 0), (1.0, 1), (4.0, 2)]
    records[1] = replace(records[1], verdict=Verdict.NEW_BEST)
    assert own_steps(Direction.MAXIMIZE, map(graded, records), float)["ann"][-1].number == 1


def test_a_linear_axis_reaches_to_the_steps_that_can_be_told_apart() -> None:
    assert reach([[1.82, 2.62, 2.63, 2.636]]) == (2.62, 2.636)
    assert reach([[90.0, 1.1, 1.05, 1.0]]) == (1.0, 1.1)
    assert reach([[1.82, 2.62, 2.63, 2.636], [1.0, 2.0, 3.0]]) == (1.0, 3.0), "of each line its own"
    assert reach([[0.0, 1.0]], [-1e9]) == (0.0, 1.0), "two steps are shown, whatever they are"
    assert reach([]) is None
    assert reach([[]], [1.0]) is None


def test_where_nothing_rises_the_nearer_half_of_the_attempts_is_on_the_axis() -> None:
    assert reach([[1.0]], [0.2, -1e9, 0.9, 0.5]) == (0.5, 1.0)
    assert reach([[1.0]], [-1e9]) == (-1e9, 1.0)
    assert reach([[1.0, 1.0]]) == (1.0, 1.0)


def test_a_single_score_above_the_best_is_on_the_axis_and_an_agent_that_is_behind() -> None:
    steps = [BestStep(float(at), at, value) for at, value in enumerate((1.82, 2.62, 2.63, 2.636))]
    above = Point(9.0, 9, "ann", Verdict.OWN_BEST, 3.0)
    worse = Point(9.0, 8, "ann", Verdict.WORSE, 4.0)  # a trial on less, for one
    curve = Curve(Direction.MAXIMIZE, steps, {"ann": [steps[0], BestStep(1.0, 4, 2.0)]}, [above, worse], 10.0)
    found = linear_axis(curve)
    assert found is not None
    assert (found.begins, found.low < 2.62, 3.0 < found.high < 3.1) == (steps[1], True, True)
    assert [found.is_worse(score) for score in (1.82, 2.62, 4.0)] == [True, False, False]
    own = linear_axis(curve, ("ann",))
    assert own is not None
    assert own.low < 1.82
    assert linear_axis(Curve(Direction.MAXIMIZE)) is None


FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(FINITE, min_size=1, max_size=8), st.lists(FINITE, max_size=8), st.sampled_from(Direction))
def test_a_linear_axis_of_anything_has_a_length_and_shows_the_best(
    values: list[float], scores: list[float], direction: Direction
) -> None:
    steps = [BestStep(float(at), at, value) for at, value in enumerate(values)]
    points = [Point(1.0, 9, "ann", Verdict.WORSE, score) for score in scores]
    found = linear_axis(Curve(direction, steps, {}, points))
    assert found is not None
    assert -math.inf < found.low < found.high < math.inf
    assert found.low <= min(max(values[-1], -1.7e308), 1.7e308) <= found.high
