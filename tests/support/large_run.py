"""A run of very many attempts and agents, in seconds: every file is in its true format, no git and no journal.

One attempt in fifty fails and one in fifty is better than all before; the index is there, as a supervisor leaves it.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sample import agent_status, attempt, put_status, write_events, write_heartbeats

from attempts.index import file
from attempts.record import IMPROVED, Attempt, Verdict, to_dict
from attempts.store import Store
from workspace import knowledge
from workspace.layout import Layout, create, new_run

EVERY = 2.0  # seconds of the run's clock between two attempts
NOTES = 200
START = datetime(2030, 1, 1, tzinfo=UTC)


def make_large_run(runs: Path, attempts: int, agents: int) -> Layout:
    """`agents`: agent-1 to agent-N, in turn. Its timeline has every publication, its status every agent."""
    names = [f"agent-{number}" for number in range(1, agents + 1)]
    layout = new_run(runs, "large")
    create(layout, names)
    knowledge.create(layout.shared)
    records = list(_records(names, attempts))
    rows = [(record.number, file.row_of(record, _written(layout, record))) for record in records]
    file.create(layout.attempts, rows).close()
    write_events(layout, *({**_event(record), "clock": record.number * EVERY} for record in records if record.number))
    _write_notes(layout, records)
    write_heartbeats(layout)
    for name in names:
        layout.logs(name).mkdir(parents=True, exist_ok=True)
    failed = sum(record.score is None for record in records)
    agents = [agent_status(name) for name in names]
    put_status(layout, records, clock=len(records) * EVERY, failed=failed, agents=agents)
    return layout


def _records(names: list[str], count: int) -> Iterator[Attempt]:
    """Yield the records, with the verdicts of a task without noise."""
    best = (0, 1.0)  # number and score
    own = dict.fromkeys(names, best)
    yield attempt(0, best[1], **_times(0))
    for number in range(1, count + 1):
        name, times = names[number % len(names)], _times(number)
        if number % 50 == 7:
            yield attempt(number, None, agent=name, **times)
            continue
        score = 1.0 + number / count if number % 50 == 0 else 0.5 + number % 49 / 100
        against, reference = own[name]
        verdict = _verdict(score, reference, best[1])
        if verdict in IMPROVED:
            own[name] = (number, score)
        best = own[name] if verdict is Verdict.NEW_BEST else best
        delta, said = score - reference, "the second half is worse than the first"
        judged = {"verdict": verdict, "against": against, "delta": delta, "feedback": said}
        yield attempt(number, score, agent=name, **judged, **times)


def _verdict(score: float, own: float, best: float) -> Verdict:
    if score > own:
        return Verdict.NEW_BEST if score > best else Verdict.OWN_BEST
    return Verdict.TIED if score == own else Verdict.WORSE


def _times(number: int) -> dict[str, str]:
    text = (START + timedelta(seconds=number * EVERY)).isoformat(timespec="milliseconds")
    return {"submitted_at": text, "published_at": text}


def _written(layout: Layout, record: Attempt) -> tuple[int, int, int]:
    """Return the witness of the file."""
    path = layout.attempts / f"{record.number:06d}.json"
    path.write_text(json.dumps(to_dict(record), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    found = Store(layout.attempts).witness(record.number)
    assert found is not None
    return found


def _event(record: Attempt) -> dict[str, object]:
    text = f"#{record.number} {record.score} {record.verdict}"
    return {"type": "published", "attempt": record.number, "agent": record.agent, "text": text}


def _write_notes(layout: Layout, records: list[Attempt]) -> None:
    for number in range(1, NOTES + 1):
        record = records[min(number * 50, len(records) - 1)]
        head = {"title": f"What #{record.number} pays", "author": record.agent, "created": record.published_at}
        kind = {"kind": "synthesis"} if number == NOTES else {}
        body = f"#{record.number} has {record.score}.\n\n" + "The second half is worse than the first.\n" * 20
        knowledge.write_note(layout.shared, f"reflection-{number}", {**head, **kind, "attempts": [record.number]}, body)
