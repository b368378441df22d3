"""The agent's side of its inbox: ids that grow, and what it writes is what the supervisor reads."""

from pathlib import Path

import pytest

from attempts.inbox import next_id, submission_ids, submit
from attempts.record import Kind, Submission, to_dict
from attempts.store import Store

FIELDS = {
    "agent": "agent-1",
    "commit": "c" * 40,
    "tree": "e" * 40,
    "title": "one",
    "of": None,
    "wait": 0.0,
    "submitted_at": "2026-01-01T00:00:00.000+00:00",
}


def test_ids_grow_whatever_the_clock_does() -> None:
    first = next_id("")
    assert next_id(first) > first
    far = f"{10**19:020d}"
    assert next_id(far) == f"{10**19 + 1:020d}"


@pytest.mark.parametrize("last", ["9" * 20, "x", "9" * 30, "-1", "٣" * 20])
def test_a_garbled_last_id_is_no_obstacle(last: str) -> None:
    assert len(next_id(last)) == 20


@pytest.mark.parametrize("kind", ["real", "tune", "confirm"])
def test_what_an_agent_writes_is_the_submission_that_is_read(tmp_path: Path, kind: str) -> None:
    written = {"id": next_id(""), **FIELDS, "kind": kind, "of": 3 if kind == "confirm" else None}
    path = submit(tmp_path, written)
    read = Store(tmp_path).read_submission("agent-1", path)
    assert read == Submission(**{**written, "kind": Kind(kind)})
    assert to_dict(read) == written


def test_an_agents_ids_are_of_what_waits_and_of_what_was_answered(tmp_path: Path) -> None:
    first, second = next_id(""), next_id(next_id(""))
    submit(tmp_path, {"id": second, **FIELDS, "kind": "real"})
    Store(tmp_path).reply("agent-1", first, {"attempt": 1})
    (tmp_path / "inbox" / "agent-1" / "x.json").touch()
    assert submission_ids(tmp_path, "agent-1") == [first, second]
    assert submission_ids(tmp_path, "agent-2") == []
