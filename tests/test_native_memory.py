"""Memory on disk: whole or not there, whatever happens to the process or to the files."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample import attempt

from attempts.record import Direction, Verdict
from coral.native.codec import decode, encode
from coral.native.known_attempts import Board
from coral.native.memory import LONGEST_BLOCK, Memory, Steer, Trial, Work
from coral.native.search.bandit import Credit
from coral.native.snapshots import RING, Keeper

TRIAL = Trial(title="rows from #1: 1.0 -> 2.0", family="rows", start=1, before=1.0, expected=2.0, number=3, score=2.0)


def full() -> Memory:
    """A memory with something in every field."""
    return Memory(
        session="s-1",
        launches=3,
        episodes=4,
        blocks={"plan": "go on\nand on", "task": "\u2028 \U0001f600"},
        credit={"rows": Credit(2.0, 1.0, 0.5)},
        board=Board().take([attempt(0, 1.0), attempt(2, 3.0)], Direction.MAXIMIZE),
        work=Work(trial=TRIAL, texts={"a.json": '{"x": 1}'}),
        pending=TRIAL,
        trials=(TRIAL, replace(TRIAL, number=4, noted=True)),
        steer=Steer(start=2, avoid="rows", family="cross", episodes=3),
        chain={"a.json": '{"x": 2}'},
        chain_family="rows",
        steps={"shake": 0.1},
        answered=("h1", "h2"),
    )


def test_what_is_saved_is_what_is_read(tmp_path):
    keeper = Keeper.create(tmp_path, "s-1")
    keeper.memory = full()
    keeper.save()
    read = Keeper.resume(tmp_path, "s-1")
    assert read is not None
    assert read.memory == full()
    assert not read.spoiled


def test_a_session_that_never_was_is_none(tmp_path):
    assert Keeper.resume(tmp_path, "s-1") is None
    for name in ("../x", "", "a/b", ".hidden", "x" * 300):
        with pytest.raises(ValueError, match="no session id"):
            Keeper.create(tmp_path, name)


def test_the_ring_keeps_the_last_few(tmp_path):
    keeper = Keeper.create(tmp_path, "s-1")
    for count in range(20):
        keeper.memory = replace(keeper.memory, episodes=count)
        keeper.save()
    assert len(list(keeper.folder.iterdir())) == RING


@pytest.mark.parametrize("spoil", ["truncate", "empty", "garbage", "flip", "other session", "remove"])
def test_a_spoiled_snapshot_falls_back_to_the_one_before(tmp_path, spoil):
    keeper = Keeper.create(tmp_path, "s-1")
    for count in range(3):
        keeper.memory = replace(keeper.memory, episodes=count)
        keeper.save()
    newest = sorted(keeper.folder.iterdir())[-1]
    data = newest.read_bytes()
    if spoil == "remove":
        newest.unlink()
    else:
        newest.write_bytes(
            {
                "truncate": data[: len(data) // 2],
                "empty": b"",
                "garbage": b"\xff\x00" * 100,
                "flip": data.replace(b'"episodes": 2', b'"episodes": 9'),
                "other session": data.replace(b"s-1", b"s-2"),
            }[spoil]
        )
    read = Keeper.resume(tmp_path, "s-1")
    assert read is not None
    assert read.memory.episodes == 1
    assert read.spoiled == (spoil != "remove")
    read.save()
    again = Keeper.resume(tmp_path, "s-1")
    assert again is not None
    assert again.memory.episodes == 1


def test_when_all_is_spoiled_the_session_begins_again(tmp_path):
    keeper = Keeper.create(tmp_path, "s-1")
    for path in keeper.folder.iterdir():
        path.write_text("spoiled")
    read = Keeper.resume(tmp_path, "s-1")
    assert read is not None
    assert read.spoiled
    assert read.memory == Memory(session="s-1")


def test_memory_rolls_back_to_the_snapshot_before(tmp_path):
    keeper = Keeper.create(tmp_path, "s-1")
    assert not keeper.roll_back()
    keeper.memory = replace(keeper.memory, episodes=7)
    keeper.save()
    keeper.memory = replace(keeper.memory, episodes=8, chain={"a": "bad"})
    keeper.save()
    assert keeper.roll_back()
    assert keeper.memory.episodes == 7


def test_a_save_within_a_save_loses_nothing(tmp_path, monkeypatch):
    """What a signal does that comes while a snapshot is being written."""
    keeper = Keeper.create(tmp_path, "s-1")
    keeper.memory = replace(keeper.memory, episodes=5)
    real, entered = json.dumps, []

    def interrupted(*args, **kwargs):
        if not entered:
            entered.append(True)
            keeper.save()
        return real(*args, **kwargs)

    monkeypatch.setattr("coral.native.snapshots.json.dumps", interrupted)
    keeper.save()
    read = Keeper.resume(tmp_path, "s-1")
    assert read is not None
    assert read.memory.episodes == 5


def test_an_older_memory_is_read_and_a_wrong_one_is_not():
    data = encode(full())
    assert isinstance(data, dict)
    assert decode(Memory, {**data, "from_the_future": 1}) == full()
    del data["steps"]
    assert isinstance(decode(Memory, data), Memory)
    for wrong in ({"session": 5}, {"session": "s", "episodes": True}, {"session": "s", "trials": {}}, [], None):
        with pytest.raises(ValueError):
            decode(Memory, wrong)


def test_blocks_are_edited_and_bounded():
    memory = Memory(session="s").edit("plan", "one").edit("plan", "two", add=True)
    assert memory.blocks["plan"] == "one\ntwo"
    assert memory.edit("plan", "three").blocks["plan"] == "three"
    assert len(memory.edit("learned", "x" * 99_999).blocks["learned"]) == LONGEST_BLOCK


@pytest.mark.slow
@given(st.permutations(list(range(8))), st.lists(st.integers(1, 3)))
def test_the_board_does_not_depend_on_the_order_of_the_records(order, sizes):
    records = [attempt(n, float(n * 7 % 5)) for n in range(8)]
    whole = Board().take(records, Direction.MAXIMIZE)
    board, rest = Board(), list(order)
    for size in [*sizes, 8]:
        part, rest = rest[:size], rest[size:]
        published = [n for n in order if n not in rest]
        board = board.take([records[n] for n in board.wanted(published)], Direction.MAXIMIZE)
        assert set(part) <= set(published)
    assert board.next == whole.next
    assert board.awaited == ()
    assert board.count == whole.count
    assert {name: entry.score for name, entry in board.best.items()} == {
        name: entry.score for name, entry in whole.best.items()
    }


def test_the_board_knows_who_leads():
    board = Board().take(
        [attempt(0, 1.0), attempt(1, 3.0), attempt(2, 2.0), attempt(3, None, verdict=Verdict.FAILED), attempt(4, 3.0)],
        Direction.MAXIMIZE,
    )
    leader = board.leader(Direction.MAXIMIZE)
    assert leader is not None
    assert leader.number == 1
    assert [entry.number for entry in board.others("agent-1", Direction.MAXIMIZE)] == [1]
    lowest = board.leader(Direction.MINIMIZE)
    assert lowest is not None
