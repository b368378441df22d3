"""A trigger fires exactly when it should, however attempts are mixed and whoever retimes it."""

import pytest
from hypothesis import example, given, strategies as st

from attempts.progress import Progress
from heartbeats.trigger import Elapsed, Every, Stagnant, Trigger, arm, evaluate, retime

counts = st.integers(1, 12)


def walk(trigger: Trigger, marks: list[str], start: Progress | None = None) -> list[int]:
    """Feed attempts one by one: `+` improves, `-` does not, `.` is not counted. Returns the evals at each firing."""
    progress = start or Progress()
    target = arm(trigger, progress, 0)
    fired = []
    for mark in marks:
        progress = _after(progress, mark)
        now = evaluate(trigger, target, progress, 0)
        target = now.target
        if now.fired:
            fired.append(progress.evals if isinstance(trigger, Every) else progress.stagnant)
    return fired


def _after(progress: Progress, mark: str) -> Progress:
    if mark == ".":
        return progress
    return Progress(evals=progress.evals + 1, stagnant=0 if mark == "+" else progress.stagnant + 1)


@pytest.mark.parametrize("wrong", [0, -1, True, 2.0, "5", None])
def test_a_count_is_a_whole_number_from_1(wrong: object) -> None:
    for kind in (Every, Stagnant):
        with pytest.raises(ValueError, match="whole number"):
            kind(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [0, -1.0, float("nan"), float("inf"), True, "5", 10**400])
def test_a_period_is_a_number_of_seconds(wrong: object) -> None:
    with pytest.raises(ValueError, match="seconds"):
        Elapsed(wrong)  # type: ignore[arg-type]


@given(counts, st.integers(0, 12), st.lists(st.sampled_from("+-."), max_size=80))
@example(1, 0, ["."])
def test_every_n_fires_at_each_multiple_of_n_from_where_it_was_armed_and_nowhere_else(
    n: int, before: int, marks: list[str]
) -> None:
    evals = sum(mark != "." for mark in marks)
    fired = walk(Every(n), marks, Progress(evals=before))
    assert fired == list(range(before + n, before + evals + 1, n))


@given(counts, st.lists(st.sampled_from("+-."), max_size=80))
@example(5, ["-"] * 15)
@example(5, ["-"] * 7 + ["+"] + ["-"] * 5)
@example(3, ["-"] * 3 + ["."] * 3)
def test_stagnant_n_fires_at_n_2n_3n_and_is_armed_anew_by_an_improvement(n: int, marks: list[str]) -> None:
    expected, stagnant = [], 0
    for mark in marks:
        if mark == "-":
            stagnant += 1
            if stagnant % n == 0:
                expected.append(stagnant)
        elif mark == "+":
            stagnant = 0
    assert walk(Stagnant(n), marks) == expected


def test_stagnant_armed_in_the_middle_waits_for_the_next_multiple() -> None:
    assert arm(Stagnant(5), Progress(stagnant=7), 0) == 10
    assert arm(Stagnant(5), Progress(stagnant=5), 0) == 10
    assert walk(Stagnant(5), ["-"] * 8, Progress(stagnant=7)) == [10, 15]


def test_a_period_counts_on_from_when_it_fired_and_repeats_nothing() -> None:
    target = arm(Elapsed(10), Progress(), 100)
    assert not evaluate(Elapsed(10), target, Progress(), 109.9).fired
    assert evaluate(Elapsed(10), target, Progress(), 110).fired
    late = evaluate(Elapsed(10), target, Progress(), 157)
    assert late.fired
    assert late.target == 167
    assert not evaluate(Elapsed(10), late.target, Progress(), 157).fired


triggers = st.one_of(counts.map(Every), counts.map(Stagnant), st.integers(1, 100).map(Elapsed))


@given(triggers, triggers, st.integers(0, 30), st.integers(0, 30), st.integers(0, 200))
def test_retiming_never_lengthens_the_interval_that_runs(
    old: Trigger, new: Trigger, evals: int, stagnant: int, now: int
) -> None:
    progress = Progress(evals=evals, stagnant=stagnant)
    target = arm(old, progress, now)
    retimed = retime(old, new, target, progress, now)
    if type(old) is type(new):
        assert retimed <= target
        assert isinstance(new, Stagnant) or retimed <= arm(new, progress, now)
        assert not isinstance(new, Stagnant) or retimed <= stagnant + new.n
    else:
        assert retimed == arm(new, progress, now)


@given(counts, st.lists(counts, max_size=10), st.integers(0, 11))
def test_an_interval_shortened_is_the_new_one_from_where_the_old_began(n: int, later: list[int], gone: int) -> None:
    gone = min(gone, n - 1)
    at = arm(Every(n), Progress(evals=20), 0)
    progress = Progress(evals=20 + gone)
    for shorter in sorted({figure for figure in later if figure < n}, reverse=True):
        at, n = retime(Every(n), Every(shorter), at, progress, 0), shorter
        assert at == 20 + shorter


@given(st.lists(counts, min_size=1, max_size=60))
def test_whoever_retimes_before_each_attempt_delays_nothing(figures: list[int]) -> None:
    for make in (Every, Stagnant):
        trigger: Trigger = make(figures[0])
        progress, since = Progress(), 0
        target = arm(trigger, progress, 0)
        smallest_promise = figures[0]
        for figure in figures:
            target = retime(trigger, make(figure), target, progress, 0)
            trigger = make(figure)
            smallest_promise = min(smallest_promise, figure)
            progress, since = _after(progress, "-"), since + 1
            now = evaluate(trigger, target, progress, 0)
            target = now.target
            assert now.fired or since < smallest_promise
            if now.fired:
                since, smallest_promise = 0, figure


@pytest.mark.parametrize(
    ("old", "new", "target", "now", "retimed"),
    [
        # A period that is shortened is the new one from where the old began; another kind of trigger starts anew.
        (Elapsed(100), Elapsed(30), 150, 60, 80),
        (Elapsed(100), Elapsed(300), 150, 60, 150),
        (Every(10), Stagnant(5), 10, 50, 5),
        (Stagnant(5), Elapsed(60), 5, 50, 110),
        (Elapsed(60), Every(3), 110, 50, 10),
    ],
)
def test_what_a_retimed_trigger_waits_for(
    old: Trigger, new: Trigger, target: float, now: float, retimed: float
) -> None:
    assert retime(old, new, target, Progress(evals=7, stagnant=2), now) == retimed
