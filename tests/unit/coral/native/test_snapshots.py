"""Memory on disk: whole or not there, whatever happens to the process or to the files."""

import json
from dataclasses import replace
from hashlib import sha256

import pytest
from sample import attempt

from attempts.record import Attempt, Direction
from attempts.store import Store
from coral.native.memory import AgentMemory, Candidate, KnownAttempts, Redirection, Trial
from coral.native.snapshots import RING, Snapshots

TRIAL = Trial(title="rows from #1: 1.0 -> 2.0", family="rows", start=1, before=1.0, expected=2.0, number=3, score=2.0)


def full_memory() -> AgentMemory:
    """A memory with something in every field."""
    return AgentMemory(
        session="s-1",
        episodes=4,
        blocks={"plan": "go on\nand on", "task": "\u2028 \U0001f600"},
        known=KnownAttempts().add([attempt(0, 1.0), attempt(2, 3.0)], Direction.MAXIMIZE),
        unsubmitted=Candidate(trial=TRIAL, texts={"a.json": '{"x": 1}'}),
        pending=TRIAL,
        trials=(TRIAL, replace(TRIAL, number=4)),
        reflected=3,
        redirection=Redirection(start=2, family="cross", until=3),
        answered=("h1", "h2"),
    )


def resumed(snapshots: Snapshots[AgentMemory]) -> Snapshots[AgentMemory]:
    read = Snapshots.resume(snapshots.folder.parent.parent, snapshots.folder.name, AgentMemory)
    assert read is not None
    return read


def test_what_is_saved_is_what_is_read(tmp_path):
    snapshots = Snapshots.create(tmp_path, "s-1", AgentMemory)
    snapshots.memory = full_memory()
    snapshots.save()
    assert resumed(snapshots).memory == snapshots.memory
    assert not resumed(snapshots).problem


def test_a_session_that_does_not_exist_is_none(tmp_path):
    assert Snapshots.resume(tmp_path, "s-1", AgentMemory) is None
    for name in ("../x", "", "a/b", ".hidden", "x" * 300):
        with pytest.raises(ValueError, match="no session id"):
            Snapshots.create(tmp_path, name, AgentMemory)


def test_the_ring_keeps_the_last_few(tmp_path):
    snapshots = Snapshots.create(tmp_path, "s-1", AgentMemory)
    for episodes in range(20):
        snapshots.memory = replace(snapshots.memory, episodes=episodes)
        snapshots.save()
    assert len(list(snapshots.folder.iterdir())) == RING


@pytest.mark.parametrize("damage", ["truncate", "empty", "garbage", "flip", "other session", "remove"])
def test_instead_of_a_damaged_snapshot_the_one_before_is_read(tmp_path, damage):
    snapshots = Snapshots.create(tmp_path, "s-1", AgentMemory)
    for episodes in range(3):
        snapshots.memory = replace(snapshots.memory, episodes=episodes)
        snapshots.save()
    newest = sorted(snapshots.folder.iterdir())[-1]
    data = newest.read_bytes()
    if damage == "remove":
        newest.unlink()
    else:
        newest.write_bytes(
            {
                "truncate": data[: len(data) // 2],
                "empty": b"",
                "garbage": b"\xff\x00" * 100,
                "flip": data.replace(b'"episodes": 2', b'"episodes": 9'),
                "other session": data.replace(b"s-1", b"s-2"),
            }[damage]
        )
    read = resumed(snapshots)
    assert read.memory.episodes == 1
    assert read.problem == ("" if damage == "remove" else "it cannot be read")
    read.save()
    assert resumed(snapshots).memory.episodes == 1


def test_a_session_with_damaged_snapshots_alone_begins_again(tmp_path):
    snapshots = Snapshots.create(tmp_path, "s-1", AgentMemory)
    for path in snapshots.folder.iterdir():
        path.write_text("damaged")
    assert resumed(snapshots).problem
    assert resumed(snapshots).memory == AgentMemory(session="s-1")


@pytest.mark.parametrize(
    "wrong",
    [
        {"is": "AgentMemory", "session": 5},
        {"is": "AgentMemory", "session": "s-1", "of_another_version": 1},
        {"is": "AgentMemory", "session": "s-1", "trials": {"a": 1}},
        {"is": "AgentMemory", "session": "s-1", "blocks": []},
        {"session": "s-1"},
        [],
        None,
    ],
)
def test_a_whole_snapshot_that_is_no_memory_of_this_session_is_not_read(tmp_path, wrong):
    snapshots = Snapshots.create(tmp_path, "s-1", AgentMemory)
    body = json.dumps(wrong).encode()
    (snapshots.folder / "memory-00000009.json").write_bytes(sha256(body).hexdigest().encode() + b"\n" + body)
    assert resumed(snapshots).problem
    assert resumed(snapshots).memory == AgentMemory(session="s-1")


def knowing(snapshots: Snapshots[AgentMemory], episodes: int, *records: Attempt) -> None:
    known = KnownAttempts().add(records, Direction.MAXIMIZE)
    snapshots.memory = replace(snapshots.memory, episodes=episodes, known=known)
    snapshots.save()


def test_a_memory_that_contradicts_the_records_gives_way_to_the_one_that_agrees(tmp_path):
    """The run was restored from an older copy, in which attempt 1 is another one and 2 is not there."""
    store = Store(tmp_path / "attempts")
    store.root.mkdir()
    for record in (attempt(0, 1.0), attempt(1, 2.0)):
        store.publish(record)
    snapshots = Snapshots.create(tmp_path, "s-1", AgentMemory)
    knowing(snapshots, 3, attempt(0, 1.0))
    knowing(snapshots, 4, attempt(0, 1.0), attempt(1, 5.0, commit="f" * 40))
    knowing(snapshots, 5, attempt(0, 1.0), attempt(2, 5.0))
    read = Snapshots.resume(tmp_path, "s-1", AgentMemory, store.root)
    assert read is not None
    assert (read.memory.episodes, read.problem) == (3, "#2 is not there")
    read.save()
    assert resumed(snapshots).memory == read.memory


def test_a_memory_forgets_its_attempts_where_no_snapshot_agrees_with_the_records(tmp_path):
    store = Store(tmp_path / "attempts")
    store.root.mkdir()
    store.publish(attempt(1, 1.0))
    snapshots = Snapshots.create(tmp_path, "s-1", AgentMemory)
    for episodes in range(RING):
        knowing(snapshots, episodes, attempt(1, 1.0, commit="f" * 40))
    read = Snapshots.resume(tmp_path, "s-1", AgentMemory, store.root)
    assert read is not None
    assert (read.memory.episodes, read.problem) == (RING - 1, "#1 is another attempt now")
    assert read.memory.known == KnownAttempts()


def test_a_save_within_a_save_loses_nothing(tmp_path, monkeypatch):
    """What an interrupt does that comes while a snapshot is being written."""
    snapshots = Snapshots.create(tmp_path, "s-1", AgentMemory)
    snapshots.memory = replace(snapshots.memory, episodes=5)
    dumps, entered = json.dumps, []

    def interrupted(*args, **kwargs):
        if not entered:
            entered.append(True)
            snapshots.save()
        return dumps(*args, **kwargs)

    monkeypatch.setattr("coral.native.snapshots.json.dumps", interrupted)
    snapshots.save()
    assert resumed(snapshots).memory.episodes == 5
