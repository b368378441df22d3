"""The files of the supervisor itself, as transcripts: written again where that failed, restored where altered."""

import pytest
from stage import REFLECTING, Stage, on_request

from coral.fleet import actions as do, events as on
from coral.fleet.policy import WRITE_RETRY_SECONDS

FAILED = on.WriteFailed(item="the record of #1")


def test_what_could_not_be_written_is_written_again_a_little_later_as_often_as_it_fails() -> None:
    stage = Stage()
    assert stage.at(10, FAILED, on.WriteFailed(item="alert run-alert-1")) == []
    assert stage.until(99) == [f"{10 + WRITE_RETRY_SECONDS:g} write again"]
    stage = Stage()
    stage.at(10, FAILED)
    stage.at(12, FAILED)
    assert stage.until(99) == [f"{10 + WRITE_RETRY_SECONDS:g} write again"]
    stage = Stage()
    stage.at(10, FAILED)
    for time in (15, 20, 25):
        assert stage.at(time) == ["write again"]
        stage.at(time, FAILED)
    assert stage.at(30) == ["write again"]
    assert stage.until(99) == []
    stage = Stage()
    stage.at(10, FAILED)
    stage.at(11, on.Resumed())
    assert stage.until(99) == []


def test_each_further_try_comes_after_twice_the_pause_up_to_a_longest() -> None:
    pauses = []
    for depth in range(1, 8):
        stage = Stage()
        stage.at(10, on.WriteFailed(item="the record of #1", depth=depth))
        (said,) = stage.until(999)
        pauses.append(float(said.partition(" ")[0]) - 10)
    assert pauses == [5.0, 10.0, 20.0, 40.0, 80.0, 80.0, 80.0]


def test_it_is_tried_while_a_run_stops_on_a_full_disk_and_at_once_when_that_can_be_used_again() -> None:
    stage = Stage()
    stage.at(10, on.DiskChecked(problem="no space"), FAILED, stage.asks("operator", on.Stop(end=on_request("enough"))))
    assert "15 write again" in stage.until(15)
    stage = Stage()
    stage.at(10, on.DiskChecked(problem="no space"))
    stage.at(10, FAILED)
    assert stage.at(11, on.DiskChecked(problem="")) == [
        "write again",
        "alert run-alert-2: the disk can be used again; the run continues",
    ]
    assert stage.until(99) == []
    stage.at(100, on.DiskChecked(problem="no space"))
    assert stage.at(101, on.DiskChecked(problem=""))[0].startswith("alert")


TOLD: dict[on.Event, str] = {
    on.RecordsDamaged(altered=(1, 3), misindexed=(2,)): "restore the records (1, 3), and (2,) in the index",
    on.HeartbeatsAltered(owner="ann"): (
        "show ann\nalert run-alert-1: heartbeats/ann.yaml was altered, though only the supervisor may change it; "
        "restored from the journal"
    ),
    on.RequestUnreadable(sender="ann", id="7", reason="it is no object"): (
        "answer ann/7: no, cannot read the request: it is no object"
    ),
    on.WatchFailed(reason="no more watches"): ("warning: files cannot be watched (no more watches); polling continues"),
}


@pytest.mark.parametrize("event", TOLD, ids=lambda event: type(event).__name__)
def test_what_was_altered_is_restored_and_what_cannot_be_read_or_watched_is_told(event: on.Event) -> None:
    assert "\n".join(Stage().at(10, event)) == TOLD[event]


def launches_told(stage: Stage) -> list[int]:
    return [action.launch for action in stage.actions if isinstance(action, do.Publish)]


def test_a_result_names_the_launch_that_may_wait_for_it() -> None:
    stage = Stage(rules=REFLECTING)
    stage.in_grading(2, "ann", wait=60)
    stage.at(3, stage.graded(1, 1.0))
    assert launches_told(stage) == [1]
    # Its next launch starts in the turn in which its last result is published again: that was for the one before.
    said = stage.at(4, on.Resumed(), stage.exited("ann", on.Ending.LOST))
    assert [line for line in said if line.startswith(("publish", "spawn"))] == [
        "publish #1 new best 1, then reflect",
        "spawn ann/2: resumed, session of ann, told 0, owed reflect:h1",
    ]
    assert launches_told(stage) == [1]
    stage.at(5, on.Resumed())
    assert launches_told(stage) == [2]
    assert launches_told(Stage(started=False)) == [0]
