"""Every answer of the index is the one that reading all records would give."""

from collections import Counter
from contextlib import closing
from sqlite3 import Connection

import pytest
import reference_board as board
from cases import TIMES
from hypothesis import given, settings, strategies as st
from sample import attempt

from attempts.index import file, query
from attempts.index.file import row_of
from attempts.index.query import Wanted
from attempts.record import Attempt, Direction, Kind, Verdict

TEXTS = st.sampled_from(("", "gap", "a Gap", "ß and Straße", "quote's \"", "100% _x_", "İstanbul", "ab"))


SCORES = st.sampled_from((None, 0.0, -0.0, 1.0, 1.0, 2.5, -3.0, 0.1, 0.3, 1e308, -1e308, 5e-324))


@st.composite
def histories(draw: st.DrawFn) -> list[Attempt]:
    made, epoch = [attempt(0, 1.0)], 1
    for number in range(1, draw(st.integers(1, 14))):
        if draw(st.sampled_from((False, False, False, False, True))):
            epoch += 1
            made.append(attempt(number, draw(SCORES) or 0.0, kind=Kind.BASELINE, agent="", epoch=epoch))
            continue
        kind = draw(st.sampled_from((Kind.REAL, Kind.REAL, Kind.TUNE, Kind.CONFIRM)))
        score = draw(SCORES)
        parent = draw(st.integers(-1, number - 1))
        made.append(
            attempt(
                number,
                score,
                kind=kind,
                of=draw(st.integers(0, number - 1)) if kind is Kind.CONFIRM else draw(st.sampled_from((None, None, 0))),
                agent=draw(st.sampled_from(("agent-1", "agent-2", "agent-3"))),
                tree=f"{draw(st.integers(0, 5)):040x}",
                commit=f"{draw(st.integers(0, 8)):040x}",
                parent="" if parent < 0 else made[parent].commit,
                title=draw(TEXTS) or "plain",
                feedback=draw(TEXTS),
                verdict=draw(st.sampled_from((Verdict.NEW_BEST, Verdict.OWN_BEST, Verdict.TIED)))
                if score is not None
                else draw(st.sampled_from((Verdict.FAILED, Verdict.VOID))),
                order=draw(st.integers(0, 14)),
                epoch=epoch,
            )
        )
    return made


def indexed(history: list[Attempt]) -> closing[Connection]:
    return closing(file.create_in_memory((record.number, row_of(record, (0, 0, 0))) for record in history))


def fits(record: Attempt, wanted: Wanted) -> bool:
    text = "\n".join((record.title, record.reason, record.feedback)).casefold()
    return (
        (not wanted.agent or record.agent == wanted.agent)
        and (not wanted.kind or record.kind is wanted.kind)
        and (not wanted.only_agent or record.agent in (wanted.only_agent, ""))
        and wanted.text.casefold() in text
    )


WANTED = st.builds(
    Wanted,
    agent=st.sampled_from(("", "agent-1", "agent-9", "agent-1\x00")),
    kind=st.sampled_from((None, None, *Kind)),
    text=st.one_of(TEXTS, st.sampled_from(("GAP", "strasse", "p", "%", "zebra", "e's \"", "\x1bgap", "\ud800"))),
    only_agent=st.sampled_from(("", "", "agent-2")),
)


@settings(max_examples=60 * TIMES, deadline=None)
@given(histories(), WANTED, st.sampled_from(Direction), st.sampled_from((None, 1, 2, 5)), st.booleans())
def test_every_answer_is_the_one_that_all_records_give(
    history: list[Attempt], wanted: Wanted, direction: Direction, limit: int | None, words: bool
) -> None:
    rows = file.create_in_memory((record.number, row_of(record, (0, 0, 0))) for record in history)
    if not words:
        rows.execute("DROP TABLE words")
    chosen = [record for record in history if fits(record, wanted)]
    assert list(query.recent(rows, wanted)) == [record.number for record in reversed(chosen)]
    seen = [record for record in history if fits(record, Wanted(only_agent=wanted.only_agent))]
    found = query.ranked(rows, wanted, direction, limit)
    if wanted.kind in (None, Kind.REAL):
        assert found == board.leaderboard(seen, direction, lambda record: fits(record, wanted))[:limit]
    for record in seen:
        assert query.lineage(rows, record.number, 3, wanted.only_agent) == board.lineage(seen, record.number)[-3:]
    assert query.curve(rows, wanted.only_agent) == board.curve(seen, history)
    for number in range(len(history)):
        assert query.measured(rows, number) == board.measured(history, number)
    numbers = range(len(history))
    each = query.scores_of(rows, numbers)
    again = query.measured_again(rows)
    assert {**each, **again} == each
    assert all(len(each[number]) == 1 for number in each.keys() - again)
    proofs = [record for record in history if record.verdict is Verdict.NEW_BEST]
    last = max(proofs, key=lambda record: record.order, default=None)
    assert query.best(rows) is None or last is not None
    totals = query.totals(rows, wanted.only_agent)
    attempts = [record for record in seen if record.kind in (Kind.REAL, Kind.TUNE)]
    now = [record for record in attempts if record.epoch == history[-1].epoch]
    assert (totals.attempts, totals.earlier) == (len(attempts), len(attempts) - len(now))
    assert totals.unscored == sum(record.score is None for record in now)
    counting = [record for record in seen if record.kind is Kind.REAL and record.verdict is not Verdict.VOID]
    assert query.evals(rows, wanted.only_agent) == len(counting)
    assert query.evals(rows, wanted.only_agent, 3) == sum(record.number > 3 for record in counting)
    assert query.failed(rows, wanted.only_agent) == sum(record.verdict is Verdict.FAILED for record in counting)
    scored = (record for record in board.this_epoch(history) if record.score is not None)
    groups = Counter(
        record.number if record.of is None else record.of for record in scored if record.kind is not Kind.TUNE
    )
    assert sorted(map(len, query.repeated(rows))) == sorted(count for count in groups.values() if count > 1)
    present = [record for record in counting if record.epoch == history[-1].epoch]
    assert query.evals(rows, wanted.only_agent, of_all_epochs=False) == len(present)
    rows.close()


def test_what_is_common_is_found_without_sorting_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query, "MAX_SORTED", 3)
    history = [attempt(number, float(number % 7), feedback="common") for number in range(20)]
    wanted = Wanted(text="COMM")
    with indexed(history) as rows:
        assert list(query.recent(rows, wanted)) == list(range(19, -1, -1))
        best = query.ranked(rows, wanted, Direction.MAXIMIZE, 4)
    assert best == board.leaderboard(history, Direction.MAXIMIZE)[:4]


def test_attempts_are_found_by_tree_and_by_the_start_of_their_commit() -> None:
    with indexed([attempt(number, 1.0) for number in range(5)]) as rows:
        assert list(query.with_tree(rows, f"{3:040x}")) == [3]
        assert query.with_commit(rows, f"{2:040x}") == [2]
        assert len(query.with_commit(rows, "000")) == 5
        assert query.with_commit(rows, "0g") == []


def test_the_best_of_an_earlier_epoch_is_none_of_the_present_one_whose_seed_failed() -> None:
    history = [
        attempt(0, 1.0, kind=Kind.BASELINE, agent="", verdict=Verdict.NEW_BEST),
        attempt(1, 2.0, verdict=Verdict.NEW_BEST),
        attempt(2, None, kind=Kind.BASELINE, agent="", verdict=Verdict.FAILED, epoch=2),
        attempt(3, 3.0, verdict=Verdict.NEW_BEST, epoch=2),
    ]
    for published, best in ((2, 1), (3, None), (4, 3)):
        with indexed(history[:published]) as rows:
            assert query.best(rows) == best


def test_failures_are_grouped_by_their_reason_without_its_figures() -> None:
    reasons = ["circles 3 and 4 overlap", "", "circles 17 and 2 overlap", "exit code 1", "circles 1 and 2 overlap"]
    history = [attempt(number, None, reason=reason) for number, reason in enumerate(reasons, 1)]
    with indexed([*history, attempt(6, 1.0, reason="the same tree as #1")]) as rows:
        assert query.failures(rows, Wanted()) == [
            query.Failures("circles … and … overlap", (1, 3, 5)),
            query.Failures("no reason was given", (2,)),
            query.Failures("exit code 1", (4,)),
        ]
        assert query.failures(rows, Wanted(agent="agent-9")) == []


def test_a_lineage_that_leads_to_itself_ends() -> None:
    circle = [attempt(1, 2.0, parent=f"{2:040x}"), attempt(2, 2.0, parent=f"{1:040x}")]
    with indexed(circle) as rows:
        assert query.lineage(rows, 2, 9) == [1, 2]
        assert query.lineage(rows, 9, 9) == []
