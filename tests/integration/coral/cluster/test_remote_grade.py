"""The local process of a grade on a cluster, beside a bridge that the test plays."""

import errno
import socket
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from coral.cluster import bridge, wire
from coral.cluster.remote_grade import _Remote
from coral.config.model import GraderSection
from coral.grading.kinds import kind_of
from coral.grading.remote import RemoteGrader

ENDED = {"ended": {"code": 0}}


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    monkeypatch.setenv("CORAL_LAUNCH", "run:#7:1")
    order = {"attempt": 7, "env": {}, "environment": {}, "streams": (), "beats": "beats.jsonl", "timeout": 60.0}
    return {
        "order": order, "folder": str(tmp_path), "bridge": str(tmp_path), "passed": [], "resources": {},
        "max_retries": 1, "wait": 60.0, "impatient": False, "grows": False,
    }  # fmt: skip


def played(folder: Path, answers: dict[str, list[dict[str, object]]]) -> list[str]:
    """Answer each try with its messages; the keys of the tries, as they come."""
    listening, keys = wire.listen(folder), list[str]()

    def play() -> None:
        connection, _ = listening.accept()
        # Whoever has what it waits for leaves, and what is then sent is refused.
        with suppress(OSError), listening, connection, connection.makefile("rb") as lines:
            for line in lines:
                keys.append(wire.decoded(line)["submit"])
                for message in answers[keys[-1].rpartition("/")[2]]:
                    connection.sendall(wire.encoded(message))

    threading.Thread(target=play, daemon=True).start()
    return keys


def test_it_begins_without_what_is_slow_to_import() -> None:
    """Each grade on a cluster has such a process: with json, pathlib and socket it took three times as long."""
    interpreter = RemoteGrader(kind_of(GraderSection(entry="grade.py:grade"))).interpreter(None)
    line = [word.replace("wait(sys.argv[2])", "print(*sys.modules)") for word in interpreter.argv]
    shown = subprocess.run([*line, ""], cwd="/", capture_output=True, text=True, check=True).stdout.split()
    assert "coral.cluster.remote_grade" in shown
    assert not {"contextlib", "enum", "json", "pathlib", "re", "signal", "site", "socket"} & set(shown)


def test_news_of_a_try_that_was_given_up_do_not_count_for_the_next(spec: dict[str, object], tmp_path: Path) -> None:
    lost = {"of": "run:#7:1/1", "events": [{"lost": "its owner ended"}]}
    keys = played(tmp_path, {"1": [lost, lost, lost], "2": [{"of": "run:#7:1/2", "events": [ENDED]}]})
    assert _Remote(spec).ended() == ENDED["ended"]
    assert keys == ["run:#7:1/1", "run:#7:1/2"]
    assert (tmp_path / "cluster.log").read_text().count("was lost: its owner ended") == 1


def test_a_grade_that_was_short_begins_and_ends_in_one_event(spec: dict[str, object], tmp_path: Path) -> None:
    began = {"started": "10.0.0.7", "node": "a", "pid": 9}
    played(tmp_path, {"1": [{"of": "run:#7:1/1", "events": [{**began, **ENDED}]}]})
    assert _Remote(spec).ended() == ENDED["ended"]
    assert (tmp_path / "cluster.log").read_text().endswith(" runs on 10.0.0.7, process 9\n")


def test_a_grade_whose_node_tells_of_no_end_is_tried_elsewhere(
    spec: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one whose worker stands still."""
    monkeypatch.setattr(wire, "SILENT_SECONDS", 0.5)
    order = {**spec["order"], "timeout": 0.5}  # type: ignore[dict-item]
    began = {"started": "10.0.0.7", "node": "a", "pid": 9}
    keys = played(
        tmp_path,
        {"1": [{"of": "run:#7:1/1", "events": [began]}], "2": [{"of": "run:#7:1/2", "events": [began, ENDED]}]},
    )
    assert _Remote({**spec, "order": order, "wait": 3600}).ended() == ENDED["ended"]
    assert keys == ["run:#7:1/1", "run:#7:1/2"]
    assert "try 1 was lost: its node told of no end\n" in (tmp_path / "cluster.log").read_text()


def test_tries_that_do_not_count_are_not_used_up(spec: dict[str, object], tmp_path: Path) -> None:
    began = {"started": "10.0.0.7", "node": "a", "pid": 9}
    full, lost = {"lost": "its disk is full", "counts": False}, {"lost": "its node died"}
    tries = ([began, full], [full], [full], [lost], [began, lost])
    keys = played(
        tmp_path, {str(at): [{"of": f"run:#7:1/{at}", "events": events}] for at, events in enumerate(tries, 1)}
    )
    with pytest.raises(Exception, match="the cluster lost its grade 5 times; the last time: its node died"):
        _Remote(spec).ended()
    assert len(keys) == 5


def test_a_try_that_does_not_count_takes_its_time_from_that_for_waiting(spec: dict[str, object]) -> None:
    here, there = socket.socketpair()
    with here, there:
        remote = _Remote({**spec, "max_retries": 2})
        for counts, left in ((True, 60.0), (False, 50.0)):
            remote._event({"started": "10.0.0.7", "node": "a", "pid": 9}, here)
            assert remote._began is not None
            remote._began -= 10.0
            remote._event({"lost": "x", "counts": counts}, here)
            assert remote._until - time.monotonic() == pytest.approx(left, abs=5)


def test_a_bridge_learns_whether_a_try_was_submitted_before(spec: dict[str, object], tmp_path: Path) -> None:
    submitted = list[tuple[str, bool]]()
    lost = {"of": "run:#7:1/1", "events": [{"lost": "its node died"}]}
    ended = {"of": "run:#7:1/2", "events": [ENDED]}

    def play() -> None:
        with wire.listen(tmp_path) as listening:
            for answers in ([None], [lost, None], [ended]):  # None: the bridge ends
                connection, _ = listening.accept()
                with connection, connection.makefile("rb") as lines:
                    for answer, line in zip(answers, lines, strict=False):
                        message = wire.decoded(line)
                        submitted.append((message["submit"].rpartition("/")[2], message["again"]))
                        if answer is not None:
                            connection.sendall(wire.encoded(answer))

    threading.Thread(target=play, daemon=True).start()
    assert _Remote(spec).ended() == ENDED["ended"]
    assert submitted == [("1", False), ("1", True), ("2", False), ("2", True)]


BEGAN = {"started": "10.0.0.7", "node": "a", "pid": 9}


def late(spec: dict[str, object], **others: object) -> _Remote:
    """A grade that runs on a node, whose time is over."""
    here, there = socket.socketpair()
    with here, there:
        remote = _Remote({**spec, **others})
        remote._event(BEGAN, here)
    remote._until = time.monotonic() - 1
    return remote


def test_the_end_of_a_grade_whose_time_is_over_is_heard_of_the_next_bridge(
    spec: dict[str, object], tmp_path: Path
) -> None:
    remote = late(spec)
    for _ in range(3):
        remote._check(is_away=True)
    keys = played(tmp_path, {"1": [{"of": "run:#7:1/1", "events": [ENDED]}]})
    assert remote.ended() == ENDED["ended"]
    assert keys == ["run:#7:1/1"]


def test_a_grade_whose_time_is_over_while_there_is_no_bridge_is_tried_again(
    spec: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "AWAY_SECONDS", 0.0)
    remote = late(spec, wait=3600.0)
    remote._check(is_away=True)
    keys = played(tmp_path, {"2": [{"of": "run:#7:1/2", "events": [BEGAN, ENDED]}]})
    assert remote.ended() == ENDED["ended"]
    assert keys == ["run:#7:1/2"]
    with pytest.raises(Exception, match="the cluster lost its grade 1 times; the last time: its node told of no end"):
        late(spec, max_retries=0)._check(is_away=True)


def test_time_in_which_the_cluster_cannot_be_used_does_not_count(spec: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / wire.TROUBLE).write_text("no head\n")
    remote = _Remote({**spec, "wait": 0.1})
    remote._checked -= 3600
    remote._check()
    (tmp_path / wire.TROUBLE).unlink()
    remote._check()
    remote._checked -= 1
    remote._until -= 3601
    with pytest.raises(Exception, match="no node had room for it in time"):
        remote._check()
    assert (tmp_path / "cluster.log").read_text().endswith(" waits: no head\n")


@pytest.mark.parametrize(
    ("environment", "why"), [({}, "in time"), ({"pip": ["x"]}, "in time, or its environment was not made in time")]
)
def test_an_environment_that_is_made_slowly_is_a_possible_reason(
    spec: dict[str, object], tmp_path: Path, environment: dict[str, object], why: str
) -> None:
    order = {**spec["order"], "environment": environment}  # type: ignore[dict-item]
    played(tmp_path, {"1": [{"waits": ""}]})
    with pytest.raises(Exception, match=f"no node had room for it {why}$"):
        _Remote({**spec, "order": order, "wait": 0.5}).ended()


def test_what_it_waits_for_is_given_as_the_reason(spec: dict[str, object], tmp_path: Path) -> None:
    played(tmp_path, {"1": [{"waits": "it needs 8 GPUs"}]})
    with pytest.raises(Exception, match="cannot grade on the cluster: it needs 8 GPUs"):
        _Remote({**spec, "impatient": True}).ended()


def test_on_a_cluster_that_grows_the_seed_waits_for_a_node_and_not_for_the_head(
    spec: dict[str, object], tmp_path: Path
) -> None:
    spec |= {"impatient": True, "grows": True}
    played(tmp_path, {"1": [{"waits": "it needs 8 GPUs"}, {"of": "run:#7:1/1", "events": [ENDED]}]})
    assert _Remote(spec).ended() == ENDED["ended"]
    assert (tmp_path / "cluster.log").read_text().endswith(" waits: it needs 8 GPUs\n")
    (tmp_path / wire.TROUBLE).write_text("no head\n")
    with pytest.raises(Exception, match="cannot grade on the cluster: no head"):
        _Remote(spec)._check()


def test_what_the_cluster_refuses_is_not_tried_again(spec: dict[str, object], tmp_path: Path) -> None:
    keys = played(tmp_path, {"1": [{"of": "run:#7:1/1", "events": [{"refused": "Ray refuses such a grade: x"}]}]})
    with pytest.raises(Exception, match="cannot grade on the cluster: Ray refuses such a grade: x"):
        _Remote(spec).ended()
    assert keys == ["run:#7:1/1"]


@pytest.mark.parametrize(("impatient", "tries"), [(True, 1), (False, 2)])
def test_an_environment_that_cannot_be_made_is_tried_elsewhere_but_for_the_seed(
    spec: dict[str, object], tmp_path: Path, impatient: bool, tries: int
) -> None:
    lost = {"lost": f"its environment cannot be made: {'x' * 999}\nno such package\n", "unmade": True}
    keys = played(tmp_path, {str(at): [{"of": f"run:#7:1/{at}", "events": [lost]}] for at in (1, 2)})
    with pytest.raises(Exception, match=r"its environment cannot be made: x+ \.\.\. x+ no such package$") as caught:
        _Remote({**spec, "impatient": impatient}).ended()
    assert (len(keys), len(str(caught.value)) < 400) == (tries, True)


@pytest.mark.parametrize("behind", [True, False])
def test_a_grade_that_waited_in_vain_behind_others_of_its_run_is_queued_again(
    spec: dict[str, object], tmp_path: Path, behind: bool
) -> None:
    played(tmp_path, {"1": [{"waits": "", "behind": behind}]})
    with pytest.raises(Exception, match="no node had room for it in time") as caught:
        _Remote({**spec, "wait": 3.0}).ended()
    assert caught.value.again is behind  # type: ignore[attr-defined]


def test_what_a_lost_try_waited_behind_does_not_count_for_the_next(spec: dict[str, object], tmp_path: Path) -> None:
    lost = {"of": "run:#7:1/1", "events": [{"lost": "its node died"}]}
    played(tmp_path, {"1": [{"waits": "", "behind": True}, lost], "2": []})
    with pytest.raises(Exception, match="no node had room for it in time") as caught:
        _Remote({**spec, "wait": 3.0}).ended()
    assert caught.value.again is False  # type: ignore[attr-defined]


def test_a_bridge_goes_on_when_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(bridge, "write_bytes", full)
        bridge.report_capacity(tmp_path, 7)
        bridge.report_trouble(tmp_path, "no head")
    bridge.report_capacity(tmp_path, 7)
    bridge.report_trouble(tmp_path, "no head")
    assert (wire.capacity(tmp_path), wire.trouble(tmp_path)) == (7, "no head")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="it plays the full disk")
def test_a_grade_goes_on_when_the_disk_is_full(spec: dict[str, object], tmp_path: Path) -> None:
    log = tmp_path / "cluster.log"
    log.symlink_to("/dev/full")
    (tmp_path / wire.TROUBLE).write_text("no head\n")
    remote = _Remote(spec)
    remote._check()
    log.unlink()
    remote._check()
    assert log.read_text().endswith(" waits: no head\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="it plays the full disk")
def test_the_end_of_a_grade_is_not_lost_with_what_it_printed(spec: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / "beats.jsonl").symlink_to("/dev/full")
    played(tmp_path, {"1": [{"of": "run:#7:1/1", "events": [{"output": {"beats.jsonl": b"{}\n"}, **ENDED}]}]})
    assert _Remote(spec).ended() == ENDED["ended"]


@pytest.mark.parametrize("kind", ["output", "tails"])
def test_a_node_appends_to_no_other_file_than_the_beats(spec: dict[str, object], tmp_path: Path, kind: str) -> None:
    folder, other = tmp_path / "grade", tmp_path / "other"
    folder.mkdir()
    names = [str(other), "../other", "cluster.log", "\0", "beats.jsonl"]
    events = [*({kind: {name: b"x"}} for name in names), ENDED]
    played(tmp_path, {"1": [{"of": "run:#7:1/1", "events": events}]})
    assert _Remote({**spec, "folder": str(folder)}).ended() == ENDED["ended"]
    assert [path.name for path in folder.iterdir()] == ["beats.jsonl"]
    assert not other.exists()
