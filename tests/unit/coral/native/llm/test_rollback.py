"""A memory that contradicts the run goes back to exactly the snapshot that agrees with it."""

from pathlib import Path

from sample import attempt

from attempts.store import Store
from coral.native.llm.conversation import LlmMemory
from coral.native.llm.rollback import contradiction, roll_back
from coral.native.snapshots import Snapshots


def history(root: Path) -> tuple[Snapshots[LlmMemory], list[LlmMemory], Store]:
    """Three steps, of which the second and the third know an attempt more."""
    (root / "attempts").mkdir()
    store = Store(root / "attempts")
    snapshots, saved = Snapshots.create(root / "state", "s-1", LlmMemory), []
    for number in range(3):
        record = attempt(number, float(number))
        if number < 2:  # of the last one the restored run knows nothing
            store.publish(record)
        memory = snapshots.memory.prompt(f"step {number}")
        snapshots.memory = memory.new_attempt(number, record.commit) if number else memory
        snapshots.save()
        saved.append(snapshots.memory)
    return snapshots, saved, store


def test_what_is_not_there_gives_way_to_the_snapshot_before(tmp_path: Path) -> None:
    snapshots, saved, store = history(tmp_path)
    assert contradiction(saved[2], store.root) == "#2, which you made, is not there"
    assert "You go on from an earlier one" in roll_back(snapshots, store.root)
    assert snapshots.memory == saved[1]
    assert roll_back(snapshots, store.root) == ""


def test_what_is_another_attempt_is_forgotten_where_no_snapshot_agrees(tmp_path: Path) -> None:
    snapshots, _, store = history(tmp_path)
    snapshots.memory = snapshots.memory.new_attempt(1, "another commit").new_attempt(2, "x")
    for _ in range(5):
        snapshots.save()
    notice = roll_back(snapshots, store.root)
    assert "#1 is not the attempt that you made" in notice
    assert "Trust the records" in notice
    assert snapshots.memory.attempts == {}
    assert snapshots.memory.messages


def test_a_damaged_snapshot_is_told(tmp_path: Path) -> None:
    snapshots, saved, store = history(tmp_path)
    newest = sorted(snapshots.folder.glob("memory-*.json"))[-1]
    newest.write_bytes(b"torn")
    resumed = Snapshots.resume(tmp_path / "state", "s-1", LlmMemory)
    assert resumed is not None
    assert "could not be read" in roll_back(resumed, store.root)
    assert resumed.memory == saved[1]


def test_the_memory_before_a_damaged_one_may_contradict_the_run_as_well(tmp_path: Path) -> None:
    snapshots, saved, store = history(tmp_path)
    snapshots.save()
    sorted(snapshots.folder.glob("memory-*.json"))[-1].write_bytes(b"torn")
    resumed = Snapshots.resume(tmp_path / "state", "s-1", LlmMemory)
    assert resumed is not None
    assert resumed.memory == saved[2]
    assert "#2, which you made, is not there. You go on from an earlier one" in roll_back(resumed, store.root)
    assert resumed.memory == saved[1]
