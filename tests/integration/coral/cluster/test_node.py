"""What a worker does for a grade, without a cluster: it has it run under a guard, and nothing outlives the worker."""

import base64
import contextlib
import errno
import json
import os
import pickle
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from files import deep_folder, no_descriptor_left
from real_runs import is_alive, wait_until

from attempts.record import Kind
from coral.cluster import node, spare_guard
from coral.cluster.shipping import SMALL, Shipping
from coral.config.model import GraderSection
from coral.grader.remove_tree import remove_tree
from coral.grading.command import GradePlace
from coral.grading.kinds import copy_grader_files, kind_of
from coral.processes.seal import UNSEALED

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="nodes are machines with Linux")

GRADE = """
import os, subprocess, sys, time

def grade(workspace, private, artifacts):
    print("here", flush=True)
    (artifacts / "made.txt").write_text("made")
    with open(os.environ["CORAL_BEATS"], "a") as beats:
        beats.write('{"progress": 0.5}\\n')
    text = (workspace / "x.txt").read_text()
    while text.startswith("until") and not os.path.exists(text.split()[1]):
        time.sleep(0.01)
    if text.startswith("stray"):
        stray = subprocess.Popen(["env", "-i", "setsid", "sleep", "600"])
        with open(text.split()[1], "w") as file:
            file.write(f"{stray.pid} {os.getpid()} ")
        time.sleep(600 if text.endswith(" wait") else 0)
    if text == "removes":
        subprocess.run(["rm", "-rf", os.environ["CORAL_GRADE"]])
    if text in ("bad", "removes"):
        raise SystemExit("bad")
    if text.startswith("link"):
        (artifacts / "made.txt").unlink()
        artifacts.rmdir()
        artifacts.symlink_to(text.split()[1])
    if text.startswith("hide"):
        print("x" * int(text.split()[1]), flush=True)
        until = time.monotonic() + 20
        while not os.path.exists(text.split()[2]) and time.monotonic() < until:
            time.sleep(0.01)
        os.unlink(os.path.join(os.environ["CORAL_GRADE"], "stdout"))
        raise SystemExit("bad")
    return {"score": 1.0, "feedback": (private / "hidden.txt").read_text()}
"""
COMPILED = f"coral/grading/__pycache__/runner.{sys.implementation.cache_tag}.pyc"
WORKER = """
import pickle, sys
from coral.cluster import node, spare_guard
order, checkout, archive = pickle.load(sys.stdin.buffer)
node.grade(order, checkout, lambda sha: archive, lambda event: None)
"""


@pytest.fixture(autouse=True)
def _own_server():
    spare_guard.close_server()
    yield
    spare_guard.close_server()


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """What is sent to a node for a grade of a text."""
    monkeypatch.setattr(node.tempfile, "tempdir", str(tmp_path / "node"))
    (tmp_path / "node").mkdir()
    task = tmp_path / "task"
    task.mkdir()
    (task / "grade.py").write_text(GRADE)
    (task / "hidden.txt").write_text("secret")

    def ship(text, timeout=60.0):
        grader = GraderSection(
            entry="grade.py:grade", private=("hidden.txt",), timeout=timeout, executor="ray",
            ray={"address": "127.0.0.1:1"},
        )  # fmt: skip
        private, folder = tmp_path / "grader", tmp_path / "grade"
        copy_grader_files(grader, task, private)
        (folder / "candidate-1").mkdir(parents=True, exist_ok=True)
        (folder / "candidate-1" / "x.txt").write_text(text)
        place = GradePlace(
            workspace=folder / "candidate-1", private=private, folder=folder,
            attempt=7, kind=Kind.REAL, timeout=timeout, sandbox=UNSEALED,
        )  # fmt: skip
        order = kind_of(grader).command(grader, place).spec["order"]
        shipping = Shipping()
        sha, archive = shipping.archive(private)
        return {**order, "archive": sha, "base": ""}, shipping.candidate(order), archive

    return ship


def grade(order, checkout, archive, *, is_last=True, **others):
    events, fetched, archives = [], [], {order["archive"]: archive, **others}

    def fetch(sha):
        fetched.append(sha)
        return archives[sha]

    node.grade(order, checkout, fetch, events.append, is_last=is_last)
    return events, len(fetched)


def left(tmp_path):
    return list((tmp_path / "node").glob("coral-*/*/grades/grade-*"))


def test_a_grade_tells_of_all_that_comes_of_it(shipped, tmp_path):
    events, fetched = grade(*shipped("1"))
    ended = events[-1]["ended"]
    assert ended["code"] == 0
    assert base64.b64decode(ended["result"]).decode() == '{"score": 1.0, "feedback": "secret"}'
    assert ended["artifacts"] == {"made.txt": b"made"}
    output = b"".join(event.get("output", {}).get("stdout", b"") for event in events)
    beats = b"".join(event.get("output", {}).get("beats.jsonl", b"") for event in events)
    assert (output, beats) == (b"here\n", b'{"progress": 0.5}\n')
    assert fetched == 1
    wait_until(lambda: not left(tmp_path), what="the end of its folder")


def test_a_short_grade_sends_its_begin_with_its_end(shipped, monkeypatch):
    monkeypatch.setattr(node, "SHORT_SECONDS", 60.0)
    events, _ = grade(*shipped("1"))
    assert {"started", "ended"} <= events[0].keys()


def test_the_begin_of_a_longer_grade_is_sent_at_once(shipped, tmp_path):
    events = []

    def tell(event):
        events.append(event)
        (tmp_path / "begun").touch()

    order, checkout, archive = shipped(f"until {tmp_path / 'begun'}")
    node.grade(order, checkout, lambda sha: archive, tell)
    assert events[0] == {"started": "", "pid": os.getpid()}


def test_a_grade_that_failed_on_a_full_disk_is_lost(shipped, tmp_path, monkeypatch):
    assert grade(*shipped("bad"))[0][-1]["ended"]["code"] == 1
    monkeypatch.setattr(node.shutil, "disk_usage", lambda _: SimpleNamespace(free=100))
    assert grade(*shipped("1"))[0][-1]["ended"]["code"] == 0
    with pytest.raises(OSError, match="its disk has 100 bytes free: that may be the cause"):
        grade(*shipped("bad"))
    wait_until(lambda: not left(tmp_path), what="the end of its folder")


def test_a_node_fetches_the_graders_files_once_and_again_if_they_were_changed(shipped, tmp_path):
    assert [grade(*shipped("1"))[1] for _ in range(2)] == [1, 0]
    (kept,) = (tmp_path / "node").glob("coral-*/*/archives/*")
    kept.write_bytes(b"another grader")
    assert grade(*shipped("1"))[1] == 1


def test_a_checkout_is_what_its_base_and_its_changes_are_together(shipped, tmp_path):
    order, _, archive = shipped("1")
    candidate, out, shipping = tmp_path / "grade" / "candidate-1", tmp_path / "out", Shipping()
    (candidate / "big").write_bytes(bytes(SMALL))
    (candidate / "old").mkdir()
    (candidate / "old" / "x").write_text("x")
    (candidate / "link").symlink_to("big")
    first = shipping.parcel(order)
    shutil.rmtree(candidate / "old")
    (candidate / "old").write_text("a file")
    (candidate / "link").unlink()
    (candidate / "link").mkdir()
    (candidate / "link" / "y").write_text("y")
    (candidate / "x.txt").write_text("2")
    second = shipping.parcel(order)
    assert (second.base_sha, len(second.changes) < SMALL / 4) == (first.base_sha, True)
    events, fetched = [], []
    for parcel in (first, second, second):
        sent = {**order, "base": parcel.base_sha, "removed": parcel.removed, "spec": None, "artifacts": ""}
        sent |= {"argv": ["cp", "-a", str(candidate), str(out)], "env": {"PATH": os.environ["PATH"]}}
        shutil.rmtree(out, ignore_errors=True)
        made, count = grade(sent, parcel.changes, archive, **{parcel.base_sha: parcel.base})
        events += made
        fetched.append(count)
    assert [event["ended"]["code"] for event in events if "ended" in event] == [0, 0, 0]
    assert fetched == [2, 0, 0]
    copied = {**order, "places": {**order["places"], "candidate": str(out)}}
    assert shipping.candidate(copied) == shipping.candidate(order)


def test_a_node_removes_what_was_not_used_for_long_and_what_it_is_told(shipped, tmp_path, monkeypatch):
    order, checkout, archive = shipped("1")
    grade(order, checkout, archive)
    (kept,) = (tmp_path / "node").glob("coral-*/*/archives/*")
    others = [kept.with_name("unused"), kept.with_name("used"), kept.parents[1] / "grades" / "7-left"]
    others[2].mkdir()
    for other in others:
        other.touch()
    for old in (others[0], others[2], kept):
        os.utime(old, (1, 1))
    monkeypatch.setattr(node, "_base", lambda: kept.parents[1])
    node.discard(["used", "unknown"])
    assert [other.exists() for other in others] == [True, False, True]
    assert grade(order, checkout, archive)[1] == 1
    assert [other.exists() for other in (kept, *others)] == [True, False, False, False]
    os.utime(kept, (time.time() - node.KEPT_SECONDS / 2,) * 2)
    assert grade(order, checkout, archive)[1] == 0
    assert kept.stat().st_mtime > time.time() - 60


def test_an_archive_that_the_disk_has_no_room_for_leaves_nothing(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            node._kept(tmp_path, "sha", lambda sha: bytes(1000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kit", [{}, {"a/b": b"", "a": b""}], ids=["no program", "no file"])
def test_a_guard_that_cannot_be_started_leaves_nothing(tmp_path, monkeypatch, kit):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    with no_descriptor_left(), pytest.raises(OSError, match=r"No such file|Is a directory"):
        spare_guard.GradeGuard(tmp_path, {"env": {}}, kit)
    assert list(tmp_path.iterdir()) == []


def test_a_node_removes_the_archives_that_were_used_longest_ago_when_they_are_too_many(shipped, tmp_path, monkeypatch):
    order, checkout, archive = shipped("1")
    grade(order, checkout, archive)
    (kept,) = (tmp_path / "node").glob("coral-*/*/archives/*")
    ages = {"last": 10, "second": 20, "third": 30, "fourth": 40, f"{node.UNFINISHED}1": 50, kept.name: 60}
    for name, age in ages.items():
        if name != kept.name:
            kept.with_name(name).write_bytes(bytes(100))
        os.utime(kept.with_name(name), (time.time() - age,) * 2)
    monkeypatch.setattr(node, "KEPT_BYTES", 250)
    assert grade(order, checkout, archive)[1] == 0
    left_there = {path.name for path in kept.parent.iterdir()}
    assert left_there == {"last", "second", f"{node.UNFINISHED}1", kept.name}


def test_a_candidate_that_removes_what_it_has_printed_fails_and_its_grade_is_not_lost(shipped, tmp_path, monkeypatch):
    monkeypatch.setattr(node, "OUTPUT", 1000)
    events = []

    def tell(event):
        events.append(event)
        if len(event.get("output", {}).get("stdout", b"")) == 1000:
            (tmp_path / "was-read").touch()

    order, checkout, archive = shipped(f"hide 2000 {tmp_path / 'was-read'}")
    node.grade(order, checkout, lambda sha: archive, tell)
    assert events[-1]["ended"]["code"] == 1


def test_a_candidate_that_removes_the_folder_of_its_grade_fails_and_its_grade_is_not_lost(shipped):
    events, _ = grade(*shipped("removes"))
    assert events[-1]["ended"]["code"] == 1


def test_no_file_is_sent_of_a_folder_to_which_a_candidate_laid_a_link(shipped, tmp_path):
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed" / "key").write_text("k")
    events, _ = grade(*shipped(f"link {tmp_path / 'closed'}"))
    assert events[-1]["ended"]["code"] == 0
    assert events[-1]["ended"]["artifacts"] == {}


def test_of_what_lies_in_the_folder_of_artifacts_only_some_plain_files_are_sent(tmp_path, monkeypatch):
    monkeypatch.setattr(node, "ARTIFACT_BYTES", 20)
    monkeypatch.setattr(node, "MOST_ARTIFACTS", 3)
    folder = tmp_path / "artifacts"
    (folder / "folder").mkdir(parents=True)
    for name in (".hidden", "1", "2", "3", "4"):
        (folder / name).write_text(name)
    (folder / "0").write_text("x" * 21)
    (folder / "0-link").symlink_to(folder / "1")
    os.mkfifo(folder / "0-pipe")
    assert node._artifacts(tmp_path) == {"1": b"1", "2": b"2", "3": b"3"}
    monkeypatch.setattr(node, "MOST_NAMES", 0)
    assert node._artifacts(tmp_path) == {}


def test_what_a_grade_leaves_behind_is_ended_with_it(shipped, tmp_path):
    pids = tmp_path / "pids"
    events, _ = grade(*shipped(f"stray {pids}"))
    assert events[-1]["ended"]["code"] == 0
    assert not is_alive(int(pids.read_text().split()[0]))


def test_a_grade_ends_at_its_time_limit(shipped, tmp_path):
    pids = tmp_path / "pids"
    events, _ = grade(*shipped(f"stray {pids} wait", timeout=10.0))
    assert events[-1]["ended"]["code"] is None
    assert not any(is_alive(int(pid)) for pid in pids.read_text().split())


def test_nothing_of_a_grade_outlives_its_worker(shipped, tmp_path):
    pids = tmp_path / "pids"
    env = {**os.environ, "TMPDIR": str(tmp_path / "node")}
    worker = subprocess.Popen([sys.executable, "-c", WORKER], stdin=subprocess.PIPE, env=env)
    worker.stdin.write(pickle.dumps(shipped(f"stray {pids} wait")))
    worker.stdin.close()
    wait_until(lambda: pids.exists() and pids.read_text().endswith(" "), what="the grade")
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    wait_until(lambda: not any(is_alive(int(pid)) for pid in pids.read_text().split()), what="the end of the grade")
    wait_until(lambda: not left(tmp_path), what="the end of its folder")


def test_nothing_of_a_grade_outlives_its_guard(shipped, tmp_path):
    pids = tmp_path / "pids"

    def kill(event):
        if "output" in event:  # the grade has begun
            wait_until(lambda: pids.exists() and pids.read_text().endswith(" "), what="the grade")
            (guard,) = (tmp_path / "node").glob("coral-*/*/grades/grade-*/guard.json")
            os.kill(json.loads(guard.read_text())["pid"], signal.SIGKILL)

    order, checkout, archive = shipped(f"stray {pids} wait")
    with pytest.raises(RuntimeError, match="the guard of the grade has ended"):
        node.grade(order, checkout, lambda sha: archive, kill)
    wait_until(lambda: not any(is_alive(int(pid)) for pid in pids.read_text().split()), what="the end of the grade")
    wait_until(lambda: not left(tmp_path), what="the end of its folder")


def test_a_grade_whose_program_the_node_lacks_says_so_and_leaves_nothing(shipped, tmp_path):
    order, checkout, archive = shipped("1")
    with pytest.raises(RuntimeError, match=r"cannot run it: FileNotFoundError: .*'no-such-program'"):
        grade({**order, "spec": None, "argv": ["no-such-program"]}, checkout, archive)
    wait_until(lambda: not left(tmp_path), what="the end of its folder")


def test_a_folder_that_a_candidate_has_spoiled_keeps_no_other_grade_from_running(shipped, tmp_path):
    grade(*shipped("1"))
    texts = ("[]", "{}", '{"pid": "x"}', "nonsense", '{"pid": 1e999}', "[" * 1000)
    for number, text in enumerate(texts):
        spoiled = next((tmp_path / "node").glob("coral-*/*/grades")) / f"grade-{number}"
        spoiled.mkdir()
        (spoiled / "guard.json").write_text(text)
    assert grade(*shipped("1"))[0][-1]["ended"]["code"] == 0
    wait_until(lambda: not left(tmp_path), what="the end of their folders")


def test_a_folder_whose_guard_was_killed_is_removed_however_deep_it_is(shipped, tmp_path):
    grade(*shipped("1"))
    wait_until(lambda: not left(tmp_path), what="the end of the grade")
    spoiled = next((tmp_path / "node").glob("coral-*/*/grades")) / "grade-deep"
    spoiled.mkdir()
    (spoiled / "guard.json").write_text("{}")
    deep_folder(spoiled / "deep")
    (spoiled / "closed").mkdir(mode=0)
    try:
        assert grade(*shipped("1"))[0][-1]["ended"]["code"] == 0
        wait_until(lambda: not left(tmp_path), what="the end of its folder")
    finally:
        remove_tree(spoiled)  # pytest could not


def test_a_folder_that_a_candidate_has_closed_keeps_no_other_grade_from_running(shipped, tmp_path, monkeypatch):
    grade(*shipped("1"))
    closed = next((tmp_path / "node").glob("coral-*/*/grades")) / "grade-closed"
    closed.mkdir()
    (closed / "guard.json").write_text("{}")
    closed.chmod(0)
    stat = os.stat

    def refuse(path, *arguments, **named):  # what the kernel does for all but root
        if str(path).startswith(f"{closed}/") and not stat(closed).st_mode & 0o700:
            raise PermissionError(errno.EACCES, "no", str(path))
        return stat(path, *arguments, **named)

    monkeypatch.setattr(os, "stat", refuse)
    assert grade(*shipped("1"))[0][-1]["ended"]["code"] == 0
    wait_until(lambda: not closed.exists(), what="the end of its folder")


@pytest.fixture
def ready(shipped, tmp_path):
    """The guard that a worker has ready for its next grade, and the process of the grader that waits for it."""
    grade(*shipped("1"), is_last=False)
    (guard,) = spare_guard._spare
    (process,) = wait_until(lambda: waiting(guard.place), what="the interpreter of the next grade")
    yield guard, process
    for left_over in spare_guard._spare:
        left_over.close()
    spare_guard._spare.clear()
    wait_until(lambda: not waiting(guard.place) and not left(tmp_path), what="the end of what waited")


def waiting(place):
    """The processes of a grade, which are started in its folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"CORAL_GRADE={place}".encode() in (path / "environ").read_bytes().split(b"\0"):
                found.append(int(path.name))
    return found


def pids_of(shipped, tmp_path):
    """Run a grade; return the process that was its grader."""
    pids = tmp_path / "pids"
    events, _ = grade(*shipped(f"stray {pids}"))
    assert base64.b64decode(events[-1]["ended"]["result"] or b"") == b'{"score": 1.0, "feedback": "secret"}'
    return int(pids.read_text().split()[1])


def test_the_next_grade_of_a_worker_runs_in_the_process_that_waits_for_it(shipped, tmp_path, ready):
    assert pids_of(shipped, tmp_path) == ready[1]


def test_a_process_that_was_ended_while_it_waited_is_replaced(shipped, tmp_path, ready):
    os.kill(ready[1], signal.SIGKILL)
    wait_until(lambda: not is_alive(ready[1]), what="its end")
    assert pids_of(shipped, tmp_path) != ready[1]


def test_a_guard_that_was_ended_while_it_waited_is_replaced(shipped, tmp_path, ready):
    os.kill(json.loads((ready[0].place / "guard.json").read_text())["pid"], signal.SIGKILL)
    assert wait_until(lambda: ready[0].is_done(0), what="its end")
    assert pids_of(shipped, tmp_path) != ready[1]


def test_what_waits_is_not_used_where_somebody_wrote_into_its_folder(shipped, tmp_path, ready):
    (ready[0].place / "private").write_text("another grader")
    assert pids_of(shipped, tmp_path) != ready[1]


def modules():
    (server,) = spare_guard._servers
    return server.modules


@pytest.mark.parametrize("name", ["grade.py", "coral/grading/runner.py", COMPILED])
def test_what_waits_is_not_used_where_somebody_wrote_into_the_modules(shipped, tmp_path, ready, name):
    (changed := modules() / name).write_text("another grader")
    assert pids_of(shipped, tmp_path) != ready[1]
    assert not changed.exists(), "they are written anew, into another folder"


def test_all_grades_of_a_worker_import_the_same_modules(shipped, tmp_path, ready):
    before = modules()
    pids_of(shipped, tmp_path)
    assert modules() == before


@pytest.mark.parametrize(
    "change", [Path.unlink, lambda path: path.write_text("raise RuntimeError('changed')")], ids=["removed", "changed"]
)
def test_the_next_guard_of_a_worker_begins_with_the_modules_that_were_sent(shipped, tmp_path, change):
    grade(*shipped("1"))
    change(modules() / "coral" / "grading" / "runner.py")
    assert grade(*shipped("1"))[0][-1]["ended"]["code"] == 0


def test_what_somebody_compiled_into_the_folder_of_what_waits_is_removed(shipped, tmp_path, ready):
    (other,) = cached(modules(), "coral/grader/candidate.py")
    other.write_bytes(b"of another grader")
    assert pids_of(shipped, tmp_path) == ready[1]
    assert not other.exists()


def cached(kit, *names):
    tag = sys.implementation.cache_tag
    return [(kit / name).parent / "__pycache__" / f"{Path(name).stem}.{tag}.pyc" for name in names]


def test_a_grader_imports_modules_of_coral_that_are_compiled_already(shipped, tmp_path):
    order, _, archive = shipped("1")
    kit = node._kit(order["archive"], archive)
    for name, data in kit.items():
        (tmp_path / "kit" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "kit" / name).write_bytes(data)
    before = set((tmp_path / "kit").rglob("*.pyc"))
    assert before == set(cached(tmp_path / "kit", *node._COMMON))
    source = tmp_path / "kit" / "coral" / "grading" / "runner.py"
    source.write_text("raise RuntimeError('it is compiled again')")
    code = "from coral.grading.runner import main; import coral.grader; print(main.__code__.co_filename)"
    here = f"import sys; sys.path.insert(0, {str(tmp_path / 'kit')!r}); {code}"
    shown = subprocess.run([sys.executable, "-P", "-c", here], capture_output=True, text=True, check=True).stdout
    assert shown == f"{source}\n"
    assert set((tmp_path / "kit").rglob("*.pyc")) == before


def test_what_waits_is_not_used_for_a_grade_with_other_variables(shipped, tmp_path, ready, monkeypatch):
    monkeypatch.setenv("PYTHONHASHSEED", "1")
    assert pids_of(shipped, tmp_path) != ready[1]


def test_what_has_waited_for_long_is_not_used(shipped, tmp_path, ready, monkeypatch):
    monkeypatch.setattr(spare_guard, "FRESH_SECONDS", 0.0)
    assert pids_of(shipped, tmp_path) != ready[1]


def test_to_unpack_may_take_longer_than_a_guard_waits_for_a_grade(shipped, monkeypatch):
    kit, unpack, name = node._kit, node.unpack, "coral/cluster/guard_protocol.py"

    def impatient(sha, archive):
        modules = kit(sha, archive)
        shorter = modules[name].replace(b"IDLE_SECONDS = 600.0", b"IDLE_SECONDS = 3.0")
        assert shorter != modules[name]
        return {**modules, name: shorter}

    def slowly(*arguments, **options):
        time.sleep(2)
        unpack(*arguments, **options)

    monkeypatch.setattr(node, "_kit", impatient)
    monkeypatch.setattr(node, "unpack", slowly)
    assert grade(*shipped("1"))[0][-1]["ended"]["code"] == 0
