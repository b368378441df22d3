"""The attempts folder: whole files, one owner each; what an agent writes is read, and nothing of it is believed."""

import json
import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import sample
from records import readable, unreadable
from sample import submission

import attempts.store
from attempts.files import read_bytes
from attempts.inbox import next_id, submission_ids, submit
from attempts.record import Attempt, Kind, Submission, to_dict
from attempts.store import Malformed, Missing, Store

ID = f"{1:020d}"


def attempt(number: int = 1, score: float = 1.0) -> Attempt:
    return sample.attempt(number, score, submitted_at="", published_at="")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "attempts")


def inbox_file(store: Store, content: bytes, name: str = f"{ID}.json") -> Path:
    path = store.root / "inbox" / "agent-1" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_a_submission_goes_in_and_comes_out_and_is_not_overwritten(store: Store) -> None:
    path = submit(store.root, to_dict(submission()))
    assert store.inbox() == [("agent-1", ID, path)]
    assert store.read_submission("agent-1", path) == submission()
    store.clear("agent-1", ID)
    store.clear("agent-1", ID)
    assert store.inbox() == []
    submit(store.root, to_dict(submission()))
    with pytest.raises(FileExistsError):
        submit(store.root, to_dict(replace(submission(), title="Two")))


def test_the_oldest_submission_is_first_whoever_made_it(store: Store) -> None:
    for agent, number in [("b", 3), ("a", 2), ("b", 1), ("a", 3)]:
        submit(store.root, to_dict(submission(agent, number)))
    assert [(agent, int(name)) for agent, name, _ in store.inbox()] == [("b", 1), ("a", 2), ("a", 3), ("b", 3)]
    inbox = store.root / "inbox"
    of_a = store.inbox(only={inbox / "a", inbox / "gone", store.root / "replies"})
    assert [(agent, int(name)) for agent, name, _ in of_a] == [("a", 2), ("a", 3)]
    assert store.inbox(only={inbox}) == store.inbox()
    (inbox / "c").symlink_to(inbox / "a")
    assert store.inbox(only={inbox / "c"}) == []


@pytest.mark.slow
def test_however_many_submissions_wait_the_oldest_comes_first(store: Store) -> None:
    """The supervisor remembers its latest ids alone: it takes an older one for a repeat, and removes it."""
    numbers = range(10_000)
    for number in numbers:
        inbox_file(store, b"", f"{number:020d}.json")
    assert [int(name) for _, name, _ in store.inbox(16)] == list(numbers[:16])


def test_an_empty_or_absent_inbox_is_no_error(store: Store) -> None:
    assert store.inbox() == []
    assert store.numbers() == []
    assert readable(store) == []
    store.root.mkdir()
    (store.root / "inbox").write_text("a file in its place")
    assert store.inbox() == []


def test_only_plain_files_are_seen(store: Store, tmp_path: Path) -> None:
    path = inbox_file(store, b"{}")
    outside = tmp_path / "outside.json"
    outside.write_text("{}")
    (path.parent / f"{2:020d}.json").symlink_to(outside)
    (path.parent / f"{3:020d}.json").mkdir()
    os.mkfifo(path.parent / f"{4:020d}.json")
    inbox_file(store, b"{}", f".{5:020d}.json")
    inbox_file(store, b"{}", "notes.txt")
    (path.parent.parent / "agent-2").symlink_to(tmp_path)
    assert [found for _, _, found in store.inbox()] == [path]


GOOD = to_dict(submission())


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"[]", b"null", b"\xff\xfe{}", b"\x00" * 100, b"[" * 30_000, b'{"a":' * 10_000),
        json.dumps({**GOOD, "title": "x" * 70_000}).encode(),
        json.dumps({**GOOD, "wait": float("nan")}).encode(),
        json.dumps({**GOOD, "wait": 0}).replace('"wait": 0', '"wait": ' + "9" * 5000).encode(),
        json.dumps({**GOOD, "id": f"{2:020d}"}).encode(),
        json.dumps({**GOOD, "commit": "HEAD"}).encode(),
        json.dumps({**GOOD, "score": 10}).encode(),
        json.dumps(GOOD).encode("utf-16"),
    ],
)
def test_whatever_lies_in_an_inbox_is_a_submission_or_malformed(store: Store, content: bytes) -> None:
    path = inbox_file(store, content)
    with pytest.raises(Malformed) as caught:
        store.read_submission("agent-1", path)
    assert str(caught.value)
    path.unlink()
    assert store.inbox() == []


def test_what_replaced_a_submission_after_the_listing_is_malformed(store: Store, tmp_path: Path) -> None:
    path = inbox_file(store, b"{}")
    for put_there, reason in (
        (lambda: None, "gone"),
        (lambda: os.mkfifo(path), "no regular file"),
        (lambda: path.symlink_to(tmp_path), "cannot be opened"),
        (path.mkdir, "no regular file"),
    ):
        path.unlink(missing_ok=True)
        put_there()
        with pytest.raises(Malformed, match=reason):
            store.read_submission("agent-1", path)


def test_trouble_of_this_machine_is_not_blamed_on_the_file(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    path = submit(store.root, to_dict(submission()))

    def no_descriptor_left(*args: object) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "open", no_descriptor_left)
    with pytest.raises(OSError, match="Too many"):
        store.read_submission("agent-1", path)


def test_a_file_is_read_up_to_its_size(store: Store) -> None:
    path = inbox_file(store, b"12345")
    assert read_bytes(path, 5) == b"12345"
    with pytest.raises(ValueError, match="longer than 4 bytes"):
        read_bytes(path, 4)
    path = inbox_file(store, json.dumps({**GOOD, "title": "x" * 60_000}).encode())
    assert len(store.read_submission("agent-1", path).title) == 500


def test_what_must_last_is_on_disk_with_its_name(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    really = os.fsync

    def counted(descriptor: int) -> None:
        synced.append(descriptor)
        really(descriptor)

    monkeypatch.setattr(os, "fsync", counted)
    submit(store.root, to_dict(submission()))
    assert len(synced) == 2
    store.publish(attempt())
    assert len(synced) == 4
    store.reply("agent-1", ID, {})
    assert len(synced) == 4


def test_only_the_latest_replies_are_kept(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts.store, "REPLIES", 3)
    store.forget_replies("agent-1")
    for number in range(6):
        store.reply("agent-1", f"{number:020d}", {"attempt": number})
        store.reply("agent-2", f"{number:020d}", {"attempt": number})
    (store.root / "replies" / "agent-1" / "other.json").write_text("{}")
    store.forget_replies("agent-1")
    kept = sorted(path.name for path in (store.root / "replies" / "agent-1").iterdir())
    assert kept == [f"{number:020d}.json" for number in (3, 4, 5)] + ["other.json"]
    assert len(list((store.root / "replies" / "agent-2").iterdir())) == 6
    (store.root / "replies" / "agent-2").rename(tmp_path / "elsewhere")
    (store.root / "replies" / "agent-2").symlink_to(tmp_path / "elsewhere")
    store.forget_replies("agent-2")
    assert len(list((tmp_path / "elsewhere").iterdir())) == 6


def test_a_reply_is_read_by_the_eval_that_waits(store: Store) -> None:
    assert store.read_reply("agent-1", ID) is None
    store.reply("agent-1", ID, {"attempt": 17})
    store.reply("agent-1", ID, {"attempt": 17, "published": True})
    assert store.read_reply("agent-1", ID) == {"attempt": 17, "published": True}
    for garbled in ("{", "[]", "null"):
        (store.root / "replies" / "agent-1" / f"{ID}.json").write_text(garbled)
        assert store.read_reply("agent-1", ID) is None


@pytest.mark.parametrize("name", ["../../../x", "", "1", "a" * 20])
def test_an_id_is_no_way_out_of_the_folder(store: Store, name: str) -> None:
    for use in (store.read_reply, store.clear):
        with pytest.raises(ValueError, match="not the id"):
            use("agent-1", name)


def test_a_record_is_published_once(store: Store) -> None:
    store.publish(attempt())
    path = store.root / "000001.json"
    before = path.stat()
    assert store.publish(attempt()) is None
    assert path.stat().st_ino == before.st_ino
    wild = replace(attempt(), title="a\nb", feedback="\ud800\x07", metrics={"x": float("nan")})
    store.publish(wild)
    store.publish(wild)
    assert store.read(1).title == "a b"


def test_another_file_in_the_place_of_a_record_makes_way_and_is_kept(store: Store) -> None:
    forged = attempt(score=2.0)
    store.publish(forged)
    aside = store.publish(attempt())
    assert store.read(1).score == 1.0
    assert aside is not None
    assert json.loads(aside.read_text())["score"] == 2.0
    assert store.numbers() == [1]


@pytest.mark.parametrize("kind", ["folder", "link", "pipe", "torn"])
def test_whatever_lies_in_the_place_of_a_record_is_renamed(store: Store, kind: str) -> None:
    path = store.root / "000001.json"
    store.root.mkdir()
    if kind == "folder":
        (path / "inside").mkdir(parents=True)
    elif kind == "link":
        (store.root / "target").write_text("untouched")
        path.symlink_to("target")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.write_text('{"number": 1, "ag')
    aside = store.publish(attempt())
    assert store.read(1) == attempt()
    assert aside is not None
    assert aside.parent == store.root
    assert aside.name.startswith(".000001.json")
    if kind == "link":
        assert (store.root / "target").read_text() == "untouched"


def test_a_changed_file_has_another_witness(store: Store) -> None:
    assert store.witness(1) is None
    store.publish(attempt())
    before = store.witness(1)
    assert before == store.witness(1) != None  # noqa: E711 - the witness of a file that is there
    (store.root / "000001.json").write_text("{}")
    assert store.witness(1) != before


def test_a_record_that_could_not_be_read_again_is_not_written(store: Store) -> None:
    with pytest.raises(ValueError, match="finite"):
        store.publish(attempt(score=float("nan")))
    assert store.numbers() == []


def test_records_are_listed_by_number_and_damage_is_named(store: Store) -> None:
    for number in (2, 1, 1_000_000, 3, 4):
        store.publish(attempt(number))
    (store.root / "000003.json").write_text("{")
    (store.root / "000004.json").write_bytes((store.root / "000002.json").read_bytes())
    (store.root / ".000009.json.tmp").write_text("{")
    (store.root / "index.sqlite").write_text("")
    assert store.numbers() == [1, 2, 3, 4, 1_000_000]
    assert [record.number for record in readable(store)] == [1, 2, 1_000_000]
    assert unreadable(store) == [3, 4]
    with pytest.raises(Malformed, match="#4: the file says #2"):
        store.read(4)
    with pytest.raises(Missing, match="#9: there is none") as caught:
        store.read(9)
    assert "coral log" in caught.value.hint


def _read_until_done(root: Path, done: Path, torn: Path) -> None:
    store = Store(root)
    while not done.exists():
        if unreadable(store):
            torn.touch()


def test_a_reader_never_meets_half_a_record(store: Store, tmp_path: Path) -> None:
    store.root.mkdir()
    done, torn = tmp_path / "done", tmp_path / "torn"
    reader = threading.Thread(target=_read_until_done, args=(store.root, done, torn))
    reader.start()
    for number in range(1, 30):
        store.publish(replace(attempt(number), feedback="x" * 50_000))
    done.touch()
    reader.join()
    assert not torn.exists()
    assert [path for path in store.root.iterdir() if path.name.startswith(".")] == []


def test_an_interrupted_write_leaves_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        submit(store.root, to_dict(submission()))
    assert list((store.root / "inbox" / "agent-1").iterdir()) == []


def test_ids_grow_whatever_the_clock_does() -> None:
    first = next_id("")
    assert next_id(first) > first
    far = f"{10**19:020d}"
    assert next_id(far) == f"{10**19 + 1:020d}"


@pytest.mark.parametrize("last", ["9" * 20, "x", "9" * 30, "-1", "٣" * 20])
def test_a_garbled_last_id_is_no_obstacle(last: str) -> None:
    assert len(next_id(last)) == 20


@pytest.mark.parametrize("kind", ["real", "tune"])
def test_what_an_agent_writes_is_the_submission_that_is_read(tmp_path: Path, kind: str) -> None:
    written = {**GOOD, "id": next_id(""), "kind": kind}
    path = submit(tmp_path, written)
    read = Store(tmp_path).read_submission("agent-1", path)
    assert read == Submission(**{**written, "kind": Kind(kind)})
    assert to_dict(read) == written


def test_an_agents_ids_are_of_what_waits_and_of_what_was_answered(tmp_path: Path) -> None:
    first, second = next_id(""), next_id(next_id(""))
    submit(tmp_path, {**GOOD, "id": second})
    Store(tmp_path).reply("agent-1", first, {"attempt": 1})
    (tmp_path / "inbox" / "agent-1" / "x.json").touch()
    assert submission_ids(tmp_path, "agent-1") == [first, second]
    assert submission_ids(tmp_path, "agent-2") == []
