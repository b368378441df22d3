"""The host of a launch on its node, as a bridge sees it: orders that come twice, events that are asked for again."""

import os
import tempfile
import time
from pathlib import Path
from queue import SimpleQueue

import pytest

from coral import __version__
from coral.cluster.host import Host, Watches
from coral.cluster.knowledge_sync import KnowledgeFolder, take_here

AREAS = {
    "run": "r",
    "own": ["workspace/agents/agent-1"],
    "knowledge": "workspace/shared",
    "given": ["status.json"],
    "growing": [],
    "flat": ["attempts"],
    "up": {"requests/agent-1": "requests/replies/agent-1"},
    "answers": ["attempts/replies/agent-1"],
    "logs": ["logs/agent-1"],
    "pulses": "workspace/agents/agent-1/beats.jsonl",
    "folders": ["workspace/agents/agent-1"],
}
ASKED = {"areas": AREAS, "version": __version__, "run": "r.1", "agent": "agent-1", "number": 2, "before": 1}


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(Host, "_end_without_word", lambda _: None)  # it would end the process of the tests
    return tmp_path


def test_an_order_that_comes_twice_is_obeyed_once_and_a_gap_is_waited_for(node: Path) -> None:
    host = Host(ASKED, 60)
    piece = {"piece": "workspace/agents/agent-1/x", "data": b"a", "at": 0}
    end = {"put": "workspace/agents/agent-1/x", "data": b"b", "at": 1, "mode": 0o644, "time": 0}
    assert host.take(0, [piece]) == 1
    assert host.take(0, [piece]) == 1
    assert host.take(2, [{"apply": True}]) == 1
    assert host.take(1, [end, {"apply": True}]) == 3
    (found,) = node.rglob("x")
    assert found.read_text() == "ab"


def test_events_are_kept_until_they_were_received(node: Path) -> None:
    host = Host(ASKED, 60)
    (ready,) = host.exchange(0, 0, 0)["events"]
    assert host.exchange(0, 0, 0)["events"] == [ready]
    host.emit_all([{"life": True}])
    assert host.exchange(0, 1, 0) == {"at": 1, "events": [{"life": True}]}
    assert host.exchange(1, 1, 0) == {"at": 1, "events": [{"life": True}]}
    assert host.exchange(2, 2, 0) == {"at": 2, "events": []}
    assert str(node) in ready["ready"]["root"]


def test_another_version_of_coral_is_said(node: Path) -> None:
    (ended,) = Host({**ASKED, "version": "9.9"}, 60).exchange(0, 0, 0)["events"]
    assert ended["ended"]["problem"] == f"the node has Coral {__version__}, and the run has 9.9"
    assert list(node.rglob("runs")) == []


def test_a_host_of_another_version_ends_if_nobody_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    codes = SimpleQueue[int]()
    monkeypatch.setattr(os, "_exit", codes.put)
    Host({**ASKED, "version": "9.9"}, 0)
    assert codes.get(timeout=10) == 1


def test_what_an_earlier_launch_left_counts_only_if_it_was_the_last(node: Path) -> None:
    def left() -> Path:
        host = Host(ASKED, 60)
        (ready,) = host.exchange(0, 0, 0)["events"]
        request = Path(ready["ready"]["root"], "requests", "agent-1", "1.json")
        request.write_text("{}")
        return request

    assert left().exists()
    Host(ASKED, 60)
    assert list(node.rglob("1.json")) == [], "all that it had to send was received"
    kept = left()
    kept.parents[4].joinpath("unsent").write_text("1")
    (ready,) = Host(ASKED, 60).exchange(0, 0, 0)["events"]
    assert (ready["ready"]["keeps"], kept.exists()) == (True, True)
    (ready,) = Host({**ASKED, "before": 3}, 60).exchange(0, 0, 0)["events"]
    assert (ready["ready"]["keeps"], kept.exists()) == (False, False)


def test_an_order_that_the_node_cannot_obey_ends_the_launch(node: Path) -> None:
    host = Host(ASKED, 60)
    assert host.take(0, [{"piece": "workspace/agents/agent-1/x", "data": b"b", "at": 1}]) == 1
    assert "a part of it is gone" in host.exchange(1, 1, 0)["events"][0]["ended"]["problem"]


def test_a_hand_over_that_is_cut_off_is_made_by_the_next_launch_and_blocks_no_order(node: Path) -> None:
    (ready,) = Host(ASKED, 60).exchange(0, 0, 0)["events"]
    unsent = Path(ready["ready"]["root"]).parents[1] / "unsent"
    unsent.write_text("1")
    for asked in (ASKED, ASKED, {**ASKED, "number": 3, "before": 2}):
        host = Host(asked, 60)
        (ready,) = host.exchange(0, 0, 0)["events"]
        assert ready["ready"]["keeps"]
        host.take(0, [{"had": {}}])
        assert host.exchange(1, 1, 0)["events"] == [], "it is made once the launch starts"


def test_notes_of_the_run_are_no_versions_of_an_agent_whose_launch_was_cut_off(node: Path) -> None:
    here = node / "run"
    here.mkdir()
    run = KnowledgeFolder(here)
    names = ("theirs.md", "changed.md", "removed.md")
    for name in names:
        (here / name).write_text("1")
    host = Host(ASKED, 60)
    ready = host.exchange(0, 0, 0)["events"][0]["ready"]
    host.take(0, [*run.changed(), {"apply": True}])
    there = Path(ready["root"], AREAS["knowledge"])
    assert sorted(path.name for path in there.glob("*.md")) == sorted(names)
    there.parents[3].joinpath("unsent").write_text("1")
    (here / "theirs.md").write_text("1, and more of another agent")  # the node does not hear of it
    (there / "changed.md").write_text("of this agent")
    (there / "removed.md").unlink()
    host, run = Host(ASKED, 60), KnowledgeFolder(here)
    run.known = dict(host.exchange(0, 0, 0)["events"][0]["ready"]["knowledge"])
    host.take(0, [*run.changed(), {"apply": True}])
    host.send_knowledge()
    for event in host.exchange(1, 1, 0)["events"]:
        take_here(run, event, "agent-1")
    for folder in (here, there):
        assert {path.name: path.read_text() for path in folder.glob("*.md")} == {
            "theirs.md": "1, and more of another agent",
            "changed.md": "of this agent",
            "removed.md": "1",
        }


def test_notes_that_were_not_sent_reach_the_run_by_the_next_launch(node: Path) -> None:
    (ready,) = Host(ASKED, 60).exchange(0, 0, 0)["events"]
    there = Path(ready["ready"]["root"], AREAS["knowledge"])
    there.parents[3].joinpath("unsent").write_text("1")
    here = node / "run"
    here.mkdir()
    for folder, texts in ((there, ("new", "mine", None)), (here, (None, "old", "of the run"))):
        for name, text in zip(("new.md", "both.md", "old.md"), texts, strict=True):
            if text is not None:
                (folder / name).write_text(text)
    host, run = Host(ASKED, 60), KnowledgeFolder(here)
    run.known = dict(host.exchange(0, 0, 0)["events"][0]["ready"]["knowledge"])
    host.take(0, run.changed())
    host.send_knowledge()
    for event in host.exchange(1, 1, 0)["events"]:
        take_here(run, event, "agent-1")
    assert (there / "new.md").read_text() == (here / "new.md").read_text() == "new"
    assert {path.read_text() for path in here.glob("both*.md")} == {"mine", "old"}
    assert (there / "old.md").read_text() == "of the run"


def test_whatever_an_agent_lays_in_its_folders_its_next_launch_begins(node: Path) -> None:
    (ready,) = Host(ASKED, 60).exchange(0, 0, 0)["events"]
    root = Path(ready["ready"]["root"])
    (root / "requests" / "agent-1" / "folder.json").mkdir()
    (root / "workspace" / "shared").rmdir()
    (root / "workspace" / "shared").symlink_to(node)
    Host(ASKED, 60)
    assert list((root / "requests" / "agent-1").iterdir()) == []
    assert not (root / "workspace" / "shared").is_symlink()


def test_an_answer_that_has_no_place_ends_the_launch(node: Path) -> None:
    host = Host(ASKED, 60)
    (ready,) = host.exchange(0, 0, 0)["events"]
    replies = Path(ready["ready"]["root"], AREAS["answers"][0])
    replies.rmdir()
    replies.symlink_to(node)
    answer = {"put": "attempts/replies/agent-1/1.json", "data": b"{}", "at": 0, "mode": 0o644, "time": 0}
    host.take(0, [answer, {"apply": True}])
    assert "1.json cannot be written" in host.exchange(1, 1, 0)["events"][0]["ended"]["problem"]
    Host(ASKED, 60)
    assert not replies.is_symlink()


def test_beats_of_the_program_are_signs_of_life(node: Path) -> None:
    host = Host(ASKED, 60)
    watches, now = Watches(host, {}), time.monotonic()
    watches.look_for_life(now + 5)
    assert host.exchange(1, 1, 0)["events"] == []
    (host.root / AREAS["pulses"]).write_text("{}")
    watches.look_for_life(now + 10)
    watches.look_for_life(now + 15)
    assert host.exchange(1, 1, 0)["events"] == [{"life": True}]


def test_the_mirror_of_a_launch_that_goes_on_is_locked_and_an_old_one_is_removed(node: Path) -> None:
    host = Host(ASKED, 60)
    used = host.root.parents[2]
    old = used.with_name("old.1")
    (old / "agent-1").mkdir(parents=True)
    for folder in (used, old):
        os.utime(folder, (1, 1))
    Host({**ASKED, "run": "other.1"}, 60)
    assert (used.exists(), old.exists()) == (True, False)


def test_a_request_is_sent_once_though_its_folder_cannot_be_read_for_a_while(node: Path, unreadable: set[str]) -> None:
    host = Host(ASKED, 60)
    watches = Watches(host, {})
    (host.root / "requests" / "agent-1" / "1.json").write_text("{}")
    watches.look()
    unreadable.add("agent-1")
    watches.look()
    unreadable.clear()
    watches.look()
    assert len([event for event in host.exchange(1, 1, 0)["events"] if "file" in event]) == 1


def test_work_that_cannot_be_read_for_a_while_is_not_removed_from_the_run(node: Path, unreadable: set[str]) -> None:
    host = Host(ASKED, 60)
    clone = host.root / AREAS["own"][0]
    (clone / "src").mkdir()
    (clone / "src" / "a.py").touch()
    host.sync()
    unreadable.add("src")
    (clone / "b.py").touch()
    host.sync()
    assert [event for event in host.exchange(1, 1, 0)["events"] if "remove" in event] == []
    unreadable.clear()
    (clone / "src" / "a.py").unlink()
    host.sync()
    removed = [event["remove"] for event in host.exchange(1, 1, 0)["events"] if "remove" in event]
    assert removed == ["workspace/agents/agent-1/src/a.py"]
