"""What the failure of an action means, that no event is lost, and what is kept where the journal cannot be written."""

import errno
import os
import sqlite3
import threading

import pytest

from attempts.record import Kind
from coral.fleet import actions as do, events as on
from coral.fleet.agent_state import Spent
from coral.fleet.run_state import Job
from coral.supervisor.degraded import without_superseded
from coral.supervisor.event_queue import MAX_TRIES, EventQueue, events_of_failure, is_transient
from workspace.errors import Unacceptable

FULL = OSError(errno.ENOSPC, "No space left on device")
TAKE_IN = do.TakeIn(number=3, agent="ann", commit="c", kind=Kind.REAL)
GRADE = do.CheckOut(number=3, launch=2, commit="c", kind=Kind.REAL)
START = do.StartGrader(number=3, launch=2, kind=Kind.REAL)
JOB = Job(number=4, agent="ann", argv=("true",))


@pytest.mark.parametrize(
    ("action", "error", "event"),
    [
        (TAKE_IN, Unacceptable("a link", ""), on.IntakeFailed(number=3, reason="a link", our_fault=False)),
        (TAKE_IN, KeyError("x"), on.IntakeFailed(number=3, reason="KeyError: 'x'", our_fault=True)),
        (GRADE, Unacceptable("a link", ""), on.Graded(number=3, launch=2, outcome=on.Outcome.FAILED, reason="a link")),
        (GRADE, OSError("no git"), on.SpawnFailed(who="#3", launch=2, reason="no git")),
        (START, OSError("no program"), on.SpawnFailed(who="#3", launch=2, reason="no program")),
        (do.StartJob(job=JOB), OSError("no folder"), on.SpawnFailed(who="%4", launch=1, reason="no folder")),
        (do.Notify(id="a-1", text="x"), OSError("closed"), on.WriteFailed(item="alert a-1")),
        (do.WriteAgain(), OSError("odd"), on.Broken(item="the action WriteAgain", reason="odd")),
    ],
)
def test_a_failure_is_one_event(action: do.Action, error: Exception, event: on.Event) -> None:
    assert events_of_failure(action, error) == [event]


ANSWERS = (
    do.Accept(agent="ann", submission="s", number=3),
    do.Answer(sender="ann", id="1", ok=True, message="yes"),
    do.ShowHeartbeats(owner="ann"),
)


@pytest.mark.parametrize("action", ANSWERS, ids=lambda action: type(action).__name__)
@pytest.mark.parametrize("code", [errno.EAGAIN, errno.EIO, errno.EMFILE, errno.ENOSPC])
def test_what_may_succeed_a_moment_later_is_tried_one_level_deeper_and_then_set_aside(action, code: int) -> None:
    error = OSError(code, os.strerror(code))
    item = f"the action {type(action).__name__}"
    for depth in range(1, MAX_TRIES):
        assert events_of_failure(action, error, depth) == [on.WriteFailed(item=item, depth=depth)]
    assert events_of_failure(action, error, MAX_TRIES) == [on.Broken(item=item, reason=str(error))]
    assert events_of_failure(action, PermissionError(errno.EACCES, "no"), 1)[0] == on.Broken(
        item=item, reason="[Errno 13] no"
    )


def test_what_must_be_written_is_told_of_from_the_third_try_on_and_tried_for_ever() -> None:
    action = do.ShowHoldouts()
    failed = [on.WriteFailed(item="the scores on the hold-out", depth=depth) for depth in (1, 2, 3, 99)]
    busy = OSError(errno.EIO, "Input/output error")
    told = on.Broken(item="the scores on the hold-out", reason=str(busy))
    assert [events_of_failure(action, busy, one.depth) for one in failed] == [
        failed[:1],
        failed[1:2],
        [told, failed[2]],
        [told, failed[3]],
    ]
    # A full disk, and what no time mends, are told at once.
    assert len(events_of_failure(action, FULL, 1)) == len(events_of_failure(action, KeyError("x"), 1)) == 2


def test_which_errors_may_be_over_a_moment_later(tmp_path) -> None:
    one = sqlite3.connect(tmp_path / "x.sqlite", isolation_level=None)
    one.execute("BEGIN EXCLUSIVE")
    other = sqlite3.connect(tmp_path / "x.sqlite", timeout=0.0)
    with pytest.raises(sqlite3.OperationalError) as busy:
        other.execute("CREATE TABLE x (y)")
    with pytest.raises(sqlite3.OperationalError) as wrong:
        one.execute("SELECT nothing FROM nowhere")
    assert is_transient(busy.value)
    assert not is_transient(wrong.value)
    assert not is_transient(ValueError("odd"))
    assert not is_transient(OSError("of no code"))
    one.close()
    other.close()


def test_a_scan_that_failed_has_found_nothing_and_is_told_of() -> None:
    scanned, broken = events_of_failure(do.ScanEdits(agent="ann", launch=3), OSError("odd"))
    assert scanned == on.EditsScanned(agent="ann", launch=3)
    assert broken == on.Broken(item="the scan of the files of ann", reason="odd")


def test_a_full_disk_is_remembered_until_it_is_asked_for_and_only_an_event_wakes_the_loop() -> None:
    queue = EventQueue(lambda: None)
    queue.put_failure(TAKE_IN, OSError("no git"))
    assert queue.take_disk_error() == ""
    queue.put_failure(TAKE_IN, FULL)
    assert "No space left" in queue.take_disk_error()
    assert queue.take_disk_error() == ""
    woken: list[bool] = []
    queue = EventQueue(lambda: woken.append(True))
    queue.put()
    assert woken == []
    queue.put(on.Published(number=1), on.Published(number=2))
    assert woken == [True]
    assert not queue.is_empty


def test_what_threads_put_while_it_is_emptied_is_taken_once_and_in_order() -> None:
    queue = EventQueue(lambda: None)
    threads = [
        threading.Thread(target=lambda of=of: [queue.put(on.Published(number=number)) for number in range(of, 4000, 4)])
        for of in range(4)
    ]
    for thread in threads:
        thread.start()
    taken: list[on.Event] = []
    while any(thread.is_alive() for thread in threads) or not queue.is_empty:
        taken += queue.take()
    numbers = [event.number for event in taken if isinstance(event, on.Published)]
    assert sorted(numbers) == list(range(4000))
    for of in range(4):
        assert [number for number in numbers if number % 4 == of] == list(range(of, 4000, 4))


def heard(reply: str = "", agent: str = "ann", launch: int = 1, busy: str = "") -> on.OutputSeen:
    return on.OutputSeen(agent=agent, launch=launch, has_prompt=True, session="s", activity=busy, reply=reply)


def used(tokens: int, session: str = "s") -> on.Used:
    return on.Used(agent="ann", launch=1, figure=Spent(input=tokens), session=session)


def test_of_what_is_said_again_and_again_the_last_word_is_kept() -> None:
    events: list[on.Event] = []
    for number in range(1000):
        events = without_superseded([*events, heard(f"step {number}"), used(number), heard(agent="ben", busy="tool")])
    assert events == [heard("step 999"), used(999), heard(agent="ben", busy="tool")]


def test_answers_launches_and_conversations_are_told_apart_and_all_else_is_kept_in_its_order() -> None:
    events = [
        heard("All is well.\nHEARTBEAT_OK"),
        heard("ALERT: the disk is full"),
        heard("ALERT: and it stays so"),
        heard("going on"),
        heard("going on", launch=2),
        used(7),
        used(3, session="another"),
    ]
    assert without_superseded(events) == events
    exited = on.Exited(agent="ann", launch=1, ending=on.Ending.CLEAN)
    failed = on.SpawnFailed(who="ben", launch=4, reason="no such program")
    assert without_superseded([heard("a"), exited, heard("b", launch=2), failed, failed, heard("c", launch=2)]) == [
        heard("a"),
        exited,
        failed,
        failed,
        heard("c", launch=2),
    ]
