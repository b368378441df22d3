"""What an attempt is held against is found without looking through the history."""

from dataclasses import replace
from pathlib import Path

from attempts.record import Attempt, Direction, Kind, Verdict
from attempts.store import Store
from coral.cli.commands.result import before
from coral.records.standings import Standings


def attempt(number: int, verdict: Verdict = Verdict.TIED, kind: Kind = Kind.REAL, agent: str = "agent-1") -> Attempt:
    return Attempt(
        number=number,
        agent=agent,
        kind=kind,
        commit=f"{number:040x}",
        tree=f"{number:040x}",
        parent="",
        title=f"try {number}",
        submission=f"{number:020d}",
        submitted_at="2030-01-01T00:00:00Z",
        published_at="2030-01-01T00:00:01Z",
        order=number,
        verdict=verdict,
        score=float(number),
    )


def test_the_last_improvement_is_kept_for_each_agent() -> None:
    standings = Standings(Direction.MAXIMIZE)
    assert standings.last_improvement("agent-1") is None
    standings.add(replace(attempt(0, Verdict.IMPROVED, Kind.BASELINE, ""), submission=""))
    assert standings.last_improvement("agent-1") == 0
    for each in (attempt(1, Verdict.IMPROVED), attempt(2), attempt(3, Verdict.IMPROVED, Kind.TUNE)):
        standings.add(each)
    assert (standings.last_improvement("agent-1"), standings.last_improvement("agent-2")) == (1, 0)


def test_the_reply_names_it_and_without_one_it_is_looked_for(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for each in (attempt(1, Verdict.IMPROVED), attempt(2), attempt(3)):
        store.publish(each)
        store.reply(each.agent, each.submission, {"attempt": each.number, "published": True})
    found = before(store, attempt(3))
    assert found is not None
    assert found.number == 1
    store.reply("agent-1", attempt(3).submission, {"attempt": 3, "published": True, "against": 2})
    named = before(store, attempt(3))
    assert named is not None
    assert named.number == 2
