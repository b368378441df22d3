"""What an action comes to that fails: events, and nothing else is held up."""

import errno
import json
import shutil
from dataclasses import replace

from real_runs import wait_until

from attempts.record import Kind
from attempts.store import Store
from coral.fleet import actions as do, events as on
from coral.fleet.reasons import START
from coral.fleet.run_state import Fleet
from coral.supervisor.loop import Supervisor

NOW = on.Moment(run_time=0.0, wall_time="")
ALERT = do.Notify(id="alert-1", text="look")


def performed(supervisor: Supervisor, *actions: do.Action) -> list[on.Event]:
    """What performing them puts on the queue at once."""
    supervisor._performer.perform(actions, Fleet(), NOW)
    return supervisor._queue.take()


def test_what_could_not_be_written_is_kept_until_it_is_to_be_written_again(supervisor: Supervisor) -> None:
    logs = supervisor._layout.events.parent
    shutil.rmtree(logs)
    logs.write_text("in the way")
    failed = on.WriteFailed(item="alert alert-1")
    assert performed(supervisor, ALERT) == [failed]
    assert performed(supervisor, do.WriteAgain()) == [replace(failed, depth=2)]
    logs.unlink()
    logs.mkdir()
    assert performed(supervisor) == []
    assert performed(supervisor, do.WriteAgain()) == [on.Notified(id="alert-1")]
    assert performed(supervisor, do.WriteAgain()) == []
    assert supervisor._layout.events.read_text().count('"look"') == 1


def test_an_answer_that_cannot_be_written_for_a_moment_is_given_later(supervisor: Supervisor, monkeypatch) -> None:
    answer = do.Answer(sender="operator", id="1", ok=True, message="yes")
    with monkeypatch.context() as patch:
        patch.setattr("attempts.files.os.open", out_of_files)
        assert performed(supervisor, answer) == [on.WriteFailed(item="the action Answer")]
        assert performed(supervisor, do.WriteAgain()) == [on.WriteFailed(item="the action Answer", depth=2)]
    assert performed(supervisor, do.WriteAgain()) == []
    assert (supervisor._layout.replies_to("operator") / "1.json").exists()


def test_an_answer_that_comes_late_hides_no_result(supervisor: Supervisor, monkeypatch) -> None:
    accept = do.Accept(agent="agent-1", submission="1" * 20, number=0)
    with monkeypatch.context() as patch:
        patch.setattr("attempts.files.os.open", out_of_files)
        assert performed(supervisor, accept) == [on.WriteFailed(item="the action Accept")]
    seed = replace(Store(supervisor._layout.attempts).read(0), agent="agent-1", submission="1" * 20)
    performed(supervisor, do.Publish(attempt=seed), do.WriteAgain())
    (reply,) = (supervisor._layout.attempts / "replies" / "agent-1").glob("*.json")
    assert json.loads(reply.read_text())["published"] is True


def out_of_files(*_: object, **__: object) -> int:
    raise OSError(errno.EMFILE, "Too many open files")


def test_an_action_that_fails_holds_up_no_other(supervisor: Supervisor) -> None:
    unknown = do.ShowHeartbeats(owner="nobody")
    broken, notified = performed(supervisor, unknown, ALERT)
    assert broken == on.Broken(item="the action ShowHeartbeats", reason="KeyError: 'nobody'")
    assert notified == on.Notified(id="alert-1")


def test_a_grade_that_cannot_be_prepared_ahead_of_time_ends_nothing(start) -> None:
    """As on a disk that is full by then: the record is published, and the commit is taken in."""
    layout = start(["hang"], supervise=False, overrides=("workspace.seal=best",)).layout
    supervisor = Supervisor(layout, (layout.private / "seed").read_text().strip())
    grading = layout.grading(1).parent
    shutil.rmtree(grading)
    grading.write_text("in the way")
    seed = Store(layout.attempts).read(0)
    assert performed(supervisor, do.Publish(attempt=seed)) == [on.Published(number=0)]
    take_in = do.TakeIn(number=1, agent="agent-1", commit=seed.commit, kind=Kind.REAL)
    supervisor._performer.perform([take_in], Fleet(), NOW)
    wait_until(lambda: not supervisor._queue.is_empty, what="the intake")
    (taken,) = supervisor._queue.take()
    supervisor.close()
    assert isinstance(taken, on.TakenIn)


def test_a_child_whose_start_failed_on_the_way_is_never_let_go(supervisor: Supervisor) -> None:
    shutil.rmtree(supervisor._layout.clone("agent-1"))
    spawn = do.Spawn(agent="agent-1", launch=1, session=None, messages=(), last_result_seen=0, reason=START)
    (failed,) = performed(supervisor, spawn)
    assert isinstance(failed, on.SpawnFailed)
    assert (failed.who, failed.launch) == ("agent-1", 1)
    assert supervisor._launches.find("agent-1", 1) is None


def test_a_scan_that_cannot_begin_has_found_nothing_and_is_told_of(start) -> None:
    layout = start(["hang"], supervise=False).layout
    manager = Supervisor(layout, (layout.private / "seed").read_text().strip())
    manager.close()  # from now on there is no thread to be had
    action = do.ScanEdits(agent="agent-1", launch=3)
    manager._performer.perform([action], manager._fleet, NOW)
    scanned, broken = manager._queue.take()
    assert scanned == on.EditsScanned(agent="agent-1", launch=3)
    assert isinstance(broken, on.Broken)
    assert broken.item == "the scan of the files of agent-1"
