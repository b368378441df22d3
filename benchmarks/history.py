"""Makes up attempts: a long history, in every place where a run keeps one, without the days that it would take.

Journal, ledger, records, references and timeline are as a supervisor that decided all of it would leave them. But all
attempts have the same commit, the seed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from attempts.files import write_json
from attempts.index.index import Index
from attempts.progress import advance_fleet, advance_own
from attempts.record import Attempt, Direction, Kind, to_dict
from attempts.standing import advance, judge
from attempts.store import REPLIES, Store
from benchmarks.arena import Started
from coral.fleet.actions import Publish
from coral.fleet.agent_state import Agent
from coral.fleet.events import Moment
from coral.fleet.messages import fire_after_attempt
from coral.fleet.policy import remember
from coral.fleet.rules import Rules
from coral.fleet.transaction import Transaction
from coral.journal import Journal, published
from coral.records.ledger import Ledger

AT_ONCE = 500  # attempts in one line of the journal, since each line is synced to the disk


def fill(run: Started, count: int, agents: int) -> None:
    """Add attempts to a run that has stopped, until it has `count`, in turn for its first `agents` agents.

    About one in fifty is an improvement. The messages that the attempts would send to agents count as delivered.
    """
    with closing(Journal(run.layout.journal)) as journal:
        first, clock = journal.recovered.fleet.run.next_number, journal.recovered.clock
        _write_journal(journal, range(first, count + 1), agents, (run.layout.private / "seed").read_text().strip())
        journal.begin_next()  # no events led to the made-up decisions, which a resume of this file would notice
    store, references, events = Store(run.layout.attempts), [], []
    for attempt in published(run.layout.journal):
        if attempt.number < first:
            continue
        # In the timeline they are spread evenly over the time that the run has had.
        events.append(_event(attempt, clock * (attempt.number + 1 - first) / (count + 1 - first)))
        write_json(run.record(attempt.number), to_dict(attempt), durable=False)
        references.append(f"{attempt.commit} refs/attempts/{attempt.number}")
        if attempt.number > count - REPLIES * agents:
            store.reply(attempt.agent, attempt.submission, {"attempt": attempt.number, "published": True})
    _write_references(run.layout.hub / "packed-refs", references)
    with run.layout.events.open("a", encoding="utf-8") as timeline:
        timeline.writelines(events)
    with closing(Ledger(run.layout.ledger, lambda: published(run.layout.journal))) as ledger:
        ledger.rebuild()
        ledger.set_witnesses({number: store.witness(number) for number in range(count + 1)})


def index(run: Started) -> None:
    """Bring the index up to date, as a supervisor does; otherwise the first command that reads it would."""
    with closing(Index(run.layout.attempts)) as found:
        found.refresh()


def _write_references(path: Path, lines: list[str]) -> None:
    """Write references into the file that git packs them into: removing one file for each would take minutes."""
    there = path.read_text().splitlines()[1:] if path.exists() else []
    lines = sorted((*there, *lines), key=lambda line: line.partition(" ")[2])
    path.write_text("\n".join(("# pack-refs with: peeled fully-peeled sorted ", *lines, "")))


def _event(attempt: Attempt, clock: float) -> str:
    """Return the line of the timeline about a publication."""
    text = f"{attempt.verdict} {attempt.score:.10g}: {attempt.title}"
    line = {"at": attempt.published_at, "clock": clock, "type": "published", "agent": attempt.agent, "text": text}
    return json.dumps({**line, "attempt": attempt.number}) + "\n"


def _write_journal(journal: Journal, numbers: range, agents: int, seed: str) -> None:
    rules = journal.recovered.rules
    assert rules is not None
    # The run's clock stands still: otherwise all heartbeats by time would be due when the run is resumed.
    fleet, now = journal.recovered.fleet, Moment(run_time=journal.recovered.clock, wall_time=journal.recovered.wall)
    names = list(fleet.agents)[:agents]
    for some in (numbers[at : at + AT_ONCE] for at in range(0, len(numbers), AT_ONCE)):
        transaction = Transaction(fleet, now, rules)
        actions = [Publish(attempt=attempt) for attempt in _attempts(transaction, some, names, seed, rules)]
        after = transaction.fleet()
        journal.record(now, (), actions, fleet, after)
        fleet = after


def _attempts(transaction: Transaction, numbers: range, names: list[str], seed: str, rules: Rules) -> Iterator[Attempt]:
    for number in numbers:
        agent = transaction.agents[names[number % len(names)]]
        attempt = _attempt(number, agent, transaction, seed, rules)
        transaction.set_standing(advance(transaction.standing, attempt, rules.scoring))
        whole = advance_fleet(transaction.run.progress, attempt)
        transaction.set_run(next_number=number + 1, order=attempt.order, progress=whole)
        transaction.set_agent(
            agent.name,
            progress=advance_own(agent.progress, attempt),
            last_result_seen=attempt.order,
            submitted=agent.submitted + 1,
            recent_submissions=remember(agent.recent_submissions, attempt.submission),
        )
        fire_after_attempt(transaction, agent.name, number, depth=1)
        transaction.set_agent(agent.name, pending_messages=())
        yield attempt


def _attempt(number: int, agent: Agent, transaction: Transaction, seed: str, rules: Rules) -> Attempt:
    height = float(number if number % 49 == 1 else number % 49)
    score = height if rules.scoring.direction is Direction.MAXIMIZE else -height
    judgement = judge(transaction.standing, agent.name, score, rules.scoring)
    return Attempt(
        number=number,
        agent=agent.name,
        kind=Kind.REAL,
        commit=seed,
        tree=f"{number:040x}",
        parent=seed,
        title=f"move the boundary by {number} and look again",
        submission=f"{number:020d}",
        submitted_at="2030-01-01T00:00:00.000Z",
        published_at=transaction.wall,
        order=transaction.run.order + 1,
        verdict=judgement.verdict,
        score=score,
        against=judgement.against,
        delta=judgement.delta,
        feedback="the second half is worse than the first",
        metrics={"loss": number / 7},
    )
